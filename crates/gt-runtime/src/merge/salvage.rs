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

use super::checkout::top;
use super::history::{commit_tree, into_whole_file, is_part_of, tree_of};
use super::{MergeError, find_commit, git_dir, io_error, keep};
use crate::git::{Git, complaint, text_of};
use crate::index::{self, names, terminated};
use crate::worktree;

/// Larger files are rarely work, and would stay in the repository.
const FILE_BYTES_MAX: u64 = 50 << 20;

const MESSAGE: &str = "What was left uncommitted";
const STAGED: &str = "What was staged";

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
    worktree::refuse_foreign(worktree)?;
    let git_dir = git_dir(worktree)?;
    let _lock = lock(&git_dir)?;
    let head = find_commit(worktree, "HEAD")?;
    let index = Index::copy_of(worktree, &git_dir)?;
    let old_tree = match &head {
        Some(head) => tree_of(worktree, head)?,
        None => Git::at(worktree).arg("mktree").run("make an empty tree")?,
    };
    let staged = index.tree()?;
    let left_out = index.add_all()?;
    let tree = index.git(&["write-tree"]).run("save changes")?;
    let found = Found {
        staged: staged.filter(|staged| *staged != old_tree && *staged != tree),
        put_away: worktree::lone_commits(worktree)?,
        is_changed: tree != old_tree || !left_out.is_empty(),
        head,
        tree,
    };
    let before = find_commit(worktree, name)?;
    let Some(commit) = found.commit(worktree, before.as_deref())? else { return Ok(None) };
    keep(worktree, name, &commit)?;
    let asked = Git::at(worktree).args(["diff-tree", "-r", "-p", "--binary", "--full-index", &old_tree, &found.tree]);
    into_whole_file(asked, "write a patch", patch)?;
    Ok(Some(Salvage { commit, left_out }))
}

/// What there is to save.
struct Found {
    head: Option<String>,
    /// The files as they are on disk.
    tree: String,
    /// Whether they are not as committed, or some of them cannot be saved.
    is_changed: bool,
    /// The files as they are staged, where that is neither what is committed nor what is on disk.
    staged: Option<String>,
    /// Commits that only this worktree knows of.
    put_away: BTreeSet<String>,
}

