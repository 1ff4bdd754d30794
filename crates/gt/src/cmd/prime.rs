//! `gt prime`: the assignment of the run that asks. // SPEC P7

use clap::Args;
use gt_engine::formulas::Library;
use serde_json::json;

use crate::context::{Context, variable};
use crate::failure::{Failure, Kind};

/// Print the assignment of the agent that asks
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt prime")]
pub(crate) struct PrimeArgs {}

/// The run that this process belongs to.
pub(crate) fn own_run() -> Result<String, Failure> {
    variable("GT_RUN").ok_or_else(|| {
        Failure::new(Kind::Usage, "this is not a run: GT_RUN is not set")
            .hint("agents call this; people look with `gt status` or `gt explain BEAD`")
    })
}

pub(crate) fn run(context: &Context, _: &PrimeArgs) -> Result<(), Failure> {
    let run = own_run()?;
    let town = context.town()?;
    let Some(assignment) = context.open(&town)?.assignment(&run)? else {
        return Err(Failure::new(Kind::Refused, format!("run {run} has no work any more"))
            .hint("stop here; another run has it, or it is done"));
    };
    let branch = variable("GT_BRANCH");
    let settings = context.settings(&town)?;
    let (cooked, problem) = match Library::of(&town).cook(&assignment, &settings) {
        Ok(cooked) => (cooked, None),
        Err(why) => (None, Some(why)),
    };
    let mut text = gt_engine::prompt::text(&assignment, cooked.as_ref(), branch.as_deref());
    if let Some(why) = problem {
        // It was told its steps when it began, and those still hold.
        text.extend([format!(
            "\n## Steps\nThe formula cannot be read any more ({why}). Keep to the steps you began with.\n"
        )]);
    }
    if context.wants_json() {
        let polecat = &assignment.polecat.name;
        return context.json(&json!({ "run": run, "bead": assignment.bead, "rig": assignment.rig.name,
                                     "polecat": polecat, "text": text }));
    }
    context.say(text.trim_end())
}
