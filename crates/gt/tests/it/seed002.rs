//! Seed 002 word for word: `gt queue`, its quick start, its tables, its states and its promises. // SPEC Q1
//!
//! Where the seed keeps state in labels (`gt:queued`, `gt:queue-dispatched`, `gt:dispatch-failed`) and in a block of the
//! description, here the context is the state: a test that shows a state says which label it stands for.

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet};
use crate::town::{Answer, session, snapshot};

#[path = "seed002/daemon.rs"]
mod daemon;
#[path = "seed002/states.rs"]
mod states;
#[path = "seed002/tables.rs"]
mod tables;

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

/// The seed's rig, without a cap of the scheduler and without a pause between starts.
fn gastown(script: &str) -> Fleet {
    let fleet = Fleet::in_rig("gastown", script);
    fleet.set("queue.spawn_delay", "0s");
    fleet
}

/// What the seed's examples name: tasks, a convoy of two, and an epic with two children.
fn cast(fleet: &Fleet) {
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi", "gt-one", "gt-two"]);
    fleet.hold_lines(&[
        r#"{"id":"hq-cv-abc","title":"Two things","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-one","type":"tracks"},{"depends_on_id":"gt-two","type":"tracks"}]}"#,
        r#"{"id":"gt-epic-123","title":"All of it","issue_type":"epic"}"#,
        r#"{"id":"gt-e1","title":"Its first part","dependencies":[{"depends_on_id":"gt-epic-123","type":"parent-child"}]}"#,
        r#"{"id":"gt-e2","title":"Its second part","dependencies":[{"depends_on_id":"gt-epic-123","type":"parent-child"}]}"#,
    ]);
}

fn gt(fleet: &Fleet, line: &str) -> Answer {
    fleet.town.call(line.split(' ')).run()
}

/// An answer in JSON, whatever its exit code says.
fn said(fleet: &Fleet, line: &str) -> Value {
    let answer = gt(fleet, &format!("{line} --json"));
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in {answer}"))
}

fn beads(list: &Value) -> Vec<&str> {
    list.as_array().unwrap_or_else(|| panic!("a list: {list}")).iter().filter_map(|one| one["bead"].as_str()).collect()
}

fn queued(fleet: &Fleet) -> Vec<String> {
    beads(&said(fleet, "queue list")).into_iter().map(str::to_owned).collect()
}

/// The fields of a bead's open context.
fn fields(fleet: &Fleet, bead: &str) -> Value {
    let list = said(fleet, "queue list");
    let row = list.as_array().expect("a list").iter().find(|row| row["bead"] == bead).expect("it is queued").clone();
    let shown = said(fleet, &format!("show {}", row["context"].as_str().expect("an id")));
    serde_json::from_str(shown["description"].as_str().expect("a text")).expect("JSON")
}

#[test]
fn the_quick_start_runs_word_for_word() {
    let fleet = gastown(STAYS);
    cast(&fleet);
    let gt = |line: &str| gt(&fleet, line);
    snapshot!(
        "queue_quick_start",
        session([
            gt("config set queue.enabled true"),
            gt("queue gt-abc"),
            gt("queue gt-abc gt-def gt-ghi"),
            gt("queue hq-cv-abc"),
            gt("queue gt-epic-123"),
            gt("queue status"),
            gt("queue list"),
            gt("queue run --dry-run"),
            gt("queue run"),
            gt("queue status"),
        ])
    );
    assert_eq!(fleet.agents().iter().filter(|agent| agent.leads).count(), 3, "a batch is three");
}

#[test]
fn the_minimal_example_runs_word_for_word() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    let before = said(&fleet, "show gt-abc");
    let queue = gt(&fleet, "queue gt-abc");
    let status = gt(&fleet, "queue status");
    assert!(status.stdout.contains("Queued: 1 total, 1 ready"), "{status}");
    let after = said(&fleet, "show gt-abc");
    for field in ["description", "labels", "status", "updated_at"] {
        assert_eq!(before[field], after[field], "queuing changes nothing on the work: {field}");
    }
    let context = said(&fleet, "queue list")[0]["context"].as_str().expect("an id").to_owned();
    let run = gt(&fleet, "queue run");
    fleet.until_events("run.reported", Some("gt-abc"), 1);
    assert_eq!(fleet.starts(), ["gt-abc"]);
    assert_eq!(said(&fleet, &format!("show {context}"))["close_reason"], "dispatched");
    snapshot!(session([queue, status, run]), @r"
    $ gt queue gt-abc
    ✓ Queued gt-abc → gastown (context: gt-wisp-id01)
        queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    Tracked by convoy hq-cv-id02.
    $ gt queue status
    Queue
      State:  active, deferred dispatch
      Queued: 1 total, 1 ready
      Active: 0 of 10 polecats, 10 free
      Queue:  10 polecats at most, 3 a pass; queue.enabled is false: the daemon leaves what is queued alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    $ gt queue run
    ▶ Started Toast on gt-abc Do gt-abc (gastown)
    ");
}

