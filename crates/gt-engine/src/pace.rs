//! The pace of starts: how many of each side may come now, and how long the next has to wait. // SPEC D4, Q1
//!
//! When the last start was is in the store, so everybody keeps the same distance, whoever made it.

use gt_core::plan::{PerSide, Policy, Side};
use gt_store::{Kinds, Store};
use jiff::{SignedDuration, Timestamp};

use crate::error::TownError;
use crate::settings::Settings;

/// How it stands right now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// At most so many may start; `None`: all. With a delay between starts, one at a time.
    pub limits: PerSide<Option<usize>>,
    /// How long a side has to keep still.
    pub waits: PerSide<Option<SignedDuration>>,
}

impl Pace {
    pub fn of(settings: &Settings, policy: &Policy, store: &mut Store, now: Timestamp) -> Result<Pace, TownError> {
        let mut pace = Pace::default();
        for side in Side::BOTH {
            if !policy.starts(side) {
                *pace.limits.of_mut(side) = Some(0);
            } else if settings.is_spaced(side) {
                let wait = wait(settings, side, store, now)?;
                *pace.limits.of_mut(side) = Some(usize::from(wait.is_none()));
                *pace.waits.of_mut(side) = wait;
            }
        }
        Ok(pace)
    }
}

fn wait(
    settings: &Settings,
    side: Side,
    store: &mut Store,
    now: Timestamp,
) -> Result<Option<SignedDuration>, TownError> {
    let state = store.scheduler_state(now)?;
    let last = match side {
        Side::Scheduler => state.last_dispatch_at,
        Side::Queue => state.last_queued_at,
    };
    let left = last.filter(|at| *at <= now).map(|at| (at + *settings.spawn_delay.of(side)).duration_since(now));
    Ok(left.filter(SignedDuration::is_positive))
}

/// How long each side has to keep still before something that is ready may start; zero: it may now, as far as this goes.
/// `None`: the side keeps no distance, or has nothing that is ready.
pub fn until_next(
    settings: &Settings,
    policy: &Policy,
    store: &mut Store,
    now: Timestamp,
) -> Result<PerSide<Option<SignedDuration>>, TownError> {
    let mut next = PerSide::default();
    for side in Side::BOTH {
        let is_spaced = policy.starts(side) && settings.is_spaced(side);
        let Some(kinds) = Kinds::of(policy, |one| one == side).filter(|_| is_spaced) else { continue };
        if store.has_ready_contexts(kinds, now)? {
            *next.of_mut(side) = Some(wait(settings, side, store, now)?.unwrap_or_default());
        }
    }
    Ok(next)
}
