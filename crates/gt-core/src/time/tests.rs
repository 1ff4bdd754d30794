//! Instants as text: any offset in, UTC to the microsecond out.

use super::*;

fn check(text: &str, wanted: Option<&str>) {
    assert_eq!(parse(text).map(format).as_deref(), wanted, "{text}");
}

#[test]
fn any_offset_is_read_and_utc_is_written() {
    check("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z"));
    check("2026-01-02T03:04:05+02:00", Some("2026-01-02T01:04:05Z"));
    check("2026-01-01T00:30:00-08:00", Some("2026-01-01T08:30:00Z"));
    check("2026-01-02t03:04:05z", Some("2026-01-02T03:04:05Z"));
    check("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z"));
}

#[test]
fn finer_digits_than_the_store_keeps_are_cut() {
    check("2026-01-02T03:04:05.5Z", Some("2026-01-02T03:04:05.5Z"));
    check("2026-01-02T03:04:05.123456Z", Some("2026-01-02T03:04:05.123456Z"));
    check("2026-01-02T03:04:05.123456789Z", Some("2026-01-02T03:04:05.123456Z"));
    check("2026-01-02T03:04:05.000000999Z", Some("2026-01-02T03:04:05Z"));
}

#[test]
fn what_is_written_is_read_as_the_same_instant() {
    for nanos in [0, 1_000, 999_999_000, -1_000, 1_767_225_600_123_456_000, -62_135_596_800_000_000_000] {
        let at = Timestamp::from_nanosecond(nanos).unwrap();
        assert_eq!(parse(&format(at)), Some(at));
        assert_eq!(truncate(at), at);
    }
}

#[test]
fn what_is_no_instant_is_not_read() {
    for text in ["", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "12"] {
        check(text, None);
    }
}

#[test]
fn a_time_is_rewritten_in_utc_and_other_text_is_left_alone() {
    for (text, wanted) in [
        ("2026-01-02T03:04:05.123456789+02:00", "2026-01-02T01:04:05.123456789Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("yesterday", "yesterday"),
        ("", ""),
    ] {
        assert_eq!(to_utc(text), wanted);
    }
}

/// A way of saying "never" that people and programs use.
#[test]
fn a_time_at_the_end_of_all_days_is_still_far_in_the_future() {
    let soon = parse("2500-01-01T00:00:00Z").unwrap();
    for text in ["9999-12-31T23:59:59Z", "9999-12-31T00:00:00+00:00", "9999-12-31T23:59:59.999999999Z"] {
        assert!(parse(text).is_some_and(|at| at > soon), "{text}");
    }
}

/// What a number of microseconds cannot say, the store would forget.
#[test]
fn the_last_instant_of_all_can_be_kept_too() {
    for text in ["9999-12-31T23:59:59Z", "9999-12-30T22:00:00.5Z", "9999-12-30T22:00:00Z"] {
        let kept = parse(text).map(truncate).unwrap();
        assert_eq!(Timestamp::from_microsecond(kept.as_microsecond()).ok(), Some(kept), "{text}");
        assert_eq!(parse(&format(kept)), Some(kept), "{text}");
    }
}

#[test]
fn people_read_how_far_off_a_time_is() {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let check = |millis: i64, wanted: &str| {
        let at = now + jiff::SignedDuration::from_millis(millis);
        assert_eq!(if wanted.ends_with("ago") { ago(at, now) } else { until(at, now) }, wanted, "{millis}");
    };
    check(-1, "now");
    check(0, "now");
    check(1, "in 1 s");
    check(59_000, "in 59 s");
    check(59_001, "in 1 min");
    check(60_001, "in 2 min");
    check(3_540_001, "in 1 h");
    check(3_600_000, "in 1 h");
    check(172_800_000, "in 2 days");
    check(-12_000, "12 s ago");
    check(-119_000, "1 min ago");
    check(-7_200_000, "2 h ago");
    check(-200_000_000, "2 days ago");
}
