//! One gate as a program of its own, for the tests of this crate, which kill it; nothing installs this one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, command, log, marker] = arguments.as_slice() else {
        eprintln!("usage: gt-gate DIRECTORY COMMAND LOG MARKER");
        return ExitCode::from(2);
    };
    let [dir, log, marker] = [dir, log, marker].map(Path::new);
    let ended = gt_runtime::merge::gate(dir, command, &[], log, marker, Duration::MAX);
    println!("{ended:?}");
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
