//! The binary under the name `bd`: it is `gt bead`, and speaks of itself by that name. // SPEC B1
//!
//! Only reading the command line and the words of help and errors are here; what the verbs do is `cmd::bead`'s.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cli::{self, Cli, Command, Globals};
use crate::cmd::bead::{BeadArgs, BeadCommand};
use crate::cmd::explain::ExplainArgs;
use crate::failure::reword;

/// What is said of commands, and what is said instead to whoever called `bd`.
pub(crate) const WORDS: [(&str, &str); 7] = [
    ("gt bead ", "bd "),
    ("gt create", "bd create"),
    ("gt show", "bd show"),
    ("gt close", "bd close"),
    ("gt ready", "bd ready"),
    ("gt activity", "bd activity"),
    ("gt explain", "bd explain"),
];

/// Write down, change and look at work
///
/// A bead is a work item. Beads depend on each other; one that nothing holds back is ready. This is `gt bead` by its
/// shorter name; `gt --help` shows the rest.
#[derive(Debug, Parser)]
#[command(
    name = "bd",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:
  bd create \"Fix the login\" --priority 1
  bd dep add gt-b2 gt-a1     gt-b2 waits for gt-a1
  bd ready
  bd import .beads/issues.jsonl --rig gastown"
)]
struct Bd {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: BdCommand,
}

#[derive(Debug, Subcommand)]
enum BdCommand {
    #[command(flatten)]
    Bead(Box<BeadCommand>),
    Explain(ExplainArgs),
}

/// Whether a command line changes nothing.
pub(crate) fn is_read_only(arguments: &[OsString]) -> bool {
    cli::is_read_only(Bd::command(), Some("bead"), arguments)
}

/// Whether the binary was called by this name.
pub(crate) fn is_called(arguments: &[OsString]) -> bool {
    arguments.first().map(Path::new).and_then(Path::file_name).is_some_and(|name| name == "bd")
}

/// Reads a command line.
pub(crate) fn read(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = reworded(Bd::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    let bd = Bd::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    let command = match bd.command {
        BdCommand::Bead(command) => Command::Bead(BeadArgs { command: *command }),
        BdCommand::Explain(args) => Command::Explain(args),
    };
    Ok(Cli { globals: bd.globals, command })
}

/// The same command with its examples in the words of `bd`, and so those below it.
fn reworded(command: clap::Command) -> clap::Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let command = match examples {
        Some(text) => command.after_help(reword(&text, &WORDS)),
        None => command,
    };
    command.mut_subcommands(reworded)
}
