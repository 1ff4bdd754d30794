//! Everything that lets work start or holds it back: guards, caps, order, and what `scheduler run` says of it.
//! // SPEC P3, D2, D3, D6

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, count};
use crate::town::{session, snapshot};

#[path = "switches/breaker.rs"]
mod breaker;
#[path = "switches/reload.rs"]
mod reload;
#[path = "switches/spacing.rs"]
mod spacing;

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

/// The beads whose runs have started, in order.
fn hooked(events: &[Value]) -> Vec<&str> {
    events.iter().filter(|event| event["type"] == "bead.hooked").filter_map(|event| event["bead"].as_str()).collect()
}

#[test]
fn each_guard_of_a_sling_names_the_bead_the_reason_and_the_way_on() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.town.repository("docs");
    fleet.town.gt(["rig", "add", "docs", "docs", "--prefix", "docs"]).success();
    fleet.hold(&["gt-run", "gt-ok", "gt-end", "docs-one", "far-one", "hq-one"]);
    fleet.hold_lines(&[
        r#"{"id":"gt-pin","title":"Pinned","pinned":true}"#,
        r#"{"id":"gt-eph","title":"Fleeting","ephemeral":true}"#,
        r#"{"id":"gt-mol","title":"A molecule","issue_type":"molecule"}"#,
        r#"{"id":"gt-epi","title":"An empty epic","issue_type":"epic"}"#,
    ]);
    fleet.town.gt(["close", "gt-end"]).success();
    fleet.town.gt(["sling", "gt-run"]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let mut guards = vec![
        refused("sling"),
        refused("sling shop"),
        refused("sling gt-no"),
        refused("sling gt-ok shpo"),
        refused("sling gt-end shop"),
        refused("sling gt-ok docs"),
        refused("sling far-one"),
        refused("sling far-one shop"),
        refused("sling hq-one"),
        refused("sling gt-run"),
        refused("sling gt-pin"),
        refused("sling gt-eph"),
        refused("sling gt-mol"),
        refused("sling gt-epi"),
        refused("sling gt-ok --formula nosuch"),
        refused("sling nosuch --on gt-ok"),
        refused("sling --new Task"),
        refused("scheduler retry gt-no"),
    ];
    for (verb, back) in [("park", "unpark"), ("dock", "undock")] {
        fleet.town.gt(["rig", verb, "docs"]).success();
        guards.push(refused("sling docs-one"));
        guards.push(refused("sling --new Task docs"));
        fleet.town.gt(["rig", back, "docs"]).success();
    }
    snapshot!("sling_guards", guards.concat());
}

#[test]
fn a_polecat_does_not_sling() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let run = fleet.town.gt(["polecat", "list", "--json"]).json()[0]["run"].as_str().expect("a run").to_owned();
    let answer = fleet.town.call(["sling", "gt-b"]).env("GT_RUN", run).run();
    snapshot!(answer.to_string(), @r"
    $ gt sling gt-b
    ! error: a polecat does not sling work (this is run [RUN])
    ! hint: write the work down with `gt create`, and end your own with `gt done`
    [exit 1]
    ");
    assert_eq!(count(&fleet.town.events(), "context.scheduled", Some("gt-b")), 0);
}

