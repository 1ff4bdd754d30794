//! Starts one after the other: `spawn_delay`, `batch_size`, `starts_per_second`, and switches thrown in between.
//! // SPEC D4, D6, D9

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{STAYS, hooked};
use crate::fleet::{FINISHES, Fleet, count};
use crate::town::snapshot;

/// The first bead's agent ends after a while, which is one more cause for a pass; the others stay.
const FIRST_ENDS: &str = "if [ \"$GT_BEAD\" = gt-a ]; then sleep 0.5; gt done; else exec sleep 600; fi";

/// Between two starts, where something has to happen before the second, on however busy a machine.
const LONG: &str = "1m";

fn spaced(script: &str, delay: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("scheduler.spawn_delay", delay);
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet
}

fn times(events: &[Value], kind: &str) -> Vec<Timestamp> {
    let times = events.iter().filter(|event| event["type"] == kind).filter_map(|event| event["ts"].as_str());
    times.map(|ts| ts.parse().expect("a time")).collect()
}

fn assert_spaced(events: &[Value], n: usize, least: SignedDuration) {
    let times = times(events, "bead.hooked");
    assert_eq!(times.len(), n);
    for pair in times.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= least, "{times:?}");
    }
}

#[test]
fn a_daemon_spaces_its_starts_by_the_spawn_delay() {
    let fleet = spaced(STAYS, "200ms");
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.started", None, 3);
    assert_spaced(&events, 3, SignedDuration::from_millis(200));
}

#[test]
fn a_run_and_a_direct_sling_space_their_starts_too() {
    let fleet = spaced(STAYS, "200ms");
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    assert_spaced(&fleet.town.events(), 2, SignedDuration::from_millis(200));
    fleet.set("scheduler.max_polecats", "-1");
    fleet.hold(&["gt-d", "gt-e"]);
    fleet.town.gt(["sling", "gt-c", "gt-d", "gt-e"]).success();
    let starts = times(&fleet.town.events(), "bead.hooked");
    for pair in starts[2..].windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= SignedDuration::from_millis(200), "{starts:?}");
    }
    assert_eq!(starts.len(), 5);
}

#[test]
fn a_batch_is_a_batch_however_its_starts_are_spaced() {
    let fleet = spaced(STAYS, "50ms");
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    let answer = fleet.town.gt(["scheduler", "run", "--batch", "2"]);
    assert_eq!(count(&fleet.town.events(), "run.started", None), 2);
    snapshot!(answer.to_string(), @r"
    $ gt scheduler run --batch 2
    ▶ Started Toast on gt-a Do gt-a (shop)
    ▶ Started Ember on gt-b Do gt-b (shop)
    1 ready bead left (batch).
    ");
}

#[test]
fn a_direct_sling_keeps_to_the_batch_size() {
    let fleet = spaced(STAYS, "0s");
    fleet.set("scheduler.max_polecats", "-1");
    fleet.set("scheduler.batch_size", "1");
    let answer = fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]);
    assert_eq!(hooked(&fleet.town.events()), ["gt-a"]);
    snapshot!(answer.to_string(), @r"
    $ gt sling gt-a gt-b gt-c
    ▶ Toast is on it: gt-a Do gt-a (shop)
    ✓ Scheduled gt-b → shop (context: gt-wisp-id01)
    ✓ Scheduled gt-c → shop (context: gt-wisp-id02)
        a pass starts 1 at most (`scheduler.batch_size`); it waits for the next one
    Tracked by convoy hq-cv-id03.
    3 beads: 1 dispatched, 2 scheduled.
    ");
}

#[test]
fn with_a_batch_size_of_one_each_pass_starts_one() {
    let fleet = spaced(STAYS, "0s");
    fleet.set("scheduler.batch_size", "1");
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    for n in 1..=3 {
        fleet.town.gt(["scheduler", "run"]).success();
        assert_eq!(count(&fleet.town.events(), "run.started", None), n);
    }
}

#[test]
fn with_a_batch_size_of_one_a_quiet_daemon_starts_one_with_each_heartbeat() {
    let fleet = spaced(STAYS, "0s");
    fleet.set("scheduler.batch_size", "1");
    fleet.set("daemon.heartbeat", "3s");
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.started", None, 2);
    // Heartbeats count from the daemon's start, and on a busy machine its first pass comes late.
    assert_spaced(&events, 2, SignedDuration::from_millis(300));
}

#[test]
fn a_pause_stops_a_running_dispatch_and_a_resume_lets_it_go_on() {
    let fleet = spaced(FIRST_ENDS, LONG);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["scheduler", "pause"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(hooked(&events), ["gt-a"], "nothing starts while it is paused");
    fleet.set("scheduler.spawn_delay", "0s");
    fleet.town.gt(["scheduler", "resume"]).success();
    let events = fleet.until_events("run.started", None, 3);
    assert_eq!(hooked(&events), ["gt-a", "gt-b", "gt-c"]);
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).expect("it happened");
    let between = &events[at("scheduler.paused")..at("scheduler.resumed")];
    assert_eq!(count(between, "bead.hooked", None), 0);
}

