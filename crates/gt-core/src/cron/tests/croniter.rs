//! A second judge: what croniter answered. The rows in which we differ are listed, each with its reason.

use std::collections::BTreeSet;

use super::*;

const ANSWERS: &str = include_str!("croniter.txt");

const MADE_UP: &str =
    "what a gap leaves out is not made up for if the hour begins with `*` or has a step; croniter does";
const TWICE: &str = "a fixed hour that the clock shows twice counts once; with croniter twice";

/// Why we differ on purpose, and in which rows exactly.
const DIFFERENT: &[(&str, &[&str])] = &[
    (
        "croniter does not know `L-3`, `LW`, or a day with `W` in a list",
        &[
            "UTC | 0 0 L-3 * * | 2026-01-01T00:00Z",
            "UTC | 0 0 L-3 * * | 2027-12-30T17:11Z",
            "UTC | 0 0 LW * * | 2026-01-01T00:00Z",
            "UTC | 0 0 LW * * | 2027-12-30T17:11Z",
            "UTC | 0 0 1,15W * * | 2026-01-01T00:00Z",
            "UTC | 0 0 1,15W * * | 2027-12-30T17:11Z",
        ],
    ),
    (
        "in a month without a 31st there is no `31W`; croniter takes the last day instead, which is `LW`",
        &[
            "UTC | 0 0 29W * * | 2026-01-01T00:00Z",
            "UTC | 0 0 30W * * | 2026-01-01T00:00Z",
            "UTC | 0 0 30W * * | 2027-12-30T17:11Z",
            "UTC | 0 0 31W * * | 2026-01-01T00:00Z",
            "UTC | 0 0 31W * * | 2027-12-30T17:11Z",
        ],
    ),
    (
        "of two day fields one is enough, also with `#`; croniter then passes over the day of the month",
        &["UTC | 0 0 13 * 5#2 | 2026-01-01T00:00Z", "UTC | 0 0 13 * 5#2 | 2027-12-30T17:11Z"],
    ),
    (
        "a step that is larger than the field is a mistake: `*/90` is not each 90 minutes",
        &["UTC | */90 * * * * | 2026-01-01T00:00Z", "UTC | */90 * * * * | 2027-12-30T17:11Z"],
    ),
    (
        "a range does not run backwards, as with Vixie; the refusal says how to write it",
        &[
            "UTC | 0 0 * * 5-1 | 2026-01-01T00:00Z",
            "UTC | 0 0 * * 5-1 | 2027-12-30T17:11Z",
            "UTC | 0 22-2 * * * | 2026-01-01T00:00Z",
            "UTC | 0 22-2 * * * | 2027-12-30T17:11Z",
            "UTC | 0 0 * dec-feb * | 2026-01-01T00:00Z",
            "UTC | 0 0 * dec-feb * | 2027-12-30T17:11Z",
        ],
    ),
    (
        "a range or step of one value, such as `9-9` or `31/10`, names that value; croniter widens it to the whole field",
        &[
            "UTC | */26,*/7 6,6 31/10 * */6 | 2026-06-10T02:16Z",
            "UTC | 37-57 19/8 * 9-9 */4,fri | 2026-07-10T18:13Z",
            "UTC | 1,6-30,*/50 */16 * * 2-2/1 | 2027-12-25T03:21Z",
            "UTC | * 23/11 2-12 7-11/3 * | 2026-09-27T15:17Z",
            "UTC | 33/19,16 8-12/6,4/6 26-26,4-25/9 * * | 2026-04-29T12:37Z",
            "UTC | */22 19-19 * 12,*/5,2-7 3#3 | 2026-01-07T07:07Z",
            "UTC | 19-30,13/8,*/44 * 12-12 8/5 * | 2027-06-20T22:23Z",
            "UTC | 36-36/17 17 9-13 7-11 * | 2028-04-12T16:48Z",
        ],
    ),
    (
        "`0-6` names all weekdays but does not begin with `*`: one day field is enough; croniter takes it for `*`",
        &["UTC | 23 17-22/5 7,22,*/21 */1 0-6 | 2027-04-09T19:34Z"],
    ),
    (
        MADE_UP,
        &[
            "America/New_York | 0 */2 * * * | 2026-03-08T04:00Z",
            "America/New_York | 0 */2 * * * | 2027-03-14T04:00Z",
            "Europe/Berlin | 0 */2 * * * | 2026-03-28T22:00Z",
            "Europe/Berlin | 0 */2 * * * | 2027-03-27T22:00Z",
            "Australia/Lord_Howe | 0 * * * * | 2026-10-03T13:00Z",
            "Australia/Lord_Howe | 0 * * * * | 2027-10-02T13:00Z",
            "Australia/Lord_Howe | 0 */2 * * * | 2026-10-03T13:00Z",
            "Australia/Lord_Howe | 0 */2 * * * | 2027-10-02T13:00Z",
            "Africa/Cairo | 0 */2 * * * | 2026-04-23T20:00Z",
            "Africa/Cairo | 0 */2 * * * | 2027-04-29T20:00Z",
        ],
    ),
    (
        TWICE,
        &[
            "America/New_York | 30 1 * * * | 2026-11-01T03:00Z",
            "America/New_York | 30 1 * * * | 2027-11-07T03:00Z",
            "America/New_York | */20 1 * * * | 2026-11-01T03:00Z",
            "America/New_York | */20 1 * * * | 2027-11-07T03:00Z",
            "America/New_York | 0 1-3 * * * | 2026-11-01T03:00Z",
            "America/New_York | 0 1-3 * * * | 2027-11-07T03:00Z",
            "America/New_York | 15,45 1-3 * * * | 2026-11-01T03:00Z",
            "America/New_York | 15,45 1-3 * * * | 2027-11-07T03:00Z",
            "America/New_York | 30 1 * * 0#1 | 2026-11-01T03:00Z",
            "America/New_York | 30 1 * * 0#1 | 2027-11-07T03:00Z",
            "America/New_York | 30 1 1,8,14,28 * sat | 2026-11-01T03:00Z",
            "Europe/Berlin | 30 2 * * * | 2026-10-24T21:00Z",
            "Europe/Berlin | 30 2 * * * | 2027-10-30T21:00Z",
            "Europe/Berlin | 0 2 * * * | 2026-10-24T21:00Z",
            "Europe/Berlin | 0 2 * * * | 2027-10-30T21:00Z",
            "Europe/Berlin | */20 2 * * * | 2026-10-24T21:00Z",
            "Europe/Berlin | */20 2 * * * | 2027-10-30T21:00Z",
            "Europe/Berlin | 0 1-3 * * * | 2026-10-24T21:00Z",
            "Europe/Berlin | 0 1-3 * * * | 2027-10-30T21:00Z",
            "Europe/Berlin | 15,45 1-3 * * * | 2026-10-24T21:00Z",
            "Europe/Berlin | 15,45 1-3 * * * | 2027-10-30T21:00Z",
            "Europe/Berlin | 30 2 * * sun | 2026-10-24T21:00Z",
            "Europe/Berlin | 30 2 * * sun | 2027-10-30T21:00Z",
            "Europe/Berlin | 30 2 * * 0L | 2026-10-24T21:00Z",
            "Europe/Berlin | 30 2 * * 0L | 2027-10-30T21:00Z",
            "Europe/Berlin | 15 2 L * * | 2027-10-30T21:00Z",
            "Australia/Lord_Howe | 30 1 * * * | 2026-04-04T12:00Z",
            "Australia/Lord_Howe | 30 1 * * * | 2027-04-03T12:00Z",
            "Australia/Lord_Howe | 15,45 1-3 * * * | 2026-04-04T12:00Z",
            "Australia/Lord_Howe | 15,45 1-3 * * * | 2027-04-03T12:00Z",
            "Australia/Lord_Howe | 30 1 * * 0#1 | 2026-04-04T12:00Z",
            "Australia/Lord_Howe | 30 1 * * 0#1 | 2027-04-03T12:00Z",
        ],
    ),
];

