//! When a job runs: once, at a fixed distance, or as cron says; and what the store keeps of that.

use proptest::prelude::*;

use super::*;

const UTC: TimeZone = TimeZone::UTC;

fn each(span_ms: i64, anchor: Timestamp) -> Schedule {
    every(SignedDuration::from_millis(span_ms), anchor).expect("a sensible distance")
}

#[test]
fn distances_are_counted_from_the_anchor() {
    for (anchor, span, after, wanted) in [
        (1_000, 5_000, 6_500, 11_000),
        (2_000, 5_000, 6_500, 7_000),
        (1_000, 5_000, 6_000, 11_000),
        (1_000, 5_000, 22_000, 26_000),
        (0, 1_000, 86_400_000, 86_401_000),
        (1_000, 5_000, 5_999, 6_000),
        (1_000, 5_000, 6_001, 11_000),
        // Never at the anchor itself, whenever one asks.
        (1_000, 5_000, 999, 6_000),
        (1_000, 5_000, 1_000, 6_000),
        (1_000, 5_000, -86_400_000, 6_000),
        (-7_000, 5_000, -8_000, -2_000),
        (-7_000, 5_000, -2_000, 3_000),
    ] {
        let next = each(span, ms(anchor)).next(ms(after), &UTC);
        assert_eq!(next, Some(ms(wanted)), "every {span} ms from {anchor}, after {after}");
    }
}

#[test]
fn fractions_of_a_microsecond_pass_over_no_slot() {
    let nano = SignedDuration::from_nanos(1);
    for slot in [ms(-5_000), ms(0), ms(5_000)] {
        let schedule = each(5_000, ms(-10_000));
        assert_eq!(schedule.next(slot - nano, &UTC), Some(slot));
        assert_eq!(schedule.next(slot + nano, &UTC), Some(slot + SignedDuration::from_secs(5)));
    }
}

#[test]
fn a_distance_does_not_care_for_the_clock_on_the_wall() {
    let daily = each(86_400_000, at("2027-03-12T14:00:00Z"));
    let slots: Vec<_> = slots_after(&daily, at("2027-03-13T00:00:00Z"), &zone("America/New_York")).take(3).collect();
    assert_eq!(slots, [at("2027-03-13T14:00:00Z"), at("2027-03-14T14:00:00Z"), at("2027-03-15T14:00:00Z")]);
}

#[test]
fn distances_that_are_not_sensible_are_refused() {
    let micro = SignedDuration::from_micros(1);
    for (span, wanted) in [
        (EVERY_MIN, None),
        (EVERY_MAX, None),
        (EVERY_MIN - micro, Some("a job runs once a second at the most")),
        (SignedDuration::ZERO, Some("a job runs once a second at the most")),
        (-EVERY_MAX, Some("a job runs once a second at the most")),
        (SignedDuration::MIN, Some("a job runs once a second at the most")),
        (EVERY_MAX + micro, Some("a job runs once in ten years at the least")),
        (SignedDuration::MAX, Some("a job runs once in ten years at the least")),
    ] {
        let refusal = every(span, ms(0)).err().map(|refusal| refusal.to_string());
        assert_eq!(refusal.as_deref(), wanted, "{span}");
    }
}

#[test]
fn a_time_comes_once() {
    let once = Schedule::At(ms(5_000));
    assert_eq!(once.next(Timestamp::MIN, &UTC), Some(ms(5_000)));
    assert_eq!(once.next(ms(4_999), &UTC), Some(ms(5_000)));
    assert_eq!(once.next(ms(5_000), &UTC), None);
    assert_eq!(once.next(ms(5_001), &UTC), None);
}

#[test]
fn fields_are_read_by_the_clock_of_the_zone() {
    let (nine, after) = (cron("0 9 * * *"), at("2026-12-01T00:00:00Z"));
    assert_eq!(nine.next(after, &UTC), Some(at("2026-12-01T09:00:00Z")));
    assert_eq!(nine.next(after, &zone("Asia/Kolkata")), Some(at("2026-12-01T03:30:00Z")));
    assert_eq!(cron("0 0 30 2 *").next(after, &UTC), None);
}

#[test]
fn time_ends_and_so_do_slots() {
    for schedule in [each(1_000, ms(0)), each(1_000, Timestamp::MAX), cron("* * * * *"), Schedule::At(Timestamp::MIN)] {
        assert_eq!(schedule.next(Timestamp::MAX, &UTC), None, "{schedule:?}");
    }
    let rare = every(EVERY_MAX, Timestamp::MIN).expect("a sensible distance");
    assert_eq!(rare.next(Timestamp::MIN, &UTC), Some(Timestamp::MIN + EVERY_MAX));
    assert!(rare.next(Timestamp::MAX - EVERY_MAX * 2, &UTC).is_some());
}

