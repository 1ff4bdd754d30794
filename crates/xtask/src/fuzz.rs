//! `cargo xtask fuzz`: a longer search than the tests make for bytes that break a promise.
//!
//! Owns: how the searching program is built, and what is said when it dies. Does not own: its arguments, which it
//! judges itself, nor the targets (both `gt-sim`).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::help;

/// What the searching program writes before each input.
const NOTE: &str = "target/fuzz/current";

/// Builds the search for speed, but with the checks of a debug build, and runs it; the status is its own.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help();
    }
    let mut search = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    search.args(["run", "--quiet", "--profile", "checked", "--package", "gt-sim", "--bin", "fuzz", "--"]).args(args);
    let ended = match search.status() {
        Ok(ended) => ended,
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(code) = ended.code() {
        return u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    // Ended by a signal: by an input that broke more than a promise, or by whoever grew tired of it.
    let note = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(NOTE);
    let last = fs::read_to_string(note).unwrap_or_default();
    eprintln!("error: the search was killed ({ended}); what it tried last: cargo xtask fuzz {}", last.trim());
    ExitCode::FAILURE
}
