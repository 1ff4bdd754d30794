//! `gt`: reads the command line, runs one verb, turns its end into an exit code.

mod cli;
mod cmd;
mod context;
mod failure;
mod render;
mod when;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::{Failure, Kind};

fn main() -> ExitCode {
    let arguments = arguments(std::env::args_os().collect());
    if let Some(args) = cmd::agent_event::is_called(&arguments) {
        cmd::agent_event::run(&args);
        return ExitCode::SUCCESS;
    }
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let cli = match Cli::read(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&error, wants_json),
    };
    let mut context = Context::new(cli.globals);
    match context.check_actor().and_then(|()| cmd::run(&mut context, cli.command)) {
        Ok(code) => {
            if context.is_dry_run() {
                context.note("Dry run: nothing was changed.");
            }
            code
        }
        Err(failure) => {
            failure.report(wants_json);
            failure.exit_code()
        }
    }
}

/// Called as `bd`, the binary is `gt bead`. // SPEC B1
fn arguments(given: Vec<OsString>) -> Vec<OsString> {
    /// Words that `bd` users know and that are not about one bead.
    const TOWN_WORDS: [&str; 4] = ["activity", "explain", "help", "--version"];
    let first = first_word(given.get(1..).unwrap_or_default());
    let called_as = given.first().map(Path::new).and_then(Path::file_name);
    let is_bd = called_as.is_some_and(|name| name == "bd");
    let is_town_word = first.is_some_and(|word| TOWN_WORDS.contains(&word));
    let mut given = given.into_iter();
    let mut arguments: Vec<OsString> = given.by_ref().take(1).collect();
    if is_bd && !is_town_word {
        arguments.push("bead".into());
    }
    arguments.extend(given);
    arguments
}

/// The first word after the flags that every command has.
fn first_word(words: &[OsString]) -> Option<&str> {
    let mut words = words.iter().map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        match word {
            "--town" | "--actor" => drop(words.next()),
            "--json" | "--dry-run" => {}
            word if word.starts_with("--town=") || word.starts_with("--actor=") => {}
            word => return Some(word),
        }
    }
    None
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