#[test]
fn a_pause_stops_a_run_that_is_under_way() {
    let fleet = spaced(STAYS, "3s");
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    let run = fleet.town.call(["scheduler", "run"]).spawn();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["scheduler", "pause"]).success();
    let output = run.wait_with_output().expect("it is a child");
    let output = String::from_utf8(output.stdout).expect("text");
    let events = fleet.town.events();
    let paused = events.iter().position(|event| event["type"] == "scheduler.paused").expect("it was paused");
    assert_eq!(count(&events[paused..], "bead.hooked", None), 0, "nothing starts after the pause: {output}");
    let n_left = 3 - count(&events, "bead.hooked", None);
    assert!(output.starts_with("▶ Started Toast on gt-a Do gt-a (shop)\n"), "{output}");
    assert!(n_left == 0 || output.contains("left (paused)."), "{output}");
}

#[test]
fn what_is_cleared_does_not_start_though_a_dispatch_is_under_way() {
    let fleet = spaced(FIRST_ENDS, LONG);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["scheduler", "clear", "--bead", "gt-b"]).success();
    fleet.set("scheduler.spawn_delay", "0s");
    let events = fleet.until("gt-c started and gt-a ended", |events| {
        count(events, "run.started", Some("gt-c")) == 1 && count(events, "run.ended", Some("gt-a")) == 1
    });
    assert_eq!(hooked(&events), ["gt-a", "gt-c"]);
    snapshot!(fleet.town.gt(["explain", "gt-b"]).to_string(), @r"
    $ gt explain gt-b
    gt-b is ready:
      - it was taken off the queue; `gt sling gt-b` puts it back
    ");
}

#[test]
fn starts_per_second_spreads_the_starts() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("guards.starts_per_second", "1");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.started", None, 2);
    assert_spaced(&events, 2, SignedDuration::from_millis(900));
}

/// A time zone in which it is midnight, as `TZ` has it.
fn zone_at_midnight() -> String {
    let left = 24 * 3600 - Timestamp::now().as_second().rem_euclid(24 * 3600);
    format!("XXX-{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60)
}

#[test]
fn the_daily_budget_holds_what_comes_after_it_is_spent() {
    let fleet = Fleet::with_cap(1, "gt done --cost 1.50");
    fleet.set("budget.daily", "1");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.ended", Some("gt-a"), 1);
    let held = fleet.town.gt(["explain", "gt-b"]);
    // Where it is midnight now the day has just begun, but a town has one day for all who look at it.
    let elsewhere = fleet.town.call(["explain", "gt-b"]).env("TZ", zone_at_midnight()).run();
    assert_eq!(elsewhere.stdout, held.stdout);
    let run = fleet.town.gt(["scheduler", "run"]);
    assert_eq!(run.code, 5, "{run}");
    fleet.set("budget.daily", "10");
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    snapshot!(held.to_string() + &run.to_string(), @r"
    $ gt explain gt-b
    gt-b is scheduled:
      - it is number 1 of 1 in the queue
      - agents have reported $1.50 today, and `budget.daily` is $1.00; work starts again at midnight
    $ gt scheduler run
    ⏸ 1 ready bead waiting: agents have reported $1.50 today, and `budget.daily` is $1.00; work starts again at midnight
    [exit 5]
    ");
}

#[test]
fn a_cost_that_is_no_amount_is_refused() {
    let fleet = Fleet::new(FINISHES);
    for cost in ["much", "-1", "NaN", "inf"] {
        let answer = fleet.town.gt(["done", &format!("--cost={cost}")]);
        assert_eq!(answer.code, 2, "{answer}");
    }
}

/// SPEC D4: one batch for each thing that happens; what is left over does not simply start with the next pass.
#[test]
fn after_a_batch_the_rest_is_told_when_the_next_one_comes() {
    let fleet = Fleet::with_cap(5, "exec sleep 600");
    fleet.set("scheduler.batch_size", "1");
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    let slung = fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c", "--json"]).json();
    let convoy = slung["results"][0]["convoy"].as_str().expect("a convoy").to_owned();
    fleet.town.gt(["scheduler", "run"]).success();
    let next = "starts with the next batch: when something happens here, or at the daemon's next heartbeat";
    for words in [&["status"][..], &["scheduler", "list"], &["convoy", "status", &convoy], &["explain", "gt-b"]] {
        let answer = fleet.town.call(words.iter().copied()).run();
        // The picture of a convoy cuts what is beside a title.
        let said = if words[0] == "convoy" { "starts with the next batch: when" } else { next };
        assert!(answer.stdout.contains(said) && !answer.stdout.contains("next pass"), "{answer}");
    }
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    assert_eq!(list[0]["reason"], serde_json::Value::Null, "nothing holds it");
    fleet.set("scheduler.batch_size", "auto");
    let answer = fleet.town.gt(["scheduler", "list"]);
    assert!(answer.stdout.contains("starts with the next pass"), "{answer}");
}
