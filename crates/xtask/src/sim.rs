//! `cargo xtask sim`: many more seeds of the simulation than the tests run.
//!
//! Owns: how the simulating program is built. Does not own: its arguments, which it judges itself, nor the world
//! (both `gt-sim`).

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use crate::help;

/// Builds the simulation for speed, but with the checks of a debug build, and runs it; the status is its own.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help();
    }
    let mut simulation = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    simulation.args(["run", "--quiet", "--profile", "checked", "--package", "gt-sim", "--bin", "sim", "--"]).args(args);
    match simulation.status() {
        Ok(ended) => ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
