//! Whose limits a scheduled bead is under: the scheduler's, or the queue's. // SPEC Q1
//!
//! With a cap of the scheduler everything is under the scheduler. Without one, what was queued is under the queue: its own
//! cap, batch and switch. Counting is the planner's.

use crate::explain::Reason;

/// Whose limits hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Scheduler,
    Queue,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Scheduler, Side::Queue];
}

/// A value for each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerSide<T> {
    pub scheduler: T,
    pub queue: T,
}

impl<T> PerSide<T> {
    pub fn of(&self, side: Side) -> &T {
        match side {
            Side::Scheduler => &self.scheduler,
            Side::Queue => &self.queue,
        }
    }

    pub fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Scheduler => &mut self.scheduler,
            Side::Queue => &mut self.queue,
        }
    }

    pub fn both(value: T) -> PerSide<T>
    where
        T: Clone,
    {
        PerSide { scheduler: value.clone(), queue: value }
    }
}

/// What rules queued work in a town whose scheduler has no cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRules {
    /// So many live polecats, whoever started them, leave no room for queued work; `None`: no limit.
    pub cap: Option<usize>,
    /// Queued starts in one pass; `None`: no limit.
    pub batch: Option<usize>,
    /// Whether whoever plans starts queued work at all.
    pub is_open: bool,
}

/// Why queued work waits though nothing is in its way.
pub(super) fn closed_reason() -> Reason {
    let message = "queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or \
                   `gt config set queue.enabled true`";
    Reason { code: "queue-off", message: message.to_owned() }
}
