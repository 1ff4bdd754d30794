//! `gt bead blocked`.

use clap::Args;

use super::print_listing;
use crate::context::Context;
use crate::failure::Failure;

/// List what waits for something else, and for what
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead blocked
  gt bead blocked --rig gastown --json --limit 0")]
pub(crate) struct BlockedArgs {
    /// Only beads of this rig
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// At most so many; 0 means all
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
}

pub(crate) fn run(context: &Context, args: &BlockedArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    if let Some(name) = &args.rig {
        store.rig(name)?; // an unknown one is an error, not an empty list
    }
    let listing = store.blocked(args.rig.as_deref(), args.limit)?;
    print_listing(context, &listing, "Nothing is blocked.")
}
