//! What merging asks of git, as one trait: commits, refs, the origin, a person's checkout, the workbench and the gates.
//!
//! `RealGit` hands each call to `gt_runtime`. The simulation has a git of its own, which can fail and be cut off at every step.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gt_runtime::merge::{
    self, Asked, Base, Dated, Gate, Look, Makers, MergeError, Resumed, Salvage, Stacked, Titled, Workbench,
};
use gt_runtime::worktree::{self, Fingerprint, LoneSubmodules, WorktreeError};

use super::Worktrees;

/// A target's directory, its gates, and a tree for which all of them succeeded.
pub type PassedTree = (PathBuf, Vec<String>, String);

/// Runs a gate, or asks a program of the user's.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// Where it runs.
    pub dir: &'a Path,
    pub env: &'a [(String, String)],
    /// The file that says which process it is.
    pub marker: &'a Path,
    pub timeout: Duration,
}

/// What git does for merging. Each method is the function of the same name in `gt_runtime::merge` or `gt_runtime::worktree`.
pub trait Git: Send + Sync {
    fn find_commit(&self, repository: &Path, name: &str) -> Result<Option<String>, MergeError>;
    fn branch_tip(&self, repository: &Path, branch: &str) -> Result<Option<String>, MergeError>;
    fn is_part_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError>;
    fn has_work_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError>;
    fn tree_of(&self, repository: &Path, commit: &str) -> Result<String, MergeError>;
    fn look(&self, worktree: &Path, target: &str) -> Result<Look, MergeError>;
    fn n_beyond(&self, worktree: &Path, known: &[&str]) -> Result<u32, WorktreeError>;
    fn last_made(&self, worktree: &Path, branch: &str) -> Result<Option<String>, WorktreeError>;

    fn keep(&self, repository: &Path, name: &str, commit: &str) -> Result<(), MergeError>;
    fn forget(&self, repository: &Path, name: &str) -> Result<(), MergeError>;
    fn forget_at(&self, repository: &Path, name: &str, commit: &str) -> Result<bool, MergeError>;
    fn kept(&self, repository: &Path, prefix: &str) -> Result<Vec<(String, String)>, MergeError>;
    fn kept_and_merged(
        &self,
        repository: &Path,
        prefix: &str,
        target: &str,
    ) -> Result<Vec<(String, String)>, MergeError>;
    fn kept_since(&self, repository: &Path, prefix: &str) -> Result<Vec<Dated>, MergeError>;
    fn branches(&self, repository: &Path, folder: &str) -> Result<Vec<String>, MergeError>;
    fn delete_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError>;
    fn delete_idle_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError>;
    fn restore_branch(&self, repository: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError>;
    fn clear_dead_locks(&self, repository: &Path, branches: &[&str]) -> Result<Vec<PathBuf>, MergeError>;

    fn base(&self, repository: &Path, target: &str, asks_origin: bool, timeout: Duration) -> Result<Base, MergeError>;
    fn unpublished(&self, repository: &Path, commit: &str) -> Result<Vec<Titled>, MergeError>;
    fn brought(
        &self,
        repository: &Path,
        target: &str,
        base: &str,
        commit: &str,
        makers: Makers<'_>,
    ) -> Result<Vec<String>, MergeError>;
    fn push(&self, repository: &Path, commit: &str, target: &str, timeout: Duration) -> Result<(), MergeError>;
    fn push_branch(
        &self,
        repository: &Path,
        commit: &str,
        base: &str,
        branch: &str,
        timeout: Duration,
    ) -> Result<(), MergeError>;

    fn seal(&self, repository: &Path, base: &str, tip: &str, message: &str) -> Result<String, MergeError>;
    fn can_land(&self, repository: &Path, target: &str, commit: &str) -> Result<(), MergeError>;
    fn land(&self, repository: &Path, target: &str, base: &str, commit: &str) -> Result<(), MergeError>;
    fn resume(&self, repository: &Path, target: &str, is_wanted: bool) -> Result<Option<Resumed>, MergeError>;
    fn patch(&self, repository: &Path, from_base: &str, commit: &str, path: &Path) -> Result<(), MergeError>;

    fn salvage(&self, worktree: &Path, name: &str, patch: &Path) -> Result<Option<Salvage>, MergeError>;
    fn remove_saved(
        &self,
        repository: &Path,
        path: &Path,
        seen: &Fingerprint,
    ) -> Result<Option<PathBuf>, WorktreeError>;

    /// The refinery's own worktree.
    fn bench(&self, repository: &Path, path: &Path) -> Result<Box<dyn Bench>, MergeError>;
    fn gate(&self, command: &str, log: &Path, how: &Command<'_>) -> Result<Gate, MergeError>;
    fn ask(&self, argv: &[String], how: &Command<'_>) -> Result<Asked, MergeError>;
    fn end_leftover(&self, marker: &Path) -> Result<(), MergeError>;
    /// Ends the gates that this process has under way, because it ends. The next process begins them anew.
    fn end_gates(&self);
    /// Whether this process is about to end: what its gates say then is about nothing.
    fn is_ending(&self) -> bool;
    /// The trees that passed their gates in this process.
    fn passed(&self) -> MutexGuard<'_, VecDeque<PassedTree>>;
}

/// The worktree in which commits are stacked and tried.
pub trait Bench {
    fn path(&self) -> &Path;
    fn leave_branch(&self) -> Result<(), MergeError>;
    fn reset(&self, commit: &str) -> Result<(), MergeError>;
    fn restore(&self, commit: &str) -> Result<(), MergeError>;
    fn merge(&self, commit: &str, message: &str) -> Result<Stacked, MergeError>;
}

impl Bench for Workbench {
    fn path(&self) -> &Path {
        Workbench::path(self)
    }

    fn leave_branch(&self) -> Result<(), MergeError> {
        Workbench::leave_branch(self)
    }

    fn reset(&self, commit: &str) -> Result<(), MergeError> {
        Workbench::reset(self, commit)
    }

    fn restore(&self, commit: &str) -> Result<(), MergeError> {
        Workbench::restore(self, commit)
    }

    fn merge(&self, commit: &str, message: &str) -> Result<Stacked, MergeError> {
        Workbench::merge(self, commit, message)
    }
}

/// The program `git`, and the commands that gates are.
#[derive(Debug)]
pub struct RealGit;

static PASSED: Mutex<VecDeque<PassedTree>> = Mutex::new(VecDeque::new());

static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The markers of the commands that this process has under way.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A command of this process, until it is dropped.
struct UnderWay<'a>(&'a Path);

impl<'a> UnderWay<'a> {
    fn at(marker: &'a Path) -> UnderWay<'a> {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).insert(marker.to_owned());
        UnderWay(marker)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).remove(self.0);
    }
}

impl Git for RealGit {
    fn find_commit(&self, repository: &Path, name: &str) -> Result<Option<String>, MergeError> {
        merge::find_commit(repository, name)
    }

