//! When the daemon wakes up though nothing happens: times that come due, guards to look at again, the rest of a batch.

use gt_core::plan::{Policy, Side};
use jiff::{SignedDuration, Timestamp};

use super::Daemon;
use crate::error::TownError;
use crate::pace::Pace;

/// How often the machine is asked whether it is well again.
const GUARD_RETRY: SignedDuration = SignedDuration::from_secs(5);

impl Daemon {
    /// The earliest time after `since`, when the last pass began, at which a pass has something to do though nothing
    /// happens. One that has come meanwhile is due at once.
    pub(super) fn find_deadline(&mut self, since: Timestamp) -> Result<Option<Timestamp>, TownError> {
        let now = self.dispatcher.now();
        let since = since.min(now); // the clock may have been set back meanwhile
        let policy = self.settings.policy(self.town.root());
        let mut deadlines = vec![
            self.store.next_deadline(&policy, since)?,
            self.store.next_second(&policy, now)?,
            self.dispatcher.next_deadline(&mut self.store, &self.settings)?,
            self.store.next_merge_at(now)?,
            self.store.next_turn_at(since)?.filter(|_| !gt_core::defect!("turn-deadline-forgotten")),
            self.store.next_job_at()?.filter(|_| !gt_core::defect!("slot-deadline-forgotten")),
        ];
        if self.has_guards(&policy)
            && (self.store.has_startable_contexts(&policy, now)? || self.store.has_due_turns(now)?)
        {
            deadlines.push(Some(now + GUARD_RETRY));
        }
        Ok(deadlines.into_iter().flatten().filter(|at| *at > since).min())
    }

    /// When the batch goes on: whatever came due before the distance was kept had to wait for it.
    pub(super) fn find_next_of_batch(&mut self) -> Result<Option<Timestamp>, TownError> {
        let now = self.dispatcher.now();
        let policy = self.settings.policy(self.town.root());
        let waits = Pace::of(&self.settings, &policy, &mut self.store, now)?.waits;
        let left = self.batch.left(&policy);
        let goes_on = Side::BOTH.into_iter().filter(|side| *left.of(*side) != Some(0));
        let goes_on = goes_on.filter(|_| !gt_core::defect!("spacing-deadline-forgotten"));
        Ok(goes_on.filter_map(|side| *waits.of(side)).min().map(|wait| now + wait))
    }

    /// Whether a guard held when something was to be claimed, or does now: the machine may have recovered in between.
    fn has_guards(&self, policy: &Policy) -> bool {
        let held_then = self.dispatcher.was_guarded() && !gt_core::defect!("guard-seen-once");
        (held_then || !policy.guards.is_empty()) && !gt_core::defect!("guard-deadline-forgotten")
    }
}
