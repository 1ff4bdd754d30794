//! `gt bead reopen`.

use clap::Args;

use super::{Words, once, report_change};
use crate::context::Context;
use crate::failure::Failure;

/// Open closed, pinned or deleted beads again, all or none
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead reopen gt-a1b2")]
pub(crate) struct ReopenArgs {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &ReopenArgs) -> Result<(), Failure> {
    let ids = once(&args.ids);
    let changed = context.store()?.reopen_beads(&ids, &context.stamp())?;
    report_change(context, &ids, &changed, &Words { done: "reopened", already: "open" })
}
