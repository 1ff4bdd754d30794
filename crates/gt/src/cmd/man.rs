//! `gt man`: manual pages, one per command.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use serde_json::json;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt man ~/.local/share/man/man1     then: man gt-bead-create")]
pub(crate) struct ManArgs {
    /// The directory to write to; it is made if need be
    dir: PathBuf,
}

pub(crate) fn run(context: &Context, args: &ManArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Kind::Refused, format!("cannot write manual pages to {}: {error}", args.dir.display()))
    };
    if !context.is_dry_run() {
        std::fs::create_dir_all(&args.dir).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    }
    if context.wants_json() {
        return context.json(&json!({ "dir": args.dir.display().to_string() }));
    }
    context.say(&format!("Wrote the manual pages to {}.", args.dir.display()))
}
