//! The entries of git's index, and comparing files on disk with entries of our choice.
//!
//! Git believes the marks `assume-unchanged` and `skip-worktree`: it does not look at files that have one. No work may be lost by
//! that, so files are compared in an index of our own, which has no marks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::git::{Git, GitError};

/// How git writes the mode of a submodule.
pub(crate) const SUBMODULE: &str = "160000";

/// One line of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub path: Vec<u8>,
    pub mode: String,
    pub id: String,
    /// One of several at its path.
    pub is_in_conflict: bool,
    /// Marked `skip-worktree`, as everything is that a sparse checkout leaves out.
    pub is_skipped: bool,
    /// Marked `assume-unchanged`.
    pub is_assumed_unchanged: bool,
}

impl Entry {
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == SUBMODULE
    }

    /// Whether git does not look at the file, although there is one.
    pub(crate) fn is_overlooked(&self, top: &Path) -> bool {
        let is_marked = !self.is_in_conflict && (self.is_skipped || self.is_assumed_unchanged);
        is_marked && fs::symlink_metadata(self.place(top)).is_ok()
    }

    pub(crate) fn place(&self, top: &Path) -> PathBuf {
        top.join(OsStr::from_bytes(&self.path))
    }

    /// A line of `update-index --index-info`.
    pub(crate) fn line(mode: &str, id: &str, path: &[u8]) -> Vec<u8> {
        [format!("{mode} {id}\t").as_bytes(), path].concat()
    }

    /// Reads a line of `ls-files -v --stage`.
    fn read(line: &[u8]) -> Option<Entry> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let words = String::from_utf8_lossy(&line[..tab]);
        let [tag, mode, id, stage] = words.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some(Entry {
            path: line[tab + 1..].to_vec(),
            mode: mode.to_owned(),
            id: id.to_owned(),
            is_in_conflict: stage != "0",
            is_skipped: tag.eq_ignore_ascii_case("s"),
            is_assumed_unchanged: tag.bytes().all(|byte| byte.is_ascii_lowercase()),
        })
    }
}

/// All entries of the index that this call of git is about.
pub(crate) fn entries(git: Git) -> Result<Vec<Entry>, GitError> {
    let listed = git.args(["ls-files", "-v", "--stage", "-z", "--full-name", ":/"]);
    let listed = listed.run_for_bytes("look at the index")?;
    Ok(listed.split(|byte| *byte == 0).filter_map(Entry::read).collect())
}

/// Files with uncommitted changes that git does not look at.
pub(crate) fn overlooked(top: &Path, git_dir: &Path, entries: &[Entry]) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let overlooked = entries.iter().filter(|entry| !entry.is_submodule() && entry.is_overlooked(top));
    let lines: Vec<_> = overlooked.map(|entry| Entry::line(&entry.mode, &entry.id, &entry.path)).collect();
    differing(top, git_dir, lines)
}

/// Takes the marks away from these paths by which git does not look at them, in the index that these calls of git are about.
pub(crate) fn unmark(git: impl Fn() -> Git, paths: impl IntoIterator<Item = Vec<u8>>) -> Result<(), GitError> {
    let list = terminated(paths);
    for mark in ["--no-assume-unchanged", "--no-skip-worktree"] {
        if !list.is_empty() {
            git().args(["update-index", mark, "-z", "--stdin"]).input(&list)?.run("look for changes")?;
        }
    }
    Ok(())
}

/// Which files are not as these lines say. Missing ones are among them.
pub(crate) fn differing(
    dir: &Path,
    git_dir: &Path,
    lines: impl IntoIterator<Item = Vec<u8>>,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let lines = terminated(lines);
    if lines.is_empty() {
        return Ok(BTreeSet::new());
    }
    let scratch = Scratch::in_dir(git_dir).map_err(|error| GitError::Complaint {
        doing: format!("compare files in {}", dir.display()),
        said: error.to_string(),
    })?;
    let git = |arguments: &[&str]| looking_at(dir).env("GIT_INDEX_FILE", &scratch.path).args(arguments);
    git(&["update-index", "--add", "-z", "--index-info"]).input(&lines)?.run("compare files")?;
    // The next one takes a file that was not looked at for one that differs.
    git(&["update-index", "-q", "--refresh"]).answers("compare files")?;
    let listed = git(&["diff-files", "-z", "--name-only", "--ignore-submodules=all"]).run_for_bytes("compare files")?;
    Ok(names(&listed).collect())
}

/// A call of git that looks at every file itself, whatever a monitor of the file system has to say.
pub(crate) fn looking_at(dir: &Path) -> Git {
    Git::at(dir).args(["-c", "core.fsmonitor=false"])
}

/// The names in a list that git ends with a zero byte each.
pub(crate) fn names(list: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec)
}

/// A list as git reads it: each with a zero byte after it.
pub(crate) fn terminated(lines: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| line.into_iter().chain([0])).collect()
}

/// An index that is there only for a question, one at a time.
struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    fn in_dir(git_dir: &Path) -> io::Result<Scratch> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(git_dir.join("gt-compare.lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let scratch = Scratch { path: git_dir.join("gt-compare.index"), _lock: lock };
        // What a process that was killed has left.
        scratch.remove();
        Ok(scratch)
    }

    fn remove(&self) {
        fs::remove_file(&self.path).ok();
        fs::remove_file(self.path.with_extension("index.lock")).ok();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}