    fn branch_tip(&self, repository: &Path, branch: &str) -> Result<Option<String>, MergeError> {
        merge::branch_tip(repository, branch)
    }

    fn is_part_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
        merge::is_part_of(repository, commit, of)
    }

    fn has_work_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
        merge::has_work_of(repository, commit, of)
    }

    fn tree_of(&self, repository: &Path, commit: &str) -> Result<String, MergeError> {
        merge::tree_of(repository, commit)
    }

    fn look(&self, worktree: &Path, target: &str) -> Result<Look, MergeError> {
        merge::look(worktree, target)
    }

    fn n_beyond(&self, worktree: &Path, known: &[&str]) -> Result<u32, WorktreeError> {
        worktree::n_beyond(worktree, known)
    }

    fn last_made(&self, worktree: &Path, branch: &str) -> Result<Option<String>, WorktreeError> {
        worktree::last_made(worktree, branch)
    }

    fn keep(&self, repository: &Path, name: &str, commit: &str) -> Result<(), MergeError> {
        merge::keep(repository, name, commit)
    }

    fn forget(&self, repository: &Path, name: &str) -> Result<(), MergeError> {
        merge::forget(repository, name)
    }

    fn forget_at(&self, repository: &Path, name: &str, commit: &str) -> Result<bool, MergeError> {
        merge::forget_at(repository, name, commit)
    }

    fn kept(&self, repository: &Path, prefix: &str) -> Result<Vec<(String, String)>, MergeError> {
        merge::kept(repository, prefix)
    }

    fn kept_and_merged(
        &self,
        repository: &Path,
        prefix: &str,
        target: &str,
    ) -> Result<Vec<(String, String)>, MergeError> {
        merge::kept_and_merged(repository, prefix, target)
    }

    fn kept_since(&self, repository: &Path, prefix: &str) -> Result<Vec<Dated>, MergeError> {
        merge::kept_since(repository, prefix)
    }

    fn branches(&self, repository: &Path, folder: &str) -> Result<Vec<String>, MergeError> {
        merge::branches(repository, folder)
    }

    fn delete_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
        merge::delete_branch(repository, branch, target)
    }

    fn delete_idle_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
        merge::delete_idle_branch(repository, branch, target)
    }

    fn restore_branch(&self, repository: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError> {
        worktree::restore_branch(repository, branch, commit)
    }

    fn clear_dead_locks(&self, repository: &Path, branches: &[&str]) -> Result<Vec<PathBuf>, MergeError> {
        merge::clear_dead_locks(repository, branches.iter().copied())
    }

    fn base(&self, repository: &Path, target: &str, asks_origin: bool, timeout: Duration) -> Result<Base, MergeError> {
        merge::base(repository, target, asks_origin, timeout)
    }

    fn unpublished(&self, repository: &Path, commit: &str) -> Result<Vec<Titled>, MergeError> {
        merge::unpublished(repository, commit)
    }

    fn brought(
        &self,
        repository: &Path,
        target: &str,
        base: &str,
        commit: &str,
        makers: Makers<'_>,
    ) -> Result<Vec<String>, MergeError> {
        merge::brought(repository, target, base, commit, makers)
    }

    fn push(&self, repository: &Path, commit: &str, target: &str, timeout: Duration) -> Result<(), MergeError> {
        merge::push(repository, commit, target, timeout)
    }

    fn push_branch(
        &self,
        repository: &Path,
        commit: &str,
        base: &str,
        branch: &str,
        timeout: Duration,
    ) -> Result<(), MergeError> {
        merge::push_branch(repository, commit, base, branch, timeout)
    }

    fn seal(&self, repository: &Path, base: &str, tip: &str, message: &str) -> Result<String, MergeError> {
        merge::seal(repository, base, tip, message)
    }

    fn can_land(&self, repository: &Path, target: &str, commit: &str) -> Result<(), MergeError> {
        merge::can_land(repository, target, commit)
    }

    fn land(&self, repository: &Path, target: &str, base: &str, commit: &str) -> Result<(), MergeError> {
        merge::land(repository, target, base, commit)
    }

    fn resume(&self, repository: &Path, target: &str, is_wanted: bool) -> Result<Option<Resumed>, MergeError> {
        merge::resume(repository, target, is_wanted)
    }

    fn patch(&self, repository: &Path, from_base: &str, commit: &str, path: &Path) -> Result<(), MergeError> {
        merge::patch(repository, from_base, commit, path)
    }

    fn salvage(&self, worktree: &Path, name: &str, patch: &Path) -> Result<Option<Salvage>, MergeError> {
        merge::salvage(worktree, name, patch)
    }

    fn remove_saved(
        &self,
        repository: &Path,
        path: &Path,
        seen: &Fingerprint,
    ) -> Result<Option<PathBuf>, WorktreeError> {
        worktree::remove_saved(repository, path, seen, LoneSubmodules::Refused)
    }

    fn bench(&self, repository: &Path, path: &Path) -> Result<Box<dyn Bench>, MergeError> {
        Ok(Box::new(Workbench::open(repository, path)?))
    }

    fn gate(&self, command: &str, log: &Path, how: &Command<'_>) -> Result<Gate, MergeError> {
        let _under_way = UnderWay::at(how.marker);
        merge::gate(how.dir, command, how.env, log, how.marker, how.timeout)
    }

    fn ask(&self, argv: &[String], how: &Command<'_>) -> Result<Asked, MergeError> {
        let _under_way = UnderWay::at(how.marker);
        merge::ask(how.dir, argv, how.env, how.marker, how.timeout)
    }

    fn end_leftover(&self, marker: &Path) -> Result<(), MergeError> {
        merge::end_leftover(marker)
    }

    fn end_gates(&self) {
        IS_ENDING.store(true, Ordering::SeqCst);
        let markers = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for marker in markers {
            // What cannot be ended now is ended by the next worker.
            merge::end_leftover(&marker).unwrap_or_default();
        }
    }

    fn is_ending(&self) -> bool {
        IS_ENDING.load(Ordering::SeqCst)
    }

    fn passed(&self) -> MutexGuard<'_, VecDeque<PassedTree>> {
        PASSED.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worktrees for RealGit {
    fn prepare(&self, repository: &Path, path: &Path, branch: &str, base: &str) -> Result<(), WorktreeError> {
        worktree::prepare(repository, path, branch, base).map(drop)
    }

    fn is_there(&self, path: &Path) -> bool {
        path.join(".git").exists()
    }

    fn branch(&self, path: &Path) -> Option<String> {
        worktree::branch(path).ok().flatten()
    }

    fn bring_along(&self, path: &Path, branch: &str) {
        // Where it cannot be, the commits stay where they are.
        worktree::bring_along(path, branch).unwrap_or_default();
    }

    fn unsaved(&self, path: &Path) -> Option<String> {
        worktree::unsaved(path).ok().flatten().map(str::to_owned)
    }

    fn salvage(&self, tree: &Path, run: &str, patch: &Path) -> bool {
        // Without a place for the patch the commit is kept all the same.
        patch.parent().map(fs::create_dir_all).transpose().unwrap_or_default();
        merge::salvage(tree, &format!("refs/gt/salvage/{run}"), patch).is_ok_and(|saved| saved.is_some())
    }

    fn has_git(&self) -> bool {
        true
    }

    fn leave(&self, repository: &Path, tree: &Path, dir: &str, file: &str, text: &str) {
        // A repository may have such a file of its own, or insist on seeing it.
        let is_ignored = merge::exclude(repository, &format!("/{dir}/"))
            .and_then(|()| merge::is_ignored(tree, &format!("{dir}/{file}")))
            .unwrap_or(false);
        if is_ignored && fs::create_dir_all(tree.join(dir)).is_ok() {
            // Half a text is worse than none, and none is no loss.
            fs::write(tree.join(dir).join(file), text)
                .or_else(|_| fs::remove_file(tree.join(dir).join(file)))
                .unwrap_or_default();
        }
    }
}
