//! `gt convoy stage`.

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;

/// To be written
#[derive(Debug, Args)]
pub(super) struct StageArgs {}

#[expect(clippy::unnecessary_wraps, reason = "it is not there yet")]
pub(super) fn run(_context: &Context, _args: &StageArgs) -> Result<(), Failure> {
    Ok(())
}
