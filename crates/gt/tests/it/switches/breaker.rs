//! Starts that fail: back-off, the circuit breaker, quarantine. // SPEC D5

use super::STAYS;
use crate::fleet::{Fleet, count};
use crate::town::{session, snapshot};

/// A town where the start of what is slung with `--base-branch nosuch` fails, which is the bead's own fault.
fn fleet() -> Fleet {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "--base-branch", "nosuch"]).success();
    fleet
}

#[test]
fn a_start_that_fails_three_times_breaks_the_circuit_visibly() {
    let fleet = fleet();
    let first = fleet.town.gt(["scheduler", "run"]);
    let answers = [fleet.town.gt(["scheduler", "run"]), fleet.town.gt(["scheduler", "list"])];
    assert_eq!(first.code, 1, "a run that could start nothing has failed: {first}");
    fleet.start_daemon();
    fleet.until_events("context.failed", Some("gt-a"), 3);
    let after = [
        fleet.town.gt(["scheduler", "status"]),
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["explain", "gt-a"]),
        fleet.town.gt(["status"]),
    ];
    let record = fleet.town.gt(["show", "gt-a", "--json"]).json();
    assert_eq!(record["status"], "open", "the bead itself is untouched");
    assert_eq!(count(&fleet.town.events(), "run.started", None), 0);
    snapshot!(first.to_string() + &session(answers), @"
    $ gt scheduler run
    ✗ Could not start gt-a: [TOWN]/shop has no branch `nosuch`, and neither has its origin
    [exit 1]
    $ gt scheduler run
    Nothing that is scheduled can start now: `gt scheduler list` says why.
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
             its start failed once ([TOWN]/shop has no branch `nosuch`, and neither has its origin); retry in [SPAN], or now with `gt scheduler retry gt-a`
    ");
    snapshot!(session(after), @r"
    $ gt scheduler status
    Scheduler
      State:  active, deferred dispatch
      Queued: 0 total, 0 ready
      Active: 0 of 5 polecats, 5 free
      Last dispatch: [TIME] (1 bead)
      ✗ gt-a: its circuit is broken ([TOWN]/shop has no branch `nosuch`, and neither has its origin); one more try at [TIME], or now with `gt scheduler retry gt-a`
    $ gt scheduler list
    not scheduled any more
      ✗ gt-a: its circuit is broken ([TOWN]/shop has no branch `nosuch`, and neither has its origin); one more try at [TIME], or now with `gt scheduler retry gt-a`
    $ gt explain gt-a
    gt-a is ready:
      - its circuit is broken ([TOWN]/shop has no branch `nosuch`, and neither has its origin); one more try at [TIME], or now with `gt scheduler retry gt-a`
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 5 agents running

    Needs a person (2)
      ! gt-a Do gt-a
          its circuit is broken ([TOWN]/shop has no branch `nosuch`, and neither has its origin); one more try at [TIME], or now with `gt scheduler retry gt-a`
      ! 1 letter was not read: `gt mail inbox`

    Nothing runs.

    Nothing is scheduled. 2 beads are ready: `gt ready`, then `gt sling BEAD`.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    ");
}

#[test]
fn a_broken_circuit_lets_one_try_through_after_its_time_and_closes_when_the_fault_is_gone() {
    let fleet = fleet();
    fleet.set("scheduler.max_failures", "1");
    fleet.set("scheduler.breaker_reset", "1s");
    fleet.start_daemon();
    let events = fleet.until_events("context.closed", Some("gt-a"), 2);
    assert_eq!(count(&events, "context.failed", Some("gt-a")), 2, "each try breaks it again");
    fleet.town.git(&["-C", "shop", "branch", "nosuch"]);
    fleet.until_events("run.started", Some("gt-a"), 1);
}

#[test]
fn a_retry_forgets_the_failures_and_starts_at_once() {
    let fleet = fleet();
    fleet.set("scheduler.max_failures", "1");
    fleet.start_daemon();
    fleet.until_events("context.closed", Some("gt-a"), 1);
    fleet.town.git(&["-C", "shop", "branch", "nosuch"]);
    let answer = fleet.town.gt(["scheduler", "retry", "gt-a"]);
    fleet.until_events("run.started", Some("gt-a"), 1);
    snapshot!(answer.to_string(), @r"
    $ gt scheduler retry gt-a
    gt-a is scheduled again (context: gt-wisp-id01); its failures are forgotten.
    ");
}

#[test]
fn what_is_broken_holds_up_nobody_else() {
    let fleet = fleet();
    fleet.set("scheduler.max_polecats", "1");
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-b"), 1);
    assert_eq!(count(&fleet.town.events(), "run.started", Some("gt-a")), 0);
}

#[test]
fn an_invalid_context_is_quarantined_at_once_and_said_so() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store opens");
    let spoil = r#"UPDATE context SET fields = '{"version":99}' WHERE bead = (SELECT key FROM bead WHERE id = 'gt-a')"#;
    assert_eq!(store.execute(spoil, []).expect("the store can be written"), 1);
    drop(store);
    let answers = [
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["explain", "gt-a"]),
        fleet.town.gt(["scheduler", "run"]),
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["explain", "gt-a"]),
        fleet.town.gt(["sling", "gt-a"]),
    ];
    let events = fleet.town.events();
    let closed = events.iter().find(|event| event["type"] == "context.closed").expect("it was closed");
    assert_eq!((&closed["bead"], &closed["data"]["reason"]), (&"gt-a".into(), &"invalid-context".into()));
    snapshot!(session(answers), @r"
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
             its context is invalid (its version is 99, and this gt knows 1); the pass that comes to it closes it
      ▶   2  gt-b  Do gt-b
             starts with the next pass
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 2 in the queue
      - its context is invalid (its version is 99, and this gt knows 1); the pass that comes to it closes it
    $ gt scheduler run
    ▶ Started Toast on gt-b Do gt-b (shop)
    $ gt scheduler list
    not scheduled any more
      ✗ gt-a: its context was invalid (its version is 99, and this gt knows 1) and was closed; `gt sling gt-a` makes a new one
    $ gt explain gt-a
    gt-a is ready:
      - its context was invalid (its version is 99, and this gt knows 1) and was closed; `gt sling gt-a` makes a new one
    $ gt sling gt-a
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
    Tracked by convoy hq-cv-id02.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    ");
}