/// One state, two surfaces.
#[test]
fn what_gt_queue_enqueues_gt_scheduler_shows_and_the_other_way_round() {
    let fleet = gastown(STAYS);
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    gt(&fleet, "queue gt-abc").success();
    gt(&fleet, "sling gt-def gastown --queue").success();
    let both = |verb: &str| (said(&fleet, &format!("queue {verb}")), said(&fleet, &format!("scheduler {verb}")));
    let (queue, scheduler) = both("list");
    assert_eq!(beads(&queue), ["gt-abc", "gt-def"]);
    assert_eq!(queue, scheduler);
    assert_eq!(fields(&fleet, "gt-abc")["queued"], true);
    assert_eq!(fields(&fleet, "gt-def")["queued"], true, "`--queue` is the same enqueue");
    let (queue, scheduler) = both("status");
    for field in ["queued_total", "queued_ready", "beads", "paused", "active_polecats", "mode", "queue"] {
        assert_eq!(queue[field], scheduler[field], "{field}");
    }
    let keys = |status: &Value| status.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&queue), keys(&scheduler), "the same shape");
    assert_eq!((&queue["max_polecats"], &queue["free"]), (&10.into(), &10.into()));
    assert_eq!(queue["queue"], serde_json::json!({"enabled": false, "max_polecats": 10, "batch_size": 3}));
    // With a cap of the scheduler its limits rule everything, on what is queued already too.
    fleet.set("scheduler.max_polecats", "1");
    let (queue, scheduler) = both("status");
    assert_eq!((&queue["max_polecats"], &queue["mode"]), (&1.into(), &"deferred".into()));
    assert_eq!(queue["queue"], Value::Null);
    assert_eq!(scheduler, queue);
    gt(&fleet, "scheduler pause").success();
    assert_eq!(said(&fleet, "queue status")["paused"], true);
    gt(&fleet, "queue resume").success();
    assert_eq!(beads(&said(&fleet, "scheduler run")["dispatched"]), ["gt-abc"]);
    gt(&fleet, "queue clear").success();
    assert_eq!(said(&fleet, "scheduler list"), serde_json::json!([]));
}

/// What a direct sling could not start waits too, but not for the queue's switch.
#[test]
fn what_is_slung_and_held_back_starts_without_the_queue() {
    let fleet = gastown("while [ ! -e \"$HOME/$GT_BEAD\" ]; do sleep 0.02; done; gt done");
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    fleet.set("rigs.gastown.max_polecats", "1");
    gt(&fleet, "sling gt-abc gt-def").success();
    gt(&fleet, "queue gt-ghi").success();
    fleet.open_gate("gt-abc");
    fleet.until_events("run.started", Some("gt-def"), 1);
    fleet.open_gate("gt-def");
    fleet.until_events("run.ended", Some("gt-def"), 1);
    assert_eq!(queued(&fleet), ["gt-ghi"]);
    snapshot!(gt(&fleet, "explain gt-ghi").to_string(), @r"
    $ gt explain gt-ghi
    gt-ghi is scheduled:
      - it is number 1 of 1 in the queue
      - queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ");
    assert_eq!(fleet.starts(), ["gt-abc", "gt-def"]);
    // What a command makes possible is started by it where no daemon runs, but not what is queued.
    fleet.hold(&["gt-jkl"]);
    gt(&fleet, "close gt-jkl").success();
    assert_eq!(queued(&fleet), ["gt-ghi"]);
}

#[test]
fn a_word_that_is_nothing_gets_the_nearest_command_or_bead() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    snapshot!(["queue", "queue stauts", "queue gt-abd", "queue gastown", "queue gt-abc gastwon", "queue gt-abc --batch 2"].map(refused).concat(), @r"
    $ gt queue
    ! error: name a bead to queue
    ! hint: as in `gt queue gt-id01`
    [exit 2]
    $ gt queue stauts
    ! error: there is neither a bead nor a rig `stauts`
    ! hint: did you mean `gt queue status`?
    [exit 3]
    $ gt queue gt-abd
    ! error: there is neither a bead nor a rig `gt-abd`
    ! hint: did you mean `gt-abc`?
    [exit 3]
    $ gt queue gastown
    ! error: `gastown` is a rig; name the bead before it
    ! hint: as in `gt queue gt-id01`
    [exit 2]
    $ gt queue gt-abc gastwon
    ! error: there is neither a bead nor a rig `gastwon`
    ! hint: did you mean `gastown`?
    [exit 3]
    $ gt queue gt-abc --batch 2
    ! error: unexpected argument '--batch' found
    !
    !   tip: to pass '--batch' as a value, use '-- --batch'
    !
    ! Usage: gt queue [OPTIONS] BEAD|EPIC|CONVOY... [RIG]
    !        gt queue FORMULA --on BEAD [RIG]
    !        gt queue <COMMAND>
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}
