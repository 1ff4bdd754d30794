//! The seed's state machine, its safety properties, and its known limitations, which are none here.

use serde_json::Value;

use super::{STAYS, beads, cast, fields, gastown, gt, queued, said};
use crate::fleet::{FINISHES, Fleet};
use crate::town::{session, snapshot};

fn context_of(fleet: &Fleet, bead: &str) -> String {
    let list = said(fleet, "queue list");
    let row = list.as_array().expect("a list").iter().find(|row| row["bead"] == bead).expect("it is queued").clone();
    row["context"].as_str().expect("an id").to_owned()
}

/// Where the bead and the context stand: the seed's labels.
fn state(fleet: &Fleet, bead: &str, context: &str) -> String {
    let (work, context) = (said(fleet, &format!("show {bead}")), said(fleet, &format!("show {context}")));
    format!("{bead} {} / context {} {}", work["status"], context["status"], context["close_reason"])
}

#[test]
fn every_state_of_a_queued_bead_is_a_state_of_its_context() {
    let fleet = gastown(STAYS);
    fleet.set("scheduler.breaker_reset", "1h");
    fleet.set("rigs.gastown.isolation", "worktree");
    fleet.set("queue.batch_size", "0");
    fleet.hold(&["gt-go", "gt-brk", "gt-bad", "gt-clr"]);
    gt(&fleet, "queue gt-go gt-bad gt-clr").success();
    gt(&fleet, "queue gt-brk --base-branch nosuch").success();
    let all = ["gt-go", "gt-brk", "gt-bad", "gt-clr"].map(|bead| (bead, context_of(&fleet, bead)));
    let states = |when: &str| -> String {
        let lines = all.iter().map(|(bead, context)| state(&fleet, bead, context) + "\n");
        std::iter::once(format!("{when}:\n")).chain(lines).collect()
    };
    // QUEUED: an open context, and nothing on the bead.
    let mut transcript = states("queued");
    // QUARANTINED: a context that cannot be read is closed by the pass that comes to it, without three tries.
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store opens");
    let spoil = "UPDATE context SET fields = '{}' WHERE bead = (SELECT key FROM bead WHERE id = 'gt-bad')";
    assert_eq!(store.execute(spoil, []).expect("the store can be written"), 1);
    // UNQUEUED: cleared.
    gt(&fleet, "queue clear --bead gt-clr").success();
    // DISPATCHED: started. CIRCUIT-BROKEN: after three failures, each in its own run; a failure waits ever longer.
    for n in 1..=3 {
        let run = said(&fleet, "queue run");
        assert_eq!(beads(&run["failed"]), ["gt-brk"], "{run}");
        if n < 3 {
            let row = said(&fleet, "queue list")[0].clone();
            assert_eq!((&row["bead"], &row["dispatch_failures"]), (&"gt-brk".into(), &n.into()), "{row}");
            assert!(row["last_failure"].as_str().is_some_and(|last| last.contains("nosuch")), "{row}");
            let wait = "UPDATE context SET retry_at = NULL WHERE state = 'open'"; // the back-off is over
            store.execute(wait, []).expect("the store can be written");
        }
    }
    transcript += &states("after three runs");
    snapshot!(transcript, @r#"
    queued:
    gt-go "open" / context "open" null
    gt-brk "open" / context "open" null
    gt-bad "open" / context "open" null
    gt-clr "open" / context "open" null
    after three runs:
    gt-go "in_progress" / context "closed" "dispatched"
    gt-brk "open" / context "closed" "circuit-broken"
    gt-bad "open" / context "closed" "invalid-context"
    gt-clr "open" / context "closed" "cleared"
    "#);
    let held = gt(&fleet, "queue status");
    assert!(held.stdout.contains("gt-brk") && held.stdout.contains("gt-bad"), "what nobody tries is told: {held}");
    // Re-queueable, whatever ended it.
    for bead in ["gt-brk", "gt-bad", "gt-clr"] {
        assert_eq!(said(&fleet, &format!("queue {bead}"))["results"][0]["outcome"], "scheduled");
    }
    assert_eq!(queued(&fleet), ["gt-brk", "gt-bad", "gt-clr"]);
}

/// Safety properties: enqueue idempotency, and no labels or text on the work.
#[test]
fn queuing_twice_changes_nothing_the_second_time() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    gt(&fleet, "queue gt-abc --args first").success();
    let before = fleet.town.state();
    let again = gt(&fleet, "queue gt-abc --args second");
    assert_eq!(fleet.town.state(), before);
    assert_eq!(fields(&fleet, "gt-abc")["args"], "first");
    snapshot!(again.to_string(), @r"
    $ gt queue gt-abc --args second
    ○ gt-abc is already scheduled (context: gt-wisp-id01); nothing was changed
    ");
}

/// Post-dispatch: a reopened bead is not mistaken for a queued one.
#[test]
fn a_bead_that_was_dispatched_and_is_reopened_is_not_in_the_queue_again() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    gt(&fleet, "queue gt-abc").success();
    gt(&fleet, "queue run").success();
    fleet.until_events("run.ended", Some("gt-abc"), 1);
    gt(&fleet, "bead reopen gt-abc").success();
    assert!(queued(&fleet).is_empty());
    assert_eq!(gt(&fleet, "queue run").stdout.trim(), "Nothing is scheduled.");
    assert_eq!(said(&fleet, "queue gt-abc")["results"][0]["outcome"], "scheduled");
}

