//! `gt bead delete`.

use clap::Args;

use super::{Words, checked_body, note_workers, once, report_change};
use crate::context::Context;
use crate::failure::Failure;

/// Delete beads, all or none
///
/// A deleted bead stays as a tombstone: it holds nothing back any more, and its id is never used again.
/// `gt bead reopen` brings it back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead delete gt-a1b2 --reason \"written twice\"")]
pub(crate) struct DeleteArgs {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(context: &Context, args: &DeleteArgs) -> Result<(), Failure> {
    let ids = once(&args.ids);
    let reason = args.reason.clone().map(|words| checked_body("reason", words)).transpose()?;
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let changed = store.delete_beads(&ids, reason.as_deref(), &context.stamp())?;
    report_change(context, &ids, &changed, &Words { done: "deleted", already: "deleted" })?;
    note_workers(context, &town, &mut store, &changed.beads)
}
