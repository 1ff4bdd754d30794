//! Seed 000 word for word: its quick start, its minimal example, and every row of its tables. // SPEC P1, P2, D1, D6, D7

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet};
use crate::town::{Answer, session, snapshot};

#[path = "seed000/shapes.rs"]
mod shapes;

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

/// The seed's rig.
fn gastown(script: &str) -> Fleet {
    Fleet::in_rig("gastown", script)
}

fn deferred(script: &str) -> Fleet {
    let fleet = gastown(script);
    fleet.set("scheduler.max_polecats", "5");
    fleet
}

/// A convoy, an epic with two children, and a few tasks: what the seed's examples name.
fn cast(fleet: &Fleet) {
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi", "gt-one", "gt-two"]);
    fleet.hold_lines(&[
        r#"{"id":"hq-cv-abc","title":"Two things","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-one","type":"tracks"},{"depends_on_id":"gt-two","type":"tracks"}]}"#,
        r#"{"id":"gt-epic-123","title":"All of it","issue_type":"epic"}"#,
        r#"{"id":"gt-e1","title":"Its first part","dependencies":[{"depends_on_id":"gt-epic-123","type":"parent-child"}]}"#,
        r#"{"id":"gt-e2","title":"Its second part","dependencies":[{"depends_on_id":"gt-epic-123","type":"parent-child"}]}"#,
    ]);
}

fn bd(fleet: &Fleet, arguments: &[&str]) -> Answer {
    fleet.town.call(arguments.iter().copied()).called_as("bd").run()
}

fn open_contexts(fleet: &Fleet) -> Vec<Value> {
    let answer = bd(fleet, &["list", "--label=gt:sling-context", "--status=open", "--json", "--limit=0"]);
    answer.json().as_array().expect("a list").clone()
}

#[test]
fn the_quick_start_runs_word_for_word() {
    let fleet = gastown(STAYS);
    cast(&fleet);
    let gt = |line: &str| fleet.town.call(line.split(' ')).run();
    snapshot!(
        "quick_start",
        session([
            gt("config set scheduler.max_polecats 5"),
            gt("sling gt-abc gastown"),
            gt("sling gt-abc gt-def gt-ghi gastown"),
            gt("sling hq-cv-abc"),
            gt("sling gt-epic-123"),
            gt("scheduler status"),
            gt("scheduler list"),
            gt("scheduler run --dry-run"),
            gt("scheduler run"),
            gt("scheduler status"),
        ])
    );
    assert_eq!(fleet.agents().iter().filter(|agent| agent.leads).count(), 5, "the cap is what lives");
}

#[test]
fn the_minimal_example_runs_word_for_word() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    let gt = |line: &str| fleet.town.call(line.split(' ')).run();
    let work = || {
        let mut work = fleet.town.gt(["show", "gt-abc", "--json"]).json();
        work["dependent_count"] = Value::Null; // its convoy depends on it
        work
    };
    let before = work();
    let answers = [gt("config set scheduler.max_polecats 5"), gt("sling gt-abc gastown"), gt("scheduler status")];
    assert!(answers[2].stdout.contains("Queued: 1 total, 1 ready"), "{}", answers[2]);
    assert_eq!(work(), before, "scheduling changes nothing on the work bead");
    let context = open_contexts(&fleet)[0]["id"].as_str().expect("an id").to_owned();
    snapshot!(session(answers) + &gt("scheduler run").to_string(), @r"
    $ gt config set scheduler.max_polecats 5
    Set scheduler.max_polecats = 5
    $ gt sling gt-abc gastown
    ✓ Scheduled gt-abc → gastown (context: gt-wisp-id01)
    Tracked by convoy hq-cv-id02.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler status
    Scheduler
      State:  active, deferred dispatch
      Queued: 1 total, 1 ready
      Active: 0 of 5 polecats, 5 free
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler run
    ▶ Started Toast on gt-abc Do gt-abc (gastown)
    ");
    fleet.until_events("run.reported", Some("gt-abc"), 1);
    assert_eq!(fleet.starts(), ["gt-abc"]);
    assert!(open_contexts(&fleet).is_empty(), "the dispatch closes the context");
    assert_eq!(bd(&fleet, &["show", &context, "--json"]).json()["close_reason"], "dispatched");
}

