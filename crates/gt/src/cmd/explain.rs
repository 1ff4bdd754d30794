//! `gt explain`: why a bead is, or is not, being worked on. // SPEC B6

use clap::Args;
use gt_engine::dispatch::witness;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BOLD, paint};

/// Say why a bead is, or is not, being worked on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt explain gt-a1b2
  gt explain gt-a1b2 --json")]
pub(crate) struct ExplainArgs {
    /// The bead's id
    id: String,
}

pub(crate) fn run(context: &Context, args: &ExplainArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let (policy, mut store) = (settings.policy(town.root()), context.open(&town)?);
    let mut explanation = store.explain(&args.id, &policy, context.now())?;
    // Whether a run is silent is seen, not stored. It is told right after who works on the bead.
    let silence = store.run_of(&args.id)?.and_then(|run| witness::explain(&run, &town, &settings, context.now()));
    explanation.reasons.splice(1..1, silence);
    if context.wants_json() {
        return context.json(&explanation);
    }
    let mut text = format!("{} is {}:", paint(BOLD, &explanation.bead), paint(BOLD, &explanation.state));
    for reason in &explanation.reasons {
        text.extend(["\n  - ", &reason.message]);
    }
    context.say(&text)
}
