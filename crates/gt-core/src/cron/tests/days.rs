//! Which days a schedule names: leap days, ends of months, `L`, `W` and `#`, and both day fields at once.

use jiff::civil::{Date, Weekday, date};

use super::*;

/// The days from 2026 to 2028 at midnight, UTC.
fn days(fields: &str) -> Vec<Date> {
    let (from, end) = (instant("2025-12-31T23:59Z"), instant("2029-01-01T00:00Z"));
    let times = between(&expr(&format!("0 0 {fields}")), from, end, &TimeZone::UTC);
    times.into_iter().map(|at| at.to_zoned(TimeZone::UTC).date()).collect()
}

/// The same, from a rule for single days.
fn all(rule: impl Fn(Date) -> bool) -> Vec<Date> {
    date(2026, 1, 1)
        .series(jiff::ToSpan::days(1))
        .take_while(|day| day.year() < 2029)
        .filter(|day| rule(*day))
        .collect()
}

fn is_workday(day: Date) -> bool {
    !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn is_last(day: Date) -> bool {
    day == day.last_of_month()
}

#[test]
fn ends_of_months() {
    assert_eq!(days("L * *"), all(is_last));
    assert_eq!(days("31 * *"), all(|day| day.day() == 31));
    assert_eq!(days("29 2 *"), [date(2028, 2, 29)]);
    assert_eq!(days("L 2 *"), [date(2026, 2, 28), date(2027, 2, 28), date(2028, 2, 29)]);
    assert_eq!(days("L-3 * *"), all(|day| day.day() == day.days_in_month() - 3));
    assert_eq!(days("L-30 * *"), all(|day| day.day() == 1 && day.days_in_month() == 31));
    assert_eq!(days("L-28 2 *"), [date(2028, 2, 1)]);
    assert_eq!(days("1,L * *"), all(|day| day.day() == 1 || is_last(day)));
}

#[test]
fn the_nearest_workday_stays_in_its_month() {
    // By trying the days around it: the day itself, then one before, one after, two after, two before.
    let nearest = |day: Date| {
        let near = [0, -1, 1, 2, -2].map(|n| day.checked_add(jiff::ToSpan::days(n)).expect("no end of time"));
        near.into_iter().find(|near| near.month() == day.month() && is_workday(*near)).expect("one of five")
    };
    for number in 1..=31 {
        let expected: Vec<Date> = all(|day| day.day() == number).into_iter().map(nearest).collect();
        assert_eq!(days(&format!("{number}W * *")), expected, "{number}W");
    }
    let last: Vec<Date> = all(is_last).into_iter().map(nearest).collect();
    assert_eq!(days("LW * *"), last);
    assert_eq!(days("1W 8 *")[0], date(2026, 8, 3), "the 1st is a Saturday");
    assert_eq!(days("31W 5 *")[0], date(2026, 5, 29), "the 31st is a Sunday");
}

#[test]
fn weekdays_of_a_month() {
    let friday = |day: Date| day.weekday() == Weekday::Friday;
    assert_eq!(days("* * 5"), all(friday));
    for nth in 1..=5 {
        assert_eq!(days(&format!("* * fri#{nth}")), all(|day| friday(day) && (day.day() + 6) / 7 == nth), "#{nth}");
    }
    assert_eq!(days("* * 5L"), all(|day| friday(day) && day.day() + 7 > day.days_in_month()));
    assert_eq!(days("* * 7L"), days("* * sunL"));
    assert_eq!(days("* 2 sun#5"), [], "the next February with five Sundays is in 2032");
    assert_eq!(days("* * 1#1,5L").len(), 72);
}

#[test]
fn two_day_fields_need_one_of_them_or_both_if_one_begins_with_a_star() {
    let friday = |day: Date| day.weekday() == Weekday::Friday;
    let odd = |day: Date| day.day() % 2 == 1;
    assert_eq!(days("13 * 5"), all(|day| day.day() == 13 || friday(day)));
    assert_eq!(days("*/2 * 5"), all(|day| odd(day) && friday(day)));
    assert_eq!(days("1-31/2 * 5"), all(|day| odd(day) || friday(day)));
    assert_eq!(days("13 * */5"), all(|day| day.day() == 13 && (friday(day) || day.weekday() == Weekday::Sunday)));
    assert_eq!(days("? * 5"), all(friday));
    assert_eq!(days("13 * ?"), all(|day| day.day() == 13));
    assert_eq!(days("L * 5#2"), all(|day| is_last(day) || (friday(day) && (8..=14).contains(&day.day()))));
}

#[test]
fn what_is_rare_is_found_and_what_never_comes_is_never() {
    let next = |text: &str, after: &str| expr(text).next(instant(after), &TimeZone::UTC);
    assert_eq!(next("0 0 29 2 *", "2096-03-01T00:00Z"), Some(instant("2104-02-29T00:00Z")));
    assert_eq!(
        next("0 0 29 2 */7", "2088-03-01T00:00Z"),
        Some(instant("2128-02-29T00:00Z")),
        "40 years: the longest wait"
    );
    assert_eq!(next("0 0 * 2 0#5", "2088-03-01T00:00Z"), Some(instant("2128-02-29T00:00Z")));
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 *", "0 0 L-29 2 *", "0 0 31 2 */2"] {
        assert_eq!(next(never, "2026-01-01T00:00Z"), None, "{never}");
    }
}

#[test]
fn time_has_ends() {
    for zone in [TimeZone::UTC, zone("America/New_York"), zone("Pacific/Kiritimati")] {
        assert!(expr("* * * * *").next(Timestamp::MIN, &zone).is_some_and(|at| at > Timestamp::MIN));
        assert_eq!(expr("* * * * *").next(Timestamp::MAX, &zone), None);
        assert_eq!(expr("0 0 29 2 *").next(Timestamp::MAX, &zone), None);
    }
    let last = expr("* * * * *").next(instant("9999-12-30T21:58:59Z"), &TimeZone::UTC);
    assert_eq!(last, Some(instant("9999-12-30T21:59Z")));
}
