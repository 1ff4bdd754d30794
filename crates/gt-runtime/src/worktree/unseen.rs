//! Work in a worktree that `git status` does not show: marked files, repositories inside, what an unfinished rebase has put away.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::submodules::has_lone_commits;
use crate::git::{Git, GitError};
use crate::index::{self, Entry};

/// What git keeps beside the index while something is not finished, and how that is told.
const UNFINISHED: [(&str, &str); 5] = [
    ("rebase-merge", "a rebase in it is not finished"),
    ("rebase-apply", "a rebase in it is not finished"),
    ("MERGE_HEAD", "a merge in it is not finished"),
    ("CHERRY_PICK_HEAD", "a cherry-pick in it is not finished"),
    ("REVERT_HEAD", "a revert in it is not finished"),
];
/// Where git notes commits then. Some of them are on no branch: changes that were put away, commits that have yet to be replayed.
const NOTED: [&str; 9] = [
    "rebase-merge/orig-head",
    "rebase-merge/autostash",
    "rebase-apply/orig-head",
    "rebase-apply/autostash",
    "MERGE_AUTOSTASH",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
];
/// Refs that belong to one worktree and go with it.
const OWN_REFS: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/// What would be lost with a worktree in which `git status` shows nothing.
pub(super) fn unseen(path: &Path) -> Result<Option<&'static str>, WorktreeError> {
    if let Some(why) = unfinished(path)? {
        return Ok(Some(why));
    }
    let entries = index::entries(Git::at(path))?;
    if !index::overlooked(path, &git_dir(path)?, &entries)?.is_empty() {
        return Ok(Some("it has changes in files that are marked assume-unchanged or skip-worktree"));
    }
    let inside = unsaved_inside(path, &entries)?;
    Ok((!inside.is_empty()).then_some("it has a repository inside with work that is nowhere else"))
}

/// The rebase, merge or the like that was begun in a worktree and not finished.
pub(crate) fn unfinished(path: &Path) -> Result<Option<&'static str>, WorktreeError> {
    let git_dir = git_dir(path)?;
    Ok(UNFINISHED.iter().find(|(name, _)| git_dir.join(name).exists()).map(|(_, why)| *why))
}

/// Commits that only this worktree knows of, apart from what is checked out in it.
pub(crate) fn lone_commits(path: &Path) -> Result<BTreeSet<String>, WorktreeError> {
    let git_dir = git_dir(path)?;
    let noted = NOTED.iter().map(|name| fs::read_to_string(git_dir.join(name)).unwrap_or_default());
    let mut found: Vec<String> = noted.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let own = Git::at(path).args(["for-each-ref", "--format=%(objectname)"]).args(OWN_REFS).run("list refs")?;
    found.extend(own.lines().map(str::to_owned));
    let mut lone = BTreeSet::new();
    for name in found {
        let Some(commit) = super::commit_of(path, &name)? else { continue };
        let asked = ["rev-list", "--max-count=1", &commit, "--not", "HEAD", "--branches", "--remotes", "--tags", "--"];
        // Without a commit checked out there is nothing to compare with.
        let is_known = Git::at(path).args(asked).output()?;
        if !is_known.status.success() || !is_known.stdout.is_empty() {
            lone.insert(commit);
        }
    }
    Ok(lone)
}

/// Submodules, and repositories that were added like one, with work that would be lost with the worktree and that git does not
/// show: hidden changes, and commits where the repository itself lies in the worktree.
pub(crate) fn unsaved_inside(top: &Path, entries: &[Entry]) -> Result<BTreeSet<Vec<u8>>, WorktreeError> {
    let mut unsaved = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.is_submodule()) {
        let place = entry.place(top);
        if place.join(".git").exists() && has_unseen(&place)? {
            unsaved.insert(entry.path.clone());
        }
    }
    Ok(unsaved)
}

fn has_unseen(place: &Path) -> Result<bool, WorktreeError> {
    let inner = place.join(".git");
    if inner.is_dir() && has_lone_commits(&inner)? {
        return Ok(true);
    }
    let entries = index::entries(Git::at(place))?;
    let is_hidden = !index::overlooked(place, &git_dir(place)?, &entries)?.is_empty();
    Ok(is_hidden || !unsaved_inside(place, &entries)?.is_empty())
}

fn git_dir(path: &Path) -> Result<PathBuf, GitError> {
    Ok(PathBuf::from(
        Git::at(path).args(["rev-parse", "--path-format=absolute", "--git-dir"]).run("find the repository")?,
    ))
}
