//! Agents as they really are: missing, mute, loud, deaf, forking, late, and speaking twice. // SPEC P7, R1, R2, D5

use std::fs;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::fleet::{Agent, Fleet, count};
use crate::town::{GT, session, snapshot};

#[path = "bad_agents/endings.rs"]
mod endings;
#[path = "bad_agents/force.rs"]
mod force;

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

fn event<'a>(events: &'a [Value], kind: &str, bead: &str) -> &'a Value {
    let is_meant = |event: &&Value| event["type"] == kind && event["bead"] == bead;
    events.iter().rfind(is_meant).unwrap_or_else(|| panic!("no {kind} of {bead}"))
}

fn time_of(event: &Value) -> Timestamp {
    event["ts"].as_str().expect("a text").parse().expect("a time")
}

/// The one live run, and its process.
fn run_of(fleet: &Fleet) -> (String, u32) {
    let polecat = fleet.town.gt(["polecat", "list", "--json"]).json()[0].clone();
    let run = polecat["run"].as_str().expect("a run").to_owned();
    // Elsewhere only the place knows it.
    let is_its = |agent: &Agent| agent.leads && agent.run == run;
    let found = || fleet.agents().into_iter().find(is_its).map(|agent| agent.pid);
    let told = polecat["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    (run.clone(), told.or_else(found).expect("a process"))
}

#[test]
fn a_missing_program_holds_up_the_agent_costs_nothing_and_mending_it_starts_the_work_at_once() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("agents.absent.command", r#"["/nowhere/agent"]"#);
    fleet.set("default_agent", "absent");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("scheduler.held_up", None, 1);
    let why = fleet.town.gt(["explain", "gt-a"]).stdout;
    assert!(why.contains("- agent `absent` cannot start `/nowhere/agent`: "), "{why}");
    assert!(why.contains("; install it or set `agents.absent.command`; next try in "), "{why}");
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json(), serde_json::json!([]));
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    assert_eq!(list[0]["dispatch_failures"], 0, "it is not the bead's fault");
    fleet.town.gt(["sling", "gt-b", "--agent", "scripted"]).success();
    fleet.until_events("run.started", Some("gt-b"), 1);
    fleet.set("agents.absent.command", r#"["sleep", "600"]"#);
    fleet.until_events("run.started", Some("gt-a"), 1);
}

#[test]
fn an_agent_without_a_command_is_told_with_the_key_to_set() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a"]);
    let answer = fleet.town.gt(["sling", "gt-a", "--agent", "nobody"]);
    let status = fleet.town.gt(["scheduler", "status"]);
    snapshot!(session([answer, status]), @"
    $ gt sling gt-a --agent nobody
    ! error: there is no agent `nobody`
    ! hint: built in are claude, codex, gemini, opencode and shell; your own: set `agents.nobody.command`
    [exit 3]
    $ gt scheduler status
    Scheduler
      State:  active, direct dispatch
      Queued: 0 total, 0 ready
      Active: 0 polecats, no cap
    ");
}

#[test]
fn without_a_daemon_a_mended_agent_starts_with_the_next_run() {
    let fleet = Fleet::new(STAYS);
    fleet.set("agents.scripted.command", r#"["/nowhere/agent"]"#);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
    fleet.set("agents.scripted.command", r#"["sleep", "600"]"#);
    let answer = fleet.town.gt(["scheduler", "run"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(count(&fleet.town.events(), "run.started", Some("gt-a")), 1);
}

#[test]
fn an_agent_that_ends_without_a_word_is_tried_again_and_then_a_person_is_asked() {
    let fleet = Fleet::with_cap(5, "exit 7");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "2");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("bead.escalated", Some("gt-a"), 1);
    assert_eq!(count(&events, "run.started", Some("gt-a")), 3, "once, and two attempts more");
    let ended = event(&events, "run.ended", "gt-a");
    assert_eq!((&ended["data"]["outcome"], &ended["data"]["exit_code"]), (&"died".into(), &7.into()));
    let answers = [fleet.town.gt(["explain", "gt-a"]), fleet.town.gt(["status"])];
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["status"], "open");
    fleet.script("gt done");
    let retry = fleet.town.gt(["scheduler", "retry", "gt-a"]);
    fleet.until_events("bead.closed", Some("gt-a"), 1);
    snapshot!(session(answers) + &retry.to_string(), @r"
    $ gt explain gt-a
    gt-a is ready:
      - 3 attempts ended unfinished (exit code 7); a person has to look: then `gt scheduler retry gt-a`
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 5 agents running

    Needs a person (2)
      ! gt-a Do gt-a
          3 attempts ended unfinished (exit code 7); a person has to look: then `gt scheduler retry gt-a`
      ! 1 letter was not read: `gt mail inbox`

    Nothing runs.

    Nothing is scheduled. 1 bead is ready: `gt ready`, then `gt sling BEAD`.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    $ gt scheduler retry gt-a
    gt-a is scheduled again (context: gt-wisp-id02); its failures are forgotten.
    ");
}

#[test]
fn the_next_attempt_waits_for_the_cooldown_and_says_until_when() {
    let fleet = Fleet::with_cap(5, "exit 0");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = time_of(event(&events, "run.ended", "gt-a"));
    let list = fleet.town.gt(["scheduler", "list"]);
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "SELECT retry_at FROM context WHERE state = 'open'";
    let until: i64 = store.query_row(sql, [], |row| row.get(0)).expect("it waits");
    let until = Timestamp::from_microsecond(until).expect("a time");
    assert_eq!(until.duration_since(ended), SignedDuration::from_mins(5), "{list}");
    snapshot!(list.to_string(), @"
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
             attempt 1 did not finish it (exited without `gt done`); retry in [SPAN], or now with `gt scheduler retry gt-a`
    ");
}

#[test]
fn a_failure_shows_the_last_output_the_next_try_and_what_to_type() {
    let fleet = Fleet::with_cap(5, "echo Failed to connect to the model; exit 3");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("run.ended", Some("gt-a"), 1);
    let why = "attempt 1 did not finish it (exit code 3; last output: Failed to connect to the model); retry in 5 min, \
               or now with `gt scheduler retry gt-a`";
    for view in [["explain", "gt-a"].as_slice(), &["show", "gt-a"], &["status"], &["scheduler", "list"]] {
        let shown = fleet.town.call(view.iter().copied()).run();
        assert!(shown.success().stdout.contains(why), "{shown}");
    }
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["failure"], why);
}

#[test]
fn a_loud_agent_ends_well_and_peek_stays_quick_and_small() {
    let fleet = Fleet::with_cap(5, "head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo the end; gt done");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    // Of its own time, that is, which does not grow with what else the machine does.
    let mut limited = fleet.town.command("sh");
    limited.args(["-c", "ulimit -c 0; ulimit -t 2; exec \"$0\" polecat peek Toast", GT]);
    let peek = limited.output().expect("a shell is there");
    assert!(peek.status.success(), "within two seconds of the processor: {peek:?}");
    assert!(peek.stdout.len() < 100_000, "peek printed {} bytes", peek.stdout.len());
    assert!(String::from_utf8_lossy(&peek.stdout).contains("the end\n"), "peek shows the end");
    let log = fs::read_dir(fleet.town.path(".gt/logs")).expect("there are logs").flatten().next().expect("one");
    assert_eq!(log.metadata().expect("a file").len() > 100_000_000, crate::place::KEEPS_ALL);
}

#[test]
fn binary_rubbish_does_not_reach_the_terminal() {
    let fleet = Fleet::with_cap(5, "printf '\\033[2J\\007\\377\\nplain\\n'; gt done");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let peek = fleet.town.gt(["polecat", "peek", "Toast"]);
    assert!(!peek.stdout.contains(['\u{1b}', '\u{7}']), "{peek:?}");
    assert!(peek.stdout.contains("plain"), "{peek}");
}
