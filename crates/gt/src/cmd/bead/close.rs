//! `gt bead close`, `gt close`.

use clap::Args;

use super::{Words, checked_body, once, report_change};
use crate::context::{After, Context};
use crate::failure::Failure;

/// Close beads, all or none, and say what became ready
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt close gt-a1b2
  gt close gt-a1b2 gt-c3d4 --reason \"fixed in 3f2a\"")]
pub(crate) struct CloseArgs {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(context: &Context, args: &CloseArgs) -> Result<(), Failure> {
    let ids = once(&args.ids);
    let reason = args.reason.clone().map(|words| checked_body("reason", words)).transpose()?;
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let changed = store.close_beads(&ids, reason.as_deref(), &context.stamp())?;
    report_change(context, &ids, &changed, &Words { done: "closed", already: "closed" })?;
    super::note_workers(context, &town, &mut store, &changed.beads)?;
    if changed.became_ready.is_empty() { Ok(()) } else { context.carry_on(&town, &mut store, After::Command) }
}