#[test]
fn what_the_store_keeps_and_what_people_read() {
    let anchor = ms(1_000);
    let schedules = [
        Schedule::At(at("2026-12-01T08:00:00Z")),
        Schedule::At(at("2026-12-01T08:00:00.123456789Z")),
        each(1_000, anchor),
        each(90 * 60_000, anchor),
        each(24 * 3_600_000, anchor),
        each(1_500, anchor),
        cron(" 0  9 * *  MON-fri"),
        cron("@Daily"),
        Schedule::parse("cron", "61 * * * *", anchor),
    ];
    let told = schedules
        .each_ref()
        .map(|schedule| format!("{:<6} {:<31} {}\n", schedule.kind(), schedule.text(), schedule.words()));
    insta::assert_snapshot!(told.concat(), @"
    at     2026-12-01T08:00:00Z            2026-12-01T08:00:00Z
    at     2026-12-01T08:00:00.123456789Z  2026-12-01T08:00:00.123456789Z
    every  1000000                         1s
    every  5400000000                      1h 30m
    every  86400000000                     24h
    every  1500000                         1s 500ms
    cron   0 9 * * MON-fri                 0 9 * * MON-fri
    cron   @Daily                          @Daily
    cron   61 * * * *                      61 * * * *
    ");
    for schedule in schedules {
        assert_eq!(Schedule::parse(schedule.kind(), &schedule.text(), anchor), schedule);
    }
}

#[test]
fn what_nobody_can_read_is_kept_as_it_is_and_never_runs() {
    for (kind, text) in [
        ("at", ""),
        ("at", "soon"),
        ("at", "2026-12-01"),
        ("at", "2026-13-01T00:00:00Z"),
        ("every", ""),
        ("every", "5m"),
        ("every", "1.5"),
        ("every", "999999"),
        ("every", "-1000000"),
        ("every", "9223372036854775807"),
        ("every", "99999999999999999999"),
        ("cron", ""),
        ("cron", "* * * *"),
        ("cron", "@reboot"),
        ("cron", "@every 5m"),
        ("AT", "2026-12-01T08:00:00Z"),
        ("", ""),
        ("lunar", "full moon"),
    ] {
        let broken = Schedule::parse(kind, text, ms(0));
        assert_eq!(broken, Schedule::Broken { kind: kind.to_owned(), text: text.to_owned() });
        assert_eq!((broken.kind(), broken.text(), broken.words()), (kind, text.to_owned(), text.to_owned()));
        assert_eq!(broken.next(Timestamp::MIN, &UTC), None, "{kind} {text}");
    }
}

/// Mostly the years of our lives, to the nanosecond.
fn some_instant() -> impl Strategy<Value = Timestamp> {
    let second = prop_oneof![1_700_000_000..1_900_000_000_i64, -100..100_i64];
    (second, prop_oneof![Just(0), 0..1_000_000_000_i32])
        .prop_map(|(second, nano)| Timestamp::new(second, nano).expect("within bounds"))
}

fn some_span() -> impl Strategy<Value = SignedDuration> {
    let micros = prop_oneof![1_000_000..100_000_000_i64, 1_000_000..=EVERY_MAX.as_micros() as i64];
    prop_oneof![micros, (1..100_000_i64).prop_map(|seconds| seconds * 1_000_000)].prop_map(SignedDuration::from_micros)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_slot_is_a_whole_number_of_distances_away_and_the_first_such(
        span in some_span(), anchor in -4_000_000_000_000_000..4_000_000_000_000_000_i64, after in some_instant(),
    ) {
        let anchor = Timestamp::from_microsecond(anchor).expect("within bounds");
        let next = every(span, anchor).expect("a sensible distance").next(after, &UTC).expect("no end of time");
        let away = next.as_microsecond() - anchor.as_microsecond();
        let span = span.as_micros() as i64;
        prop_assert!(next > after && away % span == 0 && away >= span);
        let before = next - SignedDuration::from_micros(span);
        prop_assert!(before <= after || before == anchor, "{} would have been earlier", before);
    }

    #[test]
    fn however_late_one_asks_slots_do_not_drift(
        span in some_span(),
        delays in prop::collection::vec(0.0..0.999_f64, 1..50),
    ) {
        let anchor = at("2026-01-01T00:00:00.000001Z");
        let schedule = every(span, anchor).expect("a sensible distance");
        let mut now = anchor;
        for (n, delay) in (1_i32..).zip(delays) {
            let slot = schedule.next(now, &UTC).expect("no end of time");
            prop_assert_eq!(slot, anchor + span * n);
            now = slot + span.mul_f64(delay);
        }
    }

    #[test]
    fn any_distance_and_any_time_come_back_from_the_store(span in some_span(), moment in some_instant()) {
        for schedule in [every(span, moment).expect("a sensible distance"), Schedule::At(moment)] {
            prop_assert_eq!(Schedule::parse(schedule.kind(), &schedule.text(), moment), schedule);
        }
    }

    #[test]
    fn any_words_in_the_store_come_back(
        kind in "at|every|cron|\\PC{0,8}",
        text in "[-+0-9TZ:.]{0,24}|[-0-9*/,?LW#@a-z ]{0,20}|\\PC{0,20}",
    ) {
        let read = Schedule::parse(&kind, &text, ms(0));
        prop_assert_eq!(read.kind(), kind.as_str());
        prop_assert_eq!(&Schedule::parse(&kind, &read.text(), ms(0)), &read);
    }
}
