//! `gt refinery`: the way of finished work to its branch. // SPEC M2
//!
//! What is merged and in which order is `gt_engine::refinery`'s; here it is shown and steered, one file per subject.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

mod again;
mod list;
mod pause;
mod status;
mod work;

pub(crate) use self::list::{card, merge_json};
pub(crate) use self::status::{Queue, held_line, queue_json, screen_lines};

/// See and steer how finished work is merged
///
/// Work that is done waits here until its branch is merged and its gates have passed; then its bead closes. What cannot be
/// merged comes back as a bead of its own. The daemon does all of this by itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt refinery status
  gt refinery list --all
  gt refinery run                     merge now, without a daemon
  gt refinery retry gt-mr-a1b2
  gt refinery pause shop --reason \"release day\"")]
pub(crate) struct RefineryArgs {
    #[command(subcommand)]
    command: RefineryCommand,
}

#[derive(Debug, Subcommand)]
enum RefineryCommand {
    Status(status::StatusArgs),
    List(list::ListArgs),
    Show(list::ShowArgs),
    Run(work::RunArgs),
    Retry(again::RetryArgs),
    Drop(again::DropArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
}

pub(crate) fn run(context: &Context, args: RefineryArgs) -> Result<ExitCode, Failure> {
    match args.command {
        RefineryCommand::Status(_) => status::run(context)?,
        RefineryCommand::List(args) => list::list(context, &args)?,
        RefineryCommand::Show(args) => list::show(context, &args)?,
        RefineryCommand::Run(_) => return work::run(context),
        RefineryCommand::Retry(args) => again::retry(context, &args)?,
        RefineryCommand::Drop(args) => again::drop_one(context, &args)?,
        RefineryCommand::Pause(args) => pause::pause(context, &args)?,
        RefineryCommand::Resume(args) => pause::resume(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A commit as people name it.
fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
