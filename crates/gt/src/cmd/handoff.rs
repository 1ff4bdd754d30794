//! `gt handoff`: an agent leaves its work to a fresh run. // SPEC P7

use clap::Args;
use gt_core::run::Outcome;
use gt_engine::done::{self, Done, Word};
use gt_engine::surroundings::Machine;
use serde_json::json;

use super::bead::checked_body;
use super::prime::own_run;
use crate::context::Context;
use crate::failure::Failure;

/// Leave the work to a fresh run
///
/// For an agent that has learned or written as much as it can keep in mind. The next run starts where this one's commits end, reads
/// the note, and finds what was not committed as a patch. It costs no attempt while each run adds commits.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt handoff \"the parser is done and tested; the printer is next\"")]
pub(crate) struct HandoffArgs {
    /// What the next run has to know
    #[arg(value_name = "NOTE")]
    note: String,
}

pub(crate) fn run(context: &Context, args: HandoffArgs) -> Result<(), Failure> {
    let note = Some(checked_body("note", args.note)?);
    let is_rehearsal = context.is_dry_run();
    let word = Word {
        run: own_run()?,
        outcome: Outcome::HandedOff,
        note,
        cost: None,
        no_changes: false,
        replaces: None,
        is_rehearsal,
    };
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let settings = context.settings_or_defaults(&town, &mut store);
    let done = done::done(&Machine::here(), &town, &settings, &mut store, &word, &context.stamp())?;
    let bead = store.run(&word.run)?.map(|run| run.bead).unwrap_or_default();
    let is_new = !matches!(done, Done::Before);
    if context.wants_json() {
        return context.json(&json!({ "run": word.run, "bead": bead, "status": "handed-off", "changed": is_new }));
    }
    context.say(&if is_new {
        format!("{bead} goes on in a fresh run. End your process now.")
    } else {
        format!("{bead} was handed off already; nothing was changed.")
    })
}
