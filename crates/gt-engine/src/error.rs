//! What can go wrong in the town's verbs.

use std::io;
use std::path::{Path, PathBuf};

use gt_core::refusal::Refusal;
use gt_store::StoreError;
use thiserror::Error;

use crate::config::ConfigError;

#[derive(Debug, Error)]
pub enum TownError {
    #[error("{} is not in a town", start.display())]
    NotInATown { start: PathBuf },
    #[error("there is no town at {}", dir.display())]
    NoTownThere { dir: PathBuf },
    #[error("{} lies inside the town {}", dir.display(), outer.display())]
    Nested { dir: PathBuf, outer: PathBuf },
    #[error("the town {} has lost its store", root.display())]
    NoStore { root: PathBuf },
    #[error("a daemon runs this town already (process {pid})")]
    DaemonRuns { pid: u32 },
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is nothing at `{}`, and it is not a URL to clone from", path.display())]
    NoSuchPath { path: PathBuf },
    #[error("{} is not a git repository", path.display())]
    NotARepository { path: PathBuf },
    #[error("{} is only a part of the repository {}", path.display(), top.display())]
    InsideRepository { path: PathBuf, top: PathBuf },
    #[error("{} is already there, cloned from elsewhere", path.display())]
    OtherClone { path: PathBuf },
    #[error("the repository {} has no branch `{branch}`", path.display())]
    NoSuchBranch { path: PathBuf, branch: String },
    #[error("git is not installed, or not on the PATH")]
    NoGit {
        #[source]
        source: io::Error,
    },
    #[error("git could not {doing}: {said}")]
    Git { doing: String, said: String },
    #[error(transparent)]
    Runtime(#[from] gt_runtime::RuntimeError),
    #[error(transparent)]
    Worktree(#[from] gt_runtime::worktree::WorktreeError),
    #[error(transparent)]
    Merge(#[from] gt_runtime::merge::MergeError),
    #[error(transparent)]
    Terminal(#[from] gt_runtime::terminal::TerminalError),
    #[error("{n_bad} of {n_lines} lines cannot be read; the first is line {line}: {reason}")]
    BadLines { n_bad: usize, n_lines: usize, line: usize, reason: String },
}

impl TownError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> TownError {
        TownError::Io { doing, path: path.to_owned(), source }
    }
}

impl From<Refusal> for TownError {
    fn from(refusal: Refusal) -> TownError {
        TownError::Store(refusal.into())
    }
}

/// The same error without the name of a temporary file, which says nothing to anybody.
pub fn without_temporary_name(error: io::Error) -> io::Error {
    let is_wrapped = error.raw_os_error().is_none() && error.kind() != io::ErrorKind::Other;
    if is_wrapped { error.kind().into() } else { error }
}

/// What to do about a file that could not be written.
pub fn unwritten(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room and try again; nothing was changed",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "choose another place: there is a file already",
        io::ErrorKind::IsADirectory => "give the name of a file in it",
        _ => "see that the file and its directory can be written by you",
    }
}

/// An error with its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