impl Found {
    /// A commit that has all of it, and what was saved `before`: that is never lost. The same again is the same commit.
    fn commit(&self, worktree: &Path, before: Option<&str>) -> Result<Option<String>, MergeError> {
        let is_all_in = |commit: &str| self.is_all_in(worktree, commit);
        if !self.is_changed && self.staged.is_none() && self.put_away.is_empty() {
            let is_lone = is_astray(worktree)? || worktree::unfinished(worktree)?.is_some();
            let Some(head) = self.head.as_deref().filter(|_| is_lone) else { return Ok(None) };
            if before.map_or(Ok(true), |before| is_part_of(worktree, before, head))? {
                return Ok(Some(head.to_owned()));
            }
        }
        if let Some(before) = before
            && is_all_in(before)?
        {
            return Ok(Some(before.to_owned()));
        }
        let head = self.head.as_deref();
        let staged = match &self.staged {
            Some(tree) => Some(commit_tree(worktree, tree, &head.into_iter().collect::<Vec<_>>(), STAGED)?),
            None => None,
        };
        let mut parents: Vec<&str> = Vec::new();
        let put_away = self.put_away.iter().map(String::as_str);
        for parent in head.into_iter().chain(staged.as_deref()).chain(before).chain(put_away) {
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        Ok(Some(commit_tree(worktree, &self.tree, &parents, MESSAGE)?))
    }

    /// Whether a commit that was saved before has all of it already.
    fn is_all_in(&self, worktree: &Path, before: &str) -> Result<bool, MergeError> {
        let known = Git::at(worktree).args(["show", "--no-patch", "--format=%P", before]).run("look at a commit")?;
        let parents: Vec<&str> = known.split_ascii_whitespace().collect();
        let is_on_head = self.head.is_none() || parents.first().copied() == self.head.as_deref();
        if !is_on_head || tree_of(worktree, before)? != self.tree {
            return Ok(false);
        }
        if let Some(staged) = &self.staged {
            let trees = parents.iter().map(|parent| tree_of(worktree, parent)).collect::<Result<Vec<_>, _>>()?;
            if !trees.contains(staged) {
                return Ok(false);
            }
        }
        for commit in &self.put_away {
            if !is_part_of(worktree, commit, before)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
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

/// What git does not track.
struct NewFiles {
    paths: Vec<Vec<u8>>,
    /// Directories that it cannot look into.
    closed: Vec<Vec<u8>>,
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

    /// What is staged; `None` where that is no tree, because of conflicts.
    fn tree(&self) -> Result<Option<String>, MergeError> {
        let written = self.git(&["write-tree"]).output()?;
        Ok(written.status.success().then(|| text_of(&written.stdout)))
    }

    /// Adds what is new or changed, and takes out what is gone. Returns what it left alone.
    fn add_all(&self) -> Result<Vec<String>, MergeError> {
        let top = top(self.worktree)?;
        let entries = index::entries(self.git(&[]))?;
        // What a sparse checkout leaves out is not on disk, and is not overlooked.
        let overlooked = entries.iter().filter(|entry| entry.is_overlooked(&top));
        index::unmark(|| self.git(&[]), overlooked.map(|entry| entry.path.clone()))?;
        let changed = self.git(&["diff-files", "--name-only", "--ignore-submodules=dirty", "-z"]);
        let mut paths: BTreeSet<_> = names(&changed.run_for_bytes("look for changes")?).collect();
        let new = self.new_files()?;
        paths.extend(new.paths);
        // Of a submodule only its commit is saved, so one with changes is left out, and so is one that has more.
        let everything = self.git(&["diff-files", "--name-only", "--ignore-submodules=none", "-z"]);
        let everything = everything.run_for_bytes("look for changes")?;
        let mut left_out: BTreeSet<_> = names(&everything).filter(|path| !paths.contains(path)).collect();
        left_out.extend(worktree::unsaved_inside(&top, &entries)?);
        left_out.extend(new.closed);
        let submodules: BTreeSet<_> =
            entries.iter().filter(|entry| entry.is_submodule()).map(|entry| entry.path.as_slice()).collect();
        let place = |path: &[u8]| top.join(OsStr::from_bytes(path));
        let (saved, too_much): (Vec<_>, Vec<_>) = paths
            .into_iter()
            .filter(|path| !left_out.contains(path))
            .partition(|path| can_save(&place(path), submodules.contains(path.as_slice())));
        left_out.extend(too_much);
        let plainly = ["-c", "core.safecrlf=false", "update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.git(&plainly).input(&terminated(saved))?.run("save changes")?;
        self.settle(&left_out)?;
        Ok(left_out.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Files that git does not know yet, and directories that it cannot look into.
    fn new_files(&self) -> Result<NewFiles, MergeError> {
        let listed = self.git(&["ls-files", "--others", "--exclude-standard", "-z"]).output()?;
        if !listed.status.success() {
            return Err(complaint(self.worktree, "look for changes", &listed).into());
        }
        // It only warns of them.
        let warned = String::from_utf8_lossy(&listed.stderr).into_owned();
        let closed = warned.lines().filter_map(|line| line.split_once("could not open directory '"));
        let closed = closed.filter_map(|(_, rest)| rest.rsplit_once('\''));
        let closed = closed.map(|(path, _)| path.trim_end_matches('/').as_bytes().to_vec());
        Ok(NewFiles { paths: names(&listed.stdout).collect(), closed: closed.collect() })
    }

    /// A conflict in a file that is left out would keep the tree from being written; it stays as committed.
    fn settle(&self, left_out: &BTreeSet<Vec<u8>>) -> Result<(), MergeError> {
        let unmerged = self.git(&["diff", "--name-only", "--diff-filter=U", "-z"]).run_for_bytes("look for changes")?;
        let unmerged: BTreeSet<&[u8]> = unmerged.split(|byte| *byte == 0).collect();
        let list = terminated(left_out.iter().filter(|path| unmerged.contains(path.as_slice())).cloned());
        if !list.is_empty() {
            let reset = ["--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.git(&reset).input(&list)?.run("save changes")?;
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Git {
        index::looking_at(self.worktree).env("GIT_INDEX_FILE", &self.path).args(arguments)
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

/// Whether git can take a file in: a readable one of a bearable size, a link, or one that is gone. Of a directory it takes
/// the commit that is checked out there, which is enough where it tracks that as a submodule.
fn can_save(path: &Path, is_submodule: bool) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::NotADirectory,
        Ok(metadata) if metadata.is_file() => metadata.len() <= FILE_BYTES_MAX && File::open(path).is_ok(),
        Ok(metadata) => metadata.is_symlink() || is_submodule,
    }
}
