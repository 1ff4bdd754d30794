//! The refinery as the daemon keeps it going: one worker for each target that has something to merge. // SPEC M2

use std::sync::Arc;

use gt_store::Target;
use jiff::SignedDuration;

use super::{Cause, Daemon};
use crate::error::{TownError, chain};
use crate::refinery::{self, Worked};
use crate::tidy;

/// How long a target is left alone after its worker failed.
const HOLD: SignedDuration = SignedDuration::from_secs(5);
/// How soon it is looked at again while another process merges into it.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// What became of a worker.
pub type Merged = (Target, Result<Worked, TownError>);

impl Daemon {
    /// Has somebody work on every target that can be; the daemon itself waits for nobody.
    pub(super) fn tend_refinery(&mut self) -> Result<(), TownError> {
        for target in refinery::due_targets(&mut self.store, self.dispatcher.now())? {
            if self.is_held_here(&target) || !self.merging.insert(target.clone()) {
                continue;
            }
            let (town, sender) = (self.town.clone(), self.sender.clone());
            let (around, actor) = (Arc::clone(&self.around), self.dispatcher.stamp().actor);
            self.around.aside(Box::new(move || {
                let worked = refinery::work(&around, &town, &actor, &target);
                sender.send(Cause::Merged((target, worked))).unwrap_or_default();
            }));
        }
        Ok(())
    }

    /// Whether a target is held though the store does not know it; then a pass comes when that is over.
    fn is_held_here(&mut self, target: &Target) -> bool {
        let uptime = self.around.uptime();
        let Some(left) = self.unheld.get(target).map(|until| until.saturating_sub(uptime)) else { return false };
        if left.is_zero() {
            self.unheld.remove(target);
            return false;
        }
        self.wake_by(self.dispatcher.now() + left);
        true
    }

    /// A worker has come to its end; what came to wait meanwhile is for the next one. Says whether to look at once.
    pub(super) fn note_merged(&mut self, (target, worked): Merged) -> bool {
        if !gt_core::defect!("worker-never-over") {
            self.merging.remove(&target);
        }
        let Target { rig, branch } = &target;
        let worked = match worked {
            Ok(worked) => worked,
            Err(error) => {
                let reason = chain(&error);
                (self.log)(&format!("nothing can be merged into {branch} of {rig}: {reason}"));
                let stamp = self.dispatcher.stamp();
                // Where the store cannot remember that, the daemon does: else it would be at it again at once.
                if refinery::hold(&mut self.store, &target, &reason, &stamp).is_err() {
                    self.unheld.insert(target, self.around.uptime() + HOLD.unsigned_abs());
                }
                return true;
            }
        };
        for bead in &worked.merged {
            (self.log)(&format!("{bead} is merged into {branch} of {rig}"));
        }
        for (bead, reason) in &worked.returned {
            (self.log)(&format!("{bead} comes back: {reason}"));
        }
        for lock in &worked.unlocked {
            (self.log)(&tidy::cleared_words(lock));
        }
        worked.resumed.iter().for_each(|words| (self.log)(&format!("{words} of {rig}")));
        if let Some(reason) = &worked.held {
            (self.log)(&format!("{branch} of {rig} is held: {reason}"));
        }
        if worked.is_busy && !gt_core::defect!("busy-target-forgotten") {
            // Another process is at it. What that commits wakes the daemon; if it dies, nothing does.
            self.wake_by(self.dispatcher.now() + LOOK_AGAIN);
        }
        !worked.is_busy
    }
}
