//! The refinery as the daemon keeps it going: one worker for each target that has something to merge. // SPEC M2

use std::sync::Arc;

use gt_store::Target;

use super::{Cause, Daemon};
use crate::error::{TownError, chain};
use crate::refinery::{self, Worked};
use crate::tidy;

/// What became of a worker.
pub type Merged = (Target, Result<Worked, TownError>);

impl Daemon {
    /// Has somebody work on every target that can be; the daemon itself waits for nobody.
    pub(super) fn tend_refinery(&mut self) -> Result<(), TownError> {
        for target in refinery::due_targets(&mut self.store, self.dispatcher.now())? {
            if !self.merging.insert(target.clone()) {
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

    /// A worker has come to its end; what came to wait meanwhile is for the next one. Says whether to look at once.
    pub(super) fn note_merged(&mut self, (target, worked): Merged) -> bool {
        self.merging.remove(&target);
        let Target { rig, branch } = &target;
        let worked = match worked {
            Ok(worked) => worked,
            Err(error) => {
                let reason = chain(&error);
                (self.log)(&format!("nothing can be merged into {branch} of {rig}: {reason}"));
                let stamp = self.dispatcher.stamp();
                // Where not even that can be remembered, the next pass tries again.
                self.store
                    .hold_target(&target, &reason, stamp.now + super::ERROR_RETRY * 5, &stamp)
                    .unwrap_or_default();
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
        if let Some(reason) = &worked.held {
            (self.log)(&format!("{branch} of {rig} is held: {reason}"));
        }
        if worked.is_busy {
            // Another process is at it. What that commits wakes the daemon; if it dies, nothing does.
            let again = self.dispatcher.now() + super::ERROR_RETRY;
            self.next_deadline = Some(self.next_deadline.map_or(again, |known| known.min(again)));
        }
        !worked.is_busy
    }
}
