//! Submodules of a worktree: git keeps their repositories with the worktree's own, and removes them with it.

use std::fs;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use crate::git::Git;

/// Where repositories of submodules are kept whose commits are nowhere else.
const KEPT: &str = "gt-submodules";

/// The repositories of submodules below git's directory of a worktree that have commits which no remote of theirs has; what is
/// inside another comes first.
pub(super) fn lone(desk: &Path) -> Result<Vec<PathBuf>, WorktreeError> {
    let mut lone = Vec::new();
    let mut dirs = vec![desk.join("modules")];
    while let Some(dir) = dirs.pop() {
        if !dir.join("objects").is_dir() {
            dirs.extend(fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()));
            continue;
        }
        if has_lone_commits(&dir)? {
            lone.push(dir.clone());
        }
        dirs.push(dir.join("modules"));
    }
    lone.reverse();
    Ok(lone)
}

/// Whether a repository has commits that none of its remotes has: on a branch, in a stash or merely checked out. Tags are left
/// out, for those of a remote are often on none of its branches.
pub(super) fn has_lone_commits(repository: &Path) -> Result<bool, WorktreeError> {
    let asked = ["rev-list", "--max-count=1", "--exclude=refs/tags/*", "--all", "--not", "--remotes", "--"];
    Ok(!at(repository).args(asked).run("look at a submodule")?.is_empty())
}

/// Moves such a repository to where it stays: a directory of the repository that it is part of, called as its commit.
pub(super) fn keep(common_dir: &Path, submodule: &Path) -> Result<(), WorktreeError> {
    let io_error = |source| WorktreeError::Io { doing: "keep", path: submodule.to_owned(), source };
    let head = at(submodule).args(["rev-parse", "--verify", "HEAD"]).run("look at a submodule")?;
    // Its files are about to go, and it is to be fetched from without them.
    at(submodule).args(["config", "--unset", "core.worktree"]).succeeds()?;
    let kept = common_dir.join(KEPT);
    fs::create_dir_all(&kept).map_err(io_error)?;
    let mut places = (1..=u32::MAX).map(|n| kept.join(if n == 1 { head.clone() } else { format!("{head}.{n}") }));
    let place = places.find(|place| !place.exists()).unwrap_or_else(|| kept.join(&head));
    fs::rename(submodule, place).map_err(io_error)
}

/// Its repository by itself: where its files are checked out may be gone.
fn at(submodule: &Path) -> Git {
    Git::at(submodule).args(["--git-dir=.", "--work-tree=."])
}
