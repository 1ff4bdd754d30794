//! `gt completions`: scripts for the shells.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::{Failure, Kind};

/// Print a completion script for your shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt completions bash > ~/.local/share/bash-completion/completions/gt
  gt completions zsh  > ~/.zfunc/_gt
  gt completions fish > ~/.config/fish/completions/gt.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gt", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Refused, format!("cannot write the script: {error}")))
        }
        _ => Ok(()),
    }
}
