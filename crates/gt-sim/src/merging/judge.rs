//! The judge of merging: after each step it holds every move of a branch, every gate and every event against the promises of
//! `docs/merging.md`.

use std::path::{Path, PathBuf};

use gt_core::event::Event;
use gt_core::merge::{MergeState, Strategy};
use gt_store::{Merge, Store, StoreError};
use jiff::Timestamp;
use serde_json::Value;

use super::TARGETS;
use super::book::{Book, text};
use super::tools::root_of;
use crate::git::origin::{RequestState, SECRET};
use crate::git::{Author, Deleted, GitWorld, Move};
use crate::knobs::{Knobs, RIGS};
use crate::stage::Stage;

/// So often everything in the store is looked at, and not only what has changed.
const LOOKS_BETWEEN: usize = 25;

pub(super) struct Judge {
    pub(super) store: Store,
    pub(super) book: Book,
    n_looks: usize,
    /// The latest time that the clock has shown.
    latest: Timestamp,
}

/// The gates of a rig, which nobody changes.
fn gates_of(stage: &Stage, rig: &str) -> &'static [&'static str] {
    let knobs = stage.settings.iter().rev().find_map(|setting| setting.knobs.as_ref()?.merging.as_ref());
    let n = RIGS.iter().position(|(name, _)| *name == rig);
    knobs.zip(n).map_or(&[], |(knobs, n)| knobs.gates[n])
}

pub(super) fn words(error: &StoreError) -> String {
    format!("the judge cannot look: {error}")
}

impl Judge {
    pub(super) fn new(stage: &Stage) -> Judge {
        let store = stage.ground.medium.open().expect("nothing is wrong yet");
        let book = Book::of(&stage.world().lock().git);
        Judge { store, book, n_looks: 0, latest: stage.world().now() }
    }

    pub(super) fn n_landed(&self) -> usize {
        self.book.landed.len()
    }

