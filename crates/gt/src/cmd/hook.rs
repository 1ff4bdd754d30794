//! `gt hook`: what a polecat holds. // SPEC P7

use clap::Args;
use serde_json::json;

use super::prime::own_run;
use crate::context::Context;
use crate::failure::Failure;

/// Show what is on the hook of the agent that asks
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt hook\n  gt hook --json")]
pub(crate) struct HookArgs {}

pub(crate) fn run(context: &Context, _: &HookArgs) -> Result<(), Failure> {
    let run = own_run()?;
    let found = context.store()?.run(&run)?.filter(gt_store::Run::is_live);
    if context.wants_json() {
        let hooked = found.as_ref().filter(|run| !run.is_bead_done);
        return context.json(&json!({
            "run": run,
            "bead": hooked.map(|run| &run.bead),
            "title": hooked.map(|run| &run.title),
            "rig": hooked.map(|run| &run.rig),
            "polecat": hooked.map(|run| &run.polecat),
            "stopping": found.as_ref().is_some_and(|run| run.stop.is_some()),
        }));
    }
    context.say(&match found {
        None => "Nothing: this run has ended.".to_owned(),
        Some(run) if run.stop.is_some() => format!("{}: you were told to stop.", run.bead),
        Some(run) if run.is_bead_done => format!("Nothing: {} is done.", run.bead),
        Some(run) => format!("{}: {}", run.bead, gt_core::text::one_line(&run.title)),
    })
}
