//! The settings by which dispatch decides. Reading them off a config is the engine's.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Guard, QueueRules, Side};
use crate::lane::Lanes;

/// Upper limits for live polecats; `None` and absent ones do not limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caps {
    pub town: Option<usize>,
    pub rigs: BTreeMap<String, usize>,
    pub agents: BTreeMap<String, usize>,
    pub host: Option<usize>,
    /// Polecats alive at once while neither the town's nor the queue's cap is in force, so that a hundred do not start by
    /// accident.
    pub guard: Option<usize>,
}

/// The settings by which dispatch decides, with what the machine says right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether a sling only stores and the daemon starts. // SPEC P2
    pub is_deferred: bool,
    pub caps: Caps,
    /// Starts in one pass; `None`: every free slot. Queued work has its own where the queue rules it.
    pub batch: Option<usize>,
    /// Starts of any kind in this one pass, because somebody said so.
    pub batch_once: Option<usize>,
    /// `None`: the scheduler's cap rules what is queued, too.
    pub queue: Option<QueueRules>,
    /// The most urgent first instead of the first to come.
    pub by_priority: bool,
    pub default_agent: String,
    pub host: String,
    pub guards: Vec<Guard>,
    pub starts_per_second: Option<usize>,
    /// US cents that runs may report in a day.
    pub daily_cents: Option<i64>,
    pub max_failures: i64,
    pub breaker_reset: SignedDuration,
    pub redispatch_cooldown: SignedDuration,
    pub redispatch_attempts: i64,
    pub lanes: Lanes,
    /// How much the conversation of an agent can hold, in tokens.
    pub windows: BTreeMap<String, u64>,
}

impl Default for Policy {
    /// What holds in a town whose config says nothing, on a machine that is well.
    fn default() -> Policy {
        Policy {
            is_deferred: false,
            caps: Caps::default(),
            batch: None,
            batch_once: None,
            queue: None,
            by_priority: false,
            default_agent: "claude".to_owned(),
            host: "here".to_owned(),
            guards: Vec::new(),
            starts_per_second: None,
            daily_cents: None,
            max_failures: 3,
            breaker_reset: SignedDuration::from_hours(1),
            redispatch_cooldown: SignedDuration::from_mins(5),
            redispatch_attempts: 3,
            lanes: Lanes::default(),
            windows: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Whose limits a bead is under that was queued, or was not.
    pub fn side(&self, is_queued: bool) -> Side {
        if is_queued && self.queue.is_some() { Side::Queue } else { Side::Scheduler }
    }

    /// Whether a bead that was queued, or was not, comes in batches: then a pass starts only so many, and the next batch waits
    /// for the next thing that happens. // SPEC D4
    pub fn has_batch(&self, is_queued: bool) -> bool {
        match self.side(is_queued) {
            Side::Scheduler => self.batch.is_some(),
            Side::Queue => self.queue.as_ref().is_some_and(|queue| queue.batch.is_some()),
        }
    }

    /// Whether whoever goes by this starts anything of a side.
    pub fn starts(&self, side: Side) -> bool {
        side == Side::Scheduler
            || self.queue.as_ref().is_some_and(|queue| queue.is_open || crate::defect!("queue-switch-ignored"))
    }
}
