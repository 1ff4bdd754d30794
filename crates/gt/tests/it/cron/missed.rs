//! Slots that nobody was there for, clocks that jump, two daemons: each slot once at the most, each missed one recorded.
//! // SPEC K2, K3

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{Clocked, TICK, add, assert_each_once, await_fires, fires, ticking, ticks, told};
use crate::fleet::kill;
use crate::town::GT;

const POLICIES: [&str; 3] = ["skip", "once", "all"];

/// A town at twenty past ten with a job of each policy, on the hour.
fn hourly() -> Clocked {
    let clocked = Clocked::at("2027-01-12T10:20:00Z");
    for policy in POLICIES {
        let words = ["cron", "add", policy, "--cron", "0 * * * *", "--tz", "UTC", "--missed", policy, "--run", TICK];
        clocked.gt(&words).success();
    }
    clocked
}

fn all_told(clocked: &Clocked) -> String {
    POLICIES.map(|policy| told(clocked, policy)).join("\n")
}

fn await_quiet(clocked: &Clocked, n_ok: [i64; 3], n_missed: i64) {
    for (policy, n) in POLICIES.into_iter().zip(n_ok) {
        await_fires(clocked, policy, "ok", n);
    }
    await_fires(clocked, "%", "missed", n_missed);
}

#[test]
fn a_daemon_that_was_down_over_no_slot_one_and_many_does_as_each_job_says() {
    let clocked = hourly();
    clocked.start_daemon();
    clocked.kill_daemon();
    // Over none.
    clocked.set_clock("2027-01-12T10:40:00Z");
    clocked.start_daemon();
    clocked.until_events("daemon.started", None, 2);
    clocked.kill_daemon();
    assert_eq!(all_told(&clocked).trim(), "");
    // Over one.
    clocked.set_clock("2027-01-12T11:10:00Z");
    clocked.start_daemon();
    await_quiet(&clocked, [0, 1, 1], 3);
    clocked.kill_daemon();
    insta::assert_snapshot!(all_told(&clocked), @"
    skip 11:00 missed: no daemon watched the clock then
    once 11:00 missed: no daemon watched the clock then; it runs late
    once 11:00 ok: -
    all 11:00 missed: no daemon watched the clock then; it runs late
    all 11:00 ok: -
    ");
    // Over three.
    clocked.set_clock("2027-01-12T14:10:00Z");
    clocked.start_daemon();
    await_quiet(&clocked, [0, 2, 4], 12);
    clocked.kill_daemon();
    insta::assert_snapshot!(all_told(&clocked), @"
    skip 11:00 missed: no daemon watched the clock then
    skip 12:00 missed: no daemon watched the clock then
    skip 13:00 missed: no daemon watched the clock then
    skip 14:00 missed: no daemon watched the clock then
    once 11:00 missed: no daemon watched the clock then; it runs late
    once 11:00 ok: -
    once 12:00 missed: no daemon watched the clock then; a later one stands for it
    once 13:00 missed: no daemon watched the clock then; a later one stands for it
    once 14:00 missed: no daemon watched the clock then; it runs late
    once 14:00 ok: -
    all 11:00 missed: no daemon watched the clock then; it runs late
    all 11:00 ok: -
    all 12:00 missed: no daemon watched the clock then; it runs late
    all 12:00 ok: -
    all 13:00 missed: no daemon watched the clock then; it runs late
    all 13:00 ok: -
    all 14:00 missed: no daemon watched the clock then; it runs late
    all 14:00 ok: -
    ");
    assert_each_once(&clocked);
}

/// Why the newest of those that were missed was.
fn last_missed(clocked: &Clocked) -> String {
    let last = fires(clocked, "once").into_iter().rfind(|fire| fire["status"] == "missed").expect("some were");
    last["error"].as_str().expect("a reason").to_owned()
}

#[test]
fn what_is_too_late_is_only_recorded_and_what_comes_once_is_better_late_than_never() {
    let clocked = hourly();
    let once = ["cron", "add", "reminder", "--at", "11:00", "--tz", "UTC", "--run", TICK];
    clocked.gt(&once).success();
    clocked.set_clock("2027-01-14T15:59:00Z");
    clocked.start_daemon();
    // The last slot was at three, within its grace.
    await_fires(&clocked, "reminder", "ok", 1);
    await_fires(&clocked, "once", "missed", 53);
    clocked.kill_daemon();
    assert_eq!(last_missed(&clocked), "no daemon watched the clock then; it runs late");
    clocked.set("cron.grace", "10m");
    clocked.set_clock("2027-01-15T15:59:00Z");
    clocked.start_daemon();
    await_fires(&clocked, "once", "missed", 77);
    let why = "no daemon watched the clock then, and by now it is too late: its grace is 10m";
    assert_eq!(last_missed(&clocked), why);
    assert!(!clocked.gt(&["cron", "list"]).stdout.contains("reminder"), "it has run, and is gone");
}

#[test]
fn a_clock_that_is_set_forward_and_back_an_hour_fires_no_slot_twice_and_records_what_it_passed() {
    let clocked = hourly();
    clocked.start_daemon();
    clocked.set_clock("2027-01-12T11:20:00Z");
    await_quiet(&clocked, [0, 1, 1], 3);
    clocked.set_clock("2027-01-12T10:20:00Z");
    // Eleven o'clock comes a second time, and has fired.
    clocked.strike("2027-01-12T11:00:00Z");
    clocked.gt(&["cron", "add", "after", "--at", "in 1s", "--run", TICK]).success();
    await_fires(&clocked, "after", "ok", 1);
    clocked.strike("2027-01-12T12:00:00Z");
    await_quiet(&clocked, [1, 2, 2], 3);
    insta::assert_snapshot!(all_told(&clocked), @"
    skip 11:00 missed: no daemon watched the clock then
    skip 12:00 ok: -
    once 11:00 missed: no daemon watched the clock then; it runs late
    once 11:00 ok: -
    once 12:00 ok: -
    all 11:00 missed: no daemon watched the clock then; it runs late
    all 11:00 ok: -
    all 12:00 ok: -
    ");
    assert_each_once(&clocked);
}

#[test]
fn a_clock_that_was_years_ahead_does_not_silence_jobs_when_it_is_right_again() {
    let clocked = hourly();
    clocked.set_clock("2031-01-12T10:30:00Z");
    clocked.start_daemon();
    await_fires(&clocked, "once", "ok", 1);
    clocked.strike("2027-01-12T11:00:00Z");
    await_fires(&clocked, "once", "ok", 2);
    let slots: Vec<String> = ticks(&clocked).into_iter().map(|(_, slot, _)| slot).collect();
    assert!(slots.contains(&"2027-01-12T11:00:00Z".to_owned()), "{slots:?}");
}

#[test]
fn with_two_daemons_and_one_of_them_killed_each_slot_fires_once_or_is_known_to_be_missed() {
    let fleet = ticking();
    add(&fleet, &["beat", "--every", "1s", "--missed", "skip", "--run", TICK]);
    fleet.start_daemon();
    let mut second = fleet.town.command(GT);
    let mut second =
        second.args(["daemon", "run", "--wait"]).stdout(std::process::Stdio::null()).spawn().expect("it starts");
    await_fires(&fleet, "beat", "ok", 2);
    fleet.kill_daemon();
    await_fires(&fleet, "beat", "ok", 4);
    kill(second.id());
    second.wait().expect("it is a child");
    assert_each_once(&fleet);
    let slots: Vec<Timestamp> = fires(&fleet, "beat")
        .iter()
        .map(|fire| fire["slot"].as_str().expect("a time").parse().expect("a time"))
        .collect();
    let known: BTreeSet<Timestamp> = slots.iter().copied().collect();
    assert_eq!(known.len(), slots.len(), "one record for each: {slots:?}");
    let (first, last) = (known.first().copied().expect("some"), known.last().copied().expect("some"));
    let n = last.duration_since(first).as_secs() as usize + 1;
    assert_eq!(known.len(), n, "none is forgotten: {known:?}");
    assert!(known.iter().zip(known.iter().skip(1)).all(|(a, b)| b.duration_since(*a) == SignedDuration::from_secs(1)));
}

#[test]
fn a_clock_that_is_set_makes_no_run_older_or_younger() {
    let clocked = Clocked::at("2027-01-12T10:20:00Z");
    clocked.set("lanes.cron", "8");
    let wait = format!("{TICK}; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done");
    for (name, timeout) in [("long", "5m"), ("hangs", "5s")] {
        clocked.gt(&["cron", "add", name, "--every", "24h", "--timeout", timeout, "--run", &wait]).success();
    }
    clocked.start_daemon();
    clocked.gt(&["cron", "run", "long"]).success();
    clocked.until_events("run.started", None, 1);
    let n_jumps = || clocked.n_said(&["the clock has gone ahead by", "the clock was set back by"]);
    clocked.set_clock("2027-01-12T11:20:00Z");
    clocked.until_seen("the daemon to look at its clock", || n_jumps() == 1);
    clocked.gt(&["cron", "run", "hangs"]).success();
    clocked.until_events("run.started", None, 2);
    clocked.set_clock("2027-01-12T10:20:00Z");
    await_fires(&clocked, "hangs", "timeout", 1);
    clocked.open_gate("gate");
    await_fires(&clocked, "long", "ok", 1);
    let negative = |fire: &serde_json::Value| fire["duration_ms"].as_i64().is_none_or(|span| span < 0);
    assert!(!fires(&clocked, "hangs").iter().any(negative), "no run ends before it starts");
}
