//! How long runs have lasted, by time that only goes forward: a clock that is set makes nobody older or younger. // SPEC K2
//!
//! What was before this process first saw a run is known by the clock alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_store::Run;
use jiff::{SignedDuration, Timestamp};

/// So many that are over may be remembered beside those that live.
const OVER_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Ages(BTreeMap<String, Age>);

#[derive(Debug)]
struct Age {
    /// How old it was when it was first seen.
    then: SignedDuration,
    /// For how long the machine had been up then.
    seen: Duration,
}

impl Ages {
    /// A run has just been started.
    pub(super) fn begin(&mut self, run: &str, uptime: Duration) {
        self.0.insert(run.to_owned(), Age { then: SignedDuration::ZERO, seen: uptime });
    }

    /// Sees who lives.
    pub(super) fn note(&mut self, runs: &[Run], now: Timestamp, uptime: Duration) {
        for run in runs {
            if let Some(started_at) = run.started_at
                && !self.0.contains_key(&run.id)
            {
                let then = now.duration_since(started_at).max(SignedDuration::ZERO);
                self.0.insert(run.id.clone(), Age { then, seen: uptime });
            }
        }
        // Those that have just been started may not be among them yet.
        if self.0.len() > 2 * runs.len() + OVER_MAX {
            let live: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
            self.0.retain(|run, _| live.contains(run.as_str()));
        }
    }

    /// How long it has lasted; `None`: it has not started, as far as anybody has seen.
    pub(super) fn of(&self, run: &str, uptime: Duration) -> Option<SignedDuration> {
        let age = self.0.get(run)?;
        let since = SignedDuration::try_from(uptime.saturating_sub(age.seen)).unwrap_or(SignedDuration::MAX);
        Some(age.then.saturating_add(since))
    }
}
