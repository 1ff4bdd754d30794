//! The project's own commands, run as `cargo xtask <command>`.
//!
//! Owns: which commands exist and their help. Each command is a file of its own, named after it.
//! Does not own: anything a user of `gt` runs; that is the crate `gt`.

mod test;
mod tools;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

Commands:
  test [-- ARGS]  Install what the tests need, then build and run every test.
                  ARGS go to the runner: cargo-nextest where present, else cargo test.
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