#[test]
fn a_dry_run_says_what_the_run_then_does_and_starts_nothing() {
    let fleet = deferred(STAYS);
    fleet.set("scheduler.max_polecats", "2");
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    fleet.town.gt(["sling", "gt-abc", "gt-def", "gt-ghi", "gastown"]).success();
    let before = fleet.town.state();
    let dry = fleet.town.gt(["scheduler", "run", "--dry-run", "--json"]).json();
    assert_eq!(fleet.town.state(), before, "a dry run changes nothing");
    assert!(fleet.agents().is_empty(), "a dry run starts nothing");
    let wet = fleet.town.gt(["scheduler", "run", "--json"]).json();
    let beads = |list: &Value| -> Vec<Value> {
        list.as_array().expect("a list").iter().map(|one| one["bead"].clone()).collect()
    };
    assert_eq!(beads(&dry["would_dispatch"]), ["gt-abc", "gt-def"]);
    assert_eq!(beads(&dry["would_dispatch"]), beads(&wet["dispatched"]));
    for field in ["skipped", "reason", "capacity", "batch", "ready"] {
        assert_eq!(dry[field], wet[field], "{field}");
    }
}

#[test]
fn minus_one_and_zero_dispatch_at_once_and_n_schedules() {
    // Nobody ends before the cap is there: the pass after an end goes by the config as it was when that began.
    let fleet = gastown(&format!("while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; {FINISHES}"));
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    let outcome = |value: &str, bead: &str| {
        fleet.set("scheduler.max_polecats", value);
        fleet.town.gt(["sling", bead, "gastown", "--json"]).json()["results"][0]["outcome"].clone()
    };
    assert_eq!(outcome("-1", "gt-abc"), "dispatched");
    assert_eq!(outcome("0", "gt-def"), "dispatched");
    assert_eq!(outcome("1", "gt-ghi"), "scheduled");
    fleet.open_gate("gate");
    fleet.until_events("run.ended", None, 2);
    let mut starts = fleet.starts();
    starts.sort();
    assert_eq!(starts, ["gt-abc", "gt-def"], "the third waits for a daemon");
}

#[test]
fn a_batch_a_convoy_and_an_epic_start_at_once_in_direct_mode() {
    let fleet = gastown(FINISHES);
    cast(&fleet);
    for (words, n) in [(&["gt-abc", "gt-def", "gt-ghi", "gastown"][..], 3), (&["hq-cv-abc"], 2), (&["gt-epic-123"], 2)]
    {
        let call = fleet.town.call(["sling", "--json"].iter().chain(words).copied()).run().json();
        let results = call["results"].as_array().expect("a list");
        assert_eq!(results.len(), n, "{call}");
        assert!(results.iter().all(|one| one["outcome"] == "dispatched"), "{call}");
    }
    fleet.until_events("run.reported", None, 7);
    assert_eq!(fleet.starts().len(), 7);
}

