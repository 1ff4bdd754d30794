//! Worktrees for polecats: a directory with a branch of its own for every run, made, reused and removed.
//!
//! Whatever was interrupted is found and finished or made anew; work that is on no branch is never thrown away.
//! Branches are never deleted, so commits outlive the worktree they were made in. Callers see to it that no agent
//! works in the directory they name.

mod fingerprint;
mod git;
mod history;
mod place;
mod removal;
mod submodules;
mod unseen;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use crate::index;

pub use self::fingerprint::Fingerprint;
use self::git::{git, run_git, text_of};
pub use self::history::{bring_along, last_made, n_beyond, restore_branch};
use self::place::Place;
pub use self::removal::{Leftover, delete, leftovers};
pub(crate) use self::unseen::{lone_commits, unfinished, unsaved_inside};

/// How a worktree came to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// It was made.
    Made,
    /// It was there with a finished branch, and has the new one now.
    Switched,
    /// It was there on this very branch.
    Found,
}

/// What a worktree holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// `None` when no branch is checked out.
    pub branch: Option<String>,
    /// There are changes or new files that are not committed.
    pub is_dirty: bool,
    /// Commits that the base does not have.
    pub n_ahead: u32,
}

#[derive(Debug, Error)]
pub enum WorktreeError {
    #[error("{} has work that is on no branch", path.display())]
    Dirty { path: PathBuf },
    #[error("{} has a submodule with commits that none of its remotes has", path.display())]
    LoneSubmodule { path: PathBuf },
    #[error("files in {} were changed while it was looked at", path.display())]
    Changed { path: PathBuf },
    #[error("{} is in use for something else: it is no worktree of {}", path.display(), repository.display())]
    NotAWorktree { path: PathBuf, repository: PathBuf },
    #[error("{} has no commits yet", repository.display())]
    NoCommits { repository: PathBuf },
    #[error("{} has no branch `{base}`, and neither has its origin", repository.display())]
    NoBase { repository: PathBuf, base: String },
    #[error("the branch `{branch}` is there already, with commits that `{base}` does not have")]
    BranchTaken { branch: String, base: String },
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

/// Makes `path` a worktree of `repository` on the new branch `branch`, which starts at `base` (else `origin/base`).
///
/// May be repeated after a crash at any point. Several may call it at once for one repository.
pub fn prepare(repository: &Path, path: &Path, branch: &str, base: &str) -> Result<Prepared, WorktreeError> {
    let common_dir = common_dir(repository)?;
    let _lock = lock(&common_dir)?;
    removal::put_back(path)?;
    let start = find_base(repository, base)?;
    match Place::look(repository, &common_dir, path)? {
        Place::Worktree(worktree) => {
            worktree.finish_interrupted_switch(path)?;
            if worktree.branch.as_deref() == Some(branch) {
                return Ok(Prepared::Found);
            }
            refuse_unsaved(path)?;
            let how = new_branch_option(repository, branch, base, &start)?;
            worktree.switch(path, how, branch, &start)?;
            Ok(Prepared::Switched)
        }
        Place::Free { stale } => {
            clear(&common_dir, path, stale.as_deref())?;
            let how = new_branch_option(repository, branch, base, &start)?;
            let path = path.as_os_str();
            let add = ["worktree", "add", "--quiet", how, branch].map(AsRef::as_ref);
            run_git(repository, "add a worktree", &[&add[..], &[path, start.as_ref()]].concat())?;
            Ok(Prepared::Made)
        }
        Place::Taken => Err(not_a_worktree(repository, path)),
    }
}

/// Makes `path` a worktree of `repository` without a branch and without files, unless it is one already.
pub(crate) fn prepare_bare(repository: &Path, path: &Path) -> Result<(), WorktreeError> {
    let common_dir = common_dir(repository)?;
    let _lock = lock(&common_dir)?;
    match Place::look(repository, &common_dir, path)? {
        Place::Worktree(_) => Ok(()),
        Place::Free { stale } => {
            clear(&common_dir, path, stale.as_deref())?;
            let start = any_commit(repository)?;
            let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout"].map(AsRef::as_ref);
            run_git(repository, "add a worktree", &[&add[..], &[path.as_os_str(), start.as_ref()]].concat())?;
            Ok(())
        }
        Place::Taken => Err(not_a_worktree(repository, path)),
    }
}

/// Looks at a worktree.
pub fn state(path: &Path, base: &str) -> Result<State, WorktreeError> {
    let start = find_base(path, base)?;
    let counted =
        run_git(path, "count commits", &["rev-list", "--count", &format!("{start}..HEAD")].map(AsRef::as_ref))?;
    let n_ahead =
        counted.parse().map_err(|_| WorktreeError::Git { doing: "count commits".to_owned(), said: counted })?;
    Ok(State { branch: place::branch_of(path)?, is_dirty: is_dirty(path)?, n_ahead })
}

/// The branch that is checked out in a worktree, if one is.
pub fn branch(path: &Path) -> Result<Option<String>, WorktreeError> {
    place::branch_of(path)
}

/// What a worktree holds that would be lost if other work began in it.
pub fn unsaved(path: &Path) -> Result<Option<&'static str>, WorktreeError> {
    refuse_foreign(path)?;
    Ok(match uncommitted(path)? {
        Some(why) => Some(why),
        None => unseen::unseen(path)?,
    })
}