#[test]
fn a_forced_batch_into_a_parked_rig_takes_nothing_away() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.town.gt(["rig", "park", "shop"]).success();
    let answer = fleet.town.gt(["sling", "gt-a", "gt-b", "shop", "--force"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(count(&fleet.town.events(), "run.stopping", None), 0, "{answer}");
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"], "working");
}

#[test]
fn what_is_scheduled_for_a_rig_waits_while_it_is_parked_and_starts_when_it_is_back() {
    let fleet = Fleet::with_cap(5, FINISHES);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.town.gt(["rig", "park", "shop"]).success();
    let answers = [fleet.town.gt(["scheduler", "run"]), fleet.town.gt(["explain", "gt-a"])];
    fleet.start_daemon();
    fleet.town.gt(["rig", "unpark", "shop"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    let events = fleet.town.events();
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).expect("it happened");
    assert!(at("rig.unparked") < at("bead.hooked"), "nothing starts in a parked rig");
    snapshot!(session(answers), @r"
    $ gt scheduler run
    Nothing that is scheduled can start now: `gt scheduler list` says why.
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - its rig shop is parked: `gt rig unpark shop`
    ");
}

#[test]
fn a_run_with_nothing_to_do_is_no_failure_and_one_that_is_held_up_is_not_now() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    let idle = fleet.town.gt(["scheduler", "run"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    let first = fleet.town.gt(["scheduler", "run"]);
    let full = fleet.town.gt(["scheduler", "run"]);
    fleet.town.gt(["scheduler", "pause", "--reason", "lunch"]).success();
    let paused = fleet.town.gt(["scheduler", "run"]);
    let in_json = fleet.town.gt(["scheduler", "run", "--json"]);
    assert_eq!([idle.code, first.code, full.code, paused.code, in_json.code], [0, 0, 5, 5, 5]);
    let in_json: Value = serde_json::from_str(&in_json.stdout).expect("JSON");
    assert_eq!((&in_json["reason"], &in_json["skipped"]), (&"paused".into(), &1.into()));
    snapshot!(session([idle, first, full, paused]), @r"
    $ gt scheduler run
    Nothing is scheduled.
    $ gt scheduler run
    ▶ Started Toast on gt-a Do gt-a (shop)
    1 ready bead left (capacity).
    $ gt scheduler run
    ⏸ 1 ready bead waiting: the one slot of the town is taken by shop/Toast
    [exit 5]
    $ gt scheduler run
    ⏸ 1 scheduled bead waiting: dispatch is paused by tester since [TIME]: lunch; `gt scheduler resume` goes on
    [exit 5]
    ");
}

#[test]
fn nested_caps_hold_each_for_itself_and_name_who_has_the_slots() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.town.repository("docs");
    fleet.town.gt(["rig", "add", "docs", "docs", "--prefix", "docs"]).success();
    fleet.set("rigs.docs.isolation", "none");
    fleet.set("rigs.shop.max_polecats", "1");
    fleet.set("agents.scripted.max", "2");
    fleet.hold(&["gt-a", "gt-b", "docs-a", "docs-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "docs-a", "docs-b"]).success();
    let answers = [
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["scheduler", "run"]),
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["explain", "gt-b"]),
    ];
    assert_eq!(fleet.agents().iter().filter(|agent| agent.leads).count(), 2);
    snapshot!(session(answers), @r"
    $ gt scheduler list
    docs
      ▶   3  docs-a  Do docs-a
             starts with the next pass
      ○   4  docs-b  Do docs-b
             all 2 slots of agent `scripted` go to what is before it
    shop
      ▶   1  gt-a  Do gt-a
             starts with the next pass
      ○   2  gt-b  Do gt-b
             the one slot of rig shop goes to what is before it
    $ gt scheduler run
    ▶ Started Toast on gt-a Do gt-a (shop)
    ▶ Started Toast on docs-a Do docs-a (docs)
    2 ready beads left (capacity).
    $ gt scheduler list
    docs
      ○   2  docs-b  Do docs-b
             all 2 slots of agent `scripted` are taken by shop/Toast, docs/Toast
    shop
      ○   1  gt-b  Do gt-b
             the one slot of rig shop is taken by shop/Toast
    $ gt explain gt-b
    gt-b is scheduled:
      - it is number 1 of 2 in the queue
      - the one slot of rig shop is taken by shop/Toast
      - all 2 slots of agent `scripted` are taken by shop/Toast, docs/Toast
    ");
}

#[test]
fn with_priority_order_the_most_urgent_starts_first() {
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.set("scheduler.order", "priority");
    fleet.hold_lines(&[
        r#"{"id":"gt-low","title":"Low","priority":4}"#,
        r#"{"id":"gt-mid","title":"Middle","priority":2}"#,
        r#"{"id":"gt-top","title":"Top","priority":0}"#,
    ]);
    fleet.town.gt(["sling", "gt-low", "gt-mid", "gt-top"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-low", "gt-mid", "gt-top"].map(str::to_owned));
    assert_eq!(hooked(&fleet.town.events()), ["gt-top", "gt-mid", "gt-low"]);
}

#[test]
fn one_run_can_have_another_batch_and_another_cap() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c", "gt-d"]).success();
    let answers = [
        fleet.town.gt(["scheduler", "run", "--max-polecats", "3", "--batch", "2"]),
        fleet.town.gt(["scheduler", "run", "--max-polecats", "3"]),
        fleet.town.gt(["scheduler", "run"]),
        fleet.town.gt(["scheduler", "run", "--batch", "0"]),
    ];
    assert_eq!(fleet.agents().iter().filter(|agent| agent.leads).count(), 3);
    snapshot!(session(answers), @r"
    $ gt scheduler run --max-polecats 3 --batch 2
    ▶ Started Toast on gt-a Do gt-a (shop)
    ▶ Started Ember on gt-b Do gt-b (shop)
    2 ready beads left (batch).
    $ gt scheduler run --max-polecats 3
    ▶ Started Kettle on gt-c Do gt-c (shop)
    1 ready bead left (capacity).
    $ gt scheduler run
    ⏸ 1 ready bead waiting: the one slot of the town is taken by shop/Toast, shop/Ember, shop/Kettle
    [exit 5]
    $ gt scheduler run --batch 0
    ! error: invalid value '0' for '--batch <N>': 0 is not in 1..=4294967295
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn a_second_run_at_the_same_time_waits_and_says_so() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    // Somebody passes.
    let lock = std::fs::File::create(fleet.town.path(".gt/pass.lock")).expect("the town can be written");
    lock.lock().expect("nobody else passes");
    let second = fleet.town.call(["scheduler", "run", "--json"]).spawn();
    let waiter = format!(" {} ", second.id());
    let is_waiting = |line: &str| line.contains("->") && line.contains(&waiter);
    let locks = || std::fs::read_to_string("/proc/locks").expect("the kernel tells its locks");
    fleet.until_seen("the second run waits", || locks().lines().any(is_waiting));
    assert!(fleet.starts().is_empty());
    drop(lock);
    let output = second.wait_with_output().expect("it is a child");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer is JSON");
    assert_eq!((&answer["waited"], &answer["dispatched"][0]["bead"]), (&true.into(), &"gt-a".into()));
}

#[test]
fn a_run_while_paused_names_the_pause_and_not_a_retry() {
    let fleet = Fleet::with_cap(1, "exit 3");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("run.ended", Some("gt-a"), 1);
    fleet.town.gt(["scheduler", "pause"]).success();
    let run = fleet.town.gt(["scheduler", "run"]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stdout.contains("1 scheduled bead waiting: dispatch is paused by tester"), "{run}");
}
