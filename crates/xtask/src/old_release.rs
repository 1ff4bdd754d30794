//! The last released `gt`, for the test that upgrades a town under its live daemon.
//!
//! Owns: finding that version in the history, and building it once, into `target/old-release`.
//! Does not own: the town that is upgraded (`crates/gt/tests/it/upgrade`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agents::{target, workspace};

/// Builds the test that needs it.
pub(crate) const FEATURE: &str = "gt/old-release";

/// Tells the test where the program is.
pub(crate) const VARIABLE: &str = "GT_TEST_OLD_RELEASE";

/// The first file that only later versions have: the release is the commit before it came.
const FIRST_AFTER: &str = "crates/gt-store/src/migrations/0013_config.sql";

/// Makes sure that the program is there, and tells its path.
pub(crate) fn provide() -> Result<PathBuf, String> {
    let folder = target().join("old-release");
    let program = folder.join("gt-0.1.0");
    if !program.exists() {
        build(&folder, &program)?;
    }
    program.canonicalize().map_err(|error| format!("cannot find {}: {error}", program.display()))
}

fn build(folder: &Path, program: &Path) -> Result<(), String> {
    let commit = commit()?;
    let source = folder.join("source");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    let archive = absolute(folder)?.join("source.tar");
    run(Command::new("git").args(["archive", "--output"]).arg(&archive).arg(&commit).current_dir(workspace()))?;
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
    eprintln!("xtask: building gt 0.1.0 from {commit}");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = absolute(folder)?.join("target");
    run(Command::new(cargo).args(["build", "--package", "gt"]).current_dir(&source).env("CARGO_TARGET_DIR", &built))?;
    // Under its name it is whole, wherever this is interrupted.
    let half = program.with_extension("half");
    let copied = fs::copy(built.join("debug/gt"), &half).and_then(|_| fs::rename(&half, program));
    copied.map_err(|error| format!("cannot copy to {}: {error}", program.display()))
}

fn commit() -> Result<String, String> {
    let mut log = Command::new("git");
    log.args(["log", "--max-count=1", "--diff-filter=A", "--format=%P", "--", FIRST_AFTER]).current_dir(workspace());
    let output = log.output().map_err(|error| format!("git cannot be started: {error}"))?;
    let parents = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if parents.is_empty() {
        return Err("the history does not have gt 0.1.0; try `git fetch --unshallow`".to_owned());
    }
    Ok(parents)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("cannot find {}: {error}", path.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let words = command.get_program().display().to_string();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` cannot be started: {error}")),
    }
}
