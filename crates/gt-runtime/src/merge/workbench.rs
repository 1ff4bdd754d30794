//! The worktree in which commits are stacked and tried. It is the refinery's own: nothing in it is anybody's work,
//! save for ignored files, which make the next gates faster and stay.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::history::merge_base;
use super::{MergeError, commit_of, git_dir, identified, io_error};
use crate::git::{Git, complaint, text_of};
use crate::worktree;

/// In git's directory of a worktree that may be cleaned.
const MARK: &str = "gt-workbench";

/// How a merge went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stacked {
    Done {
        tip: String,
    },
    /// Nothing was merged.
    Conflict {
        files: Vec<String>,
    },
    /// Neither: git cannot, and says why.
    Failed {
        said: String,
    },
}

/// A worktree for merging, with no branch checked out.
#[derive(Debug)]
pub struct Workbench {
    path: PathBuf,
    git_dir: PathBuf,
}

impl Workbench {
    /// Makes the workbench, or finds it. Nothing is said of what it holds: [`Workbench::reset`] it first.
    pub fn open(repository: &Path, path: &Path) -> Result<Self, MergeError> {
        worktree::prepare_bare(repository, path)?;
        let git_dir = git_dir(path)?;
        let mark = git_dir.join(MARK);
        if !mark.exists() {
            refuse_foreign(path)?;
            fs::write(&mark, "").map_err(io_error("write", &mark))?;
        }
        Ok(Self { path: path.to_owned(), git_dir })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the branch that a gate may have checked out here: the target would be in the way of its own landing.
    pub fn leave_branch(&self) -> Result<(), MergeError> {
        if worktree::branch(&self.path)?.is_some() {
            self.remove_dead_locks()?;
            let commit = commit_of(&self.path, "HEAD")?;
            self.git(&["update-ref", "--no-deref", "HEAD", &commit]).run("leave a branch")?;
        }
        Ok(())
    }

    /// Makes the files those of `commit`, whatever was under way; ignored files stay.
    pub fn reset(&self, commit: &str) -> Result<(), MergeError> {
        self.restore(commit)?;
        self.git(&["clean", "--quiet", "-ffd"]).run("clean the workbench")?;
        Ok(())
    }

    /// Puts back what is tracked, as it is in `commit`; all other files stay.
    pub fn restore(&self, commit: &str) -> Result<(), MergeError> {
        let commit = commit_of(&self.path, commit)?;
        self.remove_dead_locks()?;
        // First away from a branch that somebody may have checked out here, or it would be moved.
        self.git(&["update-ref", "--no-deref", "HEAD", &commit]).run("leave the last merge")?;
        self.git(&["reset", "--quiet", "--hard", &commit]).run("clean the workbench")?;
        Ok(())
    }

    /// Merges `commit` into what is checked out; after a conflict that is what it was before.
    pub fn merge(&self, commit: &str, message: &str) -> Result<Stacked, MergeError> {
        let (before, commit) = (commit_of(&self.path, "HEAD")?, commit_of(&self.path, commit)?);
        if merge_base(&self.path, &before, &commit)?.is_none() {
            return Err(MergeError::Unrelated { commit });
        }
        let plainly = ["-c", "rerere.enabled=false", "-c", "submodule.recurse=false", "merge", "--no-ff", "--no-edit"];
        let more = ["--quiet", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-log", "--cleanup=whitespace"];
        let asked = self.git(&plainly).args(more).args(["-m", message, &commit]);
        let merged = identified(asked, &self.path)?.output()?;
        if merged.status.success() {
            return Ok(Stacked::Done { tip: commit_of(&self.path, "HEAD")? });
        }
        let files = self.conflicts()?;
        self.reset(&before)?;
        if files.is_empty() {
            let said = text_of(&merged.stderr);
            return if is_of_the_machine(merged.status, &said) {
                Err(complaint(&self.path, "merge", &merged).into())
            } else {
                Ok(Stacked::Failed { said })
            };
        }
        Ok(Stacked::Conflict { files })
    }

    fn conflicts(&self) -> Result<Vec<String>, MergeError> {
        let asked = self.git(&["diff", "--name-only", "--diff-filter=U", "-z"]);
        let listed = asked.run_for_bytes("list conflicts")?;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut files: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        files.dedup();
        Ok(files)
    }

    /// Nobody else works here, so locks are of a git that was killed.
    fn remove_dead_locks(&self) -> Result<(), MergeError> {
        let entries = fs::read_dir(&self.git_dir).map_err(io_error("look into", &self.git_dir))?;
        let paths = entries.flatten().map(|entry| entry.path());
        for lock in paths.filter(|path| path.extension() == Some(OsStr::new("lock"))) {
            match fs::remove_file(&lock) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("remove", &lock)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Git {
        Git::without_hooks_at(&self.path).args(arguments)
    }
}

/// Whether git was killed, or found no room: that says nothing about the commit.
fn is_of_the_machine(status: ExitStatus, said: &str) -> bool {
    const SAID: [&str; 8] = [
        "unable to write",
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Input/output error",
        "Too many open files",
        "Cannot allocate memory",
        "Out of memory",
    ];
    status.code().is_none() || SAID.iter().any(|known| said.contains(known))
}

/// A worktree without the mark is one that was just made, and then it is empty; anything else is somebody's.
fn refuse_foreign(path: &Path) -> Result<(), MergeError> {
    let n_entries = fs::read_dir(path).map_err(io_error("look into", path))?.count();
    let is_on_branch = worktree::branch(path)?.is_some();
    if n_entries > 1 || is_on_branch { Err(MergeError::ForeignWorktree { path: path.to_owned() }) } else { Ok(()) }
}
