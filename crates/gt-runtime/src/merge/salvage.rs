//! What was not committed in a worktree becomes a commit and a patch, and the worktree stays as it is.
//!
//! All of it happens in an index of our own, so locks, conflicts and half-done things in the worktree's do not matter.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::history::{commit_tree, into_whole_file};
use super::{MergeError, find_commit, git_dir, io_error, keep};
use crate::git::Git;
use crate::worktree;

/// Larger files are rarely work, and would stay in the repository.
const FILE_BYTES_MAX: u64 = 50 << 20;

const MESSAGE: &str = "What was left uncommitted";

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    pub commit: String,
    /// Files that were not saved: too large, not readable, or repositories of their own.
    pub left_out: Vec<String>,
}

/// Saves the changes and new files of a worktree as a commit under the ref `name` and as a patch in the file `patch`.
/// `None` when there is nothing to save.
pub fn salvage(worktree: &Path, name: &str, patch: &Path) -> Result<Option<Salvage>, MergeError> {
    let git_dir = git_dir(worktree)?;
    let _lock = lock(&git_dir)?;
    let head = find_commit(worktree, "HEAD")?;
    let index = Index::copy_of(worktree, &git_dir)?;
    let left_out = index.add_all()?;
    let tree = index.git(&["write-tree"]).run("save changes")?;
    let old_tree = match &head {
        Some(head) => Git::at(worktree).args(["rev-parse", &format!("{head}^{{tree}}")]).run("look at a commit")?,
        None => Git::at(worktree).arg("mktree").run("make an empty tree")?,
    };
    let is_changed = tree != old_tree || !left_out.is_empty();
    let commit = match &head {
        Some(head) if !is_changed && is_astray(worktree)? => head.clone(),
        _ if !is_changed => return Ok(None),
        _ => commit_on(worktree, name, head.as_deref(), &tree)?,
    };
    keep(worktree, name, &commit)?;
    let asked = Git::at(worktree).args(["diff-tree", "-r", "-p", "--binary", "--full-index", &old_tree, &tree]);
    into_whole_file(asked, "write a patch", patch)?;
    Ok(Some(Salvage { commit, left_out }))
}

/// A commit on top of what is checked out, and of what was saved under this name before: that is never lost. The same
/// again is the same commit.
fn commit_on(worktree: &Path, name: &str, head: Option<&str>, tree: &str) -> Result<String, MergeError> {
    let before = find_commit(worktree, name)?;
    if let Some(before) = &before {
        let asked = Git::at(worktree).args(["show", "--no-patch", "--format=%T %P", before]);
        let known = asked.run("look at a commit")?;
        if known.split_ascii_whitespace().take(2).eq([tree].into_iter().chain(head)) {
            return Ok(before.clone());
        }
    }
    let parents: Vec<&str> = head.into_iter().chain(before.as_deref()).collect();
    commit_tree(worktree, tree, &parents, MESSAGE)
}

/// Whether the commit that is checked out is on no branch.
fn is_astray(worktree: &Path) -> Result<bool, MergeError> {
    Ok(worktree::branch(worktree)?.is_none() && worktree::is_astray(worktree)?)
}

/// One at a time in a worktree.
fn lock(git_dir: &Path) -> Result<File, MergeError> {
    let path = git_dir.join("gt-salvage.lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let locked = opened.and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    locked.map_err(io_error("lock", &path))
}

/// An index of our own, which begins as the worktree's.
struct Index<'a> {
    worktree: &'a Path,
    path: PathBuf,
}

impl<'a> Index<'a> {
    fn copy_of(worktree: &'a Path, git_dir: &Path) -> Result<Self, MergeError> {
        let index = Self { worktree, path: git_dir.join("gt-salvage.index") };
        // What a call that was killed left.
        index.remove();
        match copy_as_old(&git_dir.join("index"), &index.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("copy", &index.path)(error)),
            _ => Ok(index),
        }
    }

    /// Adds what is new or changed, and takes out what is gone. Returns what it left alone.
    fn add_all(&self) -> Result<Vec<String>, MergeError> {
        let mut paths = BTreeSet::new();
        let questions: [&[&str]; 2] = [
            &["diff-files", "--name-only", "--ignore-submodules=dirty", "-z"],
            &["ls-files", "--others", "--exclude-standard", "-z"],
        ];
        for question in questions {
            let listed = self.git(question).run_for_bytes("look for changes")?;
            paths.extend(listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec));
        }
        // Of a submodule only its commit is saved, so one with changes is left out.
        let everything = ["diff-files", "--name-only", "--ignore-submodules=none", "-z"];
        let changed = self.git(&everything).run_for_bytes("look for changes")?;
        let changed = changed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        let dirty: Vec<_> = changed.filter(|path| !paths.contains(path)).collect();
        let top = Git::at(self.worktree).args(["rev-parse", "--show-toplevel"]).run("find the worktree")?;
        let can_save = |path: &Vec<u8>| can_save(&Path::new(&top).join(OsStr::from_bytes(path)));
        let (saved, mut left_out): (Vec<_>, Vec<_>) = paths.into_iter().partition(can_save);
        left_out.extend(dirty);
        let plainly = ["-c", "core.safecrlf=false", "update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.git(&plainly).input(&terminated(&saved))?.run("save changes")?;
        self.settle(&left_out)?;
        Ok(left_out.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// A conflict in a file that is left out would keep the tree from being written; it stays as committed.
    fn settle(&self, left_out: &[Vec<u8>]) -> Result<(), MergeError> {
        let unmerged = self.git(&["diff", "--name-only", "--diff-filter=U", "-z"]).run_for_bytes("look for changes")?;
        let unmerged: BTreeSet<&[u8]> = unmerged.split(|byte| *byte == 0).collect();
        let list = terminated(left_out.iter().filter(|path| unmerged.contains(path.as_slice())));
        if !list.is_empty() {
            let reset = ["--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.git(&reset).input(&list)?.run("save changes")?;
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Git {
        Git::at(self.worktree).env("GIT_INDEX_FILE", &self.path).args(arguments)
    }

    fn remove(&self) {
        fs::remove_file(&self.path).ok();
        fs::remove_file(self.path.with_extension("index.lock")).ok();
    }
}

impl Drop for Index<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Copies an index with its time: of a file that is as old git does not believe size and time that nothing has changed.
fn copy_as_old(from: &Path, to: &Path) -> io::Result<()> {
    let written = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(written)
}

/// Paths as git reads them: each with a zero byte after it.
fn terminated<'a>(paths: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| path.iter().chain(&[0])).copied().collect()
}

/// Whether git can take a file in: a readable one of a bearable size, a link, or one that is gone.
fn can_save(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::NotADirectory,
        Ok(metadata) if metadata.is_file() => metadata.len() <= FILE_BYTES_MAX && File::open(path).is_ok(),
        Ok(metadata) => metadata.is_symlink() || is_submodule(path),
    }
}

/// A directory that git tracks as a commit of another repository; a new one ends with a slash in git's list.
fn is_submodule(path: &Path) -> bool {
    path.is_dir() && !path.as_os_str().as_bytes().ends_with(b"/")
}
