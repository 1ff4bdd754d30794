//! `gt cron next`: times that will come, of a job or of an expression, and why there are none. // SPEC K1

use rusqlite::Connection;

use super::Clocked;
use crate::town::{Town, session, snapshot};

const NOW: &str = "2027-01-12T10:20:00Z";

fn with_report() -> Clocked {
    let clocked = Clocked::at(NOW);
    clocked.gt(&["cron", "add", "report", "--cron", "0 9 * * *", "--tz", "UTC", "--run", "true"]).success();
    clocked
}

#[test]
fn a_job_that_rests_has_no_times_and_says_what_has_it_go_on() {
    let clocked = with_report();
    let next = |words: &[&str]| clocked.gt(&[&["cron", "next"], words].concat());
    clocked.gt(&["cron", "pause", "report"]).success();
    let paused = next(&["report"]);
    let store = Connection::open(clocked.town.store()).expect("the store is there");
    let sql = "UPDATE job SET state = 'disabled', why = 'it failed 5 times in a row'";
    store.execute(sql, []).expect("it is a store");
    let alone = next(&["report", "--from", "now", "--count", "2"]);
    snapshot!(session([paused, next(&["report"]), alone]), @"
    $ gt cron next report
    ! error: the job `report` is paused
    ! hint: `gt cron resume report` has it go on; `gt cron next report --from now` shows its schedule alone
    [exit 5]
    $ gt cron next report
    ! error: the job `report` is disabled: it failed 5 times in a row
    ! hint: `gt cron resume report` has it go on; `gt cron next report --from now` shows its schedule alone
    [exit 5]
    $ gt cron next report --from now --count 2
    2027-01-13T09:00:00+00:00
    2027-01-14T09:00:00+00:00
    ");
}

#[test]
fn the_times_of_a_job_begin_with_the_slot_that_it_waits_for() {
    let clocked = with_report();
    let next = |words: &[&str]| clocked.gt(&[&["cron", "next", "report", "--count", "2"], words].concat());
    // By a clock that was set back an hour or a day, nine o'clock has been seen to.
    clocked.set_clock("2027-01-11T08:00:00Z");
    let back = next(&[]);
    // Nobody has run it yet: that is due, and what comes then is to come.
    clocked.set_clock("2027-01-14T10:00:00Z");
    let due = next(&[]);
    let from = next(&["--from", "2027-01-11"]);
    // That it would come so elsewhere is a question about its schedule.
    let elsewhere = next(&["--tz", "America/New_York"]);
    assert_eq!(next(&["--tz", "UTC"]).stdout, due.stdout);
    snapshot!(session([back, due, from, elsewhere]), @"
    $ gt cron next report --count 2
    2027-01-13T09:00:00+00:00
    2027-01-14T09:00:00+00:00
    $ gt cron next report --count 2
    2027-01-13T09:00:00+00:00
    2027-01-15T09:00:00+00:00
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt cron next report --count 2 --from 2027-01-11
    2027-01-11T09:00:00+00:00
    2027-01-12T09:00:00+00:00
    $ gt cron next report --count 2 --tz America/New_York
    2027-01-14T09:00:00-05:00
    2027-01-15T09:00:00-05:00
    ");
}

#[test]
fn a_job_that_comes_once_says_so_when_it_is_over() {
    let clocked = Clocked::at(NOW);
    let gt = |words: &[&str]| clocked.gt(&[&["cron"], words].concat());
    for name in ["over", "late", "rests"] {
        gt(&["add", name, "--at", "11:00", "--tz", "UTC", "--run", "true"]).success();
    }
    let before = gt(&["next", "over"]);
    gt(&["pause", "rests"]).success();
    let store = Connection::open(clocked.town.store()).expect("the store is there");
    let sql = "UPDATE job SET next_at = NULL WHERE name = 'late';
               UPDATE job SET next_at = NULL, state = 'disabled', why = 'its time has passed, and it did not run'
                 WHERE name = 'over'";
    store.execute_batch(sql).expect("it is a store");
    clocked.set_clock("2027-01-12T12:00:00Z");
    let answers = [
        before,
        gt(&["next", "over"]),
        gt(&["next", "late"]),
        gt(&["next", "rests"]),
        gt(&["next", "over", "--from", "12:30"]),
    ];
    snapshot!(session(answers), @"
    $ gt cron next over
    2027-01-12T11:00:00+00:00
    $ gt cron next over
    ! error: the job `over` is over: its time has passed, and it did not run
    ! hint: give it another time with `gt cron edit over --at TIME`, or run it now with `gt cron run over`
    [exit 1]
    $ gt cron next late
    ! error: the job `late` comes once, and its time has come: Tue 2027-01-12 11:00 +00:00
    ! hint: see what becomes of it with `gt cron runs late`
    [exit 1]
    $ gt cron next rests
    ! error: the job `rests` is paused, and its time has passed: Tue 2027-01-12 11:00 +00:00
    ! hint: give it another time with `gt cron edit rests --at TIME`, or run it now with `gt cron run rests`
    [exit 1]
    $ gt cron next over --from 12:30
    ! error: no time of `over` comes after 2027-01-12T12:30:00+00:00
    ! hint: it comes once, at 2027-01-12T11:00:00+00:00
    [exit 1]
    ");
}

#[test]
fn a_word_that_is_neither_a_job_nor_an_expression_is_no_job() {
    let town = Town::new();
    town.gt(["cron", "add", "nightly", "--every", "1h", "--run", "true"]).success();
    let refused = [
        town.refused(["cron", "next", "nigthly"]),
        town.refused(["cron", "next", "nojbo", "--tz", "UTC"]),
        town.refused(["cron", "next", "job-7"]),
        town.refused(["cron", "next", "daily"]),
        town.refused(["cron", "next", "*/5"]),
        town.refused(["cron", "next", "@dayly"]),
        town.refused(["cron", "next", "0 9 * *"]),
    ];
    let elsewhere = Town::unmade().gt(["cron", "next", "nightly"]).to_string();
    snapshot!(refused.concat() + &elsewhere, @"
    $ gt cron next nigthly
    ! error: there is no job `nigthly`
    ! hint: did you mean `nightly`?
    [exit 3]
    $ gt cron next nojbo --tz UTC
    ! error: there is no job `nojbo`
    ! hint: `gt cron list` shows what there is
    [exit 3]
    $ gt cron next job-7
    ! error: there is no job `job-7`
    ! hint: `gt cron list` shows what there is
    [exit 3]
    $ gt cron next daily
    ! error: there is no job `daily`
    ! hint: if a schedule is meant: `@daily`
    [exit 3]
    $ gt cron next '*/5'
    ! error: a schedule has five fields (minute, hour, day, month, weekday), and `*/5` has 1
    ! hint: for each day at 9:00 say `0 9 * * *`
    [exit 2]
    $ gt cron next @dayly
    ! error: `@dayly` is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly
    ! hint: say `@daily`, or five fields such as `0 9 * * *`
    [exit 2]
    $ gt cron next '0 9 * *'
    ! error: a schedule has five fields (minute, hour, day, month, weekday), and `0 9 * *` has 4
    ! hint: for each day at 9:00 say `0 9 * * *`
    [exit 2]
    $ gt cron next nightly
    ! error: [TOWN] is not in a town
    ! hint: make one here with `gt init`, or name one with `--town DIR` or GT_TOWN
    [exit 3]
    ");
}

#[test]
fn the_time_to_begin_with_is_read_as_any_time_of_a_job_is() {
    let clocked = Clocked::at(NOW);
    let next = |from: &str| {
        clocked.gt(&["cron", "next", "0 9 * * *", "--tz", "America/New_York", "--from", from, "--count", "1"])
    };
    let answers = [
        "2027-03-27",
        "2027-03-27 10:00",
        "2027-03-27T10:00:00-04:00",
        "yesterday",
        "yesterday 9:00",
        "tomorrow 9:00",
        "in 2d",
        "2027-11-07 1:30",
        "2027-03-14 2:30",
        "03/04/2027",
        "soon",
    ]
    .map(next);
    snapshot!(session(answers), @"
    $ gt cron next '0 9 * * *' --tz America/New_York --from 2027-03-27 --count 1
    2027-03-27T09:00:00-04:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from '2027-03-27 10:00' --count 1
    2027-03-28T09:00:00-04:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from 2027-03-27T10:00:00-04:00 --count 1
    2027-03-28T09:00:00-04:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from yesterday --count 1
    2027-01-11T09:00:00-05:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from 'yesterday 9:00' --count 1
    2027-01-12T09:00:00-05:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from 'tomorrow 9:00' --count 1
    2027-01-14T09:00:00-05:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from 'in 2d' --count 1
    2027-01-14T09:00:00-05:00
    $ gt cron next '0 9 * * *' --tz America/New_York --from '2027-11-07 1:30' --count 1
    ! error: 2027-11-07 01:30 happens twice in America/New_York: 2027-11-07T01:30:00-04:00 and 2027-11-07T01:30:00-05:00
    ! hint: say `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`
    [exit 2]
    $ gt cron next '0 9 * * *' --tz America/New_York --from '2027-03-14 2:30' --count 1
    ! error: 2027-03-14 02:30 does not exist in America/New_York: the clock jumps from 2027-03-14 02:00 to 2027-03-14 03:00
    ! hint: say `2027-03-14 03:00`
    [exit 2]
    $ gt cron next '0 9 * * *' --tz America/New_York --from 03/04/2027 --count 1
    ! error: `03/04/2027` is read as different days in different countries
    ! hint: say year, month, day and time: `2026-12-01 9:00`
    [exit 2]
    $ gt cron next '0 9 * * *' --tz America/New_York --from soon --count 1
    ! error: `soon` is not a time
    ! hint: say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    [exit 2]
    ");
}
