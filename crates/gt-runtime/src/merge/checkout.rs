//! Where a branch is checked out, and which files there are in the way of a commit.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::changes::{Change, changes_between};
use super::history::is_part_of;
use super::{MergeError, find_commit, git_dir, here, moved};
use crate::git::Git;
use crate::index::differing;
use crate::worktree;

/// A place that has a branch checked out.
struct Checkout {
    path: PathBuf,
    /// Nothing is checked out by name meanwhile, but the branch will be moved when it is over.
    is_rebasing: bool,
}

/// Whether `target` could be moved forward to `commit` as things are: the files that this changes have no uncommitted work in
/// the place where it is checked out. What else lies there does not matter.
pub fn can_land(repository: &Path, target: &str, commit: &str) -> Result<(), MergeError> {
    let old = find_commit(repository, &here(target))?;
    if let Some(old) = &old
        && !is_part_of(repository, old, commit)?
    {
        return Err(moved(target));
    }
    match checkout_of(repository, target)? {
        Some(path) => refuse_obstacles(&path, target, old.as_deref(), commit),
        None => Ok(()),
    }
}

/// Refuses to move a checkout in which git would not be moved, before anything is begun that cannot be taken back.
pub(super) fn refuse_obstacles(path: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    refuse_overwriting(path, old, commit)?;
    if gt_core::defect!("half-moved-checkout-left") {
        return Ok(());
    }
    refuse_locked(path, target)?;
    refuse_unfinished(path)
}

/// A person is in the middle of something that only they can finish: git moves nothing until then.
fn refuse_unfinished(path: &Path) -> Result<(), MergeError> {
    let git_dir = git_dir(path)?;
    for (state, what) in [("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")] {
        if git_dir.join(state).exists() {
            return Err(busy(path, &format!("is in the middle of {what}; commit it or abort it")));
        }
    }
    let unmerged = Git::at(path).args(["ls-files", "--unmerged", "-z"]).run_for_bytes("look for conflicts")?;
    if unmerged.is_empty() { Ok(()) } else { Err(busy(path, "has files with conflicts; resolve and commit them")) }
}

/// Refuses to move a checkout from `old` to `commit` where that would overwrite somebody's work.
fn refuse_overwriting(path: &Path, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    let files = in_the_way(path, old, commit)?;
    if files.is_empty() || gt_core::defect!("ignored-file-overwritten") {
        Ok(())
    } else {
        Err(MergeError::InTheWay { path: path.to_owned(), files })
    }
}

/// Files with uncommitted work that a move from `old` to `commit` would overwrite: changed ones, and new ones, ignored or not. Marks
/// by which git does not look at a file count for nothing.
fn in_the_way(path: &Path, old: Option<&str>, commit: &str) -> Result<Vec<String>, MergeError> {
    let changes = changes_between(path, old, commit)?;
    let touched: BTreeSet<&[u8]> = changes.iter().map(|change| change.path.as_slice()).collect();
    let root = top(path)?;
    let dirty = changed_files(path)?.into_iter().chain(not_as_before(path, &root, &changes)?);
    let mut files: BTreeSet<Vec<u8>> = dirty.filter(|file| touched.contains(file.as_slice())).collect();
    for change @ Change { path, .. } in changes.iter().filter(|change| change.new.is_some() && !change.is_submodule()) {
        files.extend(strangers(&root, path, &touched));
        if change.old.is_none() && is_file(&root.join(OsStr::from_bytes(path))) {
            files.insert(path.clone());
        }
    }
    Ok(files.iter().map(|file| String::from_utf8_lossy(file).into_owned()).collect())
}

/// Files on disk that are not as they were before these changes.
fn not_as_before(path: &Path, root: &Path, changes: &[Change]) -> Result<BTreeSet<Vec<u8>>, MergeError> {
    let there = changes.iter().filter(|change| is_file(&root.join(OsStr::from_bytes(&change.path))));
    let lines = there.filter_map(|change| Some(change.old.as_ref()?.line(&change.path)));
    Ok(differing(path, &git_dir(path)?, lines)?)
}

