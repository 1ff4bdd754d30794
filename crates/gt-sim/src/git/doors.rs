//! Git as a process of the town sees it: every call may be refused, cut off after its work, or die with its process.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use gt_engine::surroundings::{Bench, Command, Git, PassedTree};
use gt_runtime::merge::{Asked, Base, Dated, Gate, Look, Makers, MergeError, Resumed, Salvage, Stacked, Titled};
use gt_runtime::worktree::{Fingerprint, WorktreeError};

use super::checkout::{Reach, busy, moved};
use super::origin::By;
use super::{Deleted, GitWorld, Head, Id, Move, here, there};
use crate::around::Around;
use crate::strand::{self, Halt};

/// Git waits no longer than this for a lock of its own making before somebody may clear it away.
const LOCK_AGE: Duration = Duration::from_secs(10);
/// In seconds.
const LINGER_MAX: u64 = 20;
const PACKED_REFS: &str = "packed-refs";

impl Around {
    /// A place at which git, or whoever has called it, can come to its end.
    pub fn git_boundary(&self, doing: &str, locks: Option<&Path>) -> Result<(), MergeError> {
        self.boundary();
        let mut world = self.world.lock();
        let git = world.faults.git;
        if !world.chance(git) {
            return Ok(());
        }
        let (kind, leaves_lock, since) = (world.rng.u32(0..8), world.rng.u32(0..3) == 0, world.uptime());
        if let Some(path) = locks.filter(|_| leaves_lock)
            && let Ok((_, repository)) = world.git.at(path)
        {
            repository.locks.insert(PACKED_REFS.to_owned(), since);
        }
        drop(world);
        self.world.tell(|| format!("process {}: git cannot {doing}", self.pid));
        Err(match kind {
            0 => MergeError::NoGit { source: io::Error::other("so it was drawn") },
            1 => MergeError::Io { doing: "write", path: PathBuf::from("a file"), source: io::Error::other("no room") },
            _ => MergeError::Git { doing: doing.to_owned(), said: "it was ended by signal 9".to_owned() },
        })
    }