/// The same, as far as `git status` shows it.
pub(crate) fn uncommitted(path: &Path) -> Result<Option<&'static str>, WorktreeError> {
    let arguments = ["status", "--porcelain=v2", "--branch", "--untracked-files=normal"];
    let status = index::looking_at(path).args(arguments).run("look for changes")?;
    if status.lines().any(|line| !line.starts_with('#')) {
        return Ok(Some("it has uncommitted changes"));
    }
    let is_on_branch = !status.lines().any(|line| line == "# branch.head (detached)");
    Ok((!is_on_branch && is_astray(path)?).then_some("it has commits that are on no branch"))
}

/// Git would take a directory that is no worktree any more for a part of whatever repository lies around it.
pub(crate) fn refuse_foreign(path: &Path) -> Result<(), WorktreeError> {
    if fs::symlink_metadata(path.join(".git")).is_ok() {
        return Ok(());
    }
    let doing = format!("look into {}", path.display());
    Err(WorktreeError::Git { doing, said: "it is no worktree any more".to_owned() })
}

/// What becomes of submodules whose commits are nowhere else: their repositories go with the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoneSubmodules {
    /// The worktree stays.
    Refused,
    /// They are moved to where they stay.
    Kept,
}

/// Removes a worktree; its branch stays. One with work that is nowhere else is refused. Returns what could not be deleted, which is
/// beside its place then.
pub fn remove(repository: &Path, path: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    let seen = Fingerprint::of(path);
    remove_unless(repository, path, &seen, refuse_unsaved, LoneSubmodules::Refused)
}

/// The same for one of which the caller has seen that everything in it is kept elsewhere, and that was as `seen` before that.
pub fn remove_saved(
    repository: &Path,
    path: &Path,
    seen: &Fingerprint,
    submodules: LoneSubmodules,
) -> Result<Option<PathBuf>, WorktreeError> {
    remove_unless(repository, path, seen, |_| Ok(()), submodules)
}

fn remove_unless(
    repository: &Path,
    path: &Path,
    seen: &Fingerprint,
    refuse: impl Fn(&Path) -> Result<(), WorktreeError>,
    submodules: LoneSubmodules,
) -> Result<Option<PathBuf>, WorktreeError> {
    let common_dir = common_dir(repository)?;
    let _lock = lock(&common_dir)?;
    removal::put_back(path)?;
    match Place::look(repository, &common_dir, path)? {
        Place::Worktree(worktree) => {
            if Fingerprint::of(path) != *seen {
                return Err(WorktreeError::Changed { path: path.to_owned() });
            }
            let is_changed = worktree.finish_interrupted_switch(path)?;
            refuse(path)?;
            leave_submodules(&common_dir, path, worktree.desk(), submodules)?;
            let seen = if is_changed { &Fingerprint::of(path) } else { seen };
            removal::discard(path, worktree.desk(), seen)
        }
        Place::Free { stale } => clear(&common_dir, path, stale.as_deref()).map(|()| None),
        Place::Taken => Err(not_a_worktree(repository, path)),
    }
}

/// The repositories of submodules go with the worktree: one whose commits are nowhere else is kept, or the worktree is.
fn leave_submodules(
    common_dir: &Path,
    path: &Path,
    desk: &Path,
    submodules: LoneSubmodules,
) -> Result<(), WorktreeError> {
    for submodule in submodules::lone(desk)? {
        if submodules == LoneSubmodules::Refused {
            return Err(WorktreeError::LoneSubmodule { path: path.to_owned() });
        }
        submodules::keep(common_dir, &submodule)?;
    }
    Ok(())
}

