//! `gt convoy`: beads that go together, until all are closed. // SPEC C1–C6
//!
//! What a convoy is made of and how it ends is the store's. Staging, launching and the picture have files of their own.

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

mod launch;
mod stage;
mod status;

/// Follow beads that go together, until all are closed
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
}

pub(crate) fn run(context: &Context, args: ConvoyArgs) -> Result<(), Failure> {
    match args.command {
        ConvoyCommand::Stage(args) => stage::run(context, &args),
        ConvoyCommand::Launch(args) => launch::run(context, &args),
        ConvoyCommand::Status(args) => status::run(context, &args),
    }
}
