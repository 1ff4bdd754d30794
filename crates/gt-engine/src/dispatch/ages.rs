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
    /// Whether its start is recorded, so that everybody counts from there.
    is_recorded: bool,
}

impl Age {
    fn at(&self, uptime: Duration) -> SignedDuration {
        let since = SignedDuration::try_from(uptime.saturating_sub(self.seen)).unwrap_or(SignedDuration::MAX);
        self.then.saturating_add(since)
    }
}

impl Ages {
    /// A run has just been started.
    pub(super) fn begin(&mut self, run: &str, uptime: Duration) {
        self.0.insert(run.to_owned(), Age { then: SignedDuration::ZERO, seen: uptime, is_recorded: false });
    }

    /// Sees who lives.
    pub(super) fn note(&mut self, runs: &[Run], now: Timestamp, uptime: Duration) {
        for run in runs {
            let known = self.0.get(&run.id);
            if let Some(started_at) = run.started_at
                && known.is_none_or(|age| !age.is_recorded)
            {
                // The clock may have been set since the start, but it cannot be older than that.
                let by_clock = now.duration_since(started_at).max(SignedDuration::ZERO);
                let then = known.map_or(by_clock, |age| by_clock.min(age.at(uptime)));
                self.0.insert(run.id.clone(), Age { then, seen: uptime, is_recorded: true });
            }
        }
        // Those that have just been started may not be among them yet.
        if self.0.len() > 2 * runs.len() + OVER_MAX {
            let live: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
            self.0.retain(|run, _| live.contains(run.as_str()));
        }
    }

    /// How long it has lasted since its start was recorded; `None`: that is not, as far as anybody has seen.
    pub(super) fn of(&self, run: &str, uptime: Duration) -> Option<SignedDuration> {
        self.0.get(run).filter(|age| age.is_recorded).map(|age| age.at(uptime))
    }
}