/// The repository that a worktree is of.
pub fn repository_of(path: &Path) -> Result<PathBuf, WorktreeError> {
    refuse_foreign(path)?;
    common_dir(path)
}

pub(crate) fn common_dir(repository: &Path) -> Result<PathBuf, WorktreeError> {
    let arguments = ["rev-parse", "--path-format=absolute", "--git-common-dir"].map(AsRef::as_ref);
    let dir = PathBuf::from(run_git(repository, "find the repository", &arguments)?);
    dir.canonicalize().map_err(|source| WorktreeError::Io { doing: "find", path: dir, source })
}

/// One at a time in a repository: git itself does not survive two that add the same worktree.
pub(crate) fn lock(common_dir: &Path) -> Result<File, WorktreeError> {
    let path = common_dir.join("gt-worktree.lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let locked = opened.and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    locked.map_err(|source| WorktreeError::Io { doing: "lock", path, source })
}

/// The commit that new work starts from.
fn find_base(repository: &Path, base: &str) -> Result<String, WorktreeError> {
    for name in [format!("refs/heads/{base}"), format!("refs/remotes/origin/{base}")] {
        if let Some(commit) = commit_of(repository, &name)? {
            return Ok(commit);
        }
    }
    any_commit(repository)?;
    Err(WorktreeError::NoBase { repository: repository.to_owned(), base: base.to_owned() })
}

/// Some commit of a repository.
fn any_commit(repository: &Path) -> Result<String, WorktreeError> {
    let any = git(repository, &["rev-list", "--all", "--max-count=1"].map(AsRef::as_ref))?;
    match text_of(&any.stdout) {
        none if none.is_empty() => Err(WorktreeError::NoCommits { repository: repository.to_owned() }),
        commit => Ok(commit),
    }
}

fn commit_of(repository: &Path, name: &str) -> Result<Option<String>, WorktreeError> {
    let commit = format!("{name}^{{commit}}");
    let found = git(repository, &["rev-parse", "--quiet", "--verify", &commit].map(AsRef::as_ref))?;
    Ok(found.status.success().then(|| text_of(&found.stdout)))
}

/// How to ask git for the branch: one left by an attempt that came to nothing may be moved, others must be new.
fn new_branch_option(repository: &Path, branch: &str, base: &str, start: &str) -> Result<&'static str, WorktreeError> {
    let Some(tip) = commit_of(repository, &format!("refs/heads/{branch}"))? else { return Ok("-b") };
    let is_behind = git(repository, &["merge-base", "--is-ancestor", &tip, start].map(AsRef::as_ref))?;
    if is_behind.status.success() {
        return Ok("-B");
    }
    Err(WorktreeError::BranchTaken { branch: branch.to_owned(), base: base.to_owned() })
}

fn refuse_unsaved(path: &Path) -> Result<(), WorktreeError> {
    if unsaved(path)?.is_some() {
        return Err(WorktreeError::Dirty { path: path.to_owned() });
    }
    Ok(())
}

fn is_dirty(path: &Path) -> Result<bool, WorktreeError> {
    let arguments = ["status", "--porcelain", "--untracked-files=normal"].map(AsRef::as_ref);
    Ok(!run_git(path, "look for changes", &arguments)?.is_empty())
}

/// Whether the commit checked out is on no branch, so that leaving it would lose it.
pub(crate) fn is_astray(path: &Path) -> Result<bool, WorktreeError> {
    let arguments = ["for-each-ref", "--count=1", "--contains=HEAD", "refs/heads", "refs/remotes"].map(AsRef::as_ref);
    Ok(run_git(path, "look for branches", &arguments)?.is_empty())
}

/// Removes what an interrupted attempt left, or somebody who removed the directory.
fn clear(common_dir: &Path, path: &Path, stale: Option<&Path>) -> Result<(), WorktreeError> {
    if let Some(desk) = stale {
        leave_submodules(common_dir, path, desk, LoneSubmodules::Kept)?;
    }
    for leftover in [Some(path), stale].into_iter().flatten() {
        match fs::remove_dir_all(leftover) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(WorktreeError::Io { doing: "clear", path: leftover.to_owned(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn not_a_worktree(repository: &Path, path: &Path) -> WorktreeError {
    WorktreeError::NotAWorktree { path: path.to_owned(), repository: repository.to_owned() }
}
