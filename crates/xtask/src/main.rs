//! The project's own commands, run as `cargo xtask <command>`.
//!
//! Owns: which commands exist and their help. Each command is a file of its own, named after it.
//! Does not own: anything a user of `gt` runs; that is the crate `gt`.

mod agents;
mod chaos;
mod fuzz;
mod leftovers;
mod limits;
mod mutants;
mod old_release;
mod openai;
mod sim;
mod test;
mod tools;

use std::env;
use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};

const HELP: &str = "\
Usage: cargo xtask <command>

Commands:
  test [--with-agents] [--with-old-release] [--fast] [-- ARGS]
                  Install what the tests need, then build and run every test; with --fast those that take less
                  than a minute together.
                  With --with-agents also Claude Code and Codex, from npm, into target/agents,
                  and OpenAI's client, from PyPI, into target/openai.
                  With --with-old-release also gt 0.1.0, from the history, into target/old-release.
                  ARGS go to the runner: cargo-nextest where present, else cargo test.
  sim [--seeds N] [--from F] [--steps K] [--disk] [--seed S] [--until-found]
      [--guards | --formulas | --jobs | --sessions | --beats | --telegram | --merging | --everything]
                  Simulate N towns of K steps each, from seed F on, in memory or on disk. With --seed, only that
                  one, and the story of what happened in it. With --until-found no more after one that fails.
                  Instead of towns of beads: with --guards beads on a machine that is short of something, and with a
                  budget; with --formulas beads that are done by formulas, step by step; with --jobs towns of jobs, with
                  clocks that jump, with --sessions towns of sessions, with --beats towns of heartbeats, with
                  --telegram towns that people write to by Telegram, with --merging towns of merging, with a simulated
                  git; with --everything beads, formulas, sessions and jobs in one town.
  mutants [--only NAME]… [--towns KIND]… [--seeds N] [--profile P]
                  Build the simulation with every planted defect, with cargo's profile P, and show that it finds each
                  of them within N seeds. With --only and --towns, these defects, and those of towns of that KIND:
                  beads, guards, formulas, jobs, sessions, beats, telegram, merging or everything.
  fuzz [--target NAME] [--seeds N] [--seed S]
                  Search for bytes that break a promise: N inputs for each target, from seed S on.
  chaos [--minutes N] [--seed S] [--runtime process|tmux] [--disk DIR] [--only FAULT]… [--defect NAME] [--profile P]
                  Run a town of the real binary under load and faults for N minutes (1), and check from outside that
                  no promise was broken. DIR is a small file system of its own that may be filled; without it full
                  disks are left out. With --only, only these faults. With --defect, a binary that is broken on
                  purpose, which is to be found. See docs/chaos.md.
  help            Print this text.
";

/// The exit status of a command line that was not understood.
const USAGE_STATUS: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    if mutants::is_called_as_compiler() {
        return mutants::compile(&args);
    }
    let Some((command, rest)) = args.split_first() else { return help() };
    match command.to_string_lossy().as_ref() {
        "help" | "--help" | "-h" => help(),
        "test" => test::run(rest),
        "chaos" => chaos::run(rest),
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

/// A program ended by a signal has no code; that is a failure like any other.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
