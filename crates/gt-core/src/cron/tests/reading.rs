//! What can be written, and what is refused in which words.

use super::*;
use crate::text::one_line;

fn refusal(text: &str) -> String {
    let refusal = Expr::parse(text).expect_err(text);
    match refusal.hint() {
        Some(hint) => format!("{:<22} {refusal}\n{:<22}   {hint}\n", one_line(text), ""),
        None => format!("{:<22} {refusal}\n", one_line(text)),
    }
}

/// Whether two texts name the same times.
fn means(left: &str, right: &str) {
    let (left, right) = (expr(left), expr(right));
    assert_eq!(left.calendar, right.calendar, "`{left}` and `{right}`");
    assert_eq!(left.follows_clock, right.follows_clock, "`{left}` and `{right}`");
}

#[test]
fn it_is_shown_as_it_was_written_with_single_spaces() {
    assert_eq!(expr("  */5\t 9-17  *  JAN   mon-FRI ").to_string(), "*/5 9-17 * JAN mon-FRI");
    assert_eq!(expr(" @Daily").to_string(), "@Daily");
}

#[test]
fn a_schedule_is_no_longer_than_anybody_can_read() {
    let long = |n: usize| format!("0{} 0 * * *", ",0".repeat((n - 9) / 2));
    assert!(Expr::parse(&long(999)).is_ok());
    let refused = Expr::parse(&long(120_001)).expect_err("nobody reads that");
    assert_eq!(refused.to_string(), "a schedule has 1000 characters at the most, and this one has 120001");
    assert_eq!(refused.hint(), Some("say ranges and steps, as in `*/5 9-17 * * *`".to_owned()));
}

#[test]
fn nicknames_stand_for_five_fields() {
    means("@yearly", "0 0 1 1 *");
    means("@annually", "0 0 1 1 *");
    means("@monthly", "0 0 1 * *");
    means("@weekly", "0 0 * * 0");
    means("@daily", "0 0 * * *");
    means("@MIDNIGHT", "0 0 * * *");
    means("@hourly", "0 * * * *");
}

