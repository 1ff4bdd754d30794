//! Which slots have come: the same as a loop over all of them finds, but for many of them much sooner.

use proptest::prelude::*;

use super::*;

/// So many have a record of their own.
const RECORDS_MAX: usize = 1_000;

/// Each slot from the first on, and at last the newest of them alone.
fn naive(schedule: &Schedule, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Backlog {
    let later = slots_after(schedule, first, zone).take_while(|slot| *slot <= now);
    let mut slots: Vec<Timestamp> = std::iter::once(first).filter(|first| *first <= now).chain(later).collect();
    let newest = slots.split_off(slots.len().saturating_sub(RECORDS_MAX));
    Backlog { slots: newest, earlier: slots.first().copied().zip(slots.last().copied()) }
}

fn every_second() -> Schedule {
    every(SignedDuration::from_secs(1), ms(0)).expect("a sensible distance")
}

#[test]
fn before_the_first_slot_there_is_none() {
    assert_eq!(Backlog::of(&every_second(), ms(2_000), ms(1_999), &TimeZone::UTC), Backlog::default());
    let one = Backlog { slots: vec![ms(2_000)], earlier: None };
    assert_eq!(Backlog::of(&every_second(), ms(2_000), ms(2_000), &TimeZone::UTC), one);
    assert_eq!(Backlog::of(&every_second(), ms(2_000), ms(2_999), &TimeZone::UTC), one);
}

#[test]
fn what_has_no_further_slots_has_the_first_alone() {
    let broken = Schedule::parse("cron", "61 * * * *", ms(0));
    for schedule in [Schedule::At(ms(2_000)), broken, cron("0 0 30 2 *")] {
        let backlog = Backlog::of(&schedule, ms(2_000), Timestamp::MAX, &TimeZone::UTC);
        assert_eq!(backlog, Backlog { slots: vec![ms(2_000)], earlier: None }, "{schedule:?}");
    }
}

#[test]
fn a_thousand_have_records_and_those_before_share_one() {
    for (n, wanted) in [
        (999, None),
        (1_000, None),
        (1_001, Some((1, 1))),
        (1_002, Some((1, 2))),
        (1_003, Some((1, 3))),
        (5_000, Some((1, 4_000))),
    ] {
        let (first, now) = (ms(1_000), ms(n * 1_000 + 999));
        let backlog = Backlog::of(&every_second(), first, now, &TimeZone::UTC);
        assert_eq!(backlog, naive(&every_second(), first, now, &TimeZone::UTC), "{n}");
        let wanted = wanted.map(|(first, last)| (ms(first * 1_000), ms(last * 1_000)));
        assert_eq!((backlog.slots.len() as i64, backlog.earlier), (n.min(1_000), wanted));
    }
}

/// How many have a record, from which to which, and which share one.
fn told(schedule: &Schedule, first: &str, now: &str) -> String {
    let Backlog { slots, earlier } = Backlog::of(schedule, at(first), at(now), &TimeZone::UTC);
    assert!(slots.is_sorted_by(|a, b| a < b), "each once and in order");
    let (start, end) = (slots.first().expect("some"), slots.last().expect("some"));
    let (first, last) = earlier.expect("there are more");
    format!("{:<17} {}: {start} to {end}\n{:<17}   after {first} to {last}\n", schedule.words(), slots.len(), "")
}

/// A loop over all of them would take minutes: there are tens of millions, and in a century billions.
#[test]
fn a_year_of_minutes_or_seconds_is_seen_at_once() {
    let table: String = [
        (every_second(), "1970-01-01T00:00:01Z", "2070-01-01T00:00:00Z"),
        (every_second(), "2026-01-01T00:00:00Z", "2026-12-31T23:59:59.999Z"),
        (cron("* * * * *"), "2026-01-01T00:00:00Z", "2026-12-31T23:59:59.999Z"),
        (cron("*/5 9-17 * * 1-5"), "2026-01-01T09:00:00Z", "2026-12-31T23:59:59.999Z"),
        // Much, and then for a long time nothing.
        (cron("* * * 1 *"), "2026-01-01T00:00:00Z", "2026-03-10T00:00:00Z"),
        (cron("* 0-17 1 1 *"), "2026-01-01T00:00:00Z", "2026-12-31T23:59:59.999Z"),
        (cron("0 0 1 1 *"), "0001-01-01T00:00:00Z", "2026-06-01T00:00:00Z"),
    ]
    .iter()
    .map(|(schedule, first, now)| told(schedule, first, now))
    .collect();
    insta::assert_snapshot!(table, @"
    1s                1000: 2069-12-31T23:43:21Z to 2070-01-01T00:00:00Z
                        after 1970-01-01T00:00:01Z to 2069-12-31T23:43:20Z
    1s                1000: 2026-12-31T23:43:20Z to 2026-12-31T23:59:59Z
                        after 2026-01-01T00:00:00Z to 2026-12-31T23:43:19Z
    * * * * *         1000: 2026-12-31T07:20:00Z to 2026-12-31T23:59:00Z
                        after 2026-01-01T00:00:00Z to 2026-12-31T07:19:00Z
    */5 9-17 * * 1-5  1000: 2026-12-18T15:40:00Z to 2026-12-31T17:55:00Z
                        after 2026-01-01T09:00:00Z to 2026-12-18T15:35:00Z
    * * * 1 *         1000: 2026-01-31T07:20:00Z to 2026-01-31T23:59:00Z
                        after 2026-01-01T00:00:00Z to 2026-01-31T07:19:00Z
    * 0-17 1 1 *      1000: 2026-01-01T01:20:00Z to 2026-01-01T17:59:00Z
                        after 2026-01-01T00:00:00Z to 2026-01-01T01:19:00Z
    0 0 1 1 *         1000: 1027-01-01T00:00:00Z to 2026-01-01T00:00:00Z
                        after 0001-01-01T00:00:00Z to 1026-01-01T00:00:00Z
    ");
}

#[test]
fn the_ends_of_time_are_borne() {
    for (first, now) in [(Timestamp::MIN, Timestamp::MAX), (Timestamp::MAX, Timestamp::MAX)] {
        let backlog = Backlog::of(&every_second(), first, now, &TimeZone::UTC);
        assert!((1..=RECORDS_MAX).contains(&backlog.slots.len()));
    }
}

fn some_schedule() -> impl Strategy<Value = Schedule> {
    let cron_texts = vec![
        "* * * * *",
        "*/7 * * * *",
        "0 * * * *",
        "30 2 * * *",
        "*/20 1-3 * * *",
        "0 0 L * *",
        "* 0 1 * *",
        "*/10 */2 29 2 *",
        "0 9 * * mon-fri",
    ];
    let spans = prop_oneof![1..120_i64, 1..100_000_i64];
    prop_oneof![
        prop::sample::select(cron_texts).prop_map(cron),
        spans.prop_map(|seconds| every(SignedDuration::from_secs(seconds), ms(123)).expect("a sensible distance")),
        Just(Schedule::At(at("2027-01-01T00:00:00Z"))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_loop_agrees(
        schedule in some_schedule(),
        from in 1_767_225_600..1_830_000_000_i64,
        (n_slots, lateness) in (prop_oneof![0..5_usize, 990..1_010_usize, 0..3_000_usize], 0..100_000_i64),
        zone_name in prop::sample::select(vec!["UTC", "America/New_York", "Australia/Lord_Howe"]),
    ) {
        let (from, zone) = (Timestamp::from_second(from).expect("within bounds"), zone(zone_name));
        let Some(first) = schedule.next(from, &zone) else { return Ok(()) };
        let last = slots_after(&schedule, first, &zone).take(n_slots).last().unwrap_or(first);
        // Some time after the last slot, or within the time before the next one.
        let later = last + SignedDuration::from_secs(lateness);
        let now = schedule.next(last, &zone).map_or(later, |next| later.min(next - SignedDuration::from_micros(1)));
        prop_assert_eq!(Backlog::of(&schedule, first, now, &zone), naive(&schedule, first, now, &zone));
    }
}