    /// After each step.
    pub(super) fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(what) = stage.world().lock().violations.pop() {
            return Err(what);
        }
        self.n_looks += 1;
        self.latest = self.latest.max(stage.world().now());
        if self.n_looks.is_multiple_of(LOOKS_BETWEEN) {
            self.check_store(stage)?;
        }
        let (moves, deleted) = {
            let mut world = stage.world().lock();
            let gates = std::mem::take(&mut world.git.gates);
            if let Some(gate) = gates.iter().find(|gate| !gate.is_on_commit) {
                return Err(format!("the gate {} was asked about other files than are to be merged", gate.command));
            }
            self.book.gates.extend(gates);
            (std::mem::take(&mut world.git.moves), std::mem::take(&mut world.git.deleted))
        };
        for moved in &moves {
            self.check_move(stage, moved)?;
        }
        Self::check_edits(stage)?;
        for event in self.store.events(self.book.seq, usize::MAX).map_err(|error| words(&error))? {
            self.check_event(stage, &event)?;
        }
        for deleted in &deleted {
            self.check_deleted(&stage.world().lock().git, deleted)?;
        }
        Ok(())
    }

    fn check_store(&mut self, stage: &Stage) -> Result<(), String> {
        self.latest = self.latest.max(stage.world().now());
        let found = self.store.judge(self.latest).map_err(|error| words(&error))?;
        let ring = found.ring_edges.iter().map(|(one, other)| format!("{one} and {other} wait for each other"));
        let wrong = found.disagreements.iter().map(|wrong| format!("readiness is not as recomputed: {wrong:?}"));
        match wrong.chain(ring).chain(found.dispatch.iter().cloned()).next() {
            Some(what) => Err(what),
            None => Ok(()),
        }
    }

    /// What people have edited stays byte for byte.
    fn check_edits(stage: &Stage) -> Result<(), String> {
        let world = stage.world().lock();
        for (root, edits) in &world.git.edits {
            let Some(checkout) = world.git.repositories[root].checkouts.get(root) else { continue };
            let lost = edits.iter().find(|(file, content)| checkout.files.get(*file) != Some(*content));
            if let Some((file, _)) = lost {
                return Err(format!("what a person wrote into {file} is lost: {:?}", checkout.files.get(file)));
            }
        }
        Ok(())
    }

    fn check_move(&mut self, stage: &Stage, moved: &Move) -> Result<(), String> {
        let is_target = TARGETS.contains(&moved.branch.as_str());
        if moved.by_refinery {
            let world = stage.world().lock();
            let git = &world.git;
            let is_forward = moved.old.as_ref().is_none_or(|old| git.objects.is_part_of(old, &moved.new));
            if is_target && !is_forward {
                return Err(format!("{} was moved back to {:.24}", moved.branch, moved.new));
            }
            if moved.at_origin {
                self.check_published(git, moved)?;
            }
            if is_target && !self.book.stood.contains(&moved.new) {
                self.check_landing(stage, git, moved)?;
            }
        }
        self.book.note(&stage.world().lock().git, moved, is_target);
        Ok(())
    }

    /// Nothing of a person's is published unasked.
    fn check_published(&self, git: &GitWorld, moved: &Move) -> Result<(), String> {
        let known = &self.book.published[&moved.repository];
        let new = git.objects.history(&moved.new);
        let is_persons = |id: &&String| git.objects.get(id).author == Author::Person && !known.contains(*id);
        match new.iter().find(is_persons) {
            Some(id) => Err(format!("a person's commit {id:.24} was published by a push to {}", moved.branch)),
            None => Ok(()),
        }
    }

    /// What lands is wanted, has passed its gates, and is new.
    fn check_landing(&mut self, stage: &Stage, git: &GitWorld, moved: &Move) -> Result<(), String> {
        let Some(n) = RIGS.iter().position(|(name, _)| moved.repository.ends_with(name)) else { return Ok(()) };
        let is_new = |tip: &str| {
            let old = moved.old.as_ref();
            git.objects.is_part_of(tip, &moved.new) && old.is_none_or(|old| !git.objects.is_part_of(tip, old))
        };
        let mut merges = self.store.merges(true).map_err(|error| words(&error))?;
        merges.retain(|merge| merge.rig == RIGS[n].0);
        // It may have been recorded in the same step.
        let is_wanted = |merge: &Merge| merge.state.is_live() || merge.merged.as_ref() == Some(&moved.new);
        let is_live = |merge: &&Merge| is_wanted(merge) && merge.target == moved.branch;
        let live: Vec<&Merge> = merges.iter().filter(is_live).collect();
        let brought: Vec<&&Merge> = live.iter().filter(|merge| is_new(&merge.tip)).collect();
        if brought.is_empty() {
            return Err(format!("{} was moved to {:.24}, and that brings nothing that waits", moved.branch, moved.new));
        }
        let is_unwanted = |merge: &&Merge| {
            let is_part_of_live = || live.iter().any(|live| git.objects.is_part_of(&merge.tip, &live.tip));
            merge.state == MergeState::Dropped && is_new(&merge.tip) && !is_part_of_live()
        };
        if let Some(merge) = merges.iter().find(is_unwanted) {
            return Err(format!("{} was merged though it was dropped", merge.id));
        }
        let is_pushed = |knobs: &Knobs| knobs.merging.as_ref().is_none_or(|merging| merging.push[n]);
        let is_always_pushed = stage.settings.iter().filter_map(|one| one.knobs.as_ref()).all(is_pushed);
        let gates = gates_of(stage, RIGS[n].0);
        // What a rework carries comes with it.
        let own: Vec<_> = brought.iter().filter(|merge| merge.rework.is_none()).collect();
        let is_direct = own.len() == 1 && own[0].strategy == Strategy::Direct;
        self.check_pushed(git, moved, is_always_pushed)?;
        let tree = git.objects.tree_id(&moved.new);
        if !is_direct && !self.book.has_passed(&moved.repository, &tree, gates) {
            return Err(format!("{:.24} landed in {} and has not passed {gates:?}", moved.new, moved.branch));
        }
        Ok(())
    }

    /// Where pushing is on, nothing is here alone.
    fn check_pushed(&self, git: &GitWorld, moved: &Move, is_always_pushed: bool) -> Result<(), String> {
        let has_origin = git.repositories[&moved.repository].origin.is_some();
        let is_alone = !moved.at_origin && !self.book.published[&moved.repository].contains(&moved.new);
        if has_origin && is_always_pushed && is_alone {
            return Err(format!("{:.24} landed in {} and was not pushed", moved.new, moved.branch));
        }
        Ok(())
    }

    /// What is deleted is kept by something else, or was in a target.
    fn check_deleted(&mut self, git: &GitWorld, deleted: &Deleted) -> Result<(), String> {
        let Deleted { repository, name, commit } = deleted;
        if self.book.contained.contains(commit) {
            return Ok(());
        }
        if let Some(id) = name.strip_prefix("refs/gt/merges/") {
            self.check_let_go(id, commit)?;
        }
        if !git.holders(repository, commit).is_empty() {
            return Ok(());
        }
        if name.starts_with("refs/gt/salvage/") {
            return Ok(()); // these go when their time is over
        }
        Err(format!("{name} was deleted, and nothing else keeps {commit:.24}"))
    }

    /// A person may delete the branch of what was handed over, relying on its ref: that stays until the work is merged.
    fn check_let_go(&mut self, id: &str, commit: &str) -> Result<(), String> {
        match self.store.merge(id) {
            Ok(merge) if merge.state == MergeState::Merged => Ok(()),
            Ok(merge) => Err(format!("{id} is {}, and its ref with {commit:.24} was deleted", merge.state.as_str())),
            Err(StoreError::NoMerge { .. }) => {
                Err(format!("the ref of {id} was deleted, and no target has had {commit:.24}"))
            }
            Err(error) => Err(words(&error)),
        }
    }

    fn check_event(&mut self, stage: &Stage, event: &Event) -> Result<(), String> {
        stage
            .world()
            .tell(|| format!("event {}: {} {:?} {:?} {}", event.seq, event.kind, event.bead, event.run, event.data));
        let id = text(event, "merge").to_owned();
        self.book.apply(event);
        match event.kind.as_str() {
            "merge.queued" => self.check_kept(stage, event, &id),
            "merge.landed" => self.check_landed(stage, event, &id),
            "merge.returned" => self.check_returned(stage, event, &id),
            _ => Ok(()),
        }
    }

    /// What waits is kept by a ref of its own.
    fn check_kept(&mut self, stage: &Stage, event: &Event, id: &str) -> Result<(), String> {
        let (root, commit) = (root_of(stage, text(event, "rig")), text(event, "commit"));
        let kept = stage.world().lock().git.resolve(&root, &gt_engine::refinery::ref_of(id));
        // What goes directly may have landed in the same step.
        let is_over = self.store.merge(id).is_ok_and(|merge| !merge.state.is_live());
        if kept.as_deref() == Some(commit) || is_over {
            return Ok(());
        }
        Err(format!("{id} waits with {commit:.24}, and its ref has {kept:?}"))
    }

    /// Whatever is said to be merged is there.
    fn check_landed(&mut self, stage: &Stage, event: &Event, id: &str) -> Result<(), String> {
        let merges = self.store.merges(true).map_err(|error| words(&error))?;
        let said = text(event, "commit").to_owned();
        let world = stage.world().lock();
        let git = &world.git;
        let root = root_of(stage, text(event, "rig"));
        let is_squashed = |merge: &Merge| {
            let requests = &git.repositories[&root].requests;
            requests.values().any(|request| request.merge == merge.id && request.state == RequestState::Merged)
        };
        // Work that came back counts as merged in the same transaction as its rework.
        let of_bead = event.bead.as_deref();
        let of_it = merges.iter().filter(|merge| {
            let is_here = merge.merged.as_deref() == Some(said.as_str()) || merge.rework.as_deref() == of_bead;
            merge.id == id || (is_here && merge.state == MergeState::Merged)
        });
        for merge in of_it {
            let Some(commit) = &merge.merged else {
                return Err(format!("{id} has landed, and is {}", merge.state.as_str()));
            };
            if !git.objects.has(commit) {
                return Err(format!("{} is said to be merged in `{commit}`, which is no commit", merge.id));
            }
            if !self.book.stood.contains(commit) && !self.book.contained.contains(commit) {
                return Err(format!("{} is merged in {commit:.24}, which was never in {}", merge.id, merge.target));
            }
            if !git.objects.has_work_of(&merge.tip, commit) && !is_squashed(merge) && !self.is_carried(git, merge) {
                return Err(format!(
                    "{} is said to be merged, and its commit {:.24} is not there",
                    merge.id, merge.tip
                ));
            }
        }
        Ok(())
    }

    /// Whether a rework has brought it along, which a forge may have squashed.
    fn is_carried(&mut self, git: &GitWorld, merge: &Merge) -> bool {
        let Some(rework) = &merge.rework else { return false };
        let by = self.store.merges_of(rework).unwrap_or_default();
        by.iter().any(|by| by.state == MergeState::Merged && git.objects.has_work_of(&merge.tip, &by.tip))
    }

    /// What comes back does so for its own flaw.
    fn check_returned(&mut self, stage: &Stage, event: &Event, id: &str) -> Result<(), String> {
        let (reason, merge) = (text(event, "reason"), self.store.merge(id).map_err(|error| words(&error))?);
        let world = stage.world().lock();
        let (git, root) = (&world.git, root_of(stage, &merge.rig));
        let is_right = if reason.contains("conflicts with") {
            git.conflicts.iter().any(|(base, tip)| *tip == merge.tip && self.book.stood.contains(base))
        } else if reason.contains("does not pass the gate") {
            self.book.failed_alone(git, &root, &merge.tip, gates_of(stage, &merge.rig))
        } else if reason.contains("pull request") {
            let requests = &git.repositories[&root].requests;
            requests.values().any(|request| request.merge == merge.id && request.state == RequestState::Closed)
        } else {
            git.objects.tree(&merge.tip).values().any(|content| content.starts_with(SECRET))
                || Self::has_secret(git, &root)
        };
        if !is_right {
            return Err(format!("{id} came back though that is not so: {reason}"));
        }
        match event.data.get("rework").and_then(Value::as_str) {
            Some(rework) if !self.book.scheduled.contains(rework) => {
                Err(format!("{rework} was made to work on {id} again, and is not in line"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a target has what its origin does not take.
    fn has_secret(git: &GitWorld, root: &Path) -> bool {
        let tips = TARGETS.iter().filter_map(|target| git.resolve(root, &crate::git::here(target)));
        tips.into_iter().any(|tip| git.objects.tree(&tip).values().any(|content| content.starts_with(SECRET)))
    }

    pub(super) fn root_of(stage: &Stage, rig: &str) -> PathBuf {
        root_of(stage, rig)
    }
}
