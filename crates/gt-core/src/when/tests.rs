//! Which texts are times, which are not, and in which words that is said.

use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).expect("it is in the data that is built in")
}

/// What a text means in New York at this time, or why it means nothing.
fn told(text: &str, now: &str) -> String {
    let new_york = zone("America/New_York");
    let now: Timestamp = now.parse().expect("an instant");
    match parse_at(text, now, &new_york) {
        Ok(at) => format!("{text:<28} {}\n", at.to_zoned(new_york).strftime("%a %F %T%:z")),
        Err(refusal) => format!("{text:<28} {refusal}\n{:<28}   {}\n", "", refusal.hint()),
    }
}

/// The same for a time from which something counts.
fn told_from(text: &str, now: &str) -> String {
    let new_york = zone("America/New_York");
    match parse_from(text, now.parse().expect("an instant"), &new_york) {
        Ok(at) => format!("{text:<28} {}\n", at.to_zoned(new_york).strftime("%a %F %T%:z")),
        Err(refusal) => format!("{text:<28} {refusal}\n{:<28}   {}\n", "", refusal.hint()),
    }
}

fn table(now: &str, texts: &[&str]) -> String {
    texts.iter().map(|text| told(text, now)).collect()
}

/// A Wednesday, ten in the morning in New York.
const WEDNESDAY: &str = "2026-11-18T10:00:00-05:00";

#[test]
fn what_is_clear_is_taken() {
    let texts = [
        "in 2h",
        "in 90 minutes",
        "IN 1 hour 30 min",
        "2h30m",
        "3d",
        "1w",
        "in 45s",
        "2026-12-01T09:00:00+01:00",
        "2026-12-01T09:00Z",
        "2026-12-01 09:00:00-05",
        "2026-12-01 09:00",
        "2026-12-01T09:00",
        "2026-12-01 9:00:30",
        "2026-12-01 at 9pm",
        "tomorrow 9:00",
        "Tomorrow at 9am",
        "today 17:30",
        "9:00",
        "21:00",
        "10:00",
        "  9am ",
        "at 11am",
        "9:30 pm",
        "12am",
        "12pm",
        "12:30am",
        "0:00",
        "monday 9:00",
        "next wednesday 17:00",
    ];
    insta::assert_snapshot!(table(WEDNESDAY, &texts), @"
    in 2h                        Wed 2026-11-18 12:00:00-05:00
    in 90 minutes                Wed 2026-11-18 11:30:00-05:00
    IN 1 hour 30 min             Wed 2026-11-18 11:30:00-05:00
    2h30m                        Wed 2026-11-18 12:30:00-05:00
    3d                           Sat 2026-11-21 10:00:00-05:00
    1w                           Wed 2026-11-25 10:00:00-05:00
    in 45s                       Wed 2026-11-18 10:00:45-05:00
    2026-12-01T09:00:00+01:00    Tue 2026-12-01 03:00:00-05:00
    2026-12-01T09:00Z            Tue 2026-12-01 04:00:00-05:00
    2026-12-01 09:00:00-05       Tue 2026-12-01 09:00:00-05:00
    2026-12-01 09:00             Tue 2026-12-01 09:00:00-05:00
    2026-12-01T09:00             Tue 2026-12-01 09:00:00-05:00
    2026-12-01 9:00:30           Tue 2026-12-01 09:00:30-05:00
    2026-12-01 at 9pm            Tue 2026-12-01 21:00:00-05:00
    tomorrow 9:00                Thu 2026-11-19 09:00:00-05:00
    Tomorrow at 9am              Thu 2026-11-19 09:00:00-05:00
    today 17:30                  Wed 2026-11-18 17:30:00-05:00
    9:00                         Thu 2026-11-19 09:00:00-05:00
    21:00                        Wed 2026-11-18 21:00:00-05:00
    10:00                        Thu 2026-11-19 10:00:00-05:00
      9am                        Thu 2026-11-19 09:00:00-05:00
    at 11am                      Wed 2026-11-18 11:00:00-05:00
    9:30 pm                      Wed 2026-11-18 21:30:00-05:00
    12am                         Thu 2026-11-19 00:00:00-05:00
    12pm                         Wed 2026-11-18 12:00:00-05:00
    12:30am                      Thu 2026-11-19 00:30:00-05:00
    0:00                         Thu 2026-11-19 00:00:00-05:00
    monday 9:00                  Mon 2026-11-23 09:00:00-05:00
    next wednesday 17:00         Wed 2026-11-25 17:00:00-05:00
    ");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one snapshot, read as a whole")]
