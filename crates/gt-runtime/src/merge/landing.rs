//! Moving a target forward in a repository, also where somebody has it checked out; deleting branches that are part of it.

use std::fs;
use std::path::{Path, PathBuf};

use super::history::is_part_of;
use super::{MergeError, commit_of, find_commit, git_dir, here, there};
use crate::git::{Git, complaint, said, text_of};
use crate::worktree;

const CHANGED: &str = "has uncommitted changes";

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

/// Whether `target` could be landed on as things are. Whether a new file is in the way of a commit shows only then.
pub fn can_land(repository: &Path, target: &str) -> Result<(), MergeError> {
    match checkout_of(repository, target)? {
        Some(path) if is_changed(&path)? => Err(busy(&path, CHANGED)),
        _ => Ok(()),
    }
}

/// Deletes a branch if all it has is part of the target and nobody has it checked out. Says whether it did.
pub fn delete_branch(repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
    let Some(tip) = find_commit(repository, &here(branch))? else { return Ok(false) };
    if branch == target || !checkouts_of(repository, branch)?.is_empty() {
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

/// Where nobody has it checked out: from what it was to `commit`, or not at all.
fn swap(repository: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
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

/// Where somebody has it checked out: with their files, if none of them would be lost.
fn forward(path: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    if is_changed(path)? {
        if is_forwarded(path, commit)? {
            return swap(path, target, old, commit);
        }
        return Err(busy(path, CHANGED));
    }
    // Git overwrites ignored files when it is not told otherwise, and somebody's settings are among them.
    let plainly =
        ["merge", "--quiet", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-stat", "--no-squash"];
    let asked = Git::without_hooks_at(path).args(["-c", "submodule.recurse=false"]).args(plainly);
    let merged = asked.args(["--no-verify-signatures", commit]).output()?;
    let now = find_commit(path, &here(target))?;
    match now.as_deref() {
        Some(now) if now == commit => Ok(()),
        now if now != old || merged.status.success() => Err(moved(target)),
        _ => Err(busy(path, &obstacle(&merged.stderr))),
    }
}

/// Whether the files are those of `commit` already: git was killed before it moved the branch.
fn is_forwarded(path: &Path, commit: &str) -> Result<bool, MergeError> {
    let is_index_equal = Git::at(path).args(["diff", "--quiet", "--cached", commit]).succeeds()?;
    Ok(is_index_equal && Git::at(path).args(["diff", "--quiet"]).succeeds()?)
}

/// Whether tracked files have changes that are not committed.
fn is_changed(path: &Path) -> Result<bool, MergeError> {
    let asked = Git::at(path).args(["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]);
    Ok(!asked.run("look for changes")?.is_empty())
}

/// What git says is in the way.
fn obstacle(stderr: &[u8]) -> String {
    let text = text_of(stderr);
    let named = text.lines().skip_while(|line| !line.contains("would be overwritten")).nth(1);
    match named {
        Some(file) => format!("a file of its own is in the way: {}", file.trim()),
        None if text.contains("index.lock") => "git is at work there, or was killed and left `index.lock`".to_owned(),
        None => format!("git does not move it: {}", said(stderr)),
    }
}

/// A place that has a branch checked out.
struct Checkout {
    path: PathBuf,
    /// Nothing is checked out by name meanwhile, but the branch will be moved when it is over.
    is_rebasing: bool,
}

/// The one place where a branch is checked out, if any.
fn checkout_of(repository: &Path, branch: &str) -> Result<Option<PathBuf>, MergeError> {
    let mut checkouts = checkouts_of(repository, branch)?;
    let first = checkouts.pop();
    match (first, checkouts.pop()) {
        (_, Some(second)) => Err(busy(&second.path, "so has another worktree")),
        (Some(only), _) if !only.path.is_dir() => Err(busy(&only.path, "is not there now, but locked")),
        (Some(only), _) if only.is_rebasing => Err(busy(&only.path, "is in the middle of a rebase")),
        (only, _) => Ok(only.map(|checkout| checkout.path)),
    }
}

/// Where a branch is checked out. A worktree whose directory is gone has nothing checked out, unless it is locked: then
/// it is believed to come back.
fn checkouts_of(repository: &Path, branch: &str) -> Result<Vec<Checkout>, MergeError> {
    let listed = Git::at(repository).args(["worktree", "list", "--porcelain"]).run("list worktrees")?;
    let mut checkouts = Vec::new();
    for block in listed.split("\n\n") {
        let has = |wanted: &str| block.lines().any(|line| line == wanted);
        let is_gone = block.lines().any(|line| line.starts_with("prunable"));
        let Some(path) = block.lines().next().and_then(|line| line.strip_prefix("worktree ")).map(PathBuf::from) else {
            continue;
        };
        let is_rebasing = has("detached") && path.is_dir() && is_rebasing(&path, branch)?;
        if !is_gone && (is_rebasing || has(&format!("branch {}", here(branch)))) {
            checkouts.push(Checkout { path, is_rebasing });
        }
    }
    Ok(checkouts)
}

fn is_rebasing(path: &Path, branch: &str) -> Result<bool, MergeError> {
    let git_dir = git_dir(path)?;
    let name_of = |state: &str| fs::read_to_string(git_dir.join(state).join("head-name")).unwrap_or_default();
    Ok(["rebase-merge", "rebase-apply"].iter().any(|state| name_of(state).trim_end() == here(branch)))
}

fn busy(path: &Path, why: &str) -> MergeError {
    MergeError::Checkout { path: path.to_owned(), why: why.to_owned() }
}

fn moved(target: &str) -> MergeError {
    MergeError::Moved { target: target.to_owned() }
}