#[test]
fn a_context_reads_as_an_ephemeral_bead_with_a_tracks_edge_and_json_fields() {
    let fleet = deferred(FINISHES);
    fleet.hold(&["gt-abc"]);
    let sling =
        ["sling", "gt-abc", "gastown", "--args", "mind the tests", "--var", "a=1", "--var", "b=2", "--merge", "mr"];
    let more = ["--base-branch", "dev", "--no-merge", "--account", "work", "--agent", "scripted", "--owned", "--ralph"];
    fleet.town.call(sling.into_iter().chain(more)).run().success();
    let contexts = open_contexts(&fleet);
    assert_eq!(contexts.len(), 1);
    let shown = bd(&fleet, &["show", contexts[0]["id"].as_str().expect("an id"), "--json"]).json();
    assert_eq!(shown["ephemeral"], true);
    assert_eq!(shown["labels"], serde_json::json!(["gt:sling-context"]));
    assert_eq!(shown["dependencies"][0]["depends_on_id"], "gt-abc");
    assert_eq!(shown["dependencies"][0]["type"], "tracks");
    let fields: Value = serde_json::from_str(shown["description"].as_str().expect("a text")).expect("JSON");
    snapshot!(serde_json::to_string_pretty(&masked(fields)).expect("JSON"), @r#"
    {
      "account": "work",
      "agent": "scripted",
      "args": "mind the tests",
      "base_branch": "dev",
      "convoy": "CONVOY",
      "enqueued_at": "[TIME]",
      "formula": "mol-polecat-work",
      "merge": "mr",
      "mode": "ralph",
      "no_merge": true,
      "owned": true,
      "target_rig": "gastown",
      "vars": "a=1\nb=2",
      "version": 1,
      "work_bead_id": "gt-abc"
    }
    "#);
}

/// Without what differs from run to run.
fn masked(mut fields: Value) -> Value {
    assert!(fields["convoy"].as_str().is_some_and(|id| id.starts_with("hq-cv-")), "{fields}");
    fields["convoy"] = "CONVOY".into();
    fields
}

#[test]
fn every_way_out_of_the_queue_has_its_close_reason() {
    let fleet = deferred(STAYS);
    fleet.set("scheduler.max_failures", "1");
    fleet.hold(&["gt-go", "gt-clr", "gt-brk", "gt-bad", "gt-old"]);
    fleet.set("rigs.gastown.isolation", "worktree");
    fleet.town.gt(["sling", "gt-brk", "--base-branch", "nosuch"]).success();
    fleet.town.gt(["sling", "gt-go", "gt-clr", "gt-bad", "gt-old"]).success();
    let ids: Vec<(String, String)> = open_contexts(&fleet)
        .iter()
        .map(|context| {
            let fields: Value = serde_json::from_str(context["description"].as_str().expect("a text")).expect("JSON");
            (
                fields["work_bead_id"].as_str().expect("an id").to_owned(),
                context["id"].as_str().expect("an id").to_owned(),
            )
        })
        .collect();
    assert_eq!(ids.len(), 5);
    fleet.town.gt(["scheduler", "clear", "--bead", "gt-clr"]).success();
    fleet.town.gt(["close", "gt-old"]).success();
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store opens");
    let spoil = "UPDATE context SET fields = '{}' WHERE bead = (SELECT key FROM bead WHERE id = 'gt-bad')";
    assert_eq!(store.execute(spoil, []).expect("the store can be written"), 1);
    fleet.town.gt(["scheduler", "run"]).success();
    let mut reasons: Vec<String> = ids
        .iter()
        .map(|(bead, context)| {
            let shown = bd(&fleet, &["show", context, "--json"]).json();
            format!("{bead} {} {}", shown["status"].as_str().unwrap_or("?"), shown["close_reason"])
        })
        .collect();
    reasons.sort();
    snapshot!(reasons.join("\n"), @r#"
    gt-bad closed "invalid-context"
    gt-brk closed "circuit-broken"
    gt-clr closed "cleared"
    gt-go closed "dispatched"
    gt-old closed "stale-work-bead"
    "#);
}

#[test]
fn what_was_enqueued_first_starts_first() {
    let fleet = deferred("exec sleep 600");
    fleet.set("scheduler.max_polecats", "1");
    fleet.hold(&["gt-b", "gt-a", "gt-c"]);
    for bead in ["gt-c", "gt-a", "gt-b"] {
        fleet.town.gt(["sling", bead, "gastown"]).success();
    }
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    let order: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|one| one["bead"].as_str()).collect();
    assert_eq!(order, ["gt-c", "gt-a", "gt-b"]);
    for _ in 0..3 {
        let dispatched = fleet.town.gt(["scheduler", "run", "--json"]).json();
        assert_eq!(dispatched["dispatched"].as_array().map(Vec::len), Some(1));
        let word = |key: &str| dispatched["dispatched"][0][key].as_str().expect("a text").to_owned();
        fleet.town.gt(["polecat", "stop", &word("polecat"), "--run", &word("run")]).success();
    }
    let events = fleet.town.events();
    let hooked: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "bead.hooked")
        .filter_map(|event| event["bead"].as_str())
        .collect();
    assert_eq!(hooked, ["gt-c", "gt-a", "gt-b"]);
}

