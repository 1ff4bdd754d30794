//! `gt keeper`: the parent of a town's agents. Started by gt itself, never by hand.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use gt_engine::TownError;

use crate::failure::Failure;

/// Keep a town's agents (started by gt itself)
#[derive(Debug, Args)]
pub(crate) struct KeeperArgs {
    /// The keeper's directory
    dir: PathBuf,
    /// Who is told of an ending that nobody watches for
    #[arg(last = true)]
    messenger: Vec<OsString>,
}

pub(crate) fn run(args: &KeeperArgs) -> Result<(), Failure> {
    Ok(gt_runtime::process::keep(&args.dir, &args.messenger).map_err(TownError::from)?)
}
