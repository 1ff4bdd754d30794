//! `gt convoy`: beads that go together, until all are closed. // SPEC C1–C6
//!
//! What a convoy is made of and how it ends is the store's; each group of verbs has a file of its own.

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

mod bar;
mod ends;
mod launch;
mod list;
mod members;
mod mermaid;
mod stage;
mod status;
mod svg;
mod table;
mod tree;
mod view;

/// Follow beads that go together, until all are closed
///
/// What of an open convoy is ready is put in line by itself, and when its last bead is closed it lands. A staged one only
/// shows what would happen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy stage gt-epic        look before it starts
  gt convoy launch gt-epic       start its first wave; the rest follows
  gt convoy status hq-cv-a1b2c   how far it has come")]
pub(crate) struct ConvoyArgs {
    #[command(subcommand)]
    command: ConvoyCommand,
}

#[derive(Debug, Subcommand)]
enum ConvoyCommand {
    Stage(stage::StageArgs),
    Launch(launch::LaunchArgs),
    Status(status::StatusArgs),
    List(list::ListArgs),
    Create(members::CreateArgs),
    Add(members::AddArgs),
    Remove(members::RemoveArgs),
    Watch(members::WatchArgs),
    Unwatch(members::UnwatchArgs),
    Stranded(list::StrandedArgs),
    Check(ends::CheckArgs),
    Close(ends::CloseArgs),
    Land(ends::LandArgs),
    Cancel(ends::CancelArgs),
}

pub(crate) fn run(context: &Context, args: ConvoyArgs) -> Result<(), Failure> {
    match args.command {
        ConvoyCommand::Stage(args) => stage::run(context, &args),
        ConvoyCommand::Launch(args) => launch::run(context, &args),
        ConvoyCommand::Status(args) => status::run(context, &args),
        ConvoyCommand::List(args) => list::list(context, &args),
        ConvoyCommand::Create(args) => members::create(context, args),
        ConvoyCommand::Add(args) => members::add(context, &args),
        ConvoyCommand::Remove(args) => members::remove(context, &args),
        ConvoyCommand::Watch(args) => members::watch(context, &args.convoy, args.who.as_deref(), true),
        ConvoyCommand::Unwatch(args) => members::watch(context, &args.convoy, args.who.as_deref(), false),
        ConvoyCommand::Stranded(_) => list::stranded(context),
        ConvoyCommand::Check(args) => ends::check(context, &args),
        ConvoyCommand::Close(args) => ends::close(context, &args),
        ConvoyCommand::Land(args) => ends::land(context, &args),
        ConvoyCommand::Cancel(args) => ends::cancel(context, &args),
    }
}

/// `1 bead`, `3 beads`.
fn n_beads(n: usize) -> String {
    if n == 1 { "1 bead".to_owned() } else { format!("{n} beads") }
}