    fn is_merged(&self, repository: &Path, commit: &str, target: &str) -> Result<bool, MergeError> {
        for name in [here(target), there(target)] {
            let is_part = self.ask_git("compare commits", |git| {
                let target = git.resolve(repository, &name);
                Ok(target.is_some_and(|target| git.objects.is_part_of(commit, &target)))
            })?;
            if is_part {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ask_git<T>(
        &self,
        doing: &str,
        look: impl FnOnce(&mut GitWorld) -> Result<T, MergeError>,
    ) -> Result<T, MergeError> {
        self.git_boundary(doing, None)?;
        look(&mut self.world.lock().git)
    }

    /// Git changes refs: it may be killed before it, or after it and before it says so.
    fn change_refs<T>(
        &self,
        doing: &str,
        path: &Path,
        work: impl FnOnce(&mut GitWorld, i64) -> Result<T, MergeError>,
    ) -> Result<T, MergeError> {
        self.git_boundary(doing, Some(path))?;
        let done = {
            let mut world = self.world.lock();
            let at = world.now().as_second();
            let (_, repository) = world.git.at(path)?;
            if repository.locks.contains_key(PACKED_REFS) {
                let said = "Unable to create 'packed-refs.lock': File exists".to_owned();
                return Err(MergeError::Git { doing: doing.to_owned(), said });
            }
            work(&mut world.git, at)?
        };
        self.linger();
        self.git_boundary(doing, Some(path))?;
        Ok(done)
    }

    /// Git has changed a ref, and does not end at once.
    fn linger(&self) {
        let span = {
            let mut world = self.world.lock();
            let slow_git = world.faults.slow_git;
            world.chance(slow_git).then(|| Duration::from_secs(world.rng.u64(1..LINGER_MAX)))
        };
        self.spend(span.unwrap_or_default());
    }

    /// Lets time pass in which others move.
    pub fn spend(&self, span: Duration) {
        let until = self.world.lock().uptime() + span;
        while self.world.lock().uptime() < until && strand::is_strand() {
            strand::halt(Halt::Idle { until: Some(until) });
        }
    }

    fn worktree_error(error: MergeError) -> WorktreeError {
        match error {
            MergeError::Git { doing, said } => WorktreeError::Git { doing, said },
            other => WorktreeError::Git { doing: "work".to_owned(), said: other.to_string() },
        }
    }

    /// How far git comes with a checkout.
    fn reach(&self) -> Reach {
        let mut world = self.world.lock();
        let (git, death) = (world.faults.git, world.faults.death);
        if !world.chance(git.min(8)) && !world.chance(death.min(40)) {
            return Reach::All;
        }
        match world.rng.usize(0..4) {
            3 => Reach::Index,
            n => Reach::Files(n),
        }
    }

    fn forward(&self, path: &Path, target: &str, commit: &str) -> Result<(), MergeError> {
        {
            let mut world = self.world.lock();
            let old = world.git.resolve(path, &here(target));
            world.git.refuse_overwriting(path, old.as_deref(), commit)?;
            let (_, repository) = world.git.at(path)?;
            let is_locked = repository.locks.contains_key(&here(target)) || repository.checkouts[path].is_locked;
            if is_locked {
                return Err(busy(path, "git is at work there, or was killed and left `index.lock`"));
            }
            world.git.note(path, Some(commit))?;
        }
        self.boundary();
        let reach = self.reach();
        let (forwarded, dies) = {
            let mut world = self.world.lock();
            let old = world.git.resolve(path, &here(target));
            let forwarded = world.git.forward(path, target, commit, reach);
            if forwarded.is_ok() {
                note_move(&mut world.git, path, target, old, commit);
            }
            if reach != Reach::All && world.rng.bool() {
                let (_, repository) = world.git.at(path)?;
                repository.checkouts.entry(path.to_owned()).and_modify(|checkout| checkout.is_locked = true);
            }
            let death = world.faults.death;
            let dies = reach != Reach::All && death > 0 && world.rng.bool();
            (forwarded, dies)
        };
        self.world.tell(|| format!("process {} moves a checkout: {reach:?}, {forwarded:?}", self.pid));
        if dies {
            self.die();
        }
        match &forwarded {
            Err(MergeError::HalfWay { .. }) => {}
            // Where git has begun with nothing there is nothing to settle.
            _ => self.world.lock().git.note(path, None)?,
        }
        self.boundary();
        forwarded
    }

    fn swap(&self, root: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
        self.change_refs("move a branch", root, |git, _| {
            let now = git.resolve(root, &here(target));
            if now.as_deref() == Some(commit) {
                return Ok(());
            }
            if now.as_deref() != old {
                return Err(moved(target));
            }
            let (_, repository) = git.at(root)?;
            repository.set_branch(target, commit, false);
            note_move(git, root, target, now, commit);
            Ok(())
        })
    }
}

fn note_move(git: &mut GitWorld, path: &Path, branch: &str, old: Option<Id>, new: &str) {
    let repository = git.root_of(path).unwrap_or_default();
    let (branch, new) = (branch.to_owned(), new.to_owned());
    git.moves.push(Move { repository, at_origin: false, branch, old, new, by_refinery: true });
}

impl Git for Around {
    fn find_commit(&self, repository: &Path, name: &str) -> Result<Option<String>, MergeError> {
        self.ask_git("find a commit", |git| Ok(git.resolve(repository, name)))
    }

    fn branch_tip(&self, repository: &Path, branch: &str) -> Result<Option<String>, MergeError> {
        self.ask_git("find a commit", |git| Ok(git.resolve(repository, &here(branch))))
    }

    fn is_part_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
        self.ask_git("compare commits", |git| {
            let (commit, of) = (git.commit_of(repository, commit)?, git.commit_of(repository, of)?);
            Ok(git.objects.is_part_of(&commit, &of))
        })
    }

    fn has_work_of(&self, repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
        self.ask_git("compare changes", |git| {
            let (commit, of) = (git.commit_of(repository, commit)?, git.commit_of(repository, of)?);
            Ok(git.objects.has_work_of(&commit, &of))
        })
    }

    fn tree_of(&self, repository: &Path, commit: &str) -> Result<String, MergeError> {
        self.ask_git("find the files of a commit", |git| {
            let commit = git.commit_of(repository, commit)?;
            Ok(git.objects.tree_id(&commit))
        })
    }

    fn look(&self, worktree: &Path, target: &str) -> Result<Look, MergeError> {
        self.ask_git("look at a worktree", |git| git.look(worktree, target))
    }

    fn n_beyond(&self, worktree: &Path, known: &[&str]) -> Result<u32, WorktreeError> {
        let counted = self.ask_git("count commits", |git| {
            let head = git.commit_of(worktree, "HEAD")?;
            Ok(git.objects.beyond(&head, known.iter().copied()).len() as u32)
        });
        counted.map_err(Around::worktree_error)
    }

    fn last_made(&self, worktree: &Path, branch: &str) -> Result<Option<String>, WorktreeError> {
        let made = self.ask_git("look at a log", |git| {
            let log = git.find(worktree).and_then(|repository| repository.logs.get(branch));
            Ok(log.and_then(|log| log.iter().rev().find(|(_, is_commit)| *is_commit)).map(|(id, _)| id.clone()))
        });
        made.map_err(Around::worktree_error)
    }

    fn keep(&self, repository: &Path, name: &str, commit: &str) -> Result<(), MergeError> {
        self.change_refs("keep a commit", repository, |git, _| {
            let commit = git.commit_of(repository, commit)?;
            git.at(repository)?.1.refs.insert(name.to_owned(), commit);
            Ok(())
        })
    }

    fn forget(&self, repository: &Path, name: &str) -> Result<(), MergeError> {
        self.change_refs("let go of a commit", repository, |git, _| {
            delete(git, repository, name);
            Ok(())
        })
    }

    fn forget_at(&self, repository: &Path, name: &str, commit: &str) -> Result<bool, MergeError> {
        self.change_refs("let go of a commit", repository, |git, _| {
            let is_same = git.resolve(repository, name).as_deref() == Some(commit);
            if is_same {
                delete(git, repository, name);
            }
            Ok(is_same)
        })
    }

    fn kept(&self, repository: &Path, prefix: &str) -> Result<Vec<(String, String)>, MergeError> {
        let dated = self.kept_since(repository, prefix)?;
        Ok(dated.into_iter().map(|Dated { name, commit, .. }| (name, commit)).collect())
    }

    fn kept_and_merged(
        &self,
        repository: &Path,
        prefix: &str,
        target: &str,
    ) -> Result<Vec<(String, String)>, MergeError> {
        let mut kept = self.kept(repository, prefix)?;
        self.ask_git("list refs", |git| {
            let names = [here(target), there(target)];
            let targets: Vec<Id> = names.iter().filter_map(|name| git.resolve(repository, name)).collect();
            let is_merged = |commit: &Id| targets.iter().any(|target| git.objects.is_part_of(commit, target));
            kept.retain(|(_, commit)| is_merged(commit));
            Ok(())
        })?;
        Ok(kept)
    }

    fn kept_since(&self, repository: &Path, prefix: &str) -> Result<Vec<Dated>, MergeError> {
        self.ask_git("list refs", |git| {
            let (objects, repository) = git.at(repository)?;
            let dated = |(name, commit): (&String, &Id)| Dated {
                name: name.clone(),
                commit: commit.clone(),
                made_at: objects.get(commit).at,
            };
            Ok(repository.refs.iter().filter(|(name, _)| name.starts_with(prefix)).map(dated).collect())
        })
    }

    fn branches(&self, repository: &Path, folder: &str) -> Result<Vec<String>, MergeError> {
        self.ask_git("list branches", |git| {
            let (_, repository) = git.at(repository)?;
            let names = repository.refs.keys().filter_map(|name| name.strip_prefix("refs/heads/"));
            Ok(names.filter(|name| name.starts_with(folder)).map(str::to_owned).collect())
        })
    }

    fn delete_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
        let tip = self.ask_git("find a commit", |git| {
            let (_, known) = git.at(repository)?;
            let is_busy = branch == target || !known.checkouts_of(branch).is_empty();
            Ok(known.tip(branch).filter(|_| !is_busy).cloned())
        })?;
        let Some(tip) = tip else { return Ok(false) };
        if !self.is_merged(repository, &tip, target)? {
            return Ok(false);
        }
        self.change_refs("delete a branch", repository, |git, _| {
            let is_same = git.resolve(repository, &here(branch)) == Some(tip);
            if is_same {
                delete(git, repository, &here(branch));
            }
            Ok(is_same)
        })
    }

    fn delete_idle_branch(&self, repository: &Path, branch: &str, target: &str) -> Result<bool, MergeError> {
        self.delete_branch(repository, branch, target)
    }

    fn restore_branch(&self, repository: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError> {
        let restored = self.change_refs("make a branch again", repository, |git, _| {
            git.at(repository)?.1.set_branch(branch, commit, false);
            Ok(())
        });
        restored.map_err(Around::worktree_error)
    }

    fn clear_dead_locks(&self, repository: &Path, _branches: &[&str]) -> Result<Vec<PathBuf>, MergeError> {
        self.boundary();
        let mut world = self.world.lock();
        let now = world.uptime();
        let (_, known) = world.git.at(repository)?;
        let dead: Vec<String> =
            known.locks.iter().filter(|(_, since)| now >= **since + LOCK_AGE).map(|(name, _)| name.clone()).collect();
        known.locks.retain(|name, _| !dead.contains(name));
        let index = known.checkouts.values_mut().filter(|checkout| checkout.note.is_some() && checkout.is_locked);
        index.for_each(|checkout| checkout.is_locked = false);
        Ok(dead.into_iter().map(|name| repository.join(name + ".lock")).collect())
    }

    fn base(&self, repository: &Path, target: &str, asks_origin: bool, _: Duration) -> Result<Base, MergeError> {
        let has_remote =
            asks_origin && self.ask_git("look for the origin", |git| Ok(git.at(repository)?.1.origin.is_some()))?;
        if has_remote {
            self.change_refs("fetch", repository, |git, _| git.fetch(repository, target))?;
        }
        self.ask_git("find the target", |git| git.base(repository, target, has_remote))
    }

    fn unpublished(&self, repository: &Path, commit: &str) -> Result<Vec<Titled>, MergeError> {
        self.ask_git("look for what is not published", |git| {
            let ids = git.unpublished(repository, commit).into_iter();
            Ok(ids.map(|id| Titled { title: git.objects.get(&id).title.clone(), id }).collect())
        })
    }

    /// People have no branches but the target here.
    fn brought(
        &self,
        repository: &Path,
        target: &str,
        base: &str,
        commit: &str,
        _: Makers<'_>,
    ) -> Result<Vec<String>, MergeError> {
        self.ask_git("look for what a merge brings", |git| Ok(git.brought(repository, target, base, commit)))
    }

    fn push(&self, repository: &Path, commit: &str, target: &str, _: Duration) -> Result<(), MergeError> {
        self.world.tell(|| format!("process {} pushes {commit:.24} to {target}", self.pid));
        self.remote_fault()?;
        self.ask_git("push", |git| git.push(repository, commit, target, false, By::Refinery))?;
        self.remote_fault()?;
        // What is known of the origin is written down after it has answered.
        self.change_refs("push", repository, |git, _| {
            git.at(repository)?.1.refs.insert(there(target), commit.to_owned());
            Ok(())
        })
    }

    /// This origin takes every branch, and refuses commits.
    fn push_branch(
        &self,
        repository: &Path,
        commit: &str,
        _base: &str,
        branch: &str,
        _: Duration,
    ) -> Result<(), MergeError> {
        self.remote_fault()?;
        self.ask_git("push", |git| git.push(repository, commit, branch, true, By::Refinery))?;
        self.remote_fault()?;
        self.change_refs("push", repository, |git, _| {
            git.at(repository)?.1.refs.insert(there(branch), commit.to_owned());
            Ok(())
        })
    }

    fn seal(&self, _: &Path, base: &str, tip: &str, message: &str) -> Result<String, MergeError> {
        self.git_boundary("make a commit", None)?;
        let mut world = self.world.lock();
        let at = world.now().as_second();
        world.git.seal(base, tip, message, at)
    }

    fn can_land(&self, repository: &Path, target: &str, commit: &str) -> Result<(), MergeError> {
        self.ask_git("look at a checkout", |git| git.can_land(repository, target, commit))
    }

    fn land(&self, repository: &Path, target: &str, base: &str, commit: &str) -> Result<(), MergeError> {
        self.git_boundary("compare commits", None)?;
        let (old, place) = {
            let world = self.world.lock();
            let git = &world.git;
            if !git.objects.is_part_of(base, commit) {
                return Err(MergeError::NotOnTop { commit: commit.to_owned(), on: base.to_owned() });
            }
            let old = git.resolve(repository, &here(target));
            if old.as_deref() == Some(commit) {
                return Ok(());
            }
            if old.as_ref().is_some_and(|old| !git.objects.is_part_of(old, commit)) {
                return Err(moved(target));
            }
            (old, git.checkout_of(repository, target)?)
        };
        self.world.tell(|| format!("process {} moves {target} to {commit:.24}", self.pid));
        self.git_boundary("move a branch", None)?;
        match place {
            Some(path) => self.forward(&path, target, commit),
            None => self.swap(repository, target, old.as_deref(), commit),
        }
    }

    fn resume(&self, repository: &Path, target: &str, is_wanted: bool) -> Result<Option<Resumed>, MergeError> {
        self.git_boundary("settle a checkout", None)?;
        let mut world = self.world.lock();
        let old = world.git.resolve(repository, &here(target));
        let resumed = world.git.resume(repository, target, is_wanted)?;
        if let Some((_, Some(commit))) = &resumed {
            note_move(&mut world.git, repository, target, old, commit);
        }
        drop(world);
        if resumed.is_some() {
            self.world.tell(|| format!("process {} settles a checkout: {resumed:?}", self.pid));
        }
        Ok(resumed.map(|(resumed, _)| resumed))
    }

    /// There are no files to make a patch of. Its path, which differs from town to town, would be part of what ids are made from.
    fn patch(&self, _: &Path, _: &str, _: &str, _: &Path) -> Result<(), MergeError> {
        self.git_boundary("write a patch", None)?;
        Err(MergeError::Git { doing: "write a patch".to_owned(), said: "there are no files".to_owned() })
    }

    fn salvage(&self, worktree: &Path, name: &str, _: &Path) -> Result<Option<Salvage>, MergeError> {
        let commit = self.change_refs("save changes", worktree, |git, at| Ok(git.salvage(worktree, name, at)))?;
        Ok(commit.map(|commit| Salvage { commit, left_out: Vec::new() }))
    }

    fn remove_saved(&self, repository: &Path, path: &Path, _: &Fingerprint) -> Result<Option<PathBuf>, WorktreeError> {
        self.boundary();
        let mut world = self.world.lock();
        if let Some(known) = world.git.repositories.get_mut(repository) {
            known.checkouts.remove(path);
        }
        fs::remove_dir_all(path).unwrap_or_default();
        Ok(None)
    }

    fn bench(&self, repository: &Path, path: &Path) -> Result<Box<dyn Bench>, MergeError> {
        self.ask_git("make the workbench", |git| git.open_bench(repository, path))?;
        Ok(Box::new(SimBench { around: self.clone(), path: path.to_owned() }))
    }

    fn gate(&self, command: &str, _: &Path, how: &Command<'_>) -> Result<Gate, MergeError> {
        self.run_gate(command, how)
    }

    fn ask(&self, argv: &[String], how: &Command<'_>) -> Result<Asked, MergeError> {
        self.run_request(argv, how)
    }

    fn end_leftover(&self, _: &Path) -> Result<(), MergeError> {
        Ok(())
    }

    /// What a process has under way goes with it.
    fn end_gates(&self) {}

    fn is_ending(&self) -> bool {
        false
    }

    fn passed(&self) -> MutexGuard<'_, VecDeque<PassedTree>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Around {
    /// The way to the origin is cut off.
    fn remote_fault(&self) -> Result<(), MergeError> {
        self.boundary();
        let mut world = self.world.lock();
        let remote = world.faults.remote;
        if world.chance(remote) {
            return Err(MergeError::Remote { said: "the connection was reset".to_owned() });
        }
        Ok(())
    }
}

fn delete(git: &mut GitWorld, path: &Path, name: &str) {
    let Some(root) = git.root_of(path) else { return };
    let gone = git.repositories.get_mut(&root).and_then(|repository| repository.refs.remove(name));
    if let Some(commit) = gone {
        git.deleted.push(Deleted { repository: root, name: name.to_owned(), commit });
    }
}

/// The refinery's own worktree.
struct SimBench {
    around: Around,
    path: PathBuf,
}

impl Bench for SimBench {
    fn path(&self) -> &Path {
        &self.path
    }

    fn leave_branch(&self) -> Result<(), MergeError> {
        self.around.ask_git("leave a branch", |git| {
            let head = git.commit_of(&self.path, "HEAD")?;
            let (_, repository) = git.at(&self.path)?;
            repository.checkouts.entry(self.path.clone()).and_modify(|bench| bench.head = Head::Detached(head));
            Ok(())
        })
    }

    fn reset(&self, commit: &str) -> Result<(), MergeError> {
        self.around.ask_git("clean the workbench", |git| git.reset(&self.path, commit))
    }

    fn restore(&self, commit: &str) -> Result<(), MergeError> {
        self.around.ask_git("clean the workbench", |git| git.reset(&self.path, commit))
    }

    fn merge(&self, commit: &str, message: &str) -> Result<Stacked, MergeError> {
        self.around.git_boundary("merge", None)?;
        let mut world = self.around.world.lock();
        let at = world.now().as_second();
        world.git.merge(&self.path, commit, message, at)
    }
}
