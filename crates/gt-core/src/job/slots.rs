//! Slots: which have come, and what becomes of each. // SPEC K2, K3

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{Missed, Schedule};

/// So many missed slots run at the most, where all of them are to.
pub const CATCH_UP_MAX: usize = 100;
/// Whoever comes to a slot so late was held up, and has missed it all the same.
const LATE_MAX: SignedDuration = SignedDuration::from_mins(1);
/// So many missed slots have a record of their own; those before them share one.
pub const RECORDS_MAX: usize = 1000;

/// The slots that have come since a job was looked at last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backlog {
    /// The newest of them, in order.
    pub slots: Vec<Timestamp>,
    /// The first and the last of those before, if there are more than anybody wants to know one by one.
    pub earlier: Option<(Timestamp, Timestamp)>,
}

impl Backlog {
    /// All slots from `first` on that have come by now.
    pub fn of(schedule: &Schedule, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Backlog {
        if first > now {
            return Backlog::default();
        }
        let mut slots = vec![first];
        while slots.len() <= RECORDS_MAX {
            match schedule.next(*slots.last().expect("it has the first"), zone).filter(|next| *next <= now) {
                Some(next) => slots.push(next),
                None => return Backlog { slots, earlier: None },
            }
        }
        let slots = newest(schedule, first, now, zone);
        let before = slots.first().copied().unwrap_or(now);
        let last = preceding(schedule, first, before, zone);
        Backlog { slots, earlier: Some((first, last)) }
    }
}

/// The newest slots by now: looks back twice as far until there are enough.
fn newest(schedule: &Schedule, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Vec<Timestamp> {
    let mut span = SignedDuration::from_mins(16);
    loop {
        let from = now.checked_sub(span).unwrap_or(first).max(first);
        let mut slots = between(schedule, from, now, zone);
        if slots.len() >= RECORDS_MAX || from == first {
            return slots.split_off(slots.len().saturating_sub(RECORDS_MAX));
        }
        span *= 2;
    }
}

/// The last slot before one that is known.
fn preceding(schedule: &Schedule, first: Timestamp, before: Timestamp, zone: &TimeZone) -> Timestamp {
    let mut span = SignedDuration::from_mins(1);
    loop {
        let from = before.checked_sub(span).unwrap_or(first).max(first);
        let slots = between(schedule, from, before, zone);
        if let Some(last) = slots.into_iter().rev().find(|slot| *slot < before) {
            return last;
        }
        if from == first {
            return first;
        }
        span *= 2;
    }
}

fn between(schedule: &Schedule, from: Timestamp, until: Timestamp, zone: &TimeZone) -> Vec<Timestamp> {
    let mut slots = Vec::new();
    let mut after = from;
    while let Some(slot) = schedule.next(after, zone).filter(|slot| *slot <= until) {
        slots.push(slot);
        after = slot;
    }
    slots
}

/// Under what rules, and since when, somebody has watched the clock for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub missed: Missed,
    /// How late a missed slot may still run; `None`: however late.
    pub grace: Option<SignedDuration>,
    pub may_overlap: bool,
    /// What came before nobody was there to see.
    pub since: Timestamp,
    pub now: Timestamp,
    /// The slot that is still being worked on, and how many are.
    pub busy_with: Option<Timestamp>,
    /// Whether a run of that has begun.
    pub has_begun: bool,
    pub n_unfinished: usize,
}

/// What becomes of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Fires,
    /// Nobody was there in time, and it is made up for.
    FiresLate(String),
    /// Nobody was there in time.
    Missed(String),
    /// Somebody was, and left it out.
    Skipped(String),
}

/// What becomes of each slot of a backlog, in order.
pub fn fates(slots: &[Timestamp], watch: &Watch) -> Vec<(Timestamp, Fate)> {
    let n_late = slots.partition_point(|slot| *slot < watch.since || watch.now.duration_since(*slot) > LATE_MAX);
    // One that has come in time, and can run, stands for those that are late where one is enough.
    let is_alone = !watch.may_overlap && watch.busy_with.is_none();
    let is_one_in_time = watch.missed == Missed::Once && is_alone && n_late < slots.len();
    let n_later = |place: usize| match n_late.saturating_sub(place) {
        0 => 0,
        n => n + usize::from(is_one_in_time),
    };
    let (mut busy_with, mut n_unfinished) = (watch.busy_with, watch.n_unfinished);
    let mut fates = Vec::with_capacity(slots.len());
    for (place, slot) in slots.iter().copied().enumerate() {
        let fate = match (late_fate(watch, slot, n_later(place)), in_line(watch, busy_with, n_unfinished)) {
            (Some(Fate::FiresLate(_)), Fate::Skipped(why)) => {
                Fate::Missed(format!("{}, and {why}", why_late(watch, slot)))
            }
            (Some(fate), _) | (None, fate) => fate,
        };
        if matches!(fate, Fate::Fires | Fate::FiresLate(_)) {
            busy_with = busy_with.or(Some(slot));
            n_unfinished += 1;
        }
        fates.push((slot, fate));
    }
    fates
}

fn why_late(watch: &Watch, slot: Timestamp) -> &'static str {
    if slot < watch.since { "no daemon watched the clock then" } else { "the daemon was held up then" }
}

/// What becomes of a slot that came when nobody was there; `n_left` are as late or later, itself included. `None`: somebody
/// was.
fn late_fate(watch: &Watch, slot: Timestamp, n_left: usize) -> Option<Fate> {
    if n_left == 0 {
        return None;
    }
    let why_late = why_late(watch, slot);
    let missed = |why: &str| Some(Fate::Missed(format!("{why_late}{why}")));
    let late = || Some(Fate::FiresLate(format!("{why_late}; it runs late")));
    let is_over = |grace: &SignedDuration| watch.now.duration_since(slot) > *grace && !crate::defect!("grace-ignored");
    match watch.missed {
        Missed::Skip if crate::defect!("skip-runs-late") => late(),
        Missed::Skip => missed(""),
        Missed::Once if n_left > 1 && !crate::defect!("once-runs-the-oldest") => missed("; a later one stands for it"),
        Missed::Once => match watch.grace.filter(is_over) {
            Some(grace) => missed(&format!(", and by now it is too late: its grace is {}", span_words(grace))),
            None => late(),
        },
        Missed::All if n_left > 1 && crate::defect!("all-runs-the-newest") => missed(""),
        Missed::All if n_left > CATCH_UP_MAX => missed(&format!("; of so many only {CATCH_UP_MAX} are made up for")),
        Missed::All => late(),
    }
}

/// One run of a job at a time, unless somebody allows more; who wants all of them has them wait in line.
fn in_line(watch: &Watch, busy_with: Option<Timestamp>, n_unfinished: usize) -> Fate {
    let may_wait = watch.may_overlap || watch.missed == Missed::All;
    match busy_with {
        Some(slot) if !may_wait && watch.has_begun => Fate::Skipped(format!("the run of {slot} was not over")),
        Some(slot) if !may_wait && !crate::defect!("busy-job-fires") => {
            Fate::Skipped(format!("the one of {slot} had not begun yet"))
        }
        Some(_) if n_unfinished >= CATCH_UP_MAX => Fate::Skipped(format!("{n_unfinished} earlier ones were not over")),
        _ => Fate::Fires,
    }
}

fn span_words(span: SignedDuration) -> String {
    format!("{span:#}")
}
