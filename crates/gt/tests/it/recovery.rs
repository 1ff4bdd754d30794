//! What tells and what recovers: mail, silence, notices, the deacon, with real processes. // SPEC R1–R3, P5

use std::fs;

use serde_json::{Value, json};

use crate::fleet::{Fleet, count};
use crate::town::{Town, session, snapshot};

#[path = "recovery/deacon.rs"]
mod deacon;
#[path = "recovery/hooks.rs"]
mod hooks;

/// A fleet whose silence is answered after such a span, with a daemon.
fn watched(span: &str, script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("witness.stall_after", span);
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.start_daemon();
    fleet
}

/// What becomes of a run that never says anything again.
const LADDER: [&str; 5] = ["run.started", "run.stalled", "run.interrupted", "run.stopping", "run.ended"];

/// The types of a bead's events, in order, as far as they are among these.
fn kinds<'a>(events: &'a [Value], bead: &str, wanted: &[&str]) -> Vec<&'a str> {
    let of_bead = events.iter().filter(|event| event["bead"] == bead).filter_map(|event| event["type"].as_str());
    of_bead.filter(|kind| wanted.contains(kind)).collect()
}

#[test]
fn a_letter_is_sent_listed_and_read() {
    let town = Town::with_rig();
    let bead = town.create(&["Fix the login"]);
    let answers = [
        town.gt(["mail", "inbox"]),
        town.gt(["mail", "send", "mayor", "The machine moves", "Tonight,\nat nine."]),
        town.call(["mail", "send", "mayor", "What was merged", "-", "--bead", &bead]).stdin(b"nothing\n").run(),
        town.gt(["mail", "send", "deacon", "hello"]),
        town.gt(["mail", "inbox"]),
        town.gt(["mail", "read", "1"]),
        town.gt(["mail", "inbox"]),
        town.gt(["mail", "inbox", "--all", "--limit", "1"]),
        town.gt(["mail", "inbox", "deacon"]),
        town.gt(["mail", "read", "2", "--dry-run"]),
        town.gt(["status"]),
    ];
    let row = town.gt(["mail", "inbox", "--json"]).json()[0].clone();
    assert_eq!(
        (&row["subject"], &row["body"], &row["read_at"]),
        (&json!("What was merged"), &json!("nothing\n"), &Value::Null)
    );
    assert_eq!(town.gt(["mail", "read", "2", "--json"]).json()["bead"], json!(bead));
    assert_eq!(town.gt(["mail", "inbox", "--json"]).json(), json!([]));
    snapshot!(session(answers), @r"
    $ gt mail inbox
    mayor has no new letters; `--all` shows those that were read.
    $ gt mail send mayor 'The machine moves' 'Tonight,\nat nine.'
    Letter 1 was sent to mayor.
    $ gt mail send mayor 'What was merged' - --bead hq-id01
    Letter 2 was sent to mayor.
    $ gt mail send deacon hello
    Letter 3 was sent to deacon.
    $ gt mail inbox
    ●    1  The machine moves  [TIME] from tester
    ●    2  What was merged  [TIME] from tester
    $ gt mail read 1
    The machine moves
      from tester
      to   mayor
      sent [TIME]

    Tonight,
    at nine.
    $ gt mail inbox
    ●    2  What was merged  [TIME] from tester
    $ gt mail inbox --all --limit 1
    ●    2  What was merged  [TIME] from tester
    ! There are older ones; `--limit 0` shows all.
    $ gt mail inbox deacon
    ●    3  hello  [TIME] from tester
    $ gt mail read 2 --dry-run
    Dry run, nothing is changed. This would happen:
    What was merged
      from tester
      to   mayor
      sent [TIME]
      bead hq-id01

    nothing
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 agents running, at most 16 (`guards.max_agents`)

    Needs a person (1)
      ! 1 letter was not read: `gt mail inbox`

    Nothing runs.

    Nothing is scheduled. 1 bead is ready: `gt ready`, then `gt sling BEAD`.
    ");
}

#[test]
fn a_letter_that_cannot_be_sent_or_read_says_why() {
    let town = Town::with_rig();
    let long = "x".repeat(501);
    let refusals = [
        town.refused(["mail", "read", "7"]),
        town.refused(["mail", "send", "", "x"]),
        town.refused(["mail", "send", "mayor", &long]),
        town.refused(["mail", "send", "mayor", "two\nlines"]),
        town.refused(["mail", "send", "mayor", "x", "\u{1b}[2J"]),
        town.refused(["mail", "send", "mayor", "x", "--bead", "gt-nope"]),
    ];
    snapshot!(refusals.concat(), @r"
    $ gt mail read 7
    ! error: there is no letter 7
    ! hint: `gt mail inbox --all` shows what there is; `gt mail inbox WHO --all` somebody's
    [exit 3]
    $ gt mail send '' x
    ! error: the recipient is empty
    ! hint: give at least one character that is no space
    [exit 1]
    $ gt mail send mayor 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    ! error: the subject has 501 characters; at most 500 fit
    ! hint: use at most 500 characters
    [exit 1]
    $ gt mail send mayor 'two\nlines'
    ! error: the subject holds the control character U+000A at position 4
    ! hint: leave that character out
    [exit 1]
    $ gt mail send mayor x '\u{1b}[2J'
    ! error: the letter holds the control character U+001B at position 1
    ! hint: leave that character out
    [exit 1]
    $ gt mail send mayor x --bead gt-id01
    ! error: there is no bead `gt-id01`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    ");
    let bytes = town.call(["mail", "send", "mayor", "x", "-"]).stdin(b"\xff\xfe").run();
    assert_eq!(bytes.code, 1, "{bytes}");
}

#[test]
fn a_letter_goes_to_somebody_who_reads_it() {
    let town = Town::holding(&[r#"{"id":"gt-a","title":"Do it"}"#]);
    let convoy = town.gt(["convoy", "create", "Release", "gt-a", "--watch", "Ada/", "--json"]).json();
    let convoy = convoy["id"].as_str().expect("an id");
    let answers = [
        town.gt(["mail", "send", "Mayor", "one"]),
        town.gt(["mail", "send", "mayor/", "two"]),
        town.gt(["mail", "send", "ADA", "three"]),
        town.gt(["mail", "inbox", "MAYOR/"]),
        town.gt(["mail", "inbox", "Ada"]),
        town.gt(["convoy", "watch", convoy, "ada"]),
    ];
    let refusals = [town.refused(["mail", "send", "mayr", "x"]), town.refused(["mail", "send", "/", "x"])];
    town.gt(["close", "gt-a"]).success();
    let letters = town.gt(["mail", "inbox", "ada", "--json"]).json();
    assert_eq!(letters[1]["subject"], "Convoy landed: Release", "{letters}");
    // Whoever has letters has a box, whether he still watches anything or not.
    town.gt(["mail", "send", "ada", "four"]).success();
    snapshot!(session(answers) + &refusals.concat(), @"
    $ gt mail send Mayor one
    Letter 1 was sent to mayor.
    $ gt mail send mayor/ two
    Letter 2 was sent to mayor.
    $ gt mail send ADA three
    Letter 3 was sent to ada.
    $ gt mail inbox MAYOR/
    ●    1  one  [TIME] from tester
    ●    2  two  [TIME] from tester
    $ gt mail inbox Ada
    ●    3  three  [TIME] from tester
    $ gt convoy watch hq-cv-id01 ada
    ada watches hq-cv-id01 already; nothing was changed.
    $ gt mail send mayr x
    ! error: there is no box `mayr`, and nobody would read the letter
    ! hint: write to one of `ada`, `deacon`, `mayor`
    [exit 3]
    $ gt mail send / x
    ! error: the recipient is empty
    ! hint: give at least one character that is no space
    [exit 1]
    ");
}

#[test]
fn who_hangs_is_reported_interrupted_and_stopped_and_the_work_is_tried_again() {
    let script = r#"
        if [ -e "$HOME/hung" ]; then gt done; exit; fi
        touch "$HOME/hung"
        printf '\033[31mworking on it\033[0m\n'
        trap 'touch "$HOME/interrupted"' INT
        while true; do sleep 600 & wait $!; done"#;
    let fleet = watched("1s", script);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("bead.closed", Some("gt-a"), 1);
    assert_eq!(kinds(&events, "gt-a", &LADDER)[..5], LADDER);
    assert_eq!(fleet.starts(), ["gt-a", "gt-a"]);
    assert!(fleet.home("interrupted").exists(), "it heard the interrupt");
    let end = events.iter().find(|event| event["type"] == "run.ended").expect("it ended")["data"].clone();
    assert_eq!((&end["outcome"], &end["last_output"]), (&json!("timed-out"), &json!("working on it")), "{end}");
    fleet.until_done(&["gt-a".to_owned()]);
    let letter = fleet.town.gt(["mail", "inbox", "deacon", "--json"]).json()[0].clone();
    assert_eq!((&letter["subject"], &letter["run"]), (&json!("RECOVERED_BEAD gt-a"), &events_run(&events)));
    let body = letter["body"].as_str().expect("a text");
    assert!(body.contains("it gave no sign of life, and an interrupt did not change that"), "{body}");
    assert!(body.ends_with("last output:\n    working on it\n"), "{body}");
}

fn events_run(events: &[Value]) -> Value {
    events.iter().find(|event| event["type"] == "run.ended").expect("it ended")["run"].clone()
}

#[test]
fn who_prints_is_left_alone_and_who_prints_again_starts_over() {
    let script = r#"
        if [ "$GT_BEAD" = gt-a ]; then
            while [ ! -e "$HOME/go" ]; do echo tick; sleep 0.1; done
        else
            while [ ! -e "$HOME/reported" ]; do sleep 0.02; done
            echo "here I am"
            while [ ! -e "$HOME/go" ]; do sleep 0.02; done
        fi
        gt done"#;
    let fleet = watched("2s", script);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_events("run.stalled", Some("gt-b"), 1);
    fleet.open_gate("reported");
    // Had its words not counted, it would have been interrupted instead.
    let events = fleet.until_events("run.stalled", Some("gt-b"), 2);
    assert_eq!(kinds(&events, "gt-b", &LADDER), ["run.started", "run.stalled", "run.stalled"]);
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_eq!(kinds(&fleet.town.events(), "gt-a", &LADDER), ["run.started", "run.ended"]);
}

#[test]
fn who_waits_for_a_person_is_silent_with_reason() {
    let ask = r#"{"hook_event_name":"PermissionRequest","session_id":"s-1","tool_use_id":"t"}"#;
    let script = format!(
        "if [ \"$GT_BEAD\" = gt-a ]; then echo '{ask}' | gt agent-event claude; fi\n\
         while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; gt done"
    );
    let fleet = Fleet::with_cap(5, &script);
    fleet.set("agents.scripted.speaks", "claude");
    fleet.set("witness.stall_after", "2s");
    fleet.start_daemon();
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    // The other one, as silent as this one, comes to be interrupted.
    fleet.until_events("run.interrupted", Some("gt-b"), 1);
    fleet.open_gate("go");
    let events = fleet.until_events("bead.closed", Some("gt-a"), 1);
    assert_eq!(count(&events, "run.stalled", Some("gt-a")), 0);
}

#[test]
fn silence_goes_on_where_it_was_when_the_daemon_is_killed() {
    let fleet = watched("1s", "trap '' INT; echo started; exec sleep 600");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.stalled", Some("gt-a"), 1);
    fleet.kill_daemon();
    fleet.start_daemon();
    fleet.until_events("run.interrupted", Some("gt-a"), 1);
    fleet.kill_daemon();
    fleet.start_daemon();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(kinds(&events, "gt-a", &LADDER)[..5], LADDER);
}

/// Deterministic: without a daemon nobody answers the silence, so each rung of it can be looked at.
#[test]
fn a_silent_run_is_explained_with_what_comes_next() {
    let fleet = Fleet::new("exec sleep 600");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_trace("start", 1);
    let run = fleet.town.gt(["polecat", "list", "--json"]).json()[0]["run"].as_str().expect("a run").to_owned();
    let explained = || -> Vec<(String, String)> {
        let told = fleet.town.gt(["explain", "gt-a", "--json"]).json();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let reasons = told["reasons"].as_array().expect("a list");
        reasons.iter().map(|reason| (text(&reason["code"]), text(&reason["message"]))).collect()
    };
    assert_eq!(explained().len(), 1, "{:?}", explained());
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    let long_ago = 1_767_225_600_000_000_i64; // 2026-01-01
    let log = std::fs::File::options().append(true).open(fleet.town.path(&format!(".gt/logs/{run}.log")));
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_micros(long_ago.unsigned_abs());
    log.expect("it has a log").set_modified(then).expect("it is ours");
    store.execute("UPDATE run SET claimed_at = ?1, started_at = ?1", [long_ago]).expect("it can be written");
    let who = "shop/Toast has given no sign of life since 2026-01-01T00:00:00Z";
    assert_eq!(explained()[1], ("stalled".to_owned(), format!("{who}; the next pass reports it")));
    let reported = long_ago + 600_000_000;
    store.execute("UPDATE run SET stalled_at = ?1", [reported]).expect("it can be written");
    let next = "if it stays silent it is interrupted at 2026-01-01T00:20:00Z, and stopped at 2026-01-01T00:30:00Z";
    assert_eq!(explained()[1].1, format!("{who}; {next}"));
    store.execute("UPDATE run SET interrupted_at = ?1", [reported + 600_000_000]).expect("it can be written");
    let next = "it was interrupted at 2026-01-01T00:20:00Z, and is stopped at 2026-01-01T00:30:00Z if it stays silent";
    assert_eq!(explained()[1].1, format!("{who}; {next}"));
    fleet.set("witness.stall_after", "0s");
    assert_eq!(explained().len(), 1, "{:?}", explained());
}

#[test]
fn silence_is_nobodys_business_where_that_is_switched_off() {
    let script = r#"while [ ! -e "$HOME/go" ]; do sleep 0.02; done; gt done"#;
    let fleet = watched("1s", script);
    fleet.set("witness.stall_after", "0s");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.started", Some("gt-a"), 1);
    // It was silent for longer than any span that could be meant.
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    store.execute("UPDATE run SET started_at = 1, claimed_at = 1", []).expect("it can be written");
    drop(store);
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.until_events("run.started", Some("gt-b"), 1);
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_eq!(count(&fleet.town.events(), "run.stalled", None), 0);
}

#[test]
fn at_the_end_of_its_attempts_a_bead_is_a_letter_to_the_mayor() {
    let fleet = Fleet::with_cap(5, "echo 'cannot find the key'; exit 3");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "1");
    fleet.start_daemon();
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("bead.escalated", Some("gt-a"), 1);
    let inbox = fleet.town.gt(["mail", "inbox", "--json"]).json();
    assert_eq!(inbox.as_array().map(Vec::len), Some(1), "{inbox}");
    let id = inbox[0]["id"].to_string();
    let answers = [fleet.town.gt(["mail", "read", &id]), fleet.town.gt(["polecat", "show", "Toast"])];
    let text = session(answers)
        .replace(&fs::canonicalize(fleet.town.root()).expect("it is there").display().to_string(), "[TOWN]");
    snapshot!(text, @"
    $ gt mail read 2
    gt-a is out of attempts
      from daemon
      to   mayor
      sent [TIME]
      bead gt-a

    Do gt-a

    2 attempts ended unfinished.

    bead: gt-a
    polecat: shop/Toast
    run: [RUN]
    last: exit code 3; last output: cannot find the key
    then: gt scheduler retry gt-a

    last output:
        cannot find the key
    $ gt polecat show Toast
    shop/Toast
      state     idle
      bead      gt-a Do gt-a
      run       [RUN]
      agent     scripted
      log       [TOWN]/.gt/logs/[RUN].log
      started   [TIME]
      ended     [TIME]
      outcome   died: exit code 3
      last output
        cannot find the key
    ");
}
