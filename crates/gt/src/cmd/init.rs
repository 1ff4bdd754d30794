//! `gt init`: makes a town. // SPEC T1

use std::path::PathBuf;

use clap::Args;
use gt_engine::{Init, Town};
use serde_json::json;

use crate::context::{Context, current_dir};
use crate::failure::Failure;
use crate::render::{BOLD, paint};

/// Make a town
///
/// A town is a directory with a store of beads, an event log and a config file, town.toml. It works at once:
/// no server, nothing else to install.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt init            make this directory a town
  gt init ~/town     make a town there")]
pub(crate) struct InitArgs {
    /// Where; this directory if not given
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &InitArgs) -> Result<(), Failure> {
    let dir = args.dir.clone().map_or_else(current_dir, Ok)?;
    let (town, done) = if context.is_dry_run() { Town::survey(&dir)? } else { Town::init(&dir, &context.stamp())? };
    let outcome = match done {
        Init::Created => "created",
        Init::Restored => "restored",
        Init::AlreadyThere => "already-there",
    };
    let root = town.root().display().to_string();
    if context.wants_json() {
        return context.json(&json!({ "town": root, "outcome": outcome }));
    }
    context.say(&match done {
        Init::Created => format!(
            "Made a town at {}.\nNext: `gt rig add NAME PATH` registers a repository, `gt create \"…\"` writes down work.",
            paint(BOLD, &root)
        ),
        Init::Restored => format!("Put back what was missing in the town at {root}."),
        Init::AlreadyThere => format!("There is already a town at {root}; nothing was changed."),
    })
}