fn what_is_unclear_is_refused_with_what_to_type() {
    let texts = [
        "",
        "  ",
        "9",
        "in 9",
        "2026",
        "tomorrow",
        "tomorrow 9",
        "friday",
        "next friday",
        "2026-12-01",
        "next week",
        "next",
        "03/04/2026",
        "03/04/2026 9:00",
        "2026/12/01 9:00",
        "1.12.2026 9:00",
        "1-12-2026 9:00",
        "9.30",
        "2026-02-30 9:00",
        "2026-13-01 9:00",
        "noon-ish",
        "noon",
        "soon",
        "9am tomorrow",
        "24:00",
        "9:60",
        "9:5",
        "13pm",
        "0am",
        "9:00 xm",
        "2026-12-01Tat 9:00",
        "9am pm",
        "9xpm",
        "1:2:3:4",
        "in a while",
        "in 5 parsecs",
        "in -2h",
        "1.5h",
        "-2h",
        "1 2h",
        "in 99999999999999999999d",
        "in 9999999w",
        "\u{1b}[31mred",
    ];
    insta::assert_snapshot!(table(WEDNESDAY, &texts), @"
                                 a time is not an empty text
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
                                 a time is not an empty text
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    9                            `9` could be a time of day, or a number of minutes or hours
                                   say `9:00`, `in 9m` or `in 9h`
    in 9                         `9` could be a time of day, or a number of minutes or hours
                                   say `9:00`, `in 9m` or `in 9h`
    2026                         `2026` could be a time of day, or a number of minutes or hours
                                   say `in 2026m` or `in 2026h`
    tomorrow                     `tomorrow` says no time of day
                                   say `tomorrow 9:00`
    tomorrow 9                   `9` could be a time of day, or a number of minutes or hours
                                   say `tomorrow 9:00`, or `tomorrow 9pm`
    friday                       `friday` says no time of day
                                   say `friday 9:00`
    next friday                  `next friday` says no time of day
                                   say year, month, day and time: `2026-12-01 9:00`
    2026-12-01                   `2026-12-01` says no time of day
                                   say `2026-12-01 9:00`
    next week                    `next week` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    next                         `next` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    03/04/2026                   `03/04/2026` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    03/04/2026 9:00              `03/04/2026` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    2026/12/01 9:00              `2026/12/01` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    1.12.2026 9:00               `1.12.2026` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    1-12-2026 9:00               `1-12-2026` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    9.30                         `9.30` could be a time of day, or a day and a month
                                   say `9:30`, or year, month, day and time: `2026-12-01 9:00`
    2026-02-30 9:00              `2026-02-30` is not a day of the calendar
                                   say year, month, day and time: `2026-12-01 9:00`
    2026-13-01 9:00              `2026-13-01` is not a day of the calendar
                                   say year, month, day and time: `2026-12-01 9:00`
    noon-ish                     `noon-ish` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    noon                         `noon` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    soon                         `soon` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    9am tomorrow                 `9am tomorrow` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    24:00                        `24:00` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm
                                   say `9:00`, `21:30` or `9:30pm`
    9:60                         `9:60` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm
                                   say `9:00`, `21:30` or `9:30pm`
    9:5                          `9:5` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm
                                   say `9:00`, `21:30` or `9:30pm`
    13pm                         `13pm` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm
                                   say `9:00`, `21:30` or `9:30pm`
    0am                          `0am` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm
                                   say `9:00`, `21:30` or `9:30pm`
    9:00 xm                      `9:00 xm` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    2026-12-01Tat 9:00           `2026-12-01Tat 9:00` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    9am pm                       `9am pm` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    9xpm                         `9xpm` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    1:2:3:4                      `1:2:3:4` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    in a while                   `in a while` is not a length of time
                                   say `in 90m`, `in 2h30m` or `in 3d`
    in 5 parsecs                 `in 5 parsecs` is not a length of time
                                   say `in 90m`, `in 2h30m` or `in 3d`
    in -2h                       `in -2h` is not a length of time
                                   say `in 90m`, `in 2h30m` or `in 3d`
    1.5h                         `1.5h` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    -2h                          `-2h` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    1 2h                         `1 2h` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    in 99999999999999999999d     `99999999999999999999d` is further away than times go
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    in 9999999w                  `in 9999999w` is further away than times go
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    [31mred                     `�[31mred` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    ");
}

#[test]
fn what_is_offered_for_a_bare_number_can_be_taken() {
    let texts = ["0", "12", "24", "123456789", "tomorrow 0", "tomorrow 12", "friday 13", "tomorrow 24"];
    let hints = texts.map(|text| {
        let refusal = parse_at(text, WEDNESDAY.parse().expect("an instant"), &zone("America/New_York"));
        format!("{text:<12} {}\n", refusal.expect_err("it is unclear").hint())
    });
    insta::assert_snapshot!(hints.concat(), @"
    0            say `0:00`
    12           say `12:00`, `in 12m` or `in 12h`
    24           say `in 24m` or `in 24h`
    123456789    say `9:00`, `in 90m` or `in 3d`
    tomorrow 0   say `tomorrow 0:00`
    tomorrow 12  say `tomorrow 12:00`, or `tomorrow 12pm`
    friday 13    say `friday 13:00`
    tomorrow 24  say `tomorrow 9:00`
    ");
}

#[test]
fn what_has_passed_is_refused_as_such() {
    let texts = ["today 8:00", "today 10:00", "2026-11-18 09:59", "2020-01-01T00:00:00Z", "in 0s"];
    insta::assert_snapshot!(table(WEDNESDAY, &texts), @"
    today 8:00                   `today 8:00` has passed: it was 2026-11-18 08:00
                                   say a time to come: `tomorrow 8:00`, `in 1h`
    today 10:00                  `today 10:00` has passed: it was 2026-11-18 10:00
                                   say a time to come: `tomorrow 10:00`, `in 1h`
    2026-11-18 09:59             `2026-11-18 09:59` has passed: it was 2026-11-18 09:59
                                   say a time to come: `tomorrow 9:59`, `in 1h`
    2020-01-01T00:00:00Z         `2020-01-01T00:00:00Z` has passed: it was 2019-12-31 19:00
                                   say a time to come: `tomorrow 19:00`, `in 1h`
    in 0s                        `in 0s` has passed: it was 2026-11-18 10:00
                                   say a time to come: `tomorrow 10:00`, `in 1h`
    ");
    for text in texts {
        let refusal = parse_at(text, WEDNESDAY.parse().expect("an instant"), &zone("America/New_York"));
        assert!(matches!(refusal, Err(BadWhen::Past { .. })), "{text}");
    }
}

#[test]
fn what_something_counts_from_may_have_passed_and_a_day_alone_means_its_beginning() {
    let texts = [
        "now",
        "2026-03-27",
        "2027-03-27",
        "yesterday",
        "yesterday 9:00",
        "today",
        "today 8:00",
        "tomorrow",
        "tomorrow 9:00",
        "8:00",
        "11:00",
        "in 2h",
        "3d",
        "2020-01-01T00:00:00Z",
        "2026-11-01 09:00",
        "friday",
        "wednesday 9:00",
        "2026-03-08 02:30",
        "2026-11-01 01:30",
        "9",
        "03/04/2026",
        "-2h",
        "",
    ];
    let told: String = texts.iter().map(|text| told_from(text, WEDNESDAY)).collect();
    insta::assert_snapshot!(told, @"
    now                          Wed 2026-11-18 10:00:00-05:00
    2026-03-27                   Fri 2026-03-27 00:00:00-04:00
    2027-03-27                   Sat 2027-03-27 00:00:00-04:00
    yesterday                    Tue 2026-11-17 00:00:00-05:00
    yesterday 9:00               Tue 2026-11-17 09:00:00-05:00
    today                        Wed 2026-11-18 00:00:00-05:00
    today 8:00                   Wed 2026-11-18 08:00:00-05:00
    tomorrow                     Thu 2026-11-19 00:00:00-05:00
    tomorrow 9:00                Thu 2026-11-19 09:00:00-05:00
    8:00                         Thu 2026-11-19 08:00:00-05:00
    11:00                        Wed 2026-11-18 11:00:00-05:00
    in 2h                        Wed 2026-11-18 12:00:00-05:00
    3d                           Sat 2026-11-21 10:00:00-05:00
    2020-01-01T00:00:00Z         Tue 2019-12-31 19:00:00-05:00
    2026-11-01 09:00             Sun 2026-11-01 09:00:00-05:00
    friday                       Fri 2026-11-20 00:00:00-05:00
    wednesday 9:00               `wednesday 9:00` could be 2026-11-18 09:00 or 2026-11-25 09:00
                                   say `2026-11-18 09:00` or `2026-11-25 09:00`
    2026-03-08 02:30             2026-03-08 02:30 does not exist in America/New_York: the clock jumps from 2026-03-08 02:00 to 2026-03-08 03:00
                                   say `2026-03-08 03:00`
    2026-11-01 01:30             2026-11-01 01:30 happens twice in America/New_York: 2026-11-01T01:30:00-04:00 and 2026-11-01T01:30:00-05:00
                                   say `2026-11-01T01:30:00-04:00` or `2026-11-01T01:30:00-05:00`
    9                            `9` could be a time of day, or a number of minutes or hours
                                   say `9:00`, `in 9m` or `in 9h`
    03/04/2026                   `03/04/2026` is read as different days in different countries
                                   say year, month, day and time: `2026-12-01 9:00`
    -2h                          `-2h` is not a time
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
                                 a time is not an empty text
                                   say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    ");
    // Midnight is left out there.
    let from = parse_from("2027-04-30", WEDNESDAY.parse().expect("an instant"), &zone("Africa/Cairo"));
    assert_eq!(from.expect("a day").to_string(), "2027-04-29T22:00:00Z");
}

#[test]
fn nobody_waits_for_yesterday() {
    insta::assert_snapshot!(table(WEDNESDAY, &["yesterday", "yesterday 9:00"]), @"
    yesterday                    `yesterday` has passed: it was 2026-11-17 00:00
                                   say a time to come: `tomorrow 0:00`, `in 1h`
    yesterday 9:00               `yesterday 9:00` has passed: it was 2026-11-17 09:00
                                   say a time to come: `tomorrow 9:00`, `in 1h`
    ");
}

/// What may be either of two days is not guessed. On a Wednesday, `next wednesday` is never today.
#[test]
fn a_weekday_that_may_be_two_days_is_refused_with_both() {
    let texts = [
        "wednesday 9:00",
        "wednesday 17:00",
        "wed at 5pm",
        "next wednesday 17:00",
        "next friday 14:00",
        "next tue 9:00:30",
        "next thu 9am",
        "thursday 9am",
    ];
    insta::assert_snapshot!(table(WEDNESDAY, &texts), @"
    wednesday 9:00               `wednesday 9:00` could be 2026-11-18 09:00, which has passed, or 2026-11-25 09:00
                                   say `2026-11-25 09:00`
    wednesday 17:00              `wednesday 17:00` could be 2026-11-18 17:00 or 2026-11-25 17:00
                                   say `2026-11-18 17:00` or `2026-11-25 17:00`
    wed at 5pm                   `wed at 5pm` could be 2026-11-18 17:00 or 2026-11-25 17:00
                                   say `2026-11-18 17:00` or `2026-11-25 17:00`
    next wednesday 17:00         Wed 2026-11-25 17:00:00-05:00
    next friday 14:00            `next friday 14:00` could be 2026-11-20 14:00 or 2026-11-27 14:00
                                   say `2026-11-20 14:00` or `2026-11-27 14:00`
    next tue 9:00:30             `next tue 9:00:30` could be 2026-11-24 09:00:30 or 2026-12-01 09:00:30
                                   say `2026-11-24 09:00:30` or `2026-12-01 09:00:30`
    next thu 9am                 `next thu 9am` could be 2026-11-19 09:00 or 2026-11-26 09:00
                                   say `2026-11-19 09:00` or `2026-11-26 09:00`
    thursday 9am                 Thu 2026-11-19 09:00:00-05:00
    ");
}

#[test]
fn a_time_that_the_clock_leaves_out_is_refused() {
    let texts = ["2:30", "tomorrow 2:30", "sunday 2:30", "2027-03-14 02:00", "2027-03-14 01:59", "2027-03-14 3:00"];
    insta::assert_snapshot!(table("2027-03-13T12:00:00-05:00", &texts), @"
    2:30                         2027-03-14 02:30 does not exist in America/New_York: the clock jumps from 2027-03-14 02:00 to 2027-03-14 03:00
                                   say `2027-03-14 03:00`
    tomorrow 2:30                2027-03-14 02:30 does not exist in America/New_York: the clock jumps from 2027-03-14 02:00 to 2027-03-14 03:00
                                   say `2027-03-14 03:00`
    sunday 2:30                  2027-03-14 02:30 does not exist in America/New_York: the clock jumps from 2027-03-14 02:00 to 2027-03-14 03:00
                                   say `2027-03-14 03:00`
    2027-03-14 02:00             2027-03-14 02:00 does not exist in America/New_York: the clock jumps from 2027-03-14 02:00 to 2027-03-14 03:00
                                   say `2027-03-14 03:00`
    2027-03-14 01:59             Sun 2027-03-14 01:59:00-05:00
    2027-03-14 3:00              Sun 2027-03-14 03:00:00-04:00
    ");
    // Once it has passed, the next such time is meant.
    insta::assert_snapshot!(table("2027-03-14T12:00:00-04:00", &["2:30", "today 2:30"]), @"
    2:30                         Mon 2027-03-15 02:30:00-04:00
    today 2:30                   `today 2:30` has passed: it was 2027-03-14 03:00
                                   say a time to come: `tomorrow 3:00`, `in 1h`
    ");
}

#[test]
fn a_time_that_happens_twice_is_refused_until_both_have_passed() {
    let texts = ["1:30", "sunday 1am", "2027-11-07 01:30", "2027-11-07T01:30-05:00", "2027-11-07 2:00"];
    insta::assert_snapshot!(table("2027-11-06T12:00:00-04:00", &texts), @"
    1:30                         2027-11-07 01:30 happens twice in America/New_York: 2027-11-07T01:30:00-04:00 and 2027-11-07T01:30:00-05:00
                                   say `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`
    sunday 1am                   2027-11-07 01:00 happens twice in America/New_York: 2027-11-07T01:00:00-04:00 and 2027-11-07T01:00:00-05:00
                                   say `2027-11-07T01:00:00-04:00` or `2027-11-07T01:00:00-05:00`
    2027-11-07 01:30             2027-11-07 01:30 happens twice in America/New_York: 2027-11-07T01:30:00-04:00 and 2027-11-07T01:30:00-05:00
                                   say `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`
    2027-11-07T01:30-05:00       Sun 2027-11-07 01:30:00-05:00
    2027-11-07 2:00              Sun 2027-11-07 02:00:00-05:00
    ");
    insta::assert_snapshot!(table("2027-11-07T01:45:00-04:00", &["1:30"]), @"
    1:30                         2027-11-07 01:30 happens twice in America/New_York: 2027-11-07T01:30:00-04:00 and 2027-11-07T01:30:00-05:00
                                   say `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`
    ");
    insta::assert_snapshot!(table("2027-11-07T01:45:00-05:00", &["1:30", "today 1:30"]), @"
    1:30                         Mon 2027-11-08 01:30:00-05:00
    today 1:30                   `today 1:30` has passed: it was 2027-11-07 01:30
                                   say a time to come: `tomorrow 1:30`, `in 1h`
    ");
}

#[test]
fn midnight_can_be_left_out() {
    let cairo = zone("Africa/Cairo");
    let now = "2027-04-29T12:00:00+02:00".parse().expect("an instant");
    let refusal = parse_at("tomorrow 0:00", now, &cairo).expect_err("that midnight does not exist");
    insta::assert_snapshot!(refusal, @"2027-04-30 00:00 does not exist in Africa/Cairo: the clock jumps from 2027-04-30 00:00 to 2027-04-30 01:00");
    assert_eq!(refusal.hint(), "say `2027-04-30 01:00`");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_at_any_time_is_to_come_or_refused_in_few_words(
        text in "(in |next |today |tomorrow |friday |at )?[0-9]{0,4}[-:/ apmhdw]{0,3}[0-9]{0,2}( ?[ap]m)?|\\PC{0,60}",
        second in Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(),
    ) {
        let now = Timestamp::from_second(second).expect("within bounds");
        match parse_at(&text, now, &zone("Europe/Berlin")) {
            Ok(at) => prop_assert!(at > now),
            Err(refusal) => prop_assert!(refusal.to_string().len() < 400 && !refusal.hint().is_empty()),
        }
        if let Err(refusal) = parse_from(&text, now, &zone("Europe/Berlin")) {
            let is_of_another = matches!(refusal, BadWhen::Past { .. } | BadWhen::NoTime { .. });
            prop_assert!(refusal.to_string().len() < 400 && !is_of_another);
        }
    }
}
