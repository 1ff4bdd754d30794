//! Hours by the clock on the wall, over midnight and over its changes.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Hours, at};

// Rules of today, written out so that no file is needed.
const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";
/// Half an hour of summer time.
const LORD_HOWE: &str = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
/// Midnight itself does not exist on the day on which summer begins.
const HAVANA: &str = "CST5CDT,M3.2.0/0,M11.1.0/1";

fn zone(rule: &str) -> TimeZone {
    TimeZone::posix(rule).unwrap()
}

fn hours(text: &str) -> Hours {
    let minutes = |text: &str| text[..2].parse::<u16>().unwrap() * 60 + text[3..].parse::<u16>().unwrap();
    let (start, end) = text.split_once('-').unwrap();
    Hours { start: minutes(start), end: minutes(end) }
}

/// Times of a day in UTC at which hours of a zone are open, and at which they are not.
fn check_contains(span: &str, zone: &TimeZone, day: &str, open: &[&str], closed: &[&str]) {
    let is_open = |time: &str| hours(span).contains(at(&format!("{day}T{time}Z")), zone);
    for time in open {
        assert!(is_open(time), "{span} is closed at {time}");
    }
    for time in closed {
        assert!(!is_open(time), "{span} is open at {time}");
    }
}

fn check_utc(span: &str, open: &[&str], closed: &[&str]) {
    check_contains(span, &TimeZone::UTC, "2026-03-01", open, closed);
}

#[test]
fn hours_have_their_start_and_not_their_end() {
    check_utc("08:00-17:00", &["08:00:00", "16:59:00", "16:59:59.999999999"], &["17:00:00", "07:59:00", "00:00:00"]);
    check_utc("08:00-24:00", &["08:00:00", "23:59:00", "23:59:59"], &["07:00:00", "00:00:00"]);
    check_utc("00:00-24:00", &["00:00:00", "12:00:00", "23:59:59"], &[]);
    check_utc("12:30-12:31", &["12:30:00", "12:30:59"], &["12:29:59", "12:31:00"]);
}

#[test]
fn hours_go_over_midnight() {
    let open = ["22:00:00", "23:00:00", "23:30:00", "00:00:00", "02:00:00", "05:30:00", "05:59:00"];
    check_utc("22:00-06:00", &open, &["06:00:00", "12:00:00", "14:00:00", "21:59:00"]);
    check_utc("22:00-00:00", &["22:00:00", "23:59:59"], &["00:00:00", "21:59:59"]);
}

#[test]
fn hours_that_end_where_they_start_are_never_open() {
    // The settings refuse them; that a text which is no span counts as "always" elsewhere has no place here either.
    check_utc("08:00-08:00", &[], &["07:59:00", "08:00:00", "08:01:00", "20:00:00"]);
    assert_eq!(hours("08:00-08:00").next_opening(at("2026-03-01T12:00:00Z"), &TimeZone::UTC), None);
}

#[test]
fn hours_are_those_of_their_zone() {
    let zone = zone(NEW_YORK);
    check_contains(
        "09:00-17:00",
        &zone,
        "2026-01-15",
        &["14:00:00", "15:00:00"],
        &["13:59:59", "22:00:00", "23:30:00"],
    );
    check_contains("09:00-17:00", &zone, "2026-07-15", &["13:00:00", "20:59:59"], &["12:59:59", "21:00:00"]);
}

fn check_opening(span: &str, zone: &TimeZone, after: &str, wanted: &str) {
    let opening = hours(span).next_opening(at(after), zone);
    assert_eq!(opening, Some(at(wanted)), "{span} after {after}");
}

#[test]
fn they_open_at_their_next_start() {
    let utc = TimeZone::UTC;
    check_opening("08:00-17:00", &utc, "2026-03-01T07:59:59.5Z", "2026-03-01T08:00:00Z");
    check_opening("08:00-17:00", &utc, "2026-03-01T17:00:00Z", "2026-03-02T08:00:00Z");
    check_opening("08:00-24:00", &utc, "2026-02-28T00:00:00Z", "2026-02-28T08:00:00Z");
    check_opening("00:00-06:00", &utc, "2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z");
    check_opening("22:00-06:00", &utc, "2026-03-01T06:00:00Z", "2026-03-01T22:00:00Z");
    check_opening("09:00-17:00", &zone(NEW_YORK), "2026-01-15T23:30:00Z", "2026-01-16T14:00:00Z");
}

#[test]
fn open_hours_do_not_open() {
    assert_eq!(hours("08:00-17:00").next_opening(at("2026-03-01T08:00:00Z"), &TimeZone::UTC), None);
    assert_eq!(hours("00:00-24:00").next_opening(at("2026-03-01T00:00:00Z"), &TimeZone::UTC), None);
}

#[test]
fn a_day_with_a_change_of_the_clock_has_its_own_length() {
    // From the evening before, eleven hours in the night that loses one, thirteen in the one that gains one.
    check_opening("08:00-20:00", &zone(BERLIN), "2026-03-28T19:00:00Z", "2026-03-29T06:00:00Z");
    check_opening("08:00-20:00", &zone(BERLIN), "2026-10-24T18:00:00Z", "2026-10-25T07:00:00Z");
}

#[test]
fn a_start_that_does_not_exist_opens_at_the_end_of_the_gap() {
    // 02:00 becomes 03:00, at 01:00 UTC.
    check_opening("02:30-06:00", &zone(BERLIN), "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z");
    check_opening("02:00-06:00", &zone(BERLIN), "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z");
    check_opening("03:00-06:00", &zone(BERLIN), "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z");
    check_opening("03:01-06:00", &zone(BERLIN), "2026-03-29T00:59:00Z", "2026-03-29T01:01:00Z");
    // Only half an hour is missing: 02:00 becomes 02:30.
    check_opening("02:15-06:00", &zone(LORD_HOWE), "2026-10-03T15:00:00Z", "2026-10-03T15:30:00Z");
    // The day begins at 01:00.
    check_opening("00:00-06:00", &zone(HAVANA), "2026-03-08T04:00:00Z", "2026-03-08T05:00:00Z");
}

