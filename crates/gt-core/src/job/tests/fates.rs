//! What becomes of each slot: who missed it, under which policy, and what is still running then.

use proptest::prelude::*;

use super::*;

const NOON: &str = "2026-01-01T12:00:00Z";

/// Somebody watches since 11:59, with a grace of an hour, and nothing is running.
fn watch(missed: Missed) -> Watch {
    Watch {
        missed,
        grace: Some(SignedDuration::from_hours(1)),
        may_overlap: false,
        since: at("2026-01-01T11:59:00Z"),
        now: at(NOON),
        busy_with: None,
        has_begun: true,
        n_unfinished: 0,
    }
}

fn told(name: &str, clock: &[&str], watch: &Watch) -> String {
    let slots: Vec<Timestamp> = clock.iter().map(|time| at(&format!("2026-01-01T{time}Z"))).collect();
    let row = |(slot, fate): (Timestamp, Fate)| match fate {
        Fate::Fires => format!("  {} fires\n", slot.strftime("%T")),
        Fate::FiresLate(why) => format!("  {} fires late: {why}\n", slot.strftime("%T")),
        Fate::Missed(why) => format!("  {} missed: {why}\n", slot.strftime("%T")),
        Fate::Skipped(why) => format!("  {} skipped: {why}\n", slot.strftime("%T")),
    };
    let rows: String = fates(&slots, watch).into_iter().map(row).collect();
    format!("{name}\n{rows}")
}

/// What becomes of the same slots under each policy.
fn each_policy(clock: &[&str], change: impl Fn(&mut Watch)) -> String {
    let row = |missed: Missed| {
        let mut watch = watch(missed);
        change(&mut watch);
        told(missed.as_str(), clock, &watch)
    };
    Missed::ALL.map(row).concat()
}

