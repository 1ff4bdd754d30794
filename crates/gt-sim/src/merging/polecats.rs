//! Polecats: they commit to their branches, say `gt done`, and work again on what came back, each in its own way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gt_core::run::Outcome;
use gt_engine::done::Word;
use gt_store::{Assignment, Rework};

use super::FILES;
use super::tools::{mended, words};
use crate::git::{Author, Id, Tree};
use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;
use crate::world::{Pid, World};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
const COMMITS_MAX: usize = 3;
/// A `gt done` that merges at once comes to about so many boundaries.
const BOUNDARIES_MAX: u32 = 150;

#[derive(Debug, Default)]
pub(super) struct Polecats {
    /// Whether they all do their work now.
    are_good: bool,
    /// What each run has under way: its `gt done`.
    done: BTreeMap<String, Pid>,
    /// Runs that have worked on what came back.
    reworked: BTreeSet<String>,
    commits: BTreeMap<String, usize>,
    /// Runs whose `gt done` was killed, or not, in the healed world.
    tried_to_kill: BTreeSet<String>,
    /// Words for the next `gt done`.
    replaces: BTreeSet<String>,
}

impl Part for Polecats {
    fn weight(&self, stage: &Stage) -> u32 {
        1 + 10 * u32::try_from(stage.ground.runtime.n_running()).unwrap_or(u32::MAX).min(3)
    }

