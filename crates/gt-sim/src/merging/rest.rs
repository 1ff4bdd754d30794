//! The judge of merging while everybody sleeps, and at the end: what waits has a reason that is right.

use std::path::Path;
use std::time::Duration;

use gt_core::status::Status;
use gt_store::{Merge, Target, TargetHold};

use super::judge::{Judge, words};
use crate::git::gates::is_sound;
use crate::git::{Author, GitWorld, Mood, here, there};
use crate::stage::Stage;

/// A daemon that lets another process have a target looks again after this, with some time to spare.
const LATE_MAX: Duration = Duration::from_secs(7);

impl Judge {
    /// In the healed world, while everybody sleeps: nothing waits that could be merged.
    pub(super) fn check_no_stall(&mut self, stage: &mut Stage) -> Result<(), String> {
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        let asleep = stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(uptime));
        let is_at_work = !stage.world().lock().threads.is_empty();
        if asleep <= LATE_MAX || is_at_work {
            return Ok(());
        }
        let pauses = self.store.refinery_pauses().map_err(|error| words(&error))?;
        let holds = self.store.target_holds().map_err(|error| words(&error))?;
        for merge in self.store.merges(false).map_err(|error| words(&error))? {
            let is_paused = pauses.iter().any(|pause| pause.rig.as_ref().is_none_or(|rig| *rig == merge.rig));
            let is_its = |target: &Target| target.rig == merge.rig && target.branch == merge.target;
            let hold = holds.iter().find(|(target, _)| is_its(target)).map(|(_, hold)| hold);
            if !is_paused && hold.is_none_or(|hold| hold.until <= now) {
                return Err(format!("{} could be merged, and everybody sleeps for {asleep:?}", merge.id));
            }
        }
        Ok(())
    }

    /// No agent works on in a worktree that others are given.
    fn check_strays(&mut self, stage: &Stage) -> Result<(), String> {
        let mut is_live = |run: &&String| self.store.run(run).ok().flatten().is_some_and(|run| run.is_live());
        match stage.ground.runtime.running().iter().find(|run| !is_live(run)) {
            Some(run) => Err(format!("{run} is over, and its agent lives on")),
            None => Ok(()),
        }
    }

    /// When all has come as far as it can by itself: whatever waits has a reason, and the reason is right.
    pub(super) fn check_settled(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.check_strays(stage)?;
        let pauses = self.store.refinery_pauses().map_err(|error| words(&error))?;
        let holds = self.store.target_holds().map_err(|error| words(&error))?;
        let live = self.store.merges(false).map_err(|error| words(&error))?;
        for merge in &live {
            if pauses.iter().any(|pause| pause.rig.as_ref().is_none_or(|rig| *rig == merge.rig)) {
                continue;
            }
            let is_its = |target: &Target| target.rig == merge.rig && target.branch == merge.target;
            let Some((target, hold)) = holds.iter().find(|(target, _)| is_its(target)) else {
                return Err(format!("{} waits, and nothing says why", merge.id));
            };
            let root = Judge::root_of(stage, &target.rig);
            let world = stage.world().lock();
            if !is_right(&world.git, &root, target, hold, &live) {
                return Err(format!("{} is held for what is not so: {}", target.branch, hold.reason));
            }
        }
        self.check_all_kept(stage)
    }

    /// Nothing that was handed over is lost, and no checkout is left half-way.
    fn check_all_kept(&mut self, stage: &mut Stage) -> Result<(), String> {
        for (id, (rig, commits)) in &self.book.handed {
            let root = Judge::root_of(stage, rig);
            let world = stage.world().lock();
            let is_lost = |commit: &&String| {
                !self.book.contained.contains(*commit) && world.git.holders(&root, commit).is_empty()
            };
            if let Some(commit) = commits.iter().find(is_lost) {
                return Err(format!("{commit:.24} was handed over as {id}, and is lost"));
            }
        }
        Ok(())
    }

    /// Once people have mended what only they can, all of it is merged.
    pub(super) fn check_all_done(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.check_strays(stage)?;
        if let Some(merge) = self.store.merges(false).map_err(|error| words(&error))?.first() {
            let target = Target { rig: merge.rig.clone(), branch: merge.target.clone() };
            let hold = self.store.target_hold(&target).map_err(|error| words(&error))?;
            return Err(format!("{} waits for ever: {:?}", merge.id, hold.map(|hold| hold.reason)));
        }
        for merge in self.store.merges(true).map_err(|error| words(&error))? {
            let bead = self.store.bead(&merge.bead).map_err(|error| words(&error))?.bead;
            if !matches!(bead.status, Status::Closed | Status::Tombstone) {
                return Err(format!("{} is {:?}, and its work was handed over", bead.id, bead.status));
            }
        }
        self.check_all_kept(stage)?;
        Self::check_checkouts(stage)
    }

    fn check_checkouts(stage: &Stage) -> Result<(), String> {
        let world = stage.world().lock();
        for (root, repository) in &world.git.repositories {
            let Some(checkout) = repository.checkouts.get(root) else { continue };
            if checkout.note.is_none() && checkout.files != world.git.head_tree(root) {
                return Err(format!("the checkout of {} was left half-way", root.display()));
            }
        }
        Ok(())
    }
}

/// Whether what a target is held for is so.
fn is_right(git: &GitWorld, root: &Path, target: &Target, hold: &TargetHold, live: &[Merge]) -> bool {
    let repository = &git.repositories[root];
    let (ours, theirs) = (git.resolve(root, &here(&target.branch)), git.resolve(root, &there(&target.branch)));
    let mood = repository.origin.as_ref().map(|origin| origin.mood);
    let is_part = |one: &Option<String>, of: &Option<String>| match (one, of) {
        (Some(one), Some(of)) => git.objects.is_part_of(one, of),
        _ => false,
    };
    let says = |words: &str| hold.reason.contains(words);
    let own = repository.checkouts.get(root);
    let has_persons =
        |tip: &String| git.unpublished(root, tip).iter().any(|id| git.objects.get(id).author == Author::Person);
    let checks: [(&str, bool); 8] = [
        ("has uncommitted work in", git.edits.get(root).is_some_and(|edits| !edits.is_empty())),
        ("neither is ahead", !is_part(&ours, &theirs) && !is_part(&theirs, &ours)),
        ("without anything new", [&ours, &theirs].into_iter().flatten().any(|tip| !is_sound(git.objects.tree(tip)))),
        ("not on the origin", ours.as_ref().is_some_and(has_persons)),
        ("had before", live.iter().any(|merge| merge.target == target.branch && has_persons(&merge.tip))),
        ("cannot be reached", mood == Some(Mood::Away)),
        ("lets nobody push", mood == Some(Mood::Closed)),
        ("rebase", own.is_some_and(|own| own.rebases.is_some())),
    ];
    let is_known = checks.iter().any(|(phrase, is_so)| says(phrase) && *is_so);
    let is_locked = says("git is at work there") && own.is_some_and(|own| own.is_locked);
    is_known || is_locked
}