/// Tracked files whose changes are not committed.
fn changed_files(path: &Path) -> Result<Vec<Vec<u8>>, MergeError> {
    let asked = ["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"];
    let listed = Git::at(path).args(asked).run_for_bytes("look for changes")?;
    let lines = listed.split(|byte| *byte == 0).filter(|line| line.len() > 3);
    Ok(lines.map(|line| line[3..].to_vec()).collect())
}

/// The directory that paths of a checkout begin in.
pub(super) fn top(path: &Path) -> Result<PathBuf, MergeError> {
    let top = Git::at(path).args(["rev-parse", "--show-toplevel"]).run_for_bytes("find the checkout")?;
    Ok(PathBuf::from(OsStr::from_bytes(top.trim_ascii_end())))
}

/// Files that stand where `path` needs a directory, or below it where it is to be a file, and that are not among `known`.
pub(super) fn strangers(root: &Path, path: &[u8], known: &BTreeSet<&[u8]>) -> Vec<Vec<u8>> {
    let parents = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| path[..end].to_vec());
    let mut files: Vec<Vec<u8>> = parents.filter(|parent| is_file(&root.join(OsStr::from_bytes(parent)))).collect();
    let mut dirs = vec![path.to_vec()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root.join(OsStr::from_bytes(&dir))).into_iter().flatten().flatten() {
            let inside = [&dir, b"/".as_slice(), entry.file_name().as_bytes()].concat();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir { dirs.push(inside) } else { files.push(inside) }
        }
    }
    files.retain(|file| !known.contains(file.as_slice()));
    files
}

/// Whether something is there that is no directory; a link to one is not.
pub(super) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir())
}

/// The one place where a branch is checked out, if any.
pub(super) fn checkout_of(repository: &Path, branch: &str) -> Result<Option<PathBuf>, MergeError> {
    let mut checkouts = checkouts_of(repository, branch)?;
    let first = checkouts.pop();
    match (first, checkouts.pop()) {
        (_, Some(second)) => Err(busy(&second.path, "so has another worktree")),
        (Some(only), _) if !only.path.is_dir() => Err(busy(&only.path, "is not there now, but locked")),
        (Some(only), _) if only.is_rebasing => Err(busy(&only.path, "is in the middle of a rebase")),
        (only, _) => Ok(only.map(|checkout| checkout.path)),
    }
}

/// Whether anybody has a branch checked out.
pub(super) fn is_checked_out(repository: &Path, branch: &str) -> Result<bool, MergeError> {
    Ok(!checkouts_of(repository, branch)?.is_empty())
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

pub(super) fn busy(path: &Path, why: &str) -> MergeError {
    MergeError::Checkout { path: path.to_owned(), why: why.to_owned() }
}

/// Git is at work there, or was: then whoever clears away locks has to do so first.
pub(super) fn refuse_locked(path: &Path, target: &str) -> Result<(), MergeError> {
    let (git_dir, common_dir) = (git_dir(path)?, worktree::common_dir(path)?);
    let own = ["index.lock", "HEAD.lock"].map(|name| (git_dir.join(name), name.to_owned()));
    let shared = format!("{}.lock", here(target));
    let mut locks = own.into_iter().chain([(common_dir.join(&shared), shared)]);
    match locks.find(|(lock, _)| lock.exists()) {
        // The others are cleared away when no git can have them any more.
        Some((lock, name)) if name == "index.lock" => Err(busy(
            path,
            &format!(
                "git is at work there, or was killed and left `{name}`; if none runs there, `rm {}`",
                lock.display()
            ),
        )),
        Some((_, name)) => Err(busy(path, &format!("git is at work there, or was killed and left `{name}`"))),
        None => Ok(()),
    }
}
