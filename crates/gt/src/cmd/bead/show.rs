//! `gt bead show`, `gt show`.

use clap::Args;
use gt_store::{Merge, View};
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

pub(crate) fn run(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let mut shown = Vec::new();
    for id in &args.ids {
        shown.push((store.bead(id)?, store.merges_of(id)?));
    }
    if context.wants_json() {
        let rows: Vec<_> = shown.iter().map(|(view, merges)| row(view, merges)).collect();
        return match rows.as_slice() {
            [row] => context.json(row),
            rows => context.json(rows),
        };
    }
    let cards = shown.iter().map(|(view, merges)| card(view, merges, context.now()));
    context.say(&cards.collect::<Vec<_>>().join("\n\n"))
}

/// The bead, and below it how far its work is from its branch.
fn card(view: &View, merges: &[Merge], now: Timestamp) -> String {
    let section = |merge: &Merge| format!("\n\n{}{}", paint(BOLD, &merge.id), refinery::card(merge));
    render::card(view, now) + &merges.iter().map(section).collect::<String>()
}

/// The bead's row with its merges.
fn row(view: &View, merges: &[Merge]) -> Box<RawValue> {
    let row = render::row(view);
    let merges: Vec<_> = merges.iter().map(refinery::merge_json).collect();
    let open = row.get().strip_suffix('}').unwrap_or_default();
    RawValue::from_string(format!("{open},\"merges\":{}}}", json!(merges))).unwrap_or(row)
}