#[test]
fn one_thing_can_be_written_in_several_ways() {
    means("0 0 * * sun", "0 0 * * 0");
    means("0 0 * * 7", "0 0 * * 0");
    means("0 0 * * 5-7", "0 0 * * 0,5,6");
    means("0 0 * * fri-sun", "0 0 * * 5-7");
    means("0 0 * * Sun-tue", "0 0 * * 0-2");
    means("0 0 * Feb,JUN-aug *", "0 0 * 2,6,7,8 *");
    means("05 09 01 01 *", "5 9 1 1 *");
    means("*/15 0 * * *", "0,15,30,45 0 * * *");
    means("5/20 0 * * *", "5,25,45 0 * * *");
    means("10-40/15 0 * * *", "10,25,40 0 * * *");
    means("0 0 * * 1/2", "0 0 * * 1,3,5");
    means("0 0 * * 7/3", "0 0 * * 0,3,6");
    means("*/60 0 * * *", "0 0 * * *");
    means("0 0 ? * mon", "0 0 * * mon");
    means("0 0 13 * ?", "0 0 13 * *");
    means("0 0 l,15w,l-3,lw * fril", "0 0 L,15W,L-3,LW * 5L");
    means("0 0 * * FRI#2,7#1,sunL", "0 0 * * 0#1,5#2,0L");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one snapshot, read as a whole")]
fn what_is_wrong_is_refused_with_the_field_and_the_part() {
    let wrong = [
        "",
        "* * * *",
        "0 * * * * *",
        "0 0 * * * * 2026",
        "1 2 3 4 5 6 7 8",
        "@reboot",
        "@fortnightly",
        "@every 5m",
        "@daily 5",
        "CRON_TZ=UTC 0 9 * * *",
        "61 * * * *",
        "60 * * * *",
        "-1 * * * *",
        "+1 * * * *",
        "1.5 * * * *",
        "999 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * foo *",
        "* * * * 8",
        "* * * * monday",
        "1,,2 * * * *",
        ",1 * * * *",
        "1, * * * *",
        "5-2 * * * *",
        "* 22-2 * * *",
        "* * * dec-feb *",
        "* * * * sat-mon",
        "*/0 * * * *",
        "*/ * * * *",
        "*/x * * * *",
        "*/90 * * * *",
        "* */36 * * *",
        "* * */32 * *",
        "1/2/3 * * * *",
        "1-2-3 * * * *",
        "- * * * *",
        "** * * * *",
        "? * * * *",
        "L * * * *",
        "* * 1,? * *",
        "* * ?/2 * *",
        "* * L-0 * *",
        "* * L-31 * *",
        "* * L-3W * *",
        "* * 0W * *",
        "* * W * *",
        "* * 1-5W * *",
        "* * L/2 * *",
        "* * 5#2 * *",
        "* * * * L",
        "* * * * 5#0",
        "* * * * 5#6",
        "* * * * #2",
        "* * * * 8L",
        "* * * * 1-5L",
        "* * * * 5#2/2",
        "* * * * 5W",
        "１ * * * *",
        "\u{7}x * * * *",
    ];
    let told: String = wrong.into_iter().map(refusal).collect();
    insta::assert_snapshot!(told, @"
                           a schedule is not an empty text
                             for each day at 9:00 say `0 9 * * *`
    * * * *                a schedule has five fields (minute, hour, day, month, weekday), and `* * * *` has 4
                             for each day at 9:00 say `0 9 * * *`
    0 * * * * *            `0 * * * * *` has 6 fields: seconds and years are not supported, there are five (minute, hour, day, month, weekday)
                             leave out the seconds in front and the year at the end
    0 0 * * * * 2026       `0 0 * * * * 2026` has 7 fields: seconds and years are not supported, there are five (minute, hour, day, month, weekday)
                             leave out the seconds in front and the year at the end
    1 2 3 4 5 6 7 8        a schedule has five fields (minute, hour, day, month, weekday), and `1 2 3 4 5 6 7 8` has 8
                             for each day at 9:00 say `0 9 * * *`
    @reboot                `@reboot` is not a time: nothing here happens when a machine starts
    @fortnightly           `@fortnightly` is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly
                             say `@daily`, or five fields such as `0 9 * * *`
    @every 5m              `@every` is not part of a schedule with fields
                             say `--every 5m` instead
    @daily 5               `@daily 5` is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly
                             say `@daily`, or five fields such as `0 9 * * *`
    CRON_TZ=UTC 0 9 * * *  the zone is not part of the schedule, as in `CRON_TZ=UTC`
                             say it apart, as in `--tz Europe/Berlin`
    61 * * * *             `61` is not a minute: 0 to 59
    60 * * * *             `60` is not a minute: 0 to 59
    -1 * * * *             `-1` is not a minute: 0 to 59
    +1 * * * *             `+1` is not a minute: 0 to 59
    1.5 * * * *            `1.5` is not a minute: 0 to 59
    999 * * * *            `999` is not a minute: 0 to 59
    * 24 * * *             `24` is not an hour: 0 to 23
    * * 0 * *              `0` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * 32 * *             `32` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * * 0 *              `0` is not a month: 1 to 12, or jan to dec
    * * * 13 *             `13` is not a month: 1 to 12, or jan to dec
    * * * foo *            `foo` is not a month: 1 to 12, or jan to dec
    * * * * 8              `8` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
    * * * * monday         `monday` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
                             say `mon`
    1,,2 * * * *           `1,,2` has an empty part where a minute belongs
                             separate values with one comma, as in `1,2`
    ,1 * * * *             `,1` has an empty part where a minute belongs
                             separate values with one comma, as in `1,2`
    1, * * * *             `1,` has an empty part where a minute belongs
                             separate values with one comma, as in `1,2`
    5-2 * * * *            the range `5-2` runs backwards
                             say `5-59,0-2`
    * 22-2 * * *           the range `22-2` runs backwards
                             say `22-23,0-2`
    * * * dec-feb *        the range `dec-feb` runs backwards
                             say `12,1-2`
    * * * * sat-mon        the range `sat-mon` runs backwards
                             say `6-7,1`
    */0 * * * *            the step in `*/0` is not a number from 1 to 60
                             for each 90 minutes, say, there is `--every 90m`
    */ * * * *             the step in `*/` is not a number from 1 to 60
                             for each 90 minutes, say, there is `--every 90m`
    */x * * * *            the step in `*/x` is not a number from 1 to 60
                             for each 90 minutes, say, there is `--every 90m`
    */90 * * * *           the step in `*/90` is not a number from 1 to 60
                             for each 90 minutes, say, there is `--every 90m`
    * */36 * * *           the step in `*/36` is not a number from 1 to 24
                             for each 36 hours, say, there is `--every 36h`
    * * */32 * *           the step in `*/32` is not a number from 1 to 31
    1/2/3 * * * *          the step in `1/2/3` is not a number from 1 to 60
                             for each 90 minutes, say, there is `--every 90m`
    1-2-3 * * * *          `1-2-3` is not a minute: 0 to 59
    - * * * *              `-` is not a minute: 0 to 59
    ** * * * *             `**` is not a minute: 0 to 59
    ? * * * *              `?` is not a minute: 0 to 59
    L * * * *              `L` is not a minute: 0 to 59
    * * 1,? * *            `?` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * ?/2 * *            `?` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * L-0 * *            `L-0` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * L-31 * *           `L-31` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * L-3W * *           `L-3W` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * 0W * *             `0W` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * W * *              `W` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * 1-5W * *           `1-5W` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * L/2 * *            `L` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * 5#2 * *            `5#2` is not a day of the month: 1 to 31, or such as L, L-3, LW, 15W
    * * * * L              `L` says no weekday: `L` is the last one of a month only after it
                             say `5L` for the last Friday, or `L` as the day of the month
    * * * * 5#0            `5#0` is not one of a month's weekdays: they are #1 to #5
                             say `fri#2` for the second Friday, `friL` for the last
    * * * * 5#6            `5#6` is not one of a month's weekdays: they are #1 to #5
                             say `fri#2` for the second Friday, `friL` for the last
    * * * * #2             `#2` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
    * * * * 8L             `8L` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
    * * * * 1-5L           `1-5L` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
    * * * * 5#2/2          `5#2/2` is not one of a month's weekdays: they are #1 to #5
                             say `fri#2` for the second Friday, `friL` for the last
    * * * * 5W             `5W` is not a day of the week: 0 to 7, or sun to sat, or such as 5L, fri#2
    １ * * * *              `１` is not a minute: 0 to 59
    �x * * * *             `�x` is not a minute: 0 to 59
    ");
}

#[test]
fn a_refusal_is_short_and_drives_no_terminal() {
    let told = Expr::parse(&format!("{}\u{1b} * * * *", "9".repeat(10_000))).expect_err("it is no minute").to_string();
    assert!(told.len() < 120 && !told.contains('\u{1b}'), "{told}");
}
