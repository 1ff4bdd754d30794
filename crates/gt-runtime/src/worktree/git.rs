//! Calling git, in a given directory and nowhere else.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::WorktreeError;

/// What a surrounding git command exports, a hook for example; it would point at another repository.
const FOREIGN_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Runs git and returns what it printed; a complaint is an error.
pub(super) fn run_git(dir: &Path, doing: &str, arguments: &[&OsStr]) -> Result<String, WorktreeError> {
    let output = git(dir, arguments)?;
    if output.status.success() {
        return Ok(text_of(&output.stdout));
    }
    Err(WorktreeError::Git { doing: format!("{doing} in {}", dir.display()), said: complaint(&output.stderr) })
}

/// Runs git, for questions that are answered by its exit code.
pub(super) fn git(dir: &Path, arguments: &[&OsStr]) -> Result<Output, WorktreeError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(arguments).stdin(Stdio::null());
    for name in FOREIGN_VARIABLES {
        command.env_remove(name);
    }
    // Without the last, merely looking would take the lock that an agent's git may want.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    command.output().map_err(|source| WorktreeError::NoGit { source })
}

pub(super) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// The line in which git says what is wrong; advice may come before and after it.
fn complaint(bytes: &[u8]) -> String {
    let said = text_of(bytes);
    let fatal = said.lines().find_map(|line| line.strip_prefix("fatal: "));
    fatal.or_else(|| said.lines().last()).unwrap_or("it gave no reason").to_owned()
}
