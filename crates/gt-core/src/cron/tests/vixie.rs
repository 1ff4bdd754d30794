//! A judge: Vixie's cron as a slow loop that looks at the clock in each minute and keeps a time of its own beside it.
//!
//! Shares no code with ours, not even the reading: it knows values, lists, ranges and steps, and asks a zone only what its
//! clock shows. `Rule::Ours` is SPEC K2; `Rule::Vixie` is what cron(8) says, and how the two differ is a test.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;

/// Which jobs follow the clock.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// Those whose hour begins with `*` or has a step.
    Ours,
    /// Those whose minute or hour begins with `*`.
    Vixie,
}

/// Five fields, read naively.
struct Pattern<'a> {
    fields: Vec<&'a str>,
    sets: [[bool; 60]; 5],
}

impl<'a> Pattern<'a> {
    fn read(text: &'a str) -> Pattern<'a> {
        let fields: Vec<&str> = text.split(' ').collect();
        let ends = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
        let mut sets = std::array::from_fn(|n| naive_set(fields[n], ends[n]));
        sets[4][0] |= sets[4][7];
        Pattern { fields, sets }
    }

    fn follows_clock(&self, rule: Rule) -> bool {
        match rule {
            Rule::Ours => self.fields[1].starts_with('*') || self.fields[1].contains('/'),
            Rule::Vixie => self.fields[0].starts_with('*') || self.fields[1].starts_with('*'),
        }
    }

    fn names(&self, clock: DateTime) -> bool {
        let [minutes, hours, days, months, weekdays] = &self.sets;
        let day = days[clock.day() as usize];
        let weekday = weekdays[clock.weekday().to_sunday_zero_offset() as usize];
        let needs_both = self.fields[2].starts_with('*') || self.fields[4].starts_with('*');
        minutes[clock.minute() as usize]
            && hours[clock.hour() as usize]
            && months[clock.month() as usize]
            && if needs_both { day && weekday } else { day || weekday }
    }
}

fn naive_set(field: &str, (first, last): (usize, usize)) -> [bool; 60] {
    let mut set = [false; 60];
    for part in field.split(',') {
        let (base, step) = part.split_once('/').unwrap_or((part, "1"));
        let (low, high) = match base.split_once('-') {
            Some((low, high)) => (low.parse().unwrap(), high.parse().unwrap()),
            None if base == "*" => (first, last),
            None if part.contains('/') => (base.parse().unwrap(), if last == 7 { 6 } else { last }),
            None => (base.parse().unwrap(), base.parse().unwrap()),
        };
        let step: usize = step.parse().unwrap();
        (low..=high).filter(|number| (number - low) % step == 0).for_each(|number| set[number] = true);
    }
    set
}

/// Whether the naive reader takes the clock's time for one that the schedule names.
pub(super) fn names(text: &str, clock: DateTime) -> bool {
    Pattern::read(text).names(clock)
}

/// Each minute of a time, with what the clock shows, and that as a number of minutes.
struct Minutes(Vec<(Timestamp, DateTime, i64)>);

impl Minutes {
    fn of(zone: &TimeZone, from: Timestamp, end: Timestamp) -> Minutes {
        let starts = std::iter::successors(Some(from), |at| Some(*at + SignedDuration::from_mins(1)));
        let seen = starts.take_while(|at| *at < end).map(|at| (at, zone.to_datetime(at)));
        Minutes(seen.map(|(at, clock)| (at, clock, clock.duration_since(DateTime::default()).as_mins())).collect())
    }

    /// Two days before and after a day, so that a change of the clock on it lies well within.
    fn around(zone: &TimeZone, day: &str) -> Minutes {
        let noon = instant(&format!("{day}T12:00Z"));
        Minutes::of(zone, noon - SignedDuration::from_hours(48), noon + SignedDuration::from_hours(48))
    }

