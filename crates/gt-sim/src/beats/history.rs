//! What something was, and since when: a process goes by what held when it looked, or later.

use std::collections::VecDeque;

/// Values with the step in which each came, the oldest first.
#[derive(Debug, Clone)]
pub(super) struct History<T>(Vec<(usize, T)>);

impl<T> History<T> {
    pub(super) fn new(first: T) -> History<T> {
        History(vec![(0, first)])
    }

    pub(super) fn push(&mut self, step: usize, value: T) {
        self.0.push((step, value));
    }

    pub(super) fn last(&self) -> &T {
        &self.0.last().expect("there is a first").1
    }

    /// All that a process can know that has looked in this step or later.
    pub(super) fn since(&self, step: usize) -> impl Iterator<Item = &T> {
        // What came in the same step may have come after it looked.
        let first = self.0.iter().rposition(|(since, _)| *since < step).unwrap_or(0);
        self.0[first..].iter().map(|(_, value)| value)
    }
}

/// What the clock has shown lately, each with its step.
#[derive(Debug, Default)]
pub(super) struct Clock(VecDeque<(usize, jiff::Timestamp)>);

/// So many looks at the clock are remembered.
const LOOKS_MAX: usize = 20_000;

impl Clock {
    pub(super) fn note(&mut self, step: usize, now: jiff::Timestamp) {
        if self.0.back().is_none_or(|last| *last != (step, now)) {
            self.0.push_back((step, now));
        }
        if self.0.len() > LOOKS_MAX {
            self.0.pop_front();
        }
    }

    /// What a process can have seen of it that woke up in this step.
    pub(super) fn since(&self, step: usize) -> impl Iterator<Item = jiff::Timestamp> {
        let first = self.0.partition_point(|(at, _)| *at < step).saturating_sub(1);
        self.0.range(first..).map(|(_, now)| *now)
    }
}
