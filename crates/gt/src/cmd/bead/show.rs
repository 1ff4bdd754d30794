//! `gt bead show`, `gt show`.

use clap::Args;
use gt_core::plan::Policy;
use gt_core::refusal::Refusal;
use gt_store::{Merge, Store, StoreError, View};
use jiff::Timestamp;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cmd::refinery;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{self, BOLD, paint};

/// Show beads with everything about them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt show gt-a1b2
  gt show gt-a1b2 --json")]
pub(crate) struct ShowArgs {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Reasons that tell how a run or a start failed.
const FAILED: [&str; 6] =
    ["backing-off", "cooling-down", "circuit-broken", "out-of-attempts", "left-out", "rework-closed"];

struct Shown {
    view: View,
    merges: Vec<Merge>,
    failure: Option<String>,
}

pub(crate) fn run(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let policy = context.settings_or_defaults(&town, &mut store).policy(town.root());
    let mut shown = Vec::new();
    for id in &args.ids {
        let failure = failure(&mut store, id, &policy, context.now())?;
        shown.push(Shown { view: store.bead(id)?, merges: store.merges_of(id)?, failure });
    }
    if context.wants_json() {
        let rows: Vec<_> = shown.iter().map(row).collect();
        return match rows.as_slice() {
            [row] => context.json(row),
            rows => context.json(rows),
        };
    }
    let cards = shown.iter().map(|shown| card(shown, context.now()));
    context.say(&cards.collect::<Vec<_>>().join("\n\n"))
}

/// How the last run or start of a bead failed, when the next try is, and what to type.
fn failure(store: &mut Store, id: &str, policy: &Policy, now: Timestamp) -> Result<Option<String>, Failure> {
    let explanation = match store.explain(id, policy, now) {
        // A context is shown like a bead, and is none.
        Err(StoreError::Refused(Refusal::IsContext { .. })) => return Ok(None),
        explained => explained?,
    };
    let failed = explanation.reasons.into_iter().find(|reason| FAILED.contains(&reason.code));
    Ok(failed.map(|reason| reason.message))
}

/// The bead, below it how its last run failed, and how far its work is from its branch.
fn card(shown: &Shown, now: Timestamp) -> String {
    let failure = shown.failure.as_ref().map(|why| format!("\n\n{}\n  {why}", paint(BOLD, "failure")));
    let section = |merge: &Merge| format!("\n\n{}{}", paint(BOLD, &merge.id), refinery::card(merge));
    let merges = shown.merges.iter().map(section);
    render::card(&shown.view, now) + &failure.into_iter().chain(merges).collect::<String>()
}

/// The bead's row with its failure and its merges.
fn row(shown: &Shown) -> Box<RawValue> {
    let row = render::row(&shown.view);
    let merges: Vec<_> = shown.merges.iter().map(refinery::merge_json).collect();
    let open = row.get().strip_suffix('}').unwrap_or_default();
    let more = format!("\"failure\":{},\"merges\":{}", json!(shown.failure), json!(merges));
    RawValue::from_string(format!("{open},{more}}}")).unwrap_or(row)
}
