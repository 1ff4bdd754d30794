//! What the daemon does by the clock: the patrol, and the sweep below feeding and landing. // SPEC D8, C5

use std::sync::Arc;

use gt_store::{Stamp, StoreError, Swept};
use jiff::Timestamp;

use super::{Cause, Daemon};
use crate::error::{TownError, chain};
use crate::{patrol, tidy};

/// What the daemon knows of its patrols.
pub(super) struct Patrol {
    pub(super) next: Timestamp,
    /// Held, too, by the thread that clears away, for as long as that lasts.
    tidying: Arc<()>,
}

impl Patrol {
    pub(super) fn first_at(next: Timestamp) -> Patrol {
        Patrol { next, tidying: Arc::default() }
    }
}

impl Daemon {
    /// Patrols, when it is time.
    pub(super) fn is_patrol_over(&mut self) -> bool {
        let is_time = self.dispatcher.now() >= self.patrol.next;
        if is_time {
            self.make_patrol();
            self.dispatcher.look_again();
        }
        is_time
    }

    /// What happens may strand something, in a way that only a sweep finds; while nothing happens, nobody has to look.
    pub(super) fn plan_sweep(&mut self) -> Result<(), TownError> {
        if self.next_sweep.is_none() && self.store.last_event()? != self.swept {
            self.next_sweep = Some(self.dispatcher.now() + self.settings.sweep);
        }
        Ok(())
    }

    /// The safety net below feeding and landing: what triggers cannot see. // SPEC C5
    pub(super) fn has_swept(&mut self) -> bool {
        let stamp = self.dispatcher.stamp();
        self.next_sweep = None;
        match self.sweep(&stamp) {
            Ok(swept) => {
                for bead in &swept.released {
                    (self.log)(&format!("released {bead}: nobody worked on it"));
                }
                for bead in &swept.fed {
                    (self.log)(&format!("{bead} was stranded, and is in line again"));
                }
                // What was released may be in line or have a time to wait for; what has landed may have held others up.
                swept != Swept::default()
            }
            Err(error) => {
                (self.log)(&format!("convoys could not be searched: {}", chain(&error)));
                self.next_sweep = Some(stamp.now + self.settings.sweep);
                false
            }
        }
    }

    /// How far it knows the log is read before it looks: what is written meanwhile is for the next sweep.
    fn sweep(&mut self, stamp: &Stamp) -> Result<Swept, StoreError> {
        let known = self.store.last_event()?;
        let is_needed = self.store.needs_sweep(stamp.now)?;
        let swept =
            if is_needed && !gt_core::defect!("never-swept") { self.store.sweep(stamp)? } else { Swept::default() };
        self.swept = known;
        Ok(swept)
    }

    /// Cleans up, in peace. // SPEC D8, B7
    fn make_patrol(&mut self) {
        self.patrol.next = self.dispatcher.now() + self.settings.heartbeat;
        self.keep_beats();
        let stamp = self.dispatcher.stamp();
        if let Err(error) = patrol::clean(&self.town, &mut self.store, &self.settings, &mut self.logs, &stamp) {
            (self.log)(&format!("the patrol could not clean up: {}", chain(&error)));
        }
        if let Some(Err(error)) = self.channels.as_ref().map(|all| all.give_up_stranded(&mut self.store, &stamp)) {
            (self.log)(&format!("the patrol could not look after the outbox: {}", chain(&error)));
        }
        match patrol::release_stale(&mut self.store, &self.settings, &self.dispatcher.stamp()) {
            Ok(released) => released.iter().for_each(|hook| {
                let bead = &hook.bead;
                (self.log)(&format!("released {bead}: nobody worked on it"));
            }),
            Err(error) => (self.log)(&format!("the patrol could not release hooks: {}", chain(&error))),
        }
        if self.around.worktrees().has_git() {
            self.tidy();
        }
    }

    /// Clears away what merging and salvage have left, beside the loop. While that lasts, no second one begins.
    fn tidy(&mut self) {
        if Arc::strong_count(&self.patrol.tidying) > 1 {
            return;
        }
        let tidying = Arc::clone(&self.patrol.tidying);
        let (town, stamp, sender) = (self.town.clone(), self.dispatcher.stamp(), self.sender.clone());
        let say = move |words: &str| sender.send(Cause::Said(words.to_owned())).unwrap_or_default();
        let around = Arc::clone(&self.around);
        self.around.aside(Box::new(move || {
            // The next patrol tries again.
            if let Err(error) = tidy::tidy(&*around, &town, &stamp, &say) {
                say(&format!("the patrol could not clear everything away: {}", chain(&error)));
            }
            drop(tidying);
        }));
    }

    /// Logs what newly holds agents up.
    pub(super) fn log_troubles(&mut self) -> Result<(), TownError> {
        let now = self.dispatcher.now();
        let troubles = self.store.scheduler_state(now)?.troubles;
        for (of, trouble) in &troubles {
            if self.troubles.get(of).is_none_or(|known| known.reason != trouble.reason) {
                (self.log)(&of.sentence(trouble, now));
            }
        }
        self.troubles = troubles;
        Ok(())
    }
}