    /// Vixie's loop. Its own time follows the clock: if that went ahead by at most three hours, a fixed job runs once for
    /// what was left out; if it went back by as much, a fixed job waits until its own time is reached again.
    fn fires(&self, pattern: &Pattern<'_>, rule: Rule) -> Vec<Timestamp> {
        let mut fires = Vec::new();
        let mut own = self.0[0].2 - 1;
        for (at, clock, number) in &self.0 {
            let ahead = number - own;
            let is_small = (-179..=181).contains(&ahead);
            let fires_now = if pattern.follows_clock(rule) || !is_small || ahead == 1 {
                pattern.names(*clock)
            } else {
                (0..ahead).any(|n| pattern.names(*clock - SignedDuration::from_mins(n)))
            };
            fires.extend(fires_now.then_some(*at));
            own = if is_small { own.max(*number) } else { *number };
        }
        fires
    }

    fn ours(&self, text: &str, zone: &TimeZone) -> Vec<Timestamp> {
        let (first, last) = (self.0[0].0, self.0[self.0.len() - 1].0);
        let just_before = first - SignedDuration::from_nanos(1);
        between(&expr(text), just_before, last + SignedDuration::from_mins(1), zone)
    }
}

/// Both changes of the clock in 2026 and 2027; Kolkata has none.
const CHANGES: [(&str, [&str; 4]); 5] = [
    ("America/New_York", ["2026-03-08", "2026-11-01", "2027-03-14", "2027-11-07"]),
    ("Europe/Berlin", ["2026-03-29", "2026-10-25", "2027-03-28", "2027-10-31"]),
    ("Australia/Lord_Howe", ["2026-04-05", "2026-10-04", "2027-04-04", "2027-10-03"]),
    ("Africa/Cairo", ["2026-04-24", "2026-10-29", "2027-04-30", "2027-10-28"]),
    ("Asia/Kolkata", ["2026-03-29", "2026-10-25", "2027-03-28", "2027-10-31"]),
];

const PATTERNS: [&str; 32] = [
    "* * * * *",
    "*/30 * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "30 * * * *",
    "0 */2 * * *",
    "30 */2 * * *",
    "15 */3 * * *",
    "0 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "15 2 * * *",
    "30 2 * * *",
    "59 2 * * *",
    "0 3 * * *",
    "45 23 * * *",
    "0 1-3 * * *",
    "15,45 1-3 * * *",
    "0 0-23/2 * * *",
    "30 1-23/2 * * *",
    "15 2/12 * * *",
    "0 0-23 * * *",
    "*/20 0 * * *",
    "*/20 1 * * *",
    "*/20 2 * * *",
    "* 2 * * *",
    "*/15 23 * * *",
    "30 2 * * 0",
    "30 2 8,14,28 3,11 6",
    "0 2 */2 * *",
];

#[test]
fn the_changes_are_where_they_are_said_to_be() {
    for (name, days) in CHANGES {
        for day in days {
            let minutes = Minutes::around(&zone(name), day).0;
            let n_jumps =
                minutes.windows(2).filter(|pair| pair[1].1 - SignedDuration::from_mins(1) != pair[0].1).count();
            assert_eq!(n_jumps, usize::from(name != "Asia/Kolkata"), "{name} {day}");
        }
    }
}

#[test]
fn around_every_change_of_the_clock_the_simulation_agrees() {
    for (name, days) in CHANGES {
        let zone = zone(name);
        for day in days {
            let minutes = Minutes::around(&zone, day);
            for text in PATTERNS {
                let simulated = minutes.fires(&Pattern::read(text), Rule::Ours);
                assert_eq!(minutes.ours(text, &zone), simulated, "`{text}` in {name} on {day}");
            }
        }
    }
}

/// Vixie takes a job with `*` in the minute for one that follows the clock, even if its hour is fixed, and one whose hour has
/// a step without a `*` for a fixed one. That is all: a job that only Vixie takes for a fixed one runs a second time with us in
/// an hour that comes twice, and not at the end of a gap; the other kind the other way round.
#[test]
fn the_rule_of_vixie_differs_for_a_star_in_the_minute_of_a_fixed_hour_and_a_step_without_a_star_alone() {
    for (name, days) in CHANGES.into_iter().filter(|(name, _)| *name != "Asia/Kolkata") {
        let zone = zone(name);
        for text in PATTERNS {
            let pattern = Pattern::read(text);
            let is_fixed = [Rule::Ours, Rule::Vixie].map(|rule| !pattern.follows_clock(rule));
            for day in days {
                let minutes = Minutes::around(&zone, day);
                let ours: BTreeSet<_> = minutes.ours(text, &zone).into_iter().collect();
                let theirs: BTreeSet<_> = minutes.fires(&pattern, Rule::Vixie).into_iter().collect();
                let (fixed, following) = match is_fixed {
                    [true, false] => (&ours, &theirs),
                    [false, true] => (&theirs, &ours),
                    _ => {
                        assert_eq!(ours, theirs, "`{text}` in {name} on {day}");
                        continue;
                    }
                };
                fixed.difference(following).for_each(|at| assert!(is_gap_end(*at, &zone), "{text} {at}"));
                following.difference(fixed).for_each(|at| assert!(is_repeat(*at, &zone), "{text} {at}"));
            }
        }
    }
}

/// The kinds of which that speaks are there, and differ somewhere.
#[test]
fn both_kinds_in_which_vixie_differs_are_among_those_that_were_tried() {
    let differs = |text: &&str| {
        CHANGES.iter().any(|(name, days)| {
            let zone = zone(name);
            let differs = |day: &&str| {
                let minutes = Minutes::around(&zone, day);
                minutes.ours(text, &zone) != minutes.fires(&Pattern::read(text), Rule::Vixie)
            };
            days.iter().any(differs)
        })
    };
    let differing: BTreeSet<&str> = PATTERNS.into_iter().filter(differs).collect();
    let steps = ["0 0-23/2 * * *", "30 1-23/2 * * *", "15 2/12 * * *"];
    let minutes = ["*/20 0 * * *", "*/20 1 * * *", "*/20 2 * * *", "* 2 * * *", "*/15 23 * * *"];
    assert_eq!(differing, steps.into_iter().chain(minutes).collect());
}

pub(super) fn is_gap_end(at: Timestamp, zone: &TimeZone) -> bool {
    zone.to_offset(at) > zone.to_offset(at - SignedDuration::from_mins(1))
}

/// Whether the clock has shown this before.
pub(super) fn is_repeat(at: Timestamp, zone: &TimeZone) -> bool {
    let clock = zone.to_datetime(at);
    (1..=180).any(|n| zone.to_datetime(at - SignedDuration::from_mins(n)) == clock)
}

/// Any value, list, range or step of a field.
fn any_field(first: u8, last: u8) -> impl Strategy<Value = String> {
    let part = (0..6_u8, first..=last, first..=last, 1..=(last - first) / 2 + 1).prop_map(move |(kind, a, b, step)| {
        let (low, high) = (a.min(b), a.max(b));
        match kind {
            0 => "*".to_owned(),
            1 => format!("*/{step}"),
            2 => format!("{low}-{high}"),
            3 => format!("{low}-{high}/{step}"),
            4 => format!("{a}/{step}"),
            _ => a.to_string(),
        }
    });
    proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join(","))
}

/// Any schedule that the naive reader understands. Hours at which clocks change come often, days are mostly open.
pub(super) fn any_pattern() -> impl Strategy<Value = String> {
    let open = |first, last| prop_oneof![3 => Just("*".to_owned()), 1 => any_field(first, last)];
    let hour = prop_oneof![any_field(0, 3), any_field(0, 23), Just("*/2".to_owned()), Just("23".to_owned())];
    (any_field(0, 59), hour, open(1, 31), open(1, 12), open(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn for_any_schedule_the_simulation_agrees(text in any_pattern(), place in 0..CHANGES.len(), change in 0..4_usize) {
        let (name, days) = CHANGES[place];
        let zone = zone(name);
        let minutes = Minutes::around(&zone, days[change]);
        prop_assert_eq!(minutes.ours(&text, &zone), minutes.fires(&Pattern::read(&text), Rule::Ours));
    }
}
