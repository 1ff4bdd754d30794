//! `cargo xtask chaos`: load and faults on the real binary, for as long as you like.
//!
//! Owns: how the binary and the tool are built, with or without defects. Does not own: the tool's other options, which it
//! judges itself, nor what it does (both `gt-chaos`), nor which defects there are (`mutants/defects.rs`).

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use crate::agents::target;
use crate::mutants::{build_gt, require_defect};
use crate::{exit_code, help, refuse};

/// The profile of the binary under test, unless `--profile` names another.
const PROFILE: &str = "dev";

/// Builds `gt` and the tool, and runs it; the status is its own.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help();
    }
    let mut rest = args.to_vec();
    let (profile, defect) = match (take(&mut rest, "--profile"), take(&mut rest, "--defect")) {
        (Ok(profile), Ok(defect)) => (profile.unwrap_or_else(|| PROFILE.to_owned()), defect),
        (Err(obstacle), _) | (_, Err(obstacle)) => return refuse(&obstacle),
    };
    if let Some(Err(obstacle)) = defect.as_deref().map(require_defect) {
        return refuse(&obstacle);
    }
    match build(&profile) {
        Ok(built) if built.success() => {}
        Ok(failed) => return exit_code(failed),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            return ExitCode::FAILURE;
        }
    }
    let folder = target().join(if profile == "dev" { "debug" } else { &profile });
    let Some(defect) = defect else { return become_chaos(&folder, &folder.join("gt"), &rest) };
    match build_gt(&profile) {
        Ok(gt) => become_chaos(&folder, &gt, &[rest, vec!["--defect".into(), defect.into()]].concat()),
        Err(cause) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// Takes an option with its value out of the arguments.
fn take(args: &mut Vec<OsString>, name: &str) -> Result<Option<String>, String> {
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(None) };
    if at + 1 == args.len() {
        return Err(format!("`{name}` needs a value"));
    }
    let value = args.remove(at + 1).to_string_lossy().into_owned();
    args.remove(at);
    Ok(Some(value))
}

fn build(profile: &str) -> std::io::Result<ExitStatus> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "gt", "--package", "gt-chaos", "--profile", profile]).status()
}

/// The tool takes the place of this process, so that Ctrl-C reaches it alone and the shell waits until it has cleaned up.
fn become_chaos(folder: &Path, gt: &Path, args: &[OsString]) -> ExitCode {
    let error = Command::new(folder.join("chaos")).arg("--gt").arg(gt).args(args).exec();
    eprintln!("error: cannot start {}: {error}", folder.join("chaos").display());
    ExitCode::FAILURE
}
