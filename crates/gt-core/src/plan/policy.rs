//! The settings by which dispatch decides. Reading them off a config is the engine's.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

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
    /// Millionths of a US dollar that runs may report in a day.
    pub daily_micros: Option<i64>,
    /// The time zone by which a day begins.
    pub zone: TimeZone,
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
            daily_micros: None,
            zone: TimeZone::UTC,
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

    /// When the day of a time began, and when the next one begins.
    pub fn day(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let zone = if crate::defect!("budget-day-is-utc") { TimeZone::UTC } else { self.zone.clone() };
        let today = now.to_zoned(zone).start_of_day();
        let begin = |day: Result<Zoned, jiff::Error>| day.map_or(now, |day| day.timestamp());
        let tomorrow = today.clone().and_then(|today| today.tomorrow()).and_then(|day| day.start_of_day());
        (begin(today), begin(tomorrow))
    }

    /// Whether whoever goes by this starts anything of a side.
    pub fn starts(&self, side: Side) -> bool {
        side == Side::Scheduler
            || self.queue.as_ref().is_some_and(|queue| queue.is_open || crate::defect!("queue-switch-ignored"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_by_the_clock_on_the_wall_whatever_its_length() {
        let zone = |name: &str| TimeZone::get(name).expect("it is known");
        let day = |zone: TimeZone, now: &str| {
            let (begin, end) = Policy { zone, ..Policy::default() }.day(now.parse().expect("it is a time"));
            (begin.to_string(), end.to_string())
        };
        let expect = |begin: &str, end: &str| (begin.to_owned(), end.to_owned());
        let noon = "2026-06-01T12:00:00Z";
        assert_eq!(day(TimeZone::UTC, noon), expect("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"));
        assert_eq!(day(zone("Asia/Tokyo"), noon), expect("2026-05-31T15:00:00Z", "2026-06-01T15:00:00Z"));
        // The clock goes forward, and that day has 23 hours.
        let spring = "2026-03-29T12:00:00Z";
        assert_eq!(day(zone("Europe/Berlin"), spring), expect("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"));
        // There is no midnight: the day begins at one.
        let cairo = day(zone("Africa/Cairo"), "2026-04-24T12:00:00Z");
        assert_eq!(cairo, expect("2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"));
    }
}