/// Cross-rig guard, status guard, formula check: nothing is stored by what is refused.
#[test]
fn what_is_refused_leaves_nothing_behind() {
    let fleet = gastown(FINISHES);
    cast(&fleet);
    fleet.town.repository("docs");
    gt(&fleet, "rig add docs docs --prefix dx").success();
    gt(&fleet, "bead update gt-def --status in_progress --assignee ann").success();
    gt(&fleet, "close gt-ghi").success();
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let lines = ["queue gt-abc docs", "queue gt-def", "queue gt-ghi", "queue gt-abc --formula nosuch", "queue gt-nono"];
    snapshot!(lines.map(refused).concat(), @r"
    $ gt queue gt-abc docs
    ! error: gt-abc belongs to rig `gastown`, not to rig `docs`
    ! hint: leave the rig out, or insist with `gt queue gt-abc docs --force`
    [exit 1]
    $ gt queue gt-def
    ! error: gt-def is already on the hook of ann
    ! hint: see how it goes with `gt explain gt-def`, or take it away with `gt queue gt-def --force`
    [exit 1]
    $ gt queue gt-ghi
    ! error: gt-ghi is closed: its work is done
    ! hint: open it again with `gt bead reopen gt-ghi`
    [exit 1]
    $ gt queue gt-abc --formula nosuch
    ! error: there is no formula `nosuch`
    ! hint: `gt formula list` shows what there is
    [exit 3]
    $ gt queue gt-id01
    ! error: there is neither a bead nor a rig `gt-id01`
    ! hint: did you mean `gt-one`?
    [exit 3]
    ");
    assert!(queued(&fleet).is_empty());
}

/// Dispatch serialisation: two runs at once start each bead once.
#[test]
fn runs_at_the_same_time_start_nothing_twice() {
    let fleet = gastown(STAYS);
    fleet.set("queue.batch_size", "0");
    let ids: Vec<String> = (0..6).map(|n| format!("gt-{n}")).collect();
    fleet.hold(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.town.call(["queue"].into_iter().chain(ids.iter().map(String::as_str))).run().success();
    let runs: Vec<_> = (0..3).map(|_| fleet.town.call(["queue", "run"]).spawn()).collect();
    for run in runs {
        run.wait_with_output().expect("it can be waited for");
    }
    fleet.await_trace("start", 6);
    let mut starts = fleet.starts();
    starts.sort();
    assert_eq!(starts, ids);
}

/// A run that spaces its starts is one pass, though others get in between: a second one says that it waited.
#[test]
fn a_run_during_another_one_says_that_it_waited() {
    let fleet = gastown(STAYS);
    fleet.set("queue.spawn_delay", "2s");
    fleet.hold(&["gt-abc", "gt-def"]);
    gt(&fleet, "queue gt-abc gt-def").success();
    let first = fleet.town.call(["queue", "run", "--json"]).spawn();
    // It waits between its starts.
    fleet.until_events("run.started", Some("gt-abc"), 1);
    let second = gt(&fleet, "scheduler run");
    let first: Value =
        serde_json::from_slice(&first.wait_with_output().expect("it can be waited for").stdout).expect("JSON");
    assert_eq!((beads(&first["dispatched"]), &first["waited"]), (vec!["gt-abc", "gt-def"], &false.into()), "{first}");
    snapshot!(second, @r"
    $ gt scheduler run
    Waited for another pass to end.
    Nothing is scheduled.
    ! note: another pass is under way; this one waits for its end
    ");
}

/// Limitation 1 of the seed is gone: what is cleared between two starts of a run is not dispatched by it.
#[test]
fn what_is_cleared_while_a_run_is_at_work_does_not_start() {
    let fleet = gastown(STAYS);
    fleet.set("queue.spawn_delay", "3s");
    fleet.hold(&["gt-abc", "gt-def"]);
    gt(&fleet, "queue gt-abc gt-def").success();
    let run = fleet.town.call(["queue", "run", "--json"]).spawn();
    // It has seen both, and waits between its starts.
    fleet.until_events("run.started", Some("gt-abc"), 1);
    gt(&fleet, "queue clear --bead gt-def").success();
    let output = run.wait_with_output().expect("it can be waited for");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((beads(&answer["dispatched"]), &answer["ready"]), (vec!["gt-abc"], &2.into()), "{answer}");
    fleet.await_trace("start", 1);
    assert_eq!(fleet.starts(), ["gt-abc"]);
    assert_eq!(said(&fleet, "show gt-def")["status"], "open");
}

/// Limitation 2 is gone: no text on a bead means anything to the queue.
#[test]
fn a_description_with_the_seeds_delimiter_is_just_a_text() {
    let fleet = gastown(FINISHES);
    let text = "before\n---gt:queue:v1---\ntarget_rig: elsewhere\nafter";
    fleet.hold_lines(&[&serde_json::json!({"id": "gt-abc", "title": "Odd", "description": text}).to_string()]);
    gt(&fleet, "queue gt-abc").success();
    assert_eq!(fields(&fleet, "gt-abc")["target_rig"], "gastown");
    gt(&fleet, "queue run").success();
    fleet.until_events("run.ended", Some("gt-abc"), 1);
    assert_eq!(said(&fleet, "show gt-abc")["description"], text);
}

#[test]
fn pause_and_resume_say_who_and_when_and_stop_every_path() {
    let fleet = gastown(STAYS);
    fleet.hold(&["gt-abc", "gt-def"]);
    gt(&fleet, "queue gt-abc").success();
    let gt = |line: &str| gt(&fleet, line);
    let transcript = session([
        gt("queue pause --actor mayor/ --reason release"),
        gt("queue pause"),
        gt("queue run"),
        gt("sling gt-def"),
        gt("queue status"),
        gt("queue list"),
    ]);
    let status = said(&fleet, "queue status");
    assert_eq!((&status["paused"], &status["paused_by"]), (&true.into(), &"mayor/".into()));
    assert!(status["paused_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{status}");
    assert!(fleet.agents().is_empty());
    snapshot!(transcript + &session([gt("queue resume"), gt("queue clear --bead gt-abc"), gt("queue clear --bead gt-abc"), gt("queue clear"), gt("queue list"), gt("queue run")]), @r"
    $ gt queue pause --actor mayor/ --reason release
    Paused. What runs goes on; nothing new starts. `gt queue resume` goes on.
    $ gt queue pause
    It is paused already by mayor/ since [TIME]; nothing was changed.
    $ gt queue run
    ⏸ 1 scheduled bead waiting: dispatch is paused by mayor/ since [TIME]: release; `gt queue resume` goes on
    [exit 5]
    $ gt sling gt-def
    ✓ Scheduled gt-def → gastown (context: gt-wisp-id01)
        dispatch is paused by mayor/ since [TIME]: release; `gt scheduler resume` goes on
    Tracked by convoy hq-cv-id02.
    $ gt queue status
    Queue
      State:  PAUSED by mayor/ since [TIME]: release, deferred dispatch
      Queued: 2 total, 2 ready
      Active: 0 of 10 polecats, 10 free
      Queue:  10 polecats at most, 3 a pass; queue.enabled is false: the daemon leaves what is queued alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt queue list
    gastown
      ○   1  gt-abc  Do gt-abc
             dispatch is paused by mayor/ since [TIME]: release; `gt queue resume` goes on
      ○   2  gt-def  Do gt-def
             dispatch is paused by mayor/ since [TIME]: release; `gt queue resume` goes on
    $ gt queue resume
    Dispatch goes on.
    ! Toast is on it: gt-def Do gt-def
    $ gt queue clear --bead gt-abc
    Took gt-abc off the queue.
    $ gt queue clear --bead gt-abc
    gt-abc is not scheduled; nothing was changed.
    $ gt queue clear
    Nothing is scheduled; nothing was changed.
    $ gt queue list
    Nothing is scheduled. `gt queue BEAD` queues a bead, `gt ready` shows which could be.
    $ gt queue run
    Nothing is scheduled.
    ");
    fleet.await_trace("start", 1);
    assert_eq!(fleet.starts(), ["gt-def"], "the sling goes on, and what was queued was cleared");
}

/// Auto-convoy: one for each enqueue, none where the bead is tracked already or comes out of a convoy.
#[test]
fn queued_work_is_tracked_once() {
    let fleet = gastown(FINISHES);
    cast(&fleet);
    let convoy = |line: &str| said(&fleet, line)["results"][0]["convoy"].clone();
    let made = convoy("queue gt-abc");
    assert!(made.as_str().is_some_and(|id| id.starts_with("hq-cv-")), "{made}");
    gt(&fleet, "queue clear").success();
    assert_eq!(convoy("queue gt-abc"), made, "it is tracked already");
    assert_eq!(convoy("queue hq-cv-abc"), "hq-cv-abc");
    assert_eq!(convoy("queue gt-def --no-convoy"), Value::Null);
}

/// `list` marks what is blocked, and the pass leaves it alone until it is not.
#[test]
fn what_is_blocked_is_queued_marked_and_passed_over() {
    let fleet = gastown(STAYS);
    fleet.hold(&["gt-abc"]);
    fleet.hold_lines(&[
        r#"{"id":"gt-def","title":"Later","dependencies":[{"depends_on_id":"gt-abc","type":"blocks"}]}"#,
    ]);
    gt(&fleet, "queue gt-def gt-abc").success();
    let status = said(&fleet, "queue status");
    assert_eq!((&status["queued_total"], &status["queued_ready"]), (&2.into(), &1.into()));
    let list = gt(&fleet, "queue list");
    assert_eq!(beads(&said(&fleet, "queue run")["dispatched"]), ["gt-abc"]);
    gt(&fleet, "close gt-abc").success();
    assert_eq!(queued(&fleet), ["gt-def"], "a close is no run");
    snapshot!(list.to_string(), @r"
    $ gt queue list
    gastown
      ⏸   1  gt-def  Later
             it waits for gt-abc (Do gt-abc), which is open
      ○   2  gt-abc  Do gt-abc
             queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ");
}