#[test]
fn what_comes_while_somebody_watches_fires() {
    insta::assert_snapshot!(each_policy(&["11:59:00"], |_| {}), @"
    skip
      11:59:00 fires
    once
      11:59:00 fires
    all
      11:59:00 fires
    ");
    insta::assert_snapshot!(each_policy(&[], |_| {}), @"
    skip
    once
    all
    ");
}

#[test]
fn one_slot_that_came_while_nobody_watched() {
    insta::assert_snapshot!(each_policy(&["11:58:59.999999"], |_| {}), @"
    skip
      11:58:59 missed: no daemon watched the clock then
    once
      11:58:59 fires late: no daemon watched the clock then; it runs late
    all
      11:58:59 fires late: no daemon watched the clock then; it runs late
    ");
}

#[test]
fn many_slots_that_came_while_nobody_watched() {
    insta::assert_snapshot!(each_policy(&["11:10:00", "11:20:00", "11:30:00"], |_| {}), @"
    skip
      11:10:00 missed: no daemon watched the clock then
      11:20:00 missed: no daemon watched the clock then
      11:30:00 missed: no daemon watched the clock then
    once
      11:10:00 missed: no daemon watched the clock then; a later one stands for it
      11:20:00 missed: no daemon watched the clock then; a later one stands for it
      11:30:00 fires late: no daemon watched the clock then; it runs late
    all
      11:10:00 fires late: no daemon watched the clock then; it runs late
      11:20:00 fires late: no daemon watched the clock then; it runs late
      11:30:00 fires late: no daemon watched the clock then; it runs late
    ");
}

#[test]
fn what_is_too_late_by_its_grace_does_not_run_once() {
    let clock = ["10:00:00", "10:30:00"];
    insta::assert_snapshot!(each_policy(&clock, |_| {}), @"
    skip
      10:00:00 missed: no daemon watched the clock then
      10:30:00 missed: no daemon watched the clock then
    once
      10:00:00 missed: no daemon watched the clock then; a later one stands for it
      10:30:00 missed: no daemon watched the clock then, and by now it is too late: its grace is 1h
    all
      10:00:00 fires late: no daemon watched the clock then; it runs late
      10:30:00 fires late: no daemon watched the clock then; it runs late
    ");
    insta::assert_snapshot!(each_policy(&clock, |watch| watch.grace = None), @"
    skip
      10:00:00 missed: no daemon watched the clock then
      10:30:00 missed: no daemon watched the clock then
    once
      10:00:00 missed: no daemon watched the clock then; a later one stands for it
      10:30:00 fires late: no daemon watched the clock then; it runs late
    all
      10:00:00 fires late: no daemon watched the clock then; it runs late
      10:30:00 fires late: no daemon watched the clock then; it runs late
    ");
}

#[test]
fn the_grace_ends_when_it_is_over() {
    let hour = |watch: &mut Watch| watch.grace = Some(SignedDuration::from_hours(1));
    assert!(each_policy(&["11:00:00"], hour).contains("once\n  11:00:00 fires late"));
    assert!(each_policy(&["10:59:59.999999"], hour).contains("its grace is 1h\n"));
    let none = |watch: &mut Watch| watch.grace = Some(SignedDuration::ZERO);
    assert!(each_policy(&["11:58:00"], none).contains("its grace is 0s\n"));
}

#[test]
fn what_was_missed_and_what_is_due_come_together() {
    insta::assert_snapshot!(each_policy(&["11:20:00", "11:40:00", "12:00:00"], |_| {}), @"
    skip
      11:20:00 missed: no daemon watched the clock then
      11:40:00 missed: no daemon watched the clock then
      12:00:00 fires
    once
      11:20:00 missed: no daemon watched the clock then; a later one stands for it
      11:40:00 missed: no daemon watched the clock then; a later one stands for it
      12:00:00 fires
    all
      11:20:00 fires late: no daemon watched the clock then; it runs late
      11:40:00 fires late: no daemon watched the clock then; it runs late
      12:00:00 fires
    ");
}

#[test]
fn a_job_does_not_overlap_itself_unless_it_may() {
    let clock = ["11:30:00", "11:59:30", "12:00:00"];
    let busy = |watch: &mut Watch| (watch.busy_with, watch.n_unfinished) = (Some(at("2026-01-01T11:00:00Z")), 1);
    insta::assert_snapshot!(each_policy(&clock, busy), @"
    skip
      11:30:00 missed: no daemon watched the clock then
      11:59:30 skipped: the run of 2026-01-01T11:00:00Z was not over
      12:00:00 skipped: the run of 2026-01-01T11:00:00Z was not over
    once
      11:30:00 missed: no daemon watched the clock then, and the run of 2026-01-01T11:00:00Z was not over
      11:59:30 skipped: the run of 2026-01-01T11:00:00Z was not over
      12:00:00 skipped: the run of 2026-01-01T11:00:00Z was not over
    all
      11:30:00 fires late: no daemon watched the clock then; it runs late
      11:59:30 fires
      12:00:00 fires
    ");
    let may_overlap = |watch: &mut Watch| {
        busy(watch);
        watch.may_overlap = true;
    };
    insta::assert_snapshot!(each_policy(&clock, may_overlap), @"
    skip
      11:30:00 missed: no daemon watched the clock then
      11:59:30 fires
      12:00:00 fires
    once
      11:30:00 fires late: no daemon watched the clock then; it runs late
      11:59:30 fires
      12:00:00 fires
    all
      11:30:00 fires late: no daemon watched the clock then; it runs late
      11:59:30 fires
      12:00:00 fires
    ");
}

/// A machine that slept, or a daemon that was held up: for the slot it is the same as if nobody had been there.
#[test]
fn whoever_comes_a_minute_late_has_missed_it_although_it_watched() {
    let all_day = |watch: &mut Watch| watch.since = at("2025-01-01T00:00:00Z");
    insta::assert_snapshot!(each_policy(&["11:58:59", "11:59:00"], all_day), @"
    skip
      11:58:59 missed: the daemon was held up then
      11:59:00 fires
    once
      11:58:59 missed: the daemon was held up then; a later one stands for it
      11:59:00 fires
    all
      11:58:59 fires late: the daemon was held up then; it runs late
      11:59:00 fires
    ");
}

#[test]
fn of_all_that_was_missed_a_hundred_run() {
    let slots: Vec<Timestamp> = (0..150).map(|n| at("2026-01-01T09:00:00Z") + SignedDuration::from_mins(n)).collect();
    let n_of = |watch: &Watch| {
        let fates: Vec<Fate> = fates(&slots, watch).into_iter().map(|(_, fate)| fate).collect();
        let n = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
        let is_missed = |fate: &&Fate| matches!(fate, Fate::Missed(_));
        let missed_first = fates.iter().take_while(is_missed).count();
        (missed_first, n(|fate| matches!(fate, Fate::FiresLate(_))), n(|fate| matches!(fate, Fate::Missed(_))))
    };
    assert_eq!(n_of(&watch(Missed::All)), (50, CATCH_UP_MAX, 50));
    assert_eq!(n_of(&watch(Missed::Once)), (149, 1, 149));
    let busy = Watch { busy_with: Some(slots[0]), n_unfinished: 30, ..watch(Missed::All) };
    assert_eq!(n_of(&busy), (50, CATCH_UP_MAX - 30, 80), "no more than a hundred wait");
    let full = Watch { busy_with: Some(slots[0]), n_unfinished: 100, ..watch(Missed::All) };
    assert_eq!(n_of(&full), (150, 0, 150));
}

#[test]
fn a_line_of_a_hundred_takes_no_more() {
    let full = Watch { busy_with: Some(at(NOON)), n_unfinished: 100, may_overlap: true, ..watch(Missed::Once) };
    insta::assert_snapshot!(told("full", &["12:00:00"], &full), @"
    full
      12:00:00 skipped: 100 earlier ones were not over
    ");
    let room = Watch { n_unfinished: 99, ..full };
    insta::assert_snapshot!(told("room for one", &["11:59:30", "12:00:00"], &room), @"
    room for one
      11:59:30 fires
      12:00:00 skipped: 100 earlier ones were not over
    ");
}

fn some_watch() -> impl Strategy<Value = Watch> {
    let grace = proptest::option::of((0..7_200_i64).prop_map(SignedDuration::from_secs));
    let busy = prop_oneof![3 => Just(0_usize), 2 => 1..3_usize, 1 => 95..130_usize];
    let missed = prop::sample::select(Missed::ALL.to_vec());
    (missed, grace, any::<bool>(), -7_200..60_i64, busy).prop_map(
        |(missed, grace, may_overlap, since, n_unfinished)| Watch {
            missed,
            grace,
            may_overlap,
            since: at(NOON) + SignedDuration::from_secs(since),
            now: at(NOON),
            has_begun: n_unfinished > 1,
            busy_with: (n_unfinished > 0).then(|| at("2026-01-01T08:00:00Z")),
            n_unfinished,
        },
    )
}

fn some_slots() -> impl Strategy<Value = Vec<Timestamp>> {
    let distances = prop_oneof![
        prop::collection::vec(1..20_i64, 0..20),
        prop::collection::vec(1..2_000_i64, 0..10),
        prop::collection::vec(1..60_i64, 0..250),
    ];
    distances.prop_map(|distances| {
        let mut slots = vec![at(NOON)];
        for distance in distances {
            slots.push(slots[slots.len() - 1] - SignedDuration::from_secs(distance));
        }
        slots.reverse();
        slots
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_slot_has_one_fate_in_order_and_for_a_reason(slots in some_slots(), watch in some_watch()) {
        let fates = fates(&slots, &watch);
        prop_assert_eq!(fates.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), slots);
        let minute = SignedDuration::from_mins(1);
        let is_late = |slot: Timestamp| slot < watch.since || watch.now.duration_since(slot) > minute;
        let waits = watch.may_overlap || watch.missed == Missed::All;
        let (mut n_unfinished, mut n_late_fires) = (watch.n_unfinished, 0);
        for (slot, fate) in &fates {
            match fate {
                Fate::Fires | Fate::FiresLate(_) => {
                    prop_assert_eq!(matches!(fate, Fate::FiresLate(_)), is_late(*slot));
                    prop_assert!(n_unfinished == 0 || waits && n_unfinished < CATCH_UP_MAX, "{} overlaps", slot);
                    n_unfinished += 1;
                    n_late_fires += usize::from(is_late(*slot));
                }
                Fate::Missed(why) => prop_assert!(is_late(*slot) && !why.is_empty(), "{} came in time", slot),
                Fate::Skipped(why) => prop_assert!(n_unfinished > 0 && !why.is_empty(), "{} was not in the way", slot),
            }
        }
        let n_late_max = match watch.missed { Missed::Skip => 0, Missed::Once => 1, Missed::All => CATCH_UP_MAX };
        prop_assert!(n_late_fires <= n_late_max);
    }

    #[test]
    fn of_what_was_missed_nothing_is_older_than_what_runs(slots in some_slots(), watch in some_watch()) {
        // As long as nothing is in the way of what is made up for.
        let free = Watch { busy_with: None, n_unfinished: 0, ..watch };
        let fates = fates(&slots, &free);
        prop_assert!(fates.is_sorted_by_key(|(_, fate)| !matches!(fate, Fate::Missed(_))), "{:?}", fates);
    }

    #[test]
    fn a_slot_that_comes_in_time_fires_if_nothing_else_runs(watch in some_watch(), seconds in 0..=60_i64) {
        let slot = watch.now - SignedDuration::from_secs(seconds);
        let free = Watch { since: slot, busy_with: None, n_unfinished: 0, ..watch };
        prop_assert_eq!(fates(&[slot], &free), vec![(slot, Fate::Fires)]);
    }
}
