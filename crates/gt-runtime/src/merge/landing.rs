//! Moving a target forward in a repository, also where somebody has it checked out; deleting branches that are part of it.

use std::path::Path;

use super::checkout::{checkout_of, is_checked_out};
use super::forward::forward;
use super::history::is_part_of;
use super::{MergeError, commit_of, find_commit, here, moved, there};
use crate::git::{Git, complaint};
use crate::worktree;

/// Moves `target` forward to `commit`, which builds on `base`. A target that is there already is fine.
pub fn land(repository: &Path, target: &str, base: &str, commit: &str) -> Result<(), MergeError> {
    let (base, commit) = (commit_of(repository, base)?, commit_of(repository, commit)?);
    if !is_part_of(repository, &base, &commit)? {
        return Err(MergeError::NotOnTop { commit, on: base });
    }
    let old = find_commit(repository, &here(target))?;
    if old.as_ref() == Some(&commit) {
        return Ok(());
    }
    if let Some(old) = &old
        && !is_part_of(repository, old, &commit)?
    {
        return Err(moved(target));
    }
    match checkout_of(repository, target)? {
        Some(path) => forward(&path, target, old.as_deref(), &commit),
        None => swap(repository, target, old.as_deref(), &commit),
    }
}

/// Deletes a branch if all it has is part of the target and nobody has it checked out. Says whether it did.
pub fn delete_branch(repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
    let Some(tip) = find_commit(repository, &here(branch))? else { return Ok(false) };
    if branch == target || is_checked_out(repository, branch)? {
        return Ok(false);
    }
    // Only as it was looked at: with a new commit on it, it stays.
    let deletes = || Git::without_hooks_at(repository).args(["update-ref", "-d", &here(branch), &tip]).succeeds();
    Ok(is_merged(repository, &tip, target)? && deletes()?)
}

/// The same for a branch that somebody may be about to check out: it waits until they have.
pub fn delete_idle_branch(repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
    let _lock = worktree::lock(&worktree::common_dir(repository)?)?;
    delete_branch(repository, branch, target)
}

/// Whether the target has a commit, here or, as far as is known, at the origin.
pub fn is_merged(repository: &Path, commit: &str, target: &str) -> Result<bool, MergeError> {
    for target in [here(target), there(target)] {
        if find_commit(repository, &target)?.is_some() && is_part_of(repository, commit, &target)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves the branch alone: from what it was to `commit`, or not at all.
pub(super) fn swap(repository: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    let none = "0".repeat(commit.len());
    let asked = Git::without_hooks_at(repository).args(["update-ref", "-m", "gt: merged", &here(target), commit]);
    let swapped = asked.arg(old.unwrap_or(&none)).output()?;
    if swapped.status.success() {
        return Ok(());
    }
    let now = find_commit(repository, &here(target))?;
    if now.as_deref() == old {
        return Err(complaint(repository, "move a branch", &swapped).into());
    }
    if now.as_deref() == Some(commit) { Ok(()) } else { Err(moved(target)) }
}
