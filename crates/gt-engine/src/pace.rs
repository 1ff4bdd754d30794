//! The pace of starts: how many of each side may come now, and how long the next has to wait. // SPEC D4, Q1
//!
//! When the last start was is in the store, so everybody keeps the same distance, whoever made it. How many of a batch
//! have been is known to whoever starts it.

use gt_core::plan::{PerSide, Policy, Side};
use gt_store::{Assignment, Claimed, Kinds, Store};
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

/// What one pass has started, by itself or spaced over a while. // SPEC D4
#[derive(Debug, Clone, Copy, Default)]
pub struct Batch {
    n_started: PerSide<usize>,
}

impl Batch {
    pub fn after(n_slung: usize) -> Batch {
        Batch { n_started: PerSide { scheduler: n_slung, queue: 0 } }
    }

    /// What it may still start of each side; `None`: all.
    pub fn left(&self, policy: &Policy) -> PerSide<Option<usize>> {
        let less = |batch: Option<usize>, n: usize| batch.map(|batch| batch.saturating_sub(n));
        let queue = policy.queue.as_ref().and_then(|queue| queue.batch);
        PerSide { scheduler: less(policy.batch, self.n_started.scheduler), queue: less(queue, self.n_started.queue) }
    }

    /// The smaller of what is left of it and of `limits`.
    pub fn within(&self, policy: &Policy, limits: PerSide<Option<usize>>) -> PerSide<Option<usize>> {
        let left = self.left(policy);
        let of = |side: Side| [*left.of(side), *limits.of(side)].into_iter().flatten().min();
        PerSide { scheduler: of(Side::Scheduler), queue: of(Side::Queue) }
    }

    /// Turns are no part of it.
    pub fn count(&mut self, policy: &Policy, claimed: &[Claimed]) {
        for one in claimed.iter().filter_map(Claimed::work) {
            *self.n_started.of_mut(policy.side(one.fields.queued)) += 1;
        }
    }

    /// A start that failed leaves its place to another.
    pub fn uncount(&mut self, policy: &Policy, failed: &Assignment) {
        let n = self.n_started.of_mut(policy.side(failed.fields.queued));
        *n = n.saturating_sub(1);
    }

    pub fn n_of(&self, side: Side) -> usize {
        *self.n_started.of(side)
    }

    pub fn n_all(&self) -> usize {
        self.n_of(Side::Scheduler) + self.n_of(Side::Queue)
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
        Side::Scheduler => state.last_dispatch_at.filter(|_| !gt_core::defect!("spacing-ignored")),
        Side::Queue => state.last_queued_at.filter(|_| !gt_core::defect!("queue-spacing-ignored")),
    };
    let counts = |at: &Timestamp| *at <= now || gt_core::defect!("spacing-waits-for-the-clock");
    let left = last.filter(counts).map(|at| (at + *settings.spawn_delay.of(side)).duration_since(now));
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
