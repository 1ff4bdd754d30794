//! What is at a path: a worktree of ours, nothing that matters, or something that is none of our business.
//!
//! A worktree is known by two things that point at each other: the file `.git` in it, and a directory of git's below
//! `worktrees/` in the repository (here: its desk). `git worktree add` makes the desk first, marked as initializing,
//! and takes the mark away last; so a mark that is still there means that the rest holds nobody's work.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::git::{git, run_git, text_of};

/// On the desk while a clean worktree gets another branch: then whatever it holds is from that, and can go.
const SWITCHING: &str = "gt-switching";

pub(super) enum Place {
    Worktree(Worktree),
    /// Nothing is lost when it is cleared, together with the desk of an interrupted attempt.
    Free {
        stale: Option<PathBuf>,
    },
    Taken,
}

pub(super) struct Worktree {
    pub branch: Option<String>,
    desk: PathBuf,
}

impl Place {
    pub(super) fn look(repository: &Path, common_dir: &Path, path: &Path) -> Result<Self, WorktreeError> {
        let desk = desk_of(common_dir, path);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries.count(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Self::Taken),
            Err(source) => return Err(WorktreeError::Io { doing: "look into", path: path.to_owned(), source }),
        };
        let target = target_of(&path.join(".git"));
        let is_ours = target.as_ref().is_some_and(|target| target.starts_with(common_dir.join("worktrees")));
        match desk {
            Some(desk) if is_locked_by_user(&desk) && entries == 0 => Err(WorktreeError::Git {
                doing: format!("add a worktree in {}", repository.display()),
                said: format!("{} is locked, see `git worktree unlock`", path.display()),
            }),
            Some(desk) if is_initializing(&desk) => Ok(Self::Free { stale: Some(desk) }),
            Some(desk) if target.as_ref() == Some(&desk) && desk.join("HEAD").is_file() => {
                Ok(Self::Worktree(Worktree { branch: branch_of(path)?, desk }))
            }
            stale if entries == 0 || (entries == 1 && is_ours) => Ok(Self::Free { stale }),
            _ => Ok(Self::Taken),
        }
    }
}

impl Worktree {
    pub(super) fn desk(&self) -> &Path {
        &self.desk
    }

    /// Puts a clean worktree on a new branch.
    pub(super) fn switch(&self, path: &Path, how: &str, branch: &str, start: &str) -> Result<(), WorktreeError> {
        let mark = self.desk.join(SWITCHING);
        fs::write(&mark, branch).map_err(|source| io_error("write", &mark, source))?;
        self.remove_dead_locks()?;
        let arguments = ["checkout", "--quiet", "--no-track", how, branch, start].map(AsRef::as_ref);
        let switched = run_git(path, "change the branch", &arguments);
        if switched.is_err() {
            // The reason that git gave is the one to tell.
            self.finish_interrupted_switch(path).ok();
        }
        switched?;
        remove_file(&mark)
    }

    /// Cleans up if a switch was interrupted, and says whether one was; it only ever begins in a clean worktree.
    pub(super) fn finish_interrupted_switch(&self, path: &Path) -> Result<bool, WorktreeError> {
        let mark = self.desk.join(SWITCHING);
        if !mark.exists() {
            return Ok(false);
        }
        self.remove_dead_locks()?;
        run_git(path, "undo an interrupted change of branch", &["reset", "--quiet", "--hard"].map(AsRef::as_ref))?;
        run_git(path, "undo an interrupted change of branch", &["clean", "--quiet", "-fd"].map(AsRef::as_ref))?;
        remove_file(&mark)?;
        Ok(true)
    }

    /// No agent works here now, so a lock on what is this worktree's own is from a git that was killed.
    fn remove_dead_locks(&self) -> Result<(), WorktreeError> {
        let entries = fs::read_dir(&self.desk).into_iter().flatten().flatten();
        let locks = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "lock"));
        locks.into_iter().try_for_each(|lock| remove_file(&lock))
    }
}

/// The branch that is checked out at `path`.
pub(super) fn branch_of(path: &Path) -> Result<Option<String>, WorktreeError> {
    let head = git(path, &["symbolic-ref", "--quiet", "--short", "HEAD"].map(AsRef::as_ref))?;
    Ok(head.status.success().then(|| text_of(&head.stdout)))
}

/// The desk that belongs to `path`, if the repository has one.
fn desk_of(common_dir: &Path, path: &Path) -> Option<PathBuf> {
    let desks = fs::read_dir(common_dir.join("worktrees")).ok()?.flatten().map(|desk| desk.path());
    let link = resolve(path).join(".git");
    desks.into_iter().find(|desk| {
        let back = fs::read_to_string(desk.join("gitdir")).unwrap_or_default();
        resolve(&desk.join(back.trim_end())) == link
    })
}

/// Where a `.git` file points to.
fn target_of(link: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(link).ok()?;
    Some(resolve(&link.parent()?.join(text.strip_prefix("gitdir: ")?.trim_end())))
}

/// The real path of something of which the last parts need not exist.
fn resolve(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => resolve(parent).join(name),
        _ => path.to_owned(),
    }
}

fn is_initializing(desk: &Path) -> bool {
    fs::read_to_string(desk.join("locked")).is_ok_and(|reason| reason.trim_end() == "initializing")
}

fn is_locked_by_user(desk: &Path) -> bool {
    desk.join("locked").exists() && !is_initializing(desk)
}

fn remove_file(path: &Path) -> Result<(), WorktreeError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path, source)),
        _ => Ok(()),
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> WorktreeError {
    WorktreeError::Io { doing, path: path.to_owned(), source }
}
