//! The project's own commands, run as `cargo xtask <command>`.
//!
//! Owns: which commands exist and their help. Each command is a file of its own, named after it.
//! Does not own: anything a user of `gt` runs; that is the crate `gt`.

mod agents;
mod fuzz;
mod mutants;
mod openai;
mod sim;
mod test;
mod tools;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

Commands:
  test [--with-agents] [-- ARGS]
                  Install what the tests need, then build and run every test.
                  With --with-agents also Claude Code and Codex, from npm, into target/agents,
                  and OpenAI's client, from PyPI, into target/openai.
                  ARGS go to the runner: cargo-nextest where present, else cargo test.
  sim [--seeds N] [--from F] [--steps K] [--disk] [--seed S] [--until-found] [--jobs]
                  Simulate N towns of K steps each, from seed F on, in memory or on disk. With --seed, only that
                  one, and the story of what happened in it. With --until-found no more after one that fails.
                  With --jobs towns of jobs, with clocks that jump, instead of beads.
  mutants [--only NAME] [--seeds N] [--profile P]
                  Break a copy of the sources in every way on the list, and show that the simulation finds each
                  defect within N seeds, built with cargo's profile P.
  fuzz [--target NAME] [--seeds N] [--seed S]
                  Search for bytes that break a promise: N inputs for each target, from seed S on.
  help            Print this text.
";

/// The exit status of a command line that was not understood.
const USAGE_STATUS: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let Some((command, rest)) = args.split_first() else { return help() };
    match command.to_string_lossy().as_ref() {
        "help" | "--help" | "-h" => help(),
        "test" => test::run(rest),
        "fuzz" => fuzz::run(rest),
        "sim" => sim::run(rest),
        "mutants" => mutants::run(rest),
        other => refuse(&format!("there is no command `{other}`")),
    }
}

fn help() -> ExitCode {
    print!("{HELP}");
    ExitCode::SUCCESS
}

fn refuse(obstacle: &str) -> ExitCode {
    eprintln!("error: {obstacle}; `cargo xtask --help` shows what there is");
    ExitCode::from(USAGE_STATUS)
}
