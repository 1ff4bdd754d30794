//! `gt queue`: the older surface over the same contexts, plan and passes as `gt scheduler`. // SPEC Q1
//!
//! What it enqueues always waits for its turn. Understanding the words is `sling`'s, everything else `scheduler`'s.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::scheduler::{self, ClearArgs, PauseArgs, RunArgs, Surface};
use super::sling::{self, WorkArgs};
use crate::context::Context;
use crate::failure::Failure;

/// Put work in line, and start it as there is room
///
/// What is queued never starts at once. With a cap (scheduler.max_polecats) the scheduler's limits hold for it. Without
/// one its own do: queue.max_polecats, queue.batch_size and queue.spawn_delay; then the daemon starts it only if
/// queue.enabled is true, and `gt queue run` always.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "gt queue [OPTIONS] BEAD|EPIC|CONVOY... [RIG]\n       gt queue FORMULA --on BEAD [RIG]\n       gt queue <COMMAND>",
    after_help = "Examples:
  gt queue gt-a1b2                      to the rig of its prefix
  gt queue gt-a1b2 gt-c3d4 shop         several, to one rig
  gt queue gt-epic                      everything below an epic
  gt queue hq-cv-a1b2c                  everything in a convoy
  gt queue mol-polecat-work --on gt-a1b2
  gt queue status                       what waits, and why
  gt queue run --dry-run                what would start now"
)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    work: WorkArgs,
    #[command(subcommand)]
    command: Option<QueueCommand>,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    #[command(after_help = "Examples:\n  gt queue status\n  gt queue status --json")]
    Status(StatusArgs),
    #[command(after_help = "Examples:\n  gt queue list\n  gt queue list --json")]
    List(ListArgs),
    #[command(after_help = "Examples:
  gt queue run
  gt queue run --dry-run      look first
  gt queue run --batch 2")]
    Run(RunArgs),
    #[command(after_help = "Examples:\n  gt queue pause --reason \"release day\"")]
    Pause(PauseArgs),
    #[command(after_help = "Examples:\n  gt queue resume")]
    Resume(ResumeArgs),
    #[command(after_help = "Examples:
  gt queue clear                   all of them
  gt queue clear --bead gt-a1b2    one")]
    Clear(ClearArgs),
}

/// Show state, capacity and what is queued
#[derive(Debug, Args)]
struct StatusArgs {}

/// List what is queued, in dispatch order, with the reason for what waits
#[derive(Debug, Args)]
struct ListArgs {}

/// Go on dispatching
#[derive(Debug, Args)]
struct ResumeArgs {}

pub(crate) fn run(context: &Context, args: QueueArgs) -> Result<ExitCode, Failure> {
    let surface = Surface::Queue;
    match args.command {
        None => return sling::queue(context, args.work, &COMMANDS).map_err(|failure| failure.reworded(&WORDS)),
        Some(QueueCommand::Status(_)) => scheduler::status(context, surface)?,
        Some(QueueCommand::List(_)) => scheduler::list(context, surface)?,
        Some(QueueCommand::Run(args)) => return scheduler::dispatch(context, &args, surface),
        Some(QueueCommand::Pause(args)) => scheduler::pause(context, &args, surface)?,
        Some(QueueCommand::Resume(_)) => scheduler::resume(context)?,
        Some(QueueCommand::Clear(args)) => scheduler::clear(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands, for a word that is none of them and no bead either.
const COMMANDS: [&str; 6] = ["status", "list", "run", "pause", "resume", "clear"];

/// What reasons say of the scheduler, and what `gt queue` says instead.
pub(super) const SWITCHES: [(&str, &str); 2] =
    [("gt scheduler resume", "gt queue resume"), ("gt scheduler clear", "gt queue clear")];

/// What `gt sling` says of itself, and what `gt queue` says instead.
const WORDS: [(&str, &str); 6] = [
    ("gt sling", "gt queue"),
    ("slinging", "queuing"),
    ("sling its", "queue its"),
    ("to sling", "to queue"),
    SWITCHES[0],
    SWITCHES[1],
];
