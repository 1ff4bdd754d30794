//! What agents tell, with real processes that speak as the vendors' do: waiting, limits, lingering, garbage. // SPEC P5, D5

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::Value;

use crate::fleet::{Fleet, count};
use crate::town::{session, snapshot};

#[path = "agents/presets.rs"]
mod presets;

/// A fleet whose agents speak like Claude, and a daemon.
fn fleet(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("agents.scripted.speaks", "claude");
    fleet.start_daemon();
    fleet
}

/// A hook of Claude is called from inside a script.
fn hook(event: &str) -> String {
    format!(r#"echo '{{"hook_event_name":"{event}","session_id":"s-1","tool_use_id":"t"}}' | gt agent-event claude"#)
}

fn gate(name: &str) -> String {
    format!(r#"while [ ! -e "$HOME/{name}" ]; do sleep 0.02; done"#)
}

/// What the last end of a bead was.
fn end_of(events: &[Value], bead: &str) -> Value {
    let is_end = |event: &&Value| event["type"] == "run.ended" && event["bead"] == bead;
    events.iter().rfind(is_end).unwrap_or_else(|| panic!("no end of {bead}"))["data"].clone()
}

fn number(fleet: &Fleet, sql: &str) -> i64 {
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    store.query_row(sql, [], |row| row.get(0)).expect("it answers")
}

/// Time passes for a run that lingers; whoever looks next sees it.
fn let_grace_pass(fleet: &Fleet) {
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    store
        .execute("UPDATE run SET activity_at = activity_at - 31000000 WHERE state <> 'ended'", [])
        .expect("it is changed");
    drop(store);
    fleet.town.gt(["create", "Wake up"]).success();
}

#[test]
fn a_run_that_waits_for_an_approval_is_shown_first_and_goes_on_when_it_was_answered() {
    let script = [
        hook("SessionStart"),
        hook("PermissionRequest"),
        gate("answered"),
        hook("PostToolUse"),
        gate("go"),
        "gt done".to_owned(),
    ];
    let fleet = fleet(&script.join("\n"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    let row = fleet.town.gt(["polecat", "list", "--json"]).json()[0].clone();
    assert_eq!((&row["state"], &row["waiting_for"]), (&"waiting".into(), &"approval".into()), "{row}");
    assert_eq!(row["conversation"], "s-1");
    let answers = [fleet.town.gt(["status"]), fleet.town.gt(["explain", "gt-a"]), fleet.town.gt(["polecat", "list"])];
    fleet.open_gate("answered");
    fleet.until_events("run.resumed", Some("gt-a"), 1);
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"], "working");
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
    snapshot!(session(answers), @r"
    $ gt status
    [TOWN]  daemon runs (process [PID])
    1 of 5 agents running

    Needs a person (1)
      ! ● shop/Toast  waiting   gt-a Do gt-a  waits for an approval: `gt polecat attach Toast`

    Running (1)
      ● shop/Toast  waiting   gt-a Do gt-a  waits for an approval: `gt polecat attach Toast`

    Nothing is scheduled.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    $ gt explain gt-a
    gt-a is running:
      - shop/Toast waits for an approval, since [TIME]: `gt polecat attach Toast`
    $ gt polecat list
    ● shop/Toast  waiting   gt-a Do gt-a  waits for an approval: `gt polecat attach Toast`
    ");
}

#[test]
fn a_turn_that_is_over_in_a_terminal_waits_for_a_person_and_is_not_ended() {
    let fleet = fleet(&[hook("Stop"), gate("go"), "gt done".to_owned()].join("\n"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    let_grace_pass(&fleet);
    let row = fleet.town.gt(["polecat", "list", "--json"]).json()[0].clone();
    assert_eq!((&row["state"], &row["waiting_for"]), (&"waiting".into(), &"question".into()), "{row}");
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(count(&fleet.town.events(), "run.stopping", None), 0);
}

#[test]
fn a_limit_costs_no_attempt_others_go_on_and_the_work_starts_by_itself_when_it_has_passed() {
    let script = r#"
        if [ -e "$HOME/limited" ]; then gt done; exit; fi
        touch "$HOME/limited"
        echo "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":$(( $(date +%s) + 3 ))}}"
        echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
        exit 1"#;
    let fleet = fleet(script);
    fleet.set("agents.other.command", r#"["sh", "-c", "gt done"]"#);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let end = end_of(&events, "gt-a");
    assert_eq!((&end["outcome"], &end["failure"]), (&"rate-limited".into(), &"rate-limit".into()), "{end}");
    let answers = [fleet.town.gt(["explain", "gt-a"]), fleet.town.gt(["scheduler", "status"])];
    fleet.town.gt(["sling", "gt-b", "--agent", "other"]).success();
    fleet.until_events("bead.closed", Some("gt-b"), 1);
    let events = fleet.until_events("bead.closed", Some("gt-a"), 1);
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_eq!(count(&events, "scheduler.held_up", None), 1);
    assert_eq!(number(&fleet, "SELECT max(attempts) FROM dispatch_record"), 0);
    snapshot!(session(answers), @r"
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - agent `scripted` is held up: it is rate limited: You have hit your limit; next try in [SPAN], or at once with `gt scheduler resume`
    $ gt scheduler status
    Scheduler
      State:  active, deferred dispatch
      Queued: 1 total, 1 ready
      Active: 0 of 5 polecats, 5 free
      Last dispatch: [TIME] (1 bead)
      ! agent `scripted` is held up: it is rate limited: You have hit your limit; next try in [SPAN], or at once with `gt scheduler resume`
    ");
}

#[test]
fn every_vendors_limit_is_understood_and_a_missing_login_too() {
    let cases = [
        ("claude", r#"{"type":"result","is_error":true,"api_error_status":429,"result":"slow down"}"#, "rate-limited"),
        ("claude", r#"{"type":"result","is_error":true,"result":"Not logged in · Please run /login"}"#, "agent-unable"),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again in 2 hours."}}"#,
            "rate-limited",
        ),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"type":"Error","message":"Quota exceeded (429)"}}"#,
            "rate-limited",
        ),
        (
            "opencode",
            r#"{"type":"error","sessionID":"o","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}"#,
            "agent-unable",
        ),
        ("codex", r#"{"type":"turn.failed","error":{"message":"the stream was cut"}}"#, "died"),
        ("none", r#"{"type":"result","is_error":true,"api_error_status":429,"result":"slow down"}"#, "died"),
    ];
    let fleet = Fleet::with_cap(20, "true");
    for (at, (vendor, line, _)) in cases.iter().enumerate() {
        fs::write(fleet.home(&format!("line{at}")), line).expect("the home can be written");
        let command = format!(r#"["sh", "-c", "cat $HOME/line{at}; exit 1"]"#);
        fleet.set(&format!("agents.a{at}.command"), &command);
        fleet.set(&format!("agents.a{at}.speaks"), vendor);
    }
    fleet.start_daemon();
    for at in 0..cases.len() {
        let bead = format!("gt-{at}");
        fleet.hold(&[&bead]);
        fleet.town.gt(["sling", &bead, "--agent", &format!("a{at}")]).success();
    }
    let events = fleet.until_events("run.ended", None, cases.len());
    for (at, (vendor, line, outcome)) in cases.iter().enumerate() {
        let end = end_of(&events, &format!("gt-{at}"));
        assert_eq!(end["outcome"], *outcome, "{vendor} {line}: {end}");
    }
    assert_eq!(count(&events, "scheduler.held_up", None), 5);
}

#[test]
fn without_a_daemon_the_end_is_still_what_the_agent_said_it_was() {
    let fleet =
        Fleet::new(r#"echo '{"type":"result","is_error":true,"api_error_status":429,"result":"slow down"}'; exit 1"#);
    fleet.set("agents.scripted.speaks", "claude");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(end_of(&events, "gt-a")["outcome"], "rate-limited");
}

#[test]
fn who_lives_on_after_the_last_word_is_ended() {
    let fleet = fleet(
        r#"if [ "$GT_BEAD" = gt-a ]; then
             echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
           else
             echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}'
           fi
           exec sleep 600"#,
    );
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_seen("both have said their last word", || {
        number(&fleet, "SELECT count(*) FROM run WHERE activity IN ('turn-over', 'waiting')") == 2
    });
    assert_eq!(count(&fleet.town.events(), "run.stopping", None), 0, "not before its time");
    let_grace_pass(&fleet);
    let events = fleet.until_events("run.ended", None, 2);
    let (a, b) = (end_of(&events, "gt-a"), end_of(&events, "gt-b"));
    let over = "its turn was over, its bead was not done, and it did not end (killed by signal 15)";
    assert_eq!((&a["outcome"], &a["reason"]), (&"died".into(), &over.into()));
    assert_eq!(b["outcome"], "rate-limited", "{b}");
}

#[test]
fn garbage_and_floods_do_not_hide_the_last_word() {
    let fleet = fleet(
        r#"head -c 3000000 /dev/urandom
           echo; echo '{"type":"result","is_error":'; echo '[[[[{"type":'
           head -c 6000000 /dev/zero | tr '\0' x
           echo; yes '{"type":"assistant","message":{"content":[]}}' | head -n 20000
           printf '{"type":"result","is_error":true,"api_error_status":429,"result":"slow down"}'
           exit 1"#,
    );
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(end_of(&events, "gt-a")["outcome"], "rate-limited");
}

#[test]
fn what_agents_use_is_shown_and_counts_towards_the_budget() {
    let fleet = fleet(
        r#"echo '{"type":"result","is_error":false,"total_cost_usd":2.5,"usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":7}}'
           gt done"#,
    );
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.set("budget.daily", "2");
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    let shown = fleet.town.gt(["polecat", "show", "Toast"]).stdout;
    assert!(shown.contains("100 tokens in (90 cached), 7 out, $2.50"), "{shown}");
    fleet.town.gt(["sling", "gt-b"]).success();
    let why = fleet.town.gt(["explain", "gt-b"]).stdout;
    assert!(why.contains("agents have reported $2.50 today, and `budget.daily` is $2.00"), "{why}");
}

#[test]
fn a_hook_prints_nothing_ends_well_and_leaves_no_trace_where_it_does_not_belong() {
    let fleet = fleet(&[hook("Stop"), gate("go"), "gt done".to_owned()].join("\n"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.waiting", None, 1);
    let run = fleet.started_runs().remove(0);
    let root = fleet.town.root().to_owned();
    let stop = r#"{"hook_event_name":"Stop"}"#;
    let nowhere = fleet.home("nowhere");
    let calls: [(&str, &str, &str, &str); 7] = [
        ("claude", "", &run, stop),
        ("claude", nowhere.to_str().expect("a path"), &run, stop),
        ("claude", root.to_str().expect("a path"), "another-run", stop),
        ("claude", root.to_str().expect("a path"), "../../town", stop),
        ("claude", root.to_str().expect("a path"), &run, "no JSON"),
        ("stranger", root.to_str().expect("a path"), &run, stop),
        ("claude", root.to_str().expect("a path"), &run, "[]"),
    ];
    let files = || {
        let names = fs::read_dir(fleet.town.path(".gt/logs")).expect("it is there").flatten();
        let mut files: Vec<_> = names.map(|file| (file.path(), file.metadata().map(|data| data.len()).ok())).collect();
        files.sort();
        files
    };
    let before = files();
    for (vendor, town, run, given) in calls {
        let call = fleet.town.call(["agent-event", vendor]).env("GT_TOWN", town).env("GT_RUN", run);
        let answer = call.stdin(given.as_bytes()).run();
        assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (0, "", ""), "{vendor} {town} {run}");
    }
    let answer = fleet.town.call(["agent-event", "--help", "--what"]).at(fleet.town.home()).run();
    assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (0, "", ""));
    assert_eq!(files(), before);
    assert!(!nowhere.exists());
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
    // And from a run that has ended it changes nothing.
    let n_events = fleet.town.events().len();
    let late = fleet.town.call(["agent-event", "claude"]).env("GT_TOWN", &root).env("GT_RUN", &run);
    assert_eq!(late.stdin(stop.as_bytes()).run().code, 0);
    fleet.town.gt(["scheduler", "run"]);
    assert_eq!(fleet.town.events().len(), n_events);
}

#[test]
fn what_a_run_has_used_and_printed_is_known_after_its_end_too() {
    let result = r#"echo '{"type":"result","usage":{"input_tokens":5,"output_tokens":3},"total_cost_usd":0.5}'"#;
    let fleet = fleet(&[result, "gt done"].join("\n"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    let worker = fleet.town.gt(["polecat", "show", "Toast", "--json"]).json();
    let used = (&worker["tokens_in"], &worker["tokens_out"], &worker["cost_usd"], &worker["run"]);
    assert_eq!(used, (&5.into(), &3.into(), &0.5.into(), &Value::Null), "{worker}");
    let logs = fleet.town.gt(["polecat", "logs", "Toast", "--json"]).json();
    assert_eq!((&logs["name"], &logs["rig"]), (&"Toast".into(), &"shop".into()), "{logs}");
    assert!(logs["text"].as_str().is_some_and(|text| text.contains("total_cost_usd")), "{logs}");
    assert_eq!(logs["run"], fleet.started_runs()[0]);
    let none = fleet.town.gt(["polecat", "peek", "Toast", "-n", "0"]);
    assert!(none.code == 2 && none.stderr.contains("0 is not in 1.."), "{none}");
}

#[test]
fn an_agent_that_speaks_like_nobody_is_heard_through_the_hooks_that_it_calls() {
    let limit = r#"echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}'"#;
    let fleet =
        Fleet::with_cap(5, &[limit.to_owned(), hook("PermissionRequest"), gate("go"), "gt done".to_owned()].join("\n"));
    fleet.start_daemon();
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    let worker = fleet.town.gt(["polecat", "show", "Toast", "--json"]).json();
    // What it prints is not understood.
    assert_eq!((&worker["state"], &worker["waiting_for"]), (&"waiting".into(), &"approval".into()), "{worker}");
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
}

#[test]
fn a_hook_whose_input_stays_open_ends_all_the_same() {
    let fleet = fleet(&[gate("go"), "gt done".to_owned()].join("\n"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_trace("start gt-a", 1);
    let run = fleet.started_runs().remove(0);
    let asks = r#"{"hook_event_name":"PermissionRequest","tool_name":"}{\""}"#;
    for given in [asks, "{\"hook_event_name\":", ""] {
        let mut call = fleet.town.command(crate::town::GT);
        call.args(["agent-event", "claude"]).env("GT_TOWN", fleet.town.root()).env("GT_RUN", &run);
        let mut called = call.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut input = called.stdin.take().expect("its input is a pipe");
        input.write_all(given.as_bytes()).expect("it reads");
        let ended = called.wait().expect("it ends");
        assert!(ended.success(), "{given}: {ended}");
        drop(input);
    }
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
}