struct Row<'a> {
    zone: &'a str,
    pattern: &'a str,
    from: &'a str,
    answer: &'a str,
}

impl Row<'_> {
    fn question(&self) -> String {
        format!("{} | {} | {}", self.zone, self.pattern, self.from)
    }
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    ANSWERS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split(" | ");
        let mut next = || columns.next().expect("four columns");
        Row { zone: next(), pattern: next(), from: next(), answer: next() }
    })
}

/// What we say, as the file would say it: as many times as there.
fn ours(row: &Row<'_>) -> String {
    let Ok(expr) = Expr::parse(row.pattern) else { return "refused".to_owned() };
    let (zone, n) = (zone(row.zone), if row.answer.contains('T') { row.answer.split(' ').count() } else { 5 });
    let times = std::iter::successors(expr.next(instant(row.from), &zone), |at| expr.next(*at, &zone)).take(n);
    let times: Vec<String> = times.map(|at| at.strftime("%Y-%m-%dT%H:%MZ").to_string()).collect();
    if times.is_empty() { "never".to_owned() } else { times.join(" ") }
}

#[test]
fn we_differ_from_croniter_where_we_say_so_and_nowhere_else() {
    assert!(rows().count() > 700);
    let differing: BTreeSet<String> = rows().filter(|row| ours(row) != row.answer).map(|row| row.question()).collect();
    let listed: BTreeSet<String> =
        DIFFERENT.iter().flat_map(|(_, rows)| rows.iter().map(|row| (*row).to_owned())).collect();
    assert_eq!(differing, listed);
}

/// In the rows of a reason, what croniter says without some times is what we say first.
fn has_more(reason: &str, is_more: impl Fn(Timestamp, &TimeZone) -> bool) {
    let (_, listed) = DIFFERENT.iter().find(|(why, _)| *why == reason).expect("it is on the list");
    for row in rows().filter(|row| listed.contains(&row.question().as_str())) {
        let zone = zone(row.zone);
        let left: Vec<&str> = row.answer.split(' ').filter(|at| !is_more(instant(at), &zone)).collect();
        assert!(left.len() < row.answer.split(' ').count(), "{} has no such time", row.question());
        assert!(ours(&row).starts_with(&left.join(" ")), "{} has another reason too", row.question());
    }
}

#[test]
fn around_jumps_croniter_says_what_we_say_and_has_ends_of_gaps_and_second_showings_besides() {
    has_more(MADE_UP, vixie::is_gap_end);
    has_more(TWICE, vixie::is_repeat);
}
