//! What is known of conversations from outside: what senders were told, what agents have printed, whom people have stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gt_store::Sent;

/// The book, as all who write into it hold it.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Book>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an agent has printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Whether that is all of it, as far as it can be told from outside.
    pub(super) is_whole: bool,
}

#[derive(Default)]
pub(super) struct Book {
    /// Of each turn the messages that were acknowledged, in order.
    pub(super) texts: BTreeMap<i64, Vec<String>>,
    /// What messages of one turn have in common.
    pub(super) origins: BTreeMap<i64, String>,
    /// What became of messages that have a name.
    pub(super) sources: BTreeMap<String, Sent>,
    /// What was said to those who stopped something, by the name of the message.
    pub(super) obeyed: BTreeMap<String, String>,
    /// Turns that gave way, and turns that somebody has stopped while they waited.
    pub(super) dropped: BTreeSet<i64>,
    pub(super) cancelled: BTreeSet<i64>,
    /// Runs that somebody has stopped; and those of them that gave way to a newer message.
    pub(super) stopped: BTreeSet<String>,
    pub(super) interrupted: BTreeSet<String>,
    pub(super) answers: BTreeMap<String, Answer>,
    /// Turns whose answers are to be delivered.
    pub(super) delivered: BTreeSet<i64>,
    /// Turns of the last messages, which nothing may keep from being answered.
    pub(super) must_be_done: BTreeSet<i64>,
    /// The limits of `main` and `subagent`, each with the step since when they hold.
    pub(super) lanes: Vec<(usize, [usize; 2])>,
}

impl Book {
    /// The most that a process can know as the limits of lanes that has read the config in or after this step.
    pub(super) fn lanes_since(&self, step: usize) -> [usize; 2] {
        let first = self.lanes.iter().rposition(|(since, _)| *since <= step).unwrap_or(0);
        let known = self.lanes[first..].iter().map(|(_, lanes)| *lanes);
        known.fold([0, 0], |most, lanes| [most[0].max(lanes[0]), most[1].max(lanes[1])])
    }
}
