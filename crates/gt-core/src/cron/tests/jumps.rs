//! What happens where a clock jumps: the vectors of Vixie's cron(8), with our differences.

use super::*;

/// The times of one day, by the clock, and their offsets.
fn on(day: &str, text: &str, zone_name: &str) -> String {
    let zone = zone(zone_name);
    let midnight: jiff::civil::Date = day.parse().expect("a day");
    let start = midnight.to_zoned(zone.clone()).expect("a zone's day").timestamp();
    let end = midnight.tomorrow().expect("no end of time").to_zoned(zone.clone()).expect("a zone's day").timestamp();
    let just_before = start - SignedDuration::from_nanos(1);
    let times = between(&expr(text), just_before, end, &zone).into_iter();
    times.map(|at| at.to_zoned(zone.clone()).strftime("%H:%M%:::z").to_string()).collect::<Vec<_>>().join(" ")
}

fn table(patterns: &[&str], days: &[(&str, &str)]) -> String {
    let row =
        |pattern: &str, day: &str, zone: &str| format!("{pattern:<16} {day} {zone:<20} {}\n", on(day, pattern, zone));
    let rows = patterns.iter().flat_map(|pattern| days.iter().map(move |(day, zone)| row(pattern, day, zone)));
    rows.collect()
}

const NEW_YORK_AND_BERLIN: &[(&str, &str)] = &[
    ("2027-03-14", "America/New_York"),
    ("2027-11-07", "America/New_York"),
    ("2027-03-28", "Europe/Berlin"),
    ("2027-10-31", "Europe/Berlin"),
];

