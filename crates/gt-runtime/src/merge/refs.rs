//! Small things of ours in a repository: refs that keep commits, and patterns that git is to overlook.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::{MergeError, commit_of, find_commit, here, io_error, there};
use crate::git::Git;
use crate::worktree;

/// How refs of ours begin; no others are touched.
pub(super) const OURS: &str = "refs/gt/";

/// Keeps a commit by a ref of its own, whatever becomes of its branch.
pub fn keep(repository: &Path, name: &str, commit: &str) -> Result<(), MergeError> {
    refuse_foreign(name)?;
    let commit = commit_of(repository, commit)?;
    Git::at(repository).args(["update-ref", name, &commit]).run("keep a commit")?;
    Ok(())
}

/// Keeps it no longer. A ref that is not there is fine.
pub fn forget(repository: &Path, name: &str) -> Result<(), MergeError> {
    refuse_foreign(name)?;
    Git::at(repository).args(["update-ref", "-d", name]).run("let go of a commit")?;
    Ok(())
}

/// The same if it still stands for this commit; says whether it did.
pub fn forget_at(repository: &Path, name: &str, commit: &str) -> Result<bool, MergeError> {
    refuse_foreign(name)?;
    Ok(Git::at(repository).args(["update-ref", "-d", name, commit]).succeeds()?)
}

/// The branches whose names begin with these folders, as in `polecat/`.
pub fn branches(repository: &Path, folder: &str) -> Result<Vec<String>, MergeError> {
    let below = here(folder);
    let listed = Git::at(repository).args(["for-each-ref", "--format=%(refname)", &below]).run("list branches")?;
    Ok(listed.lines().filter_map(|name| name.strip_prefix("refs/heads/")).map(str::to_owned).collect())
}

/// How many commits are checked out in a worktree that neither a target has nor a ref of ours keeps.
pub fn n_unkept(worktree: &Path, targets: &[String]) -> Result<u32, MergeError> {
    let mut known = Vec::new();
    for target in targets {
        for name in [here(target), there(target)] {
            known.extend(find_commit(worktree, &name)?);
        }
    }
    let asked = Git::at(worktree).args(["rev-list", "--count", "HEAD", "--not", "--glob=refs/gt/*"]).args(known);
    let counted = asked.run("count commits")?;
    counted.parse().map_err(|_| MergeError::Git { doing: "count commits".to_owned(), said: counted })
}

/// The refs below `prefix` with their commits, by name.
pub fn kept(repository: &Path, prefix: &str) -> Result<Vec<(String, String)>, MergeError> {
    list(repository, &[prefix])
}

/// Those of them whose commits the target has, here or, as far as is known, at the origin. Asks git once, however many there are.
pub fn kept_and_merged(repository: &Path, prefix: &str, target: &str) -> Result<Vec<(String, String)>, MergeError> {
    let mut found = BTreeMap::new();
    for target in [here(target), there(target)] {
        if find_commit(repository, &target)?.is_some() {
            found.extend(list(repository, &["--merged", &target, prefix])?);
        }
    }
    Ok(found.into_iter().collect())
}

fn list(repository: &Path, selection: &[&str]) -> Result<Vec<(String, String)>, MergeError> {
    let asked = Git::at(repository).args(["for-each-ref", "--format=%(objectname) %(refname)"]).args(selection);
    let listed = asked.run("list refs")?;
    let pairs = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect())
}

/// A ref of ours, with the time at which its commit was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    pub name: String,
    pub commit: String,
    /// In seconds since 1970.
    pub made_at: i64,
}

/// The refs below `prefix`, by name.
pub fn kept_since(repository: &Path, prefix: &str) -> Result<Vec<Dated>, MergeError> {
    let format = "--format=%(objectname) %(committerdate:unix) %(refname)";
    let listed = Git::at(repository).args(["for-each-ref", format, prefix]).run("list refs")?;
    let dated = |line: &str| {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let (commit, made_at, name) = (words.next()?, words.next()?, words.next()?);
        Some(Dated { name, commit, made_at: made_at.parse().ok()? })
    };
    Ok(listed.lines().filter_map(dated).collect())
}

fn refuse_foreign(name: &str) -> Result<(), MergeError> {
    if name.starts_with(OURS) { Ok(()) } else { Err(MergeError::ForeignRef { name: name.to_owned() }) }
}

/// Sees to it that git overlooks `pattern` in this repository and all its worktrees.
pub fn exclude(repository: &Path, pattern: &str) -> Result<(), MergeError> {
    let common_dir = worktree::common_dir(repository)?;
    let _lock = worktree::lock(&common_dir)?;
    let path = common_dir.join("info/exclude");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io_error("read", &path)(error)),
    };
    if text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_end() == pattern.as_bytes()) {
        return Ok(());
    }
    let newline = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
    fs::create_dir_all(common_dir.join("info")).map_err(io_error("make", &common_dir.join("info")))?;
    // In one piece, so that nobody sees half a line.
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let added = opened.and_then(|mut file| file.write_all(format!("{newline}{pattern}\n").as_bytes()));
    added.map_err(io_error("write", &path))
}

/// Whether git overlooks a path in a worktree: it is excluded there, and nobody has committed it.
pub fn is_ignored(worktree: &Path, path: &str) -> Result<bool, MergeError> {
    Ok(Git::at(worktree).args(["check-ignore", "--quiet", path]).answers("look for ignored files")?)
}