#[test]
fn pause_resume_and_clear_say_what_they_did_and_what_they_did_not() {
    let fleet = deferred(FINISHES);
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    let gt = |line: &str| fleet.town.call(line.split(' ')).run();
    snapshot!(session([
        gt("scheduler pause --reason release"),
        gt("scheduler pause"),
        gt("sling gt-abc gt-def gt-ghi gastown"),
        gt("scheduler status"),
        gt("scheduler list"),
        gt("scheduler run"),
        gt("scheduler resume"),
        gt("scheduler resume"),
        gt("scheduler clear --bead gt-abc"),
        gt("scheduler clear --bead gt-abc"),
        gt("scheduler clear"),
        gt("scheduler clear"),
        gt("scheduler list"),
        gt("scheduler run"),
    ]), @r"
    $ gt scheduler pause --reason release
    Paused. What runs goes on; nothing new starts. `gt scheduler resume` goes on.
    $ gt scheduler pause
    It is paused already by tester since [TIME]; nothing was changed.
    $ gt sling gt-abc gt-def gt-ghi gastown
    ✓ Scheduled gt-abc → gastown (context: gt-wisp-id01)
        dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
    ✓ Scheduled gt-def → gastown (context: gt-wisp-id02)
        dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
    ✓ Scheduled gt-ghi → gastown (context: gt-wisp-id03)
        dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
    Tracked by convoy hq-cv-id04.
    3 beads: 3 scheduled.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler status
    Scheduler
      State:  PAUSED by tester since [TIME]: release, deferred dispatch
      Queued: 3 total, 3 ready
      Active: 0 of 5 polecats, 5 free
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler list
    gastown
      ○   1  gt-abc  Do gt-abc
             dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
      ○   2  gt-def  Do gt-def
             dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
      ○   3  gt-ghi  Do gt-ghi
             dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
    $ gt scheduler run
    ⏸ 3 scheduled beads waiting: dispatch is paused by tester since [TIME]: release; `gt scheduler resume` goes on
    [exit 5]
    $ gt scheduler resume
    Dispatch goes on.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler resume
    It was not paused; nothing was changed.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler clear --bead gt-abc
    Took gt-abc off the queue.
    $ gt scheduler clear --bead gt-abc
    gt-abc is not scheduled; nothing was changed.
    $ gt scheduler clear
    Took 2 beads off the queue.
    $ gt scheduler clear
    Nothing is scheduled; nothing was changed.
    $ gt scheduler list
    Nothing is scheduled. `gt sling BEAD` schedules a bead, `gt ready` shows which could be.
    $ gt scheduler run
    Nothing is scheduled.
    ");
    assert!(fleet.starts().is_empty());
}

#[test]
fn town_beads_in_a_convoy_are_skipped_with_a_warning() {
    let fleet = deferred(FINISHES);
    fleet.hold(&["gt-one"]);
    fleet.hold_lines(&[
        r#"{"id":"hq-one","title":"Coordinate"}"#,
        r#"{"id":"hq-cv-abc","title":"Mixed","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-one","type":"tracks"},{"depends_on_id":"hq-one","type":"tracks"}]}"#,
        r#"{"id":"hq-cv-def","title":"Only town","issue_type":"convoy","dependencies":[{"depends_on_id":"hq-one","type":"tracks"}]}"#,
    ]);
    let answers = [
        fleet.town.gt(["sling", "hq-cv-abc"]),
        fleet.town.gt(["sling", "hq-cv-def"]),
        fleet.town.gt(["sling", "hq-one", "gastown"]),
    ];
    snapshot!(session(answers), @r"
    $ gt sling hq-cv-abc
    ✓ Scheduled gt-one → gastown (context: gt-wisp-id01)
    ! Skipped hq-one: hq-one is a town bead, which is never given to an agent
    Tracked by convoy hq-cv-abc.
    2 beads: 1 scheduled, 1 skipped.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt sling hq-cv-def
    ! Skipped hq-one: hq-one is a town bead, which is never given to an agent
    $ gt sling hq-one gastown
    ! error: hq-one is a town bead, which is never given to an agent
    ! hint: bind it to a rig with `gt bead update hq-one --rig RIG`
    [exit 1]
    ");
    assert_eq!(open_contexts(&fleet).len(), 1);
}

#[test]
fn epics_and_convoys_refuse_a_rig_and_what_makes_sense_for_one_task_only() {
    let fleet = deferred(FINISHES);
    cast(&fleet);
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let mut transcript = [
        refused("sling gt-epic-123 gastown"),
        refused("sling hq-cv-abc gastown"),
        refused("sling hq-cv-abc --args carefully --agent scripted"),
    ]
    .concat();
    let flags =
        ["--args x", "--var a=b", "--formula f", "--hook-raw-bead", "--merge mr", "--no-merge", "--base-branch b"];
    for flag in flags.into_iter().chain(["--account a", "--agent a", "--owned", "--no-convoy", "--ralph"]) {
        let answer = fleet.town.call(format!("sling gt-epic-123 {flag}").split(' ')).run();
        assert_ne!(answer.code, 0, "{answer}");
        transcript.extend([flag, ": ", answer.stderr.lines().next().unwrap_or_default(), "\n"]);
    }
    assert!(open_contexts(&fleet).is_empty());
    snapshot!(transcript, @"
    $ gt sling gt-epic-123 gastown
    ! error: gt-epic-123 is an epic, and its parts go to their own rigs
    ! hint: leave the rig out: `gt sling gt-epic-123`
    [exit 2]
    $ gt sling hq-cv-abc gastown
    ! error: hq-cv-abc is a convoy, and its parts go to their own rigs
    ! hint: leave the rig out: `gt sling hq-cv-abc`
    [exit 2]
    $ gt sling hq-cv-abc --args carefully --agent scripted
    ! error: slinging a convoy does not take --args, --agent
    ! hint: sling its tasks by their ids to use these flags
    [exit 2]
    --args x: error: slinging an epic does not take --args
    --var a=b: error: slinging an epic does not take --var
    --formula f: error: there is no formula `f`
    --hook-raw-bead: error: slinging an epic does not take --hook-raw-bead
    --merge mr: error: slinging an epic does not take --merge
    --no-merge: error: slinging an epic does not take --no-merge
    --base-branch b: error: slinging an epic does not take --base-branch
    --account a: error: slinging an epic does not take --account
    --agent a: error: there is no agent `a`
    --owned: error: slinging an epic does not take --owned
    --no-convoy: error: slinging an epic does not take --no-convoy
    --ralph: error: slinging an epic does not take --ralph
    ");
}

#[test]
fn each_bead_of_a_convoy_goes_to_the_rig_of_its_prefix() {
    let fleet = deferred(FINISHES);
    fleet.town.repository("docs");
    fleet.town.gt(["rig", "add", "docs", "docs", "--prefix", "gt-docs"]).success();
    fleet.hold(&["gt-one", "gt-docs-one"]);
    fleet.hold_lines(&[
        r#"{"id":"hq-cv-abc","title":"Both","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-one","type":"tracks"},{"depends_on_id":"gt-docs-one","type":"tracks"}]}"#,
    ]);
    fleet.town.gt(["sling", "hq-cv-abc"]).success();
    let astray = fleet.town.gt(["sling", "gt-docs-one", "gastown"]);
    assert_eq!(astray.code, 1, "the wrong rig is told before that it is scheduled: {astray}");
    let answers = [
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["scheduler", "clear"]),
        fleet.town.gt(["sling", "gt-docs-one", "gastown"]),
        fleet.town.gt(["sling", "gt-docs-one", "gastown", "--force"]),
        fleet.town.gt(["scheduler", "list"]),
    ];
    snapshot!(session(answers), @r"
    $ gt scheduler list
    docs
      ▶   1  gt-docs-one  Do gt-docs-one
             starts with the next pass
    gastown
      ▶   2  gt-one  Do gt-one
             starts with the next pass
    $ gt scheduler clear
    Took 2 beads off the queue.
    $ gt sling gt-docs-one gastown
    ! error: gt-docs-one belongs to rig `docs`, not to rig `gastown`
    ! hint: leave the rig out, or insist with `gt sling gt-docs-one gastown --force`
    [exit 1]
    $ gt sling gt-docs-one gastown --force
    ✓ Scheduled gt-docs-one → gastown (context: gt-wisp-id01)
    Tracked by convoy hq-cv-abc.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler list
    gastown
      ▶   1  gt-docs-one  Do gt-docs-one
             starts with the next pass
    ");
}

#[test]
fn slinging_twice_changes_nothing_the_second_time() {
    let fleet = deferred(FINISHES);
    fleet.hold(&["gt-abc"]);
    let first = fleet.town.gt(["sling", "gt-abc", "gastown", "--json"]).json();
    let before = fleet.town.state();
    let second = fleet.town.gt(["sling", "gt-abc", "gastown", "--json"]).json();
    assert_eq!(fleet.town.state(), before);
    assert_eq!(second["results"][0]["outcome"], "already-scheduled");
    assert_eq!(second["results"][0]["context"], first["results"][0]["context"]);
    snapshot!(fleet.town.gt(["sling", "gt-abc", "gastown"]).to_string(), @r"
    $ gt sling gt-abc gastown
    ○ gt-abc is already scheduled (context: gt-wisp-id01); nothing was changed
    ");
}