#[test]
fn hours_that_are_all_in_the_gap_open_a_day_later() {
    check_opening("02:15-02:45", &zone(BERLIN), "2026-03-29T00:59:00Z", "2026-03-30T00:15:00Z");
}

#[test]
fn a_start_that_comes_twice_opens_twice() {
    // 03:00 becomes 02:00, at 01:00 UTC.
    check_opening("02:30-06:00", &zone(BERLIN), "2026-10-25T00:10:00Z", "2026-10-25T00:30:00Z");
    check_opening("02:30-06:00", &zone(BERLIN), "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z");
}

#[test]
fn a_clock_that_is_set_back_into_the_hours_opens_them_again() {
    check_opening("01:30-02:30", &zone(BERLIN), "2026-10-25T00:45:00Z", "2026-10-25T01:00:00Z");
}

/// A zone that changes its offset once, as the file of a zone says it.
fn once(offset_before: i32, offset_after: i32, change: Timestamp) -> TimeZone {
    let mut file = b"TZif".to_vec();
    file.extend([0; 16]);
    // No leap seconds or indicators, one change, two offsets, four bytes of names.
    file.extend([0, 0, 0, 1, 2, 4].iter().flat_map(|count: &u32| count.to_be_bytes()));
    file.extend((change.as_second() as i32).to_be_bytes());
    file.push(1);
    for offset in [offset_before, offset_after] {
        file.extend(offset.to_be_bytes());
        file.extend([0, 0]);
    }
    file.extend(b"LMT\0");
    TimeZone::tzif("Once", &file).unwrap()
}

#[test]
fn a_day_that_never_was_is_passed_over() {
    // On Samoa the 30th of December 2011 was left out, when the date line was moved.
    let samoa = once(-10 * 3600, 14 * 3600, at("2011-12-30T10:00:00Z"));
    assert_eq!(samoa.to_datetime(at("2011-12-30T10:00:00Z")).to_string(), "2011-12-31T00:00:00");
    check_opening("08:00-17:00", &samoa, "2011-12-30T05:00:00Z", "2011-12-30T18:00:00Z");
    check_opening("00:00-01:00", &samoa, "2011-12-30T05:00:00Z", "2011-12-30T10:00:00Z");
}

#[test]
fn at_the_ends_of_time_there_is_an_answer() {
    for rule in [BERLIN, NEW_YORK, LORD_HOWE, HAVANA] {
        let zone = zone(rule);
        for moment in [Timestamp::MIN, Timestamp::MAX] {
            let open = ["00:00-12:00", "12:00-24:00"].map(|span| hours(span).contains(moment, &zone));
            assert!(open[0] != open[1]);
            for span in ["00:00-12:00", "12:00-24:00", "03:00-02:59"] {
                let opening = hours(span).next_opening(moment, &zone);
                assert!(opening.is_none_or(|opening| opening > moment), "{span} in {rule}");
            }
        }
    }
}

#[test]
fn minutes_beyond_a_day_are_never_reached() {
    let beyond = Hours { start: u16::MAX - 1, end: u16::MAX };
    assert!(!beyond.contains(at("2026-03-01T12:00:00Z"), &TimeZone::UTC));
    assert_eq!(beyond.next_opening(at("2026-03-01T12:00:00Z"), &TimeZone::UTC), None);
}

#[test]
fn hours_are_written_as_they_are_set() {
    for text in ["08:00-22:00", "22:30-06:05", "00:00-24:00"] {
        assert_eq!(hours(text).to_string(), text);
    }
}

/// Moments in the days around the changes of the clock, and hours that begin or end near them more often than not.
fn some_moment() -> impl Strategy<Value = Timestamp> {
    let changes = ["2026-03-08T06:00:00Z", "2026-03-29T01:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"];
    let more = ["2026-10-25T01:00:00Z", "2026-11-01T06:00:00Z", "2026-06-15T12:00:00Z"];
    let changes: Vec<&str> = changes.into_iter().chain(more).collect();
    let minutes = -36 * 60..36 * 60_i64;
    (prop::sample::select(changes), minutes).prop_map(|(near, minutes)| at(near) + SignedDuration::from_mins(minutes))
}

fn some_hours() -> impl Strategy<Value = Hours> {
    let minute = || prop_oneof![0..240_u16, 0..1440_u16];
    (minute(), prop_oneof![0..240_u16, 0..=1440_u16]).prop_map(|(start, end)| Hours { start, end })
}

/// Minute by minute, as somebody who watches the clock would.
fn watched_opening(hours: Hours, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let minutes = (1..4 * 24 * 60).map(|n| after + SignedDuration::from_mins(n));
    minutes.into_iter().find(|at| hours.contains(*at, zone))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_opening_is_the_one_that_is_seen_by_watching(
        hours in some_hours(),
        after in some_moment(),
        rule in prop::sample::select(vec![BERLIN, NEW_YORK, LORD_HOWE, HAVANA, "UTC0"]),
    ) {
        let zone = zone(rule);
        let wanted = if hours.contains(after, &zone) { None } else { watched_opening(hours, after, &zone) };
        prop_assert_eq!(hours.next_opening(after, &zone), wanted, "{} after {} in {}", hours, after, rule);
    }
}
