//! `gt escalate`: an agent, or anybody, asks for a person. // SPEC P7

use clap::Args;
use serde_json::json;

use super::bead::checked_body;
use crate::context::{Context, variable};
use crate::failure::{Failure, Kind};

/// Ask for a person
///
/// The words become a comment on the bead, and `gt status` shows it until the label gt:escalated is taken off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt escalate \"which of the two APIs is meant?\"
  gt escalate \"the tests need a key\" --bead gt-a1b2")]
pub(crate) struct EscalateArgs {
    /// What is needed
    #[arg(value_name = "TEXT")]
    words: String,
    /// About this bead, instead of the one of the agent that asks
    #[arg(long, value_name = "ID")]
    bead: Option<String>,
}

pub(crate) fn run(context: &Context, args: EscalateArgs) -> Result<(), Failure> {
    let words = checked_body("text", args.words)?;
    let bead = args
        .bead
        .or_else(|| variable("GT_BEAD"))
        .ok_or_else(|| Failure::new(Kind::Usage, "which bead is it about?").hint("name it with `--bead ID`"))?;
    let run = variable("GT_RUN");
    context.store()?.escalate(&bead, run.as_deref(), &words, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "bead": bead, "outcome": "escalated" }));
    }
    context.say(&format!("A person is asked to look at {bead}; `gt status` shows it."))
}
