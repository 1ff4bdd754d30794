//! Targets that are held: for how long, and what is tried all the same.

use gt_core::merge::MergeState;
use gt_store::{Merge, RefineryPause, Stamp, Store, Target, TargetHold};
use jiff::{SignedDuration, Timestamp};

use super::request;
use crate::error::TownError;

/// How long a target that is held is left alone, at most.
const HOLD_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Targets into which something can be merged now. That some wait for a person or a request is no reason to let what is new wait.
pub(crate) fn due_targets(store: &mut Store, now: Timestamp) -> Result<Vec<Target>, TownError> {
    let mut due = store.due_targets(now)?;
    for (target, hold) in store.target_holds()? {
        let tried_at = hold.until - pause_after(hold.tries - 1);
        let is_untried =
            |merge: &Merge| !needs_a_person(&hold) || (tried_at < merge.queued_at && merge.queued_at <= now);
        let is_new = |merge: &Merge| merge.state == MergeState::Waiting && is_untried(merge);
        let is_for_it = |pause: &RefineryPause| pause.rig.as_ref().is_none_or(|rig| *rig == target.rig);
        if due.contains(&target) || store.refinery_pauses()?.iter().any(is_for_it) {
            continue;
        }
        if store.waiting_merges(&target)?.iter().any(is_new) {
            due.push(target);
        }
    }
    Ok(due)
}

/// Whether a target that is held stays so until somebody does something about it here. A pull request is for others to judge.
pub fn needs_a_person(hold: &TargetHold) -> bool {
    !request::OPEN.contains(&hold.reason.as_str())
}

/// Leaves a target alone for a while, longer each time.
pub(crate) fn hold(store: &mut Store, target: &Target, reason: &str, stamp: &Stamp) -> Result<(), TownError> {
    let pause = pause_after(store.target_hold(target)?.map_or(0, |hold| hold.tries));
    Ok(store.hold_target(target, reason, stamp.now + pause, stamp)?)
}

/// How long a target is left alone that was tried so many times before.
fn pause_after(n_tries: i64) -> SignedDuration {
    SignedDuration::from_secs(1 << n_tries.clamp(0, 10)).min(HOLD_MAX)
}
