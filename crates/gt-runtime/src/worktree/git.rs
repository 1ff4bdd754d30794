//! Calling git for worktrees.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Output;

use super::WorktreeError;
use crate::git::{Git, GitError};

pub(super) use crate::git::text_of;

impl From<GitError> for WorktreeError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::NoGit(source) => Self::NoGit { source },
            GitError::Complaint { doing, said } => Self::Git { doing, said },
        }
    }
}

/// Runs git and returns what it printed; a complaint is an error.
pub(super) fn run_git(dir: &Path, doing: &str, arguments: &[&OsStr]) -> Result<String, WorktreeError> {
    Ok(Git::at(dir).args(arguments).run(doing)?)
}

/// Runs git, for questions that are answered by its exit code.
pub(super) fn git(dir: &Path, arguments: &[&OsStr]) -> Result<Output, WorktreeError> {
    Ok(Git::at(dir).args(arguments).output()?)
}