#[test]
fn fixed_hours_run_once_each() {
    let patterns = ["30 2 * * *", "30 1 * * *", "0 1-3 * * *", "15,45 1-3 * * *"];
    insta::assert_snapshot!(table(&patterns, NEW_YORK_AND_BERLIN), @"
    30 2 * * *       2027-03-14 America/New_York     03:00-04
    30 2 * * *       2027-11-07 America/New_York     02:30-05
    30 2 * * *       2027-03-28 Europe/Berlin        03:00+02
    30 2 * * *       2027-10-31 Europe/Berlin        02:30+02
    30 1 * * *       2027-03-14 America/New_York     01:30-05
    30 1 * * *       2027-11-07 America/New_York     01:30-04
    30 1 * * *       2027-03-28 Europe/Berlin        01:30+01
    30 1 * * *       2027-10-31 Europe/Berlin        01:30+02
    0 1-3 * * *      2027-03-14 America/New_York     01:00-05 03:00-04
    0 1-3 * * *      2027-11-07 America/New_York     01:00-04 02:00-05 03:00-05
    0 1-3 * * *      2027-03-28 Europe/Berlin        01:00+01 03:00+02
    0 1-3 * * *      2027-10-31 Europe/Berlin        01:00+02 02:00+02 03:00+01
    15,45 1-3 * * *  2027-03-14 America/New_York     01:15-05 01:45-05 03:00-04 03:15-04 03:45-04
    15,45 1-3 * * *  2027-11-07 America/New_York     01:15-04 01:45-04 02:15-05 02:45-05 03:15-05 03:45-05
    15,45 1-3 * * *  2027-03-28 Europe/Berlin        01:15+01 01:45+01 03:00+02 03:15+02 03:45+02
    15,45 1-3 * * *  2027-10-31 Europe/Berlin        01:15+02 01:45+02 02:15+02 02:45+02 03:15+01 03:45+01
    ");
}

#[test]
fn an_hour_that_begins_with_a_star_or_has_a_step_follows_the_clock() {
    let patterns = ["0 * * * *", "0 */2 * * *", "30 */2 * * *", "0 0-23/2 * * *", "30 1/12 * * *"];
    insta::assert_snapshot!(table(&patterns, NEW_YORK_AND_BERLIN), @"
    0 * * * *        2027-03-14 America/New_York     00:00-05 01:00-05 03:00-04 04:00-04 05:00-04 06:00-04 07:00-04 08:00-04 09:00-04 10:00-04 11:00-04 12:00-04 13:00-04 14:00-04 15:00-04 16:00-04 17:00-04 18:00-04 19:00-04 20:00-04 21:00-04 22:00-04 23:00-04
    0 * * * *        2027-11-07 America/New_York     00:00-04 01:00-04 01:00-05 02:00-05 03:00-05 04:00-05 05:00-05 06:00-05 07:00-05 08:00-05 09:00-05 10:00-05 11:00-05 12:00-05 13:00-05 14:00-05 15:00-05 16:00-05 17:00-05 18:00-05 19:00-05 20:00-05 21:00-05 22:00-05 23:00-05
    0 * * * *        2027-03-28 Europe/Berlin        00:00+01 01:00+01 03:00+02 04:00+02 05:00+02 06:00+02 07:00+02 08:00+02 09:00+02 10:00+02 11:00+02 12:00+02 13:00+02 14:00+02 15:00+02 16:00+02 17:00+02 18:00+02 19:00+02 20:00+02 21:00+02 22:00+02 23:00+02
    0 * * * *        2027-10-31 Europe/Berlin        00:00+02 01:00+02 02:00+02 02:00+01 03:00+01 04:00+01 05:00+01 06:00+01 07:00+01 08:00+01 09:00+01 10:00+01 11:00+01 12:00+01 13:00+01 14:00+01 15:00+01 16:00+01 17:00+01 18:00+01 19:00+01 20:00+01 21:00+01 22:00+01 23:00+01
    0 */2 * * *      2027-03-14 America/New_York     00:00-05 04:00-04 06:00-04 08:00-04 10:00-04 12:00-04 14:00-04 16:00-04 18:00-04 20:00-04 22:00-04
    0 */2 * * *      2027-11-07 America/New_York     00:00-04 02:00-05 04:00-05 06:00-05 08:00-05 10:00-05 12:00-05 14:00-05 16:00-05 18:00-05 20:00-05 22:00-05
    0 */2 * * *      2027-03-28 Europe/Berlin        00:00+01 04:00+02 06:00+02 08:00+02 10:00+02 12:00+02 14:00+02 16:00+02 18:00+02 20:00+02 22:00+02
    0 */2 * * *      2027-10-31 Europe/Berlin        00:00+02 02:00+02 02:00+01 04:00+01 06:00+01 08:00+01 10:00+01 12:00+01 14:00+01 16:00+01 18:00+01 20:00+01 22:00+01
    30 */2 * * *     2027-03-14 America/New_York     00:30-05 04:30-04 06:30-04 08:30-04 10:30-04 12:30-04 14:30-04 16:30-04 18:30-04 20:30-04 22:30-04
    30 */2 * * *     2027-11-07 America/New_York     00:30-04 02:30-05 04:30-05 06:30-05 08:30-05 10:30-05 12:30-05 14:30-05 16:30-05 18:30-05 20:30-05 22:30-05
    30 */2 * * *     2027-03-28 Europe/Berlin        00:30+01 04:30+02 06:30+02 08:30+02 10:30+02 12:30+02 14:30+02 16:30+02 18:30+02 20:30+02 22:30+02
    30 */2 * * *     2027-10-31 Europe/Berlin        00:30+02 02:30+02 02:30+01 04:30+01 06:30+01 08:30+01 10:30+01 12:30+01 14:30+01 16:30+01 18:30+01 20:30+01 22:30+01
    0 0-23/2 * * *   2027-03-14 America/New_York     00:00-05 04:00-04 06:00-04 08:00-04 10:00-04 12:00-04 14:00-04 16:00-04 18:00-04 20:00-04 22:00-04
    0 0-23/2 * * *   2027-11-07 America/New_York     00:00-04 02:00-05 04:00-05 06:00-05 08:00-05 10:00-05 12:00-05 14:00-05 16:00-05 18:00-05 20:00-05 22:00-05
    0 0-23/2 * * *   2027-03-28 Europe/Berlin        00:00+01 04:00+02 06:00+02 08:00+02 10:00+02 12:00+02 14:00+02 16:00+02 18:00+02 20:00+02 22:00+02
    0 0-23/2 * * *   2027-10-31 Europe/Berlin        00:00+02 02:00+02 02:00+01 04:00+01 06:00+01 08:00+01 10:00+01 12:00+01 14:00+01 16:00+01 18:00+01 20:00+01 22:00+01
    30 1/12 * * *    2027-03-14 America/New_York     01:30-05 13:30-04
    30 1/12 * * *    2027-11-07 America/New_York     01:30-04 01:30-05 13:30-05
    30 1/12 * * *    2027-03-28 Europe/Berlin        01:30+01 13:30+02
    30 1/12 * * *    2027-10-31 Europe/Berlin        01:30+02 13:30+01
    ");
}

/// Vixie also looks at the minute, and takes these for jobs that follow the clock: it would leave out the day in spring,
/// and run twice as often in autumn. Whoever names an hour wants a run on each day, so we look at the hour alone.
#[test]
fn a_star_in_the_minute_alone_changes_nothing() {
    let patterns = ["*/20 2 * * *", "*/20 1 * * *"];
    insta::assert_snapshot!(table(&patterns, NEW_YORK_AND_BERLIN), @"
    */20 2 * * *     2027-03-14 America/New_York     03:00-04
    */20 2 * * *     2027-11-07 America/New_York     02:00-05 02:20-05 02:40-05
    */20 2 * * *     2027-03-28 Europe/Berlin        03:00+02
    */20 2 * * *     2027-10-31 Europe/Berlin        02:00+02 02:20+02 02:40+02
    */20 1 * * *     2027-03-14 America/New_York     01:00-05 01:20-05 01:40-05
    */20 1 * * *     2027-11-07 America/New_York     01:00-04 01:20-04 01:40-04
    */20 1 * * *     2027-03-28 Europe/Berlin        01:00+01 01:20+01 01:40+01
    */20 1 * * *     2027-10-31 Europe/Berlin        01:00+02 01:20+02 01:40+02
    ");
    assert_eq!(on("2027-03-14", "* 2 14 * *", "America/New_York"), "03:00-04", "sixty minutes of one gap: once");
}

#[test]
fn gaps_at_midnight_and_of_half_an_hour() {
    assert_eq!(on("2027-04-30", "@daily", "Africa/Cairo"), "01:00+03");
    assert_eq!(on("2027-04-30", "30 0 30 4 *", "Africa/Cairo"), "01:00+03");
    assert_eq!(on("2027-04-30", "0 */23 * * *", "Africa/Cairo"), "23:00+03");
    assert_eq!(on("2027-04-30", "30 1 * * *", "Africa/Cairo"), "01:30+03");
    assert_eq!(on("2027-10-28", "30 23 * * *", "Africa/Cairo"), "23:30+03");
    assert_eq!(on("2027-10-28", "30 * * * *", "Africa/Cairo").matches("23:30").count(), 2);
    assert_eq!(on("2027-10-03", "0 2 * * *", "Australia/Lord_Howe"), "02:30+11");
    assert_eq!(on("2027-10-03", "0,30 2 * * *", "Australia/Lord_Howe"), "02:30+11");
    assert_eq!(on("2027-10-03", "0 */2 * * *", "Australia/Lord_Howe").split(' ').nth(1), Some("04:00+11"));
    assert_eq!(on("2027-04-04", "45 1 * * *", "Australia/Lord_Howe"), "01:45+11");
    assert_eq!(on("2027-04-04", "*/15 1 * * *", "Australia/Lord_Howe"), "01:00+11 01:15+11 01:30+11 01:45+11");
    assert_eq!(on("2027-04-04", "30 * * * *", "Australia/Lord_Howe").matches("01:30").count(), 2);
}

#[test]
fn a_day_that_a_zone_left_out_is_not_made_up_for() {
    // Samoa went from the 29th of December 2011 to the 31st.
    let told = shown("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00-10:00", 2);
    assert_eq!(told, ["Thu 2011-12-29 09:00-10", "Sat 2011-12-31 09:00+14"]);
    assert_eq!(shown("0 9 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00-10:00", 1), ["Sun 2012-12-30 09:00+14"]);
    // Kwajalein left out the 21st of August 1993.
    assert_eq!(shown("0 9 21 8 *", "Pacific/Kwajalein", "1993-08-20T00:00:00Z", 1), ["Sun 1994-08-21 09:00+12"]);
}

#[test]
fn where_one_asks_within_a_jump_makes_no_difference() {
    let new_york = zone("America/New_York");
    let next = |text: &str, after: &str| expr(text).next(instant(after), &new_york).map(|at| at.to_string());
    // In the hour that is shown a second time, 05:00Z to 06:00Z is the first.
    assert_eq!(next("30 1 * * *", "2027-11-07T05:29:59.999Z").as_deref(), Some("2027-11-07T05:30:00Z"));
    assert_eq!(next("30 1 * * *", "2027-11-07T05:30:00Z").as_deref(), Some("2027-11-08T06:30:00Z"));
    assert_eq!(next("30 1 * * *", "2027-11-07T06:10:00Z").as_deref(), Some("2027-11-08T06:30:00Z"));
    assert_eq!(next("0 2 * * *", "2027-11-07T06:10:00Z").as_deref(), Some("2027-11-07T07:00:00Z"));
    assert_eq!(next("30 * * * *", "2027-11-07T06:10:00Z").as_deref(), Some("2027-11-07T06:30:00Z"));
    // The gap ends at 07:00Z.
    assert_eq!(next("30 2 * * *", "2027-03-14T06:59:59.999999999Z").as_deref(), Some("2027-03-14T07:00:00Z"));
    assert_eq!(next("30 2 * * *", "2027-03-14T07:00:00Z").as_deref(), Some("2027-03-15T06:30:00Z"));
}
