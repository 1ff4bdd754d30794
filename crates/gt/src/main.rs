//! `gt`: reads the command line, runs one verb, turns its end into an exit code.

mod bd;
mod cli;
mod cmd;
mod context;
mod dashes;
mod failure;
mod fit;
mod render;
mod when;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::{Failure, Kind};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(args) = cmd::agent_event::is_called(&arguments) {
        cmd::agent_event::run(&args);
        return ExitCode::SUCCESS;
    }
    let is_bd = bd::is_called(&arguments);
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let mut cli = match if is_bd { bd::read(&arguments) } else { Cli::read(&arguments) } {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&error, wants_json),
    };
    cli.globals.dry_run = cli.globals.dry_run && !is_read_only(is_bd, &arguments);
    let mut context = Context::new(cli.globals);
    match context.check_actor().and_then(|()| cmd::run(&mut context, cli.command)) {
        Ok(code) => {
            context.note_warning();
            code
        }
        Err(failure) => {
            let failure = if is_bd { failure.reworded(&bd::WORDS) } else { failure };
            failure.report(wants_json);
            failure.exit_code()
        }
    }
}

fn is_read_only(is_bd: bool, arguments: &[OsString]) -> bool {
    if is_bd { bd::is_read_only(arguments) } else { cli::is_read_only(Cli::command(), None, arguments) }
}

/// Help and version go to standard output; a wrong call is one sentence and exit code 2.
fn refuse_usage(error: &clap::Error, wants_json: bool) -> ExitCode {
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_answer || !wants_json {
        if let Err(error) = error.print()
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            return Kind::Refused.exit_code();
        }
    } else {
        let text = error.render().to_string();
        // The first paragraph; it names what is missing on lines of its own.
        let lines: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
        let message = lines.join(" ").trim_start_matches("error: ").to_owned();
        let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
        Failure::new(Kind::Usage, message).hint(tip.unwrap_or("`--help` shows how to call it")).report(true);
    }
    if is_answer { ExitCode::SUCCESS } else { Kind::Usage.exit_code() }
}