    fn act(&mut self, stage: &mut Stage) {
        if let Some(run) = stage.ground.runtime.stopping().first().filter(|_| stage.world().lock().rng.bool()) {
            return end(stage, run, None, Some(SIGTERM));
        }
        let running = stage.ground.runtime.running();
        let Some(run) = stage.world().lock().pick(&running) else { return };
        let deed = stage.world().lock().rng.u32(0..20);
        let is_idle = !self.commits.contains_key(&run) && !self.reworked.contains(&run);
        match deed {
            // Most have done something before they say so.
            8..14 if is_idle => drop(self.work_on(stage, &run, false)),
            0..7 => drop(self.work_on(stage, &run, false)),
            7 => edit(stage, &run),
            8..14 => self.say(stage, &run, Outcome::Completed),
            14 => self.say(stage, &run, Outcome::HandedOff),
            15 => self.say(stage, &run, Outcome::Failed),
            16 => end(stage, &run, None, Some(SIGKILL)),
            17 if Self::has_said(stage, &run) => end(stage, &run, Some(0), None),
            _ => {}
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {
        self.are_good = true;
        self.done.clear();
    }

    fn work(&mut self, stage: &mut Stage) -> bool {
        if let Some(run) = stage.ground.runtime.stopping().first() {
            end(stage, run, None, Some(SIGTERM));
            return true;
        }
        let running = stage.ground.runtime.running();
        // One whose run is over by now is not heard any more, and waits to be ended.
        let free = running.into_iter().find(|run| !self.is_busy(stage, run) && is_live(stage, run));
        let Some(run) = free else { return false };
        if Self::has_said(stage, &run) {
            end(stage, &run, Some(0), None);
        } else if self.work_on(stage, &run, true) {
            self.say(stage, &run, Outcome::Completed);
        } else {
            end(stage, &run, Some(1), None);
        }
        true
    }
}

impl Polecats {
    fn is_busy(&self, stage: &Stage, run: &str) -> bool {
        self.done.get(run).is_some_and(|pid| stage.strands.contains_key(pid))
    }

    fn has_said(stage: &mut Stage, run: &str) -> bool {
        stage.store.run(run).ok().flatten().is_some_and(|run| run.said.is_some())
    }

    fn say(&mut self, stage: &mut Stage, run: &str, outcome: Outcome) {
        if self.is_busy(stage, run) {
            return;
        }
        let has_rework = is_rework(stage, run);
        let no_changes = !self.are_good && stage.world().lock().rng.u32(0..16) == 0;
        let word = Word {
            run: run.to_owned(),
            outcome,
            note: None,
            cost: None,
            no_changes,
            replaces: (has_rework && self.replaces.contains(run)).then(|| "it is better".to_owned()),
            is_rehearsal: false,
        };
        let pid = stage.launch(Errand::Done(Box::new(word)));
        self.done.insert(run.to_owned(), pid);
        if self.are_good && self.tried_to_kill.insert(run.to_owned()) {
            doom(&mut stage.world().lock(), pid);
        }
    }

    /// Commits something; says whether there was a place to do so.
    fn work_on(&mut self, stage: &mut Stage, run: &str, is_good: bool) -> bool {
        let Some(tree) = worktree(stage, run) else { return false };
        let assignment = stage.store.assignment(run).ok().flatten();
        let rework = assignment.as_ref().and_then(|assignment| assignment.rework.clone());
        if let Some(rework) = rework.filter(|_| self.reworked.insert(run.to_owned())) {
            return self.rework(stage, run, &tree, &rework, is_good);
        }
        let n = self.commits.entry(run.to_owned()).or_default();
        *n += 1;
        if *n > COMMITS_MAX && !is_good {
            return true;
        }
        let what = commit(&mut stage.world().lock(), &tree, assignment.as_ref(), is_good);
        stage.world().tell(|| format!("agent {run} commits {what:?}"));
        what.is_some()
    }

    /// Works again on what came back: with its commits, with what they change, or instead of them.
    fn rework(&mut self, stage: &mut Stage, run: &str, tree: &Path, rework: &Rework, is_good: bool) -> bool {
        let mut guard = stage.world().lock();
        let world = &mut *guard;
        let how = world.rng.u32(0..if is_good { 6 } else { 8 });
        let Some(head) = world.git.resolve(tree, "HEAD") else { return false };
        // A worktree that somebody has left in disorder is put in order first.
        let made = match how {
            0..4 => merged(world, tree, &head, &rework.tip),
            4 => picked(world, tree, &head, &rework.tip).or_else(|| merged(world, tree, &head, &rework.tip)),
            _ => None,
        };
        if made.is_none() && (how == 5 || (is_good && how > 3)) {
            self.replaces.insert(run.to_owned());
        }
        let made = made.or_else(|| commit(world, tree, None, is_good));
        drop(guard);
        stage.world().tell(|| format!("agent {run} works on {} again ({how}): {made:?}", rework.merge));
        made.is_some()
    }
}

/// Even where all is well, somebody may end a `gt done` half-way.
fn doom(world: &mut World, pid: Pid) {
    if world.rng.bool() {
        let n_boundaries = world.rng.u32(1..BOUNDARIES_MAX);
        world.doomed.insert(pid, n_boundaries);
    }
}

/// Whether the town still wants a run.
fn is_live(stage: &mut Stage, run: &str) -> bool {
    stage.store.run(run).ok().flatten().is_some_and(|run| run.is_live())
}

/// Whether its work can take the place of work that came back.
fn is_rework(stage: &mut Stage, run: &str) -> bool {
    let Some(known) = stage.store.run(run).ok().flatten() else { return false };
    stage.store.returned_for(&known.bead).is_ok_and(|of| !of.is_empty())
}

/// Where a run works.
fn worktree(stage: &Stage, run: &str) -> Option<PathBuf> {
    let dir = stage.ground.runtime.launch(run)?.dir;
    stage.world().lock().git.branch(&dir)?;
    Some(dir)
}

/// Something is left uncommitted.
fn edit(stage: &Stage, run: &str) {
    let Some(tree) = worktree(stage, run) else { return };
    let mut world = stage.world().lock();
    let content = words(&mut world, true);
    world.git.write(&tree, "scratch", Some(&content));
}

fn commit(world: &mut World, place: &Path, assignment: Option<&Assignment>, is_good: bool) -> Option<Id> {
    let n_files = world.rng.usize(1..3);
    for _ in 0..n_files {
        let own = assignment.map(|assignment| format!("of-{}", assignment.bead));
        let shared = FILES[world.rng.usize(0..FILES.len())].to_owned();
        let file = if world.rng.u32(0..3) == 0 { shared } else { own.unwrap_or(shared) };
        let content = words(world, is_good);
        world.git.write(place, &file, Some(&content));
    }
    if is_good {
        let files = world.git.find(place)?.checkouts.get(place)?.files.clone();
        for (file, content) in mended(world, files) {
            world.git.write(place, &file, Some(&content));
        }
    }
    let at = world.now().as_second();
    world.git.commit_all(place, "work", Author::Agent, at)
}

/// The old commits with what is there now, and conflicts resolved.
fn merged(world: &mut World, place: &Path, head: &str, tip: &str) -> Option<Id> {
    if !world.git.objects.has(tip) || world.git.objects.is_part_of(tip, head) {
        return None;
    }
    let tree = if let Ok(tree) = world.git.objects.merge_trees(head, tip)? {
        tree
    } else {
        let mut tree = world.git.objects.tree(head).clone();
        tree.extend(world.git.objects.tree(tip).clone());
        tree
    };
    let tree = mended(world, tree);
    let at = world.now().as_second();
    world.git.commit(place, &[head.to_owned(), tip.to_owned()], tree, "merge it", Author::Agent, at)
}

/// Each of the old commits once more, where that is possible.
fn picked(world: &mut World, place: &Path, head: &str, tip: &str) -> Option<Id> {
    if !world.git.objects.has(tip) {
        return None;
    }
    let commits = world.git.objects.beyond(tip, [head]);
    let (mut on, at) = (head.to_owned(), world.now().as_second());
    for commit in commits.iter().rev() {
        let old = world.git.objects.get(commit).clone();
        let [parent] = &old.parents[..] else { return None };
        let changes = world.git.objects.changes(world.git.objects.tree(parent), &old.tree);
        let mut tree: Tree = world.git.objects.tree(&on).clone();
        for (path, (before, after)) in changes {
            if tree.get(&path) != before.as_ref() {
                return None;
            }
            match after {
                Some(content) => tree.insert(path, content),
                None => tree.remove(&path),
            };
        }
        on = world.git.commit(place, std::slice::from_ref(&on), tree, &old.title, Author::Agent, at)?;
    }
    let tree = world.git.objects.tree(&on).clone();
    let tree = mended(world, tree);
    world.git.commit(place, &[on], tree, "mend it", Author::Agent, at)
}

/// An agent ends; where no daemon listens, the keeper calls somebody.
fn end(stage: &mut Stage, run: &str, code: Option<i32>, signal: Option<i32>) {
    stage.ground.runtime.end(run, code, signal);
    stage.world().tell(|| format!("agent {run} ended ({code:?}, {signal:?})"));
    if !stage.is_watched() {
        crate::people::command(stage, Errand::CarryOn);
    }
}
