//! The git side of merging: commits are looked at, kept, stacked, tried, landed, pushed; what is left is salvaged.
//!
//! It knows git, directories and commands, and neither store nor town; what is to be merged and when is decided
//! elsewhere. Everything may be repeated after a crash at any point, and nothing here loses a commit or a change: the
//! only directory that is ever cleaned is the [`Workbench`]. See `docs/decisions/0009-merging.md`.

mod ask;
mod changes;
mod checkout;
mod forward;
mod gate;
mod history;
mod landing;
mod locks;
mod publishing;
mod refs;
mod remote;
mod salvage;
mod workbench;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use self::ask::{Asked, ask};
pub use self::checkout::can_land;
pub use self::forward::{Resumed, resume};
pub use self::gate::{Gate, end_leftover, gate};
pub use self::history::{Look, has_work_of, is_part_of, look, patch, seal, tree_of};
pub use self::landing::{delete_branch, delete_idle_branch, is_merged, land};
pub use self::locks::clear_dead_locks;
pub use self::publishing::{Makers, Titled, brought, unpublished};
pub use self::refs::{
    Dated, branches, exclude, forget, forget_at, is_ignored, keep, kept, kept_and_merged, kept_since, n_unkept,
};
pub use self::remote::{Base, base, push, push_branch};
pub use self::salvage::{Salvage, salvage};
pub use self::workbench::{Stacked, Workbench};
use crate::git::{Git, GitError, complaint};
use crate::worktree::WorktreeError;

#[derive(Debug, Error)]
pub enum MergeError {
    #[error("{} has no branch `{target}`, and neither has its origin", repository.display())]
    NoTarget { repository: PathBuf, target: String },
    #[error("{} has no commit `{commit}`", repository.display())]
    NoCommit { repository: PathBuf, commit: String },
    /// Here and at the remote are commits that the other has not; only people can say what is right.
    #[error(
        "`{target}` is at {here} here and at {there} at its origin, and neither is ahead of the other; join them with \
         `git -C {} pull --no-rebase origin {target}`", repository.display()
    )]
    Parted { repository: PathBuf, target: String, here: String, there: String },
    /// Somebody else was faster; look again.
    #[error("`{target}` has moved meanwhile")]
    Moved { target: String },
    /// Nothing can be done in this checkout of the target until somebody tidied it up.
    #[error("{} has the target checked out, and {why}", path.display())]
    Checkout { path: PathBuf, why: String },
    /// The same, but git had begun with it: [`resume`] has to come first.
    #[error("{} has the target checked out, and {why}", path.display())]
    HalfWay { path: PathBuf, why: String },
    /// The checkout has uncommitted work in files that the commit changes.
    #[error("{} has uncommitted work in {}; commit, stash or move it", path.display(), listed(files))]
    InTheWay { path: PathBuf, files: Vec<String> },
    #[error("the origin cannot be reached or does not agree: {said}")]
    Remote { said: String },
    /// The origin is there, and takes nothing for that branch now, whatever the commit.
    #[error("the origin lets nobody push there: {said}")]
    Closed { said: String },
    /// The origin is there, and does not want this commit.
    #[error("the origin refuses it: {said}")]
    Refused { said: String },
    /// Landing this would undo what the other has.
    #[error("`{commit}` does not build on `{on}`")]
    NotOnTop { commit: String, on: String },
    #[error("`{commit}` has no history in common with what it is to be merged into")]
    Unrelated { commit: String },
    #[error("`{name}` is no ref of ours: they begin with `{}`", refs::OURS)]
    ForeignRef { name: String },
    #[error("{} is another's worktree, which the refinery must not clean", path.display())]
    ForeignWorktree { path: PathBuf },
    #[error(transparent)]
    Worktree(WorktreeError),
    #[error("git cannot {doing}: {said}")]
    Git { doing: String, said: String },
    #[error("cannot run `git`")]
    NoGit {
        #[source]
        source: io::Error,
    },
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl From<GitError> for MergeError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::NoGit(source) => Self::NoGit { source },
            GitError::Complaint { doing, said } => Self::Git { doing, said },
        }
    }
}

impl From<WorktreeError> for MergeError {
    fn from(error: WorktreeError) -> Self {
        match error {
            WorktreeError::Git { doing, said } => Self::Git { doing, said },
            WorktreeError::NoGit { source } => Self::NoGit { source },
            WorktreeError::Io { doing, path, source } => Self::Io { doing, path, source },
            other => Self::Worktree(other),
        }
    }
}

/// Names for one line: the first few of many.
fn listed(files: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = files[..files.len().min(SHOWN)].join(", ");
    match files.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MergeError {
    move |source| MergeError::Io { doing, path: path.to_owned(), source }
}

/// The commit that a branch is at, if there is such a branch.
pub fn branch_tip(repository: &Path, branch: &str) -> Result<Option<String>, MergeError> {
    find_commit(repository, &here(branch))
}

/// The commit that a name stands for, if there is one.
pub fn find_commit(repository: &Path, name: &str) -> Result<Option<String>, MergeError> {
    let commit = format!("{name}^{{commit}}");
    let found = Git::at(repository).args(["rev-parse", "--quiet", "--verify", "--end-of-options", &commit]).output()?;
    match found.status.code() {
        Some(0) => Ok(Some(crate::git::text_of(&found.stdout))),
        Some(1) => Ok(None),
        // It was killed, or there is no repository: that says nothing about the commit.
        _ => Err(complaint(repository, "find a commit", &found).into()),
    }
}

/// As [`find_commit`], where there must be one.
fn commit_of(repository: &Path, name: &str) -> Result<String, MergeError> {
    let no_commit = || MergeError::NoCommit { repository: repository.to_owned(), commit: name.to_owned() };
    find_commit(repository, name)?.ok_or_else(no_commit)
}

fn moved(target: &str) -> MergeError {
    MergeError::Moved { target: target.to_owned() }
}

fn here(target: &str) -> String {
    format!("refs/heads/{target}")
}

fn there(target: &str) -> String {
    format!("refs/remotes/origin/{target}")
}

/// The directory of git's for this checkout; for a worktree one of its own.
fn git_dir(checkout: &Path) -> Result<PathBuf, MergeError> {
    let asked = Git::at(checkout).args(["rev-parse", "--path-format=absolute", "--git-dir"]);
    Ok(PathBuf::from(asked.run("find the repository")?))
}

/// Who commits: whoever is configured, else the refinery.
fn identified(git: Git, dir: &Path) -> Result<Git, MergeError> {
    for identity in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        if !Git::at(dir).args(["-c", "user.useConfigOnly=true", "var", identity]).succeeds()? {
            let (name, email) = ("Gasworks refinery", "refinery@gasworks.invalid");
            let author = git.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
            return Ok(author.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email));
        }
    }
    Ok(git)
}
