//! Starts whose answer was lost: why, and when they are tried again.
//!
//! One answer may be lost because somebody died. Where they stay away, the place is in trouble and not the bead: then
//! nothing else is started for a while, and the same start is not repeated all the time.

use std::collections::BTreeMap;

use gt_core::plan::Trouble;
use jiff::{SignedDuration, Timestamp};

use super::prepare::TOWN_TROUBLE;

/// How long a start is left alone whose answer was lost more than once.
const REST: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Unsure {
    by_run: BTreeMap<String, Lost>,
}

#[derive(Debug)]
struct Lost {
    why: String,
    n: u32,
    at: Timestamp,
}

impl Unsure {
    /// Takes in that an answer was lost; returns the town's trouble if it was not the first of this run.
    pub(super) fn note(&mut self, run: &str, why: String, now: Timestamp) -> Option<Trouble> {
        let n = self.by_run.get(run).map_or(1, |lost| lost.n + 1);
        let trouble = (n > 1).then(|| Trouble { until: now + TOWN_TROUBLE, reason: why.clone() });
        self.by_run.insert(run.to_owned(), Lost { why, n, at: now });
        trouble
    }

    /// Whether it is too early to start it again. A clock that was set back makes nobody wait.
    pub(super) fn is_resting(&self, run: &str, now: Timestamp) -> bool {
        self.by_run.get(run).is_some_and(|lost| lost.n > 1 && (lost.at..lost.at + REST).contains(&now))
    }

    /// It is known now what became of it; returns why it was not.
    pub(super) fn settle(&mut self, run: &str) -> Option<String> {
        self.by_run.remove(run).map(|lost| lost.why)
    }
}
