//! How runs end: by word, by order, by signal, too late, or not wholly. // SPEC P4, P7, R1

use jiff::SignedDuration;

use super::{STAYS, event, run_of, time_of};
use crate::fleet::{Fleet, count};
use crate::town::{session, snapshot};

/// A bead at work under a daemon that does not look by itself for an hour: what it does in time it was woken up for.
fn slung(script: &str) -> Fleet {
    slung_to(&[], script)
}

/// To a daemon that has no more patience than this place is worth.
fn slung_to_impatient(script: &str) -> Fleet {
    slung_to(&[("GT_TEST_PATIENCE", &crate::place::PATIENCE.to_string())], script)
}

fn slung_to(daemon: &[(&str, &str)], script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("daemon.heartbeat", "1h");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon_with(daemon);
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet
}

/// What is left of a span of the product's patience.
fn patience(seconds: i32) -> SignedDuration {
    SignedDuration::from_secs(1) * seconds * i32::from(crate::place::PATIENCE) / 100
}

#[test]
fn an_agent_that_ignores_the_polite_signal_is_killed() {
    let fleet = slung("trap '' TERM; touch \"$HOME/ready\"; while :; do sleep 0.1; done");
    fleet.await_file("ready");
    let (_, pid) = run_of(&fleet);
    let answer = fleet.town.gt(["polecat", "stop", "Toast", "--reason", "wrong way"]);
    fleet.await_end(pid);
    assert!(fleet.agents().is_empty(), "{:?}", fleet.agents());
    let events = fleet.town.events();
    let (stopping, ended) = (event(&events, "run.stopping", "gt-a"), event(&events, "run.ended", "gt-a"));
    let took = time_of(ended).duration_since(time_of(stopping));
    assert!(took >= SignedDuration::from_secs(4), "it had its grace: {took}");
    assert_eq!((&ended["data"]["outcome"], &ended["data"]["signal"]), (&"stopped".into(), &9.into()));
    snapshot!(session([answer, fleet.town.gt(["explain", "gt-a"])]), @r"
    $ gt polecat stop Toast --reason 'wrong way'
    shop/Toast has stopped; gt-a is released. `gt scheduler retry gt-a` starts it again.
    $ gt explain gt-a
    gt-a is ready:
      - its run was stopped (wrong way (killed by signal 9)); `gt scheduler retry gt-a` starts it again
    ");
}

#[test]
fn a_stopped_bead_is_not_started_again_by_itself_but_by_a_retry() {
    let fleet = slung(STAYS);
    let stopped = fleet.town.gt(["polecat", "stop", "toast"]);
    let again = fleet.town.gt(["polecat", "stop", "shop/Toast"]);
    assert_eq!(count(&fleet.town.events(), "context.scheduled", Some("gt-a")), 1, "nobody scheduled it again");
    fleet.town.gt(["scheduler", "retry", "gt-a"]).success();
    fleet.until_events("run.started", Some("gt-a"), 2);
    snapshot!(session([stopped, again]), @r"
    $ gt polecat stop toast
    shop/Toast has stopped; gt-a is released. `gt scheduler retry gt-a` starts it again.
    $ gt polecat stop shop/Toast
    shop/Toast has no run; nothing was changed.
    ");
}

#[test]
fn what_an_agent_leaves_behind_is_ended_with_it_and_counted() {
    let fleet = slung("sleep 600 & (setsid sleep 600 &) ; sleep 0.1; gt done");
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = event(&events, "run.ended", "gt-a");
    assert_eq!(ended["data"]["outcome"], "completed");
    assert_eq!(ended["data"]["leftover"], if crate::place::HANGS_UP { 1 } else { 2 }, "{ended}");
    assert!(fleet.agents().is_empty(), "{:?}", fleet.agents());
}

#[test]
fn closing_a_bead_twice_and_being_done_twice_is_the_same_as_once() {
    let fleet = slung("gt close $GT_BEAD; gt close $GT_BEAD; gt done; gt done; echo over");
    fleet.until_done(&["gt-a".to_owned()]);
    let events = fleet.town.events();
    assert_eq!(count(&events, "bead.closed", Some("gt-a")), 1);
    assert_eq!(count(&events, "run.reported", Some("gt-a")), 1);
    snapshot!(fleet.town.gt(["polecat", "logs", "Toast"]).to_string(), @r"
    $ gt polecat logs Toast
    gt-a closed.
    gt-a is closed already; nothing was changed.
    gt-a was closed meanwhile. End your process now.
    gt-a was reported already; nothing was changed.
    over
    ");
}

#[test]
fn what_a_run_says_after_its_end_changes_nothing() {
    let fleet = slung("touch \"$HOME/ready\"; exec sleep 600");
    let (run, pid) = run_of(&fleet);
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.await_file("ready");
    Fleet::signal(pid, "-9");
    fleet.until_events("run.ended", Some("gt-a"), 1);
    let before = fleet.town.state();
    let say = |words: &[&str]| fleet.town.call(words.iter().copied()).env("GT_RUN", &run).env("GT_BEAD", "gt-a").run();
    let answers = [
        say(&["done"]),
        say(&["done", "--status", "failed"]),
        say(&["escalate", "help"]),
        say(&["prime"]),
        say(&["hook"]),
    ];
    assert_eq!(fleet.town.state(), before);
    snapshot!(session(answers), @r"
    $ gt done
    ! error: run [RUN] has ended: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt done --status failed
    ! error: run [RUN] has ended: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt escalate help
    ! error: run [RUN] has ended: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt prime
    ! error: run [RUN] has no work any more
    ! hint: stop here; another run has it, or it is done
    [exit 1]
    $ gt hook
    Nothing: this run has ended.
    ");
}

#[test]
fn a_run_that_nobody_knows_is_not_heard() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a"]);
    let before = fleet.town.state();
    let say =
        |words: &[&str]| fleet.town.call(words.iter().copied()).env("GT_RUN", "no-such").env("GT_BEAD", "gt-a").run();
    let answers =
        [say(&["done"]), say(&["escalate", "help"]), say(&["prime"]), say(&["hook"]), fleet.town.gt(["done"])];
    assert_eq!(fleet.town.state(), before);
    snapshot!(session(answers), @r"
    $ gt done
    ! error: run no-such is not known here: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt escalate help
    ! error: run no-such is not known here: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt prime
    ! error: run no-such has no work any more
    ! hint: stop here; another run has it, or it is done
    [exit 1]
    $ gt hook
    Nothing: this run has ended.
    $ gt done
    ! error: this is not a run: GT_RUN is not set
    ! hint: agents call this; people look with `gt status` or `gt explain BEAD`
    [exit 2]
    ");
}

#[test]
fn an_agent_that_lingers_after_closing_its_bead_is_ended_after_its_grace() {
    let fleet = slung_to_impatient("gt close $GT_BEAD; exec sleep 600");
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let took =
        time_of(event(&events, "run.ended", "gt-a")).duration_since(time_of(event(&events, "bead.closed", "gt-a")));
    assert!(took >= patience(10), "{took}");
    assert_eq!(event(&events, "run.ended", "gt-a")["data"]["outcome"], "completed");
}

#[test]
fn a_run_longer_than_the_longest_is_stopped_and_costs_an_attempt() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("daemon.heartbeat", "1h");
    fleet.set("witness.max_run", "1s");
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let took =
        time_of(event(&events, "run.ended", "gt-a")).duration_since(time_of(event(&events, "run.started", "gt-a")));
    assert!(took >= SignedDuration::from_secs(1), "{took}");
    snapshot!(fleet.town.gt(["explain", "gt-a"]).to_string(), @"
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - attempt 1 did not finish it (it ran longer than `witness.max_run` (killed by signal 15)); retry in [SPAN], or now with `gt scheduler retry gt-a`
    ");
}

#[test]
fn a_killed_agent_is_noticed_at_once() {
    let fleet = slung("touch \"$HOME/ready\"; exec sleep 600");
    fleet.await_file("ready");
    let (_, pid) = run_of(&fleet);
    Fleet::signal(pid, "-9");
    let events = fleet.until_events("bead.released", Some("gt-a"), 1);
    let ended = event(&events, "run.ended", "gt-a");
    assert_eq!((&ended["data"]["outcome"], &ended["data"]["signal"]), (&"died".into(), &9.into()));
}

#[test]
fn without_a_daemon_a_death_is_noticed_all_the_same_and_its_slot_is_used() {
    let fleet = Fleet::new("touch \"$HOME/ready\"; exec sleep 600");
    fleet.set("rigs.shop.max_polecats", "1");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_file("ready");
    let (_, pid) = run_of(&fleet);
    let full = fleet.town.gt(["sling", "gt-b"]);
    Fleet::signal(pid, "-9");
    let events = fleet.until_events("run.started", Some("gt-b"), 1);
    assert_eq!(event(&events, "run.ended", "gt-a")["data"]["signal"], 9, "its exit status was kept");
    snapshot!(session([full, fleet.town.gt(["scheduler", "list"])]), @"
    $ gt sling gt-b
    ✓ Scheduled gt-b → shop (context: gt-wisp-id01)
        the one slot of rig shop is taken by shop/Toast
    Tracked by convoy hq-cv-id02.
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
             attempt 1 did not finish it (killed by signal 9); retry in [SPAN], or now with `gt scheduler retry gt-a`
    ");
}

#[test]
fn a_failed_run_gives_its_bead_back_and_says_why() {
    let fleet = slung("gt done --status failed --note 'no such API'");
    fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["status"], "open");
    snapshot!(fleet.town.gt(["explain", "gt-a"]).to_string(), @"
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - attempt 1 did not finish it (no such API); retry in [SPAN], or now with `gt scheduler retry gt-a`
    ");
}

#[test]
fn a_deferred_run_puts_its_bead_off_and_costs_no_attempt() {
    let fleet = slung("gt done --status deferred --note 'after the release'");
    fleet.until_events("run.ended", Some("gt-a"), 1);
    let shown = fleet.town.gt(["show", "gt-a", "--json"]).json();
    assert_eq!(shown["status"], "deferred");
    assert_eq!(count(&fleet.town.events(), "context.scheduled", Some("gt-a")), 1, "nobody scheduled it again");
    snapshot!(session([fleet.town.gt(["explain", "gt-a"]), fleet.town.gt(["status"])]), @r"
    $ gt explain gt-a
    gt-a is deferred:
      - its status was set to deferred
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 5 agents running

    Nothing runs.

    Nothing is scheduled.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    ");
}

#[test]
fn an_agent_that_asks_for_a_person_is_heard_and_goes_on() {
    let fleet = slung("gt escalate 'which of the two APIs?'; touch \"$HOME/asked\"; exec sleep 600");
    fleet.await_file("asked");
    let status = fleet.town.gt(["status"]);
    assert!(status.stdout.contains("Needs a person (2)"), "{status}");
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"], "working");
    fleet.town.gt(["bead", "label", "remove", "gt-a", "gt:escalated"]).success();
    fleet.town.gt(["mail", "read", "1"]).success();
    let after = fleet.town.gt(["status"]);
    assert!(!after.stdout.contains("Needs a person"), "{after}");
    snapshot!(status.to_string(), @r"
    $ gt status
    [TOWN]  daemon runs (process [PID])
    1 of 5 agents running

    Needs a person (2)
      ! gt-a Do gt-a
          which of the two APIs?
      ! 1 letter was not read: `gt mail inbox`

    Running (1)
      ● shop/Toast  working   gt-a Do gt-a  since [TIME]

    Nothing is scheduled.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    ");
}
