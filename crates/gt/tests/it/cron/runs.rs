//! What jobs do, and what becomes of it: payloads, retries, time-outs, deliveries apart from runs. // SPEC K1, K4

use super::{TICK, add, answers, await_fires, fires, ticking, ticks};
use crate::channels::double::{Answer, Double, ok};
use crate::fleet::{FINISHES, Fleet};
use crate::town::{GT, snapshot};

fn hook(fleet: &Fleet, double: &Double) {
    fleet.set("channels.ops.url", &format!("{}/ops", double.url));
    fleet.set("channels.ops.kind", "webhook");
}

fn turns(fleet: &Fleet) -> Vec<String> {
    let trace = std::fs::read_to_string(fleet.home("trace")).unwrap_or_default();
    trace.lines().filter_map(|line| Some(line.strip_prefix("turn ")?.to_owned())).collect()
}

#[test]
fn a_command_runs_on_time_in_the_town_and_knows_its_slot() {
    let fleet = ticking();
    fleet.start_daemon();
    add(&fleet, &["here", "--every", "1s", "--run", &format!("pwd; {TICK}")]);
    await_fires(&fleet, "here", "ok", 3);
    let (fired, ticks) = (fires(&fleet, "here"), ticks(&fleet));
    for (fire, (_, slot, attempt)) in fired.iter().zip(&ticks) {
        assert_eq!((fire["slot"].as_str(), attempt.as_str()), (Some(slot.as_str()), "1"));
        // On an idle machine it is a few milliseconds; the benchmark measures it.
        assert!(fire["late_ms"].as_i64().is_some_and(|late| (0..30_000).contains(&late)), "{fire}");
    }
}

#[test]
fn a_message_is_answered_in_a_conversation_of_its_own_or_in_the_session_that_was_named() {
    let fleet = ticking();
    answers(&fleet, "echo \"re: $text\"");
    let double = Double::new(|_, _| ok());
    hook(&fleet, &double);
    fleet.start_daemon();
    add(&fleet, &["own", "--at", "in 1s", "--message", "What is new?", "--channel", "ops"]);
    add(&fleet, &["named", "--at", "in 1s", "--message", "Hello", "--session", "dm:anna"]);
    await_fires(&fleet, "%", "ok", 2);
    let mut said = turns(&fleet);
    said.sort();
    assert_eq!(said, ["cron:own What is new?", "dm:anna Hello"]);
    let letters = double.until("a request", |all| !all.is_empty());
    assert_eq!(letters[0].json()["text"], "re: What is new?");
    fleet.until_seen("the delivery to be known", || fires(&fleet, "own")[0]["delivery"] == "delivered");
    assert_eq!(fires(&fleet, "named")[0]["delivery"], "none");
    assert_eq!(fleet.town.gt(["session", "show", "dm:anna", "--json"]).json()["turns"][0]["reply"], "re: Hello");
}

#[test]
fn a_bead_an_epic_a_convoy_a_formula_and_new_work_are_slung_when_their_time_comes() {
    let fleet = Fleet::new(FINISHES);
    fleet.start_daemon();
    let single = fleet.town.create(&["Single", "--rig", "shop"]);
    let epic = fleet.town.create(&["Epic", "--type", "epic", "--rig", "shop"]);
    let child = fleet.town.create(&["Child", "--rig", "shop", "--parent", &epic]);
    let member = fleet.town.create(&["Member", "--rig", "shop"]);
    let convoy = fleet.town.gt(["convoy", "create", "Lot", &member, "--json"]).json();
    let convoy = convoy["id"].as_str().expect("an id").to_owned();
    let by_formula = fleet.town.create(&["By formula", "--rig", "shop"]);
    add(&fleet, &["single", "--at", "in 1s", "--sling", &single]);
    add(&fleet, &["epic", "--at", "in 1s", "--sling", &epic]);
    add(&fleet, &["convoy", "--at", "in 1s", "--sling", &convoy]);
    add(&fleet, &["formula", "--at", "in 1s", "--sling", "mol-polecat-work", "--on", &by_formula]);
    add(&fleet, &["new", "--at", "in 1s", "--new", "Made by the clock", "--rig", "shop"]);
    await_fires(&fleet, "%", "ok", 5);
    for bead in [&single, &child, &member, &by_formula] {
        fleet.until_events("bead.closed", Some(bead), 1);
    }
    fleet.until_seen("the new bead to be done", || {
        fleet.town.gt(["bead", "list", "--json", "--status", "closed"]).stdout.contains("Made by the clock")
    });
}

#[test]
fn what_cannot_be_slung_is_refused_when_it_is_asked_for() {
    let fleet = Fleet::new("");
    let refused = fleet.town.refused(["cron", "add", "x", "--at", "in 1h", "--sling", "gt-x"]);
    assert!(refused.contains("`gt-x`") && refused.contains("[exit 3]"), "{refused}");
    let refused = fleet.town.refused(["cron", "add", "x", "--at", "in 1h", "--new", "Title", "--rig", "nope"]);
    assert!(refused.contains("nope") && refused.contains("[exit 3]"), "{refused}");
    fleet.hold_lines(&[
        r#"{"id":"gt-1","title":"Open"}"#,
        r#"{"id":"gt-2","title":"Closed","status":"closed"}"#,
        r#"{"id":"gt-3","title":"Taken","status":"in_progress","assignee":"anna"}"#,
        r#"{"id":"lost-1","title":"Nowhere"}"#,
        r#"{"id":"lost-2","title":"Nowhere either"}"#,
        r#"{"id":"gt-4","title":"Epic","issue_type":"epic"}"#,
        r#"{"id":"gt-5","title":"Child","dependencies":[{"issue_id":"gt-5","depends_on_id":"gt-4","type":"parent-child"}]}"#,
    ]);
    let refused = |words: &[&str]| {
        fleet.town.refused(["cron", "add", "x", "--at", "in 1h"].into_iter().chain(words.iter().copied()))
    };
    let refusals = [
        &["--sling", "gt-2"][..],
        &["--sling", "lost-1"],
        &["--sling", "lost-1", "lost-2"],
        &["--sling", "gt-4", "--args", "soon"],
        &["--sling", "gt-1", "--agent", "nosuch"],
        &["--new", "Title", "--rig", "shop", "--agent", "nosuch"],
    ];
    snapshot!(refusals.map(refused).concat(), @"
    $ gt cron add x --at 'in 1h' --sling gt-2
    ! error: gt-2 is closed: its work is done
    ! hint: open it again with `gt bead reopen gt-2`
    [exit 1]
    $ gt cron add x --at 'in 1h' --sling lost-1
    ! error: no registered rig has a prefix that fits lost-1
    ! hint: name the rig: `gt sling lost-1 RIG --force`, or register one: `gt rig add`
    [exit 1]
    $ gt cron add x --at 'in 1h' --sling lost-1 lost-2
    ! error: none of these can be slung: no registered rig has a prefix that fits lost-1
    ! hint: see `gt explain lost-1`
    [exit 1]
    $ gt cron add x --at 'in 1h' --sling gt-4 --args soon
    ! error: slinging an epic does not take --args
    ! hint: sling its tasks by their ids to use these flags
    [exit 2]
    $ gt cron add x --at 'in 1h' --sling gt-1 --agent nosuch
    ! error: agent `nosuch` has no command; set `agents.nosuch.command`
    [exit 2]
    $ gt cron add x --at 'in 1h' --new Title --rig shop --agent nosuch
    ! error: agent `nosuch` has no command; set `agents.nosuch.command`
    [exit 2]
    ");
    let before = fleet.town.export();
    for (name, words) in [("taken", &["gt-3"][..]), ("some", &["gt-1", "gt-2", "lost-1"]), ("epic", &["gt-4"])] {
        add(&fleet, &[&[name, "--at", "in 1h", "--sling"], words].concat());
    }
    assert_eq!(fleet.town.export(), before, "nothing was slung yet");
}

#[test]
fn a_failure_is_tried_again_soon_and_one_that_will_not_go_better_is_not() {
    let fleet = ticking();
    fleet.start_daemon();
    add(&fleet, &["shaky", "--at", "in 1s", "--run", &format!("{TICK}; [ \"$GT_ATTEMPT\" = 2 ]")]);
    add(&fleet, &["missing", "--at", "in 1s", "--run", &format!("{TICK}; no-such-program")]);
    await_fires(&fleet, "missing", "failed", 1);
    await_fires(&fleet, "shaky", "ok", 1);
    let n = |job: &str| ticks(&fleet).iter().filter(|(name, ..)| name == job).count();
    assert_eq!((n("shaky"), n("missing")), (2, 1));
    let shaky = &fires(&fleet, "shaky")[0];
    let earlier = &shaky["earlier"][0];
    assert_eq!(
        (&shaky["attempt"], &earlier["attempt"], &earlier["error"]),
        (&2.into(), &1.into(), &"exit code 1".into())
    );
    assert_ne!(shaky["run"], earlier["run"], "{shaky}");
    let told = fleet.town.gt(["cron", "runs", "shaky"]).stdout;
    assert!(told.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("attempt 1 failed in ")), "{told}");
    let jobs = fleet.town.gt(["cron", "list", "--json"]).json();
    assert_eq!((jobs.as_array().map(Vec::len), &jobs[0]["state"]), (Some(1), &"disabled".into()), "{jobs}");
    let reason = jobs[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("its only run failed: ") && reason.contains("no-such-program"), "{reason}");
}

#[test]
fn a_run_that_takes_too_long_is_stopped_with_all_that_it_started_and_not_tried_again() {
    let fleet = ticking();
    fleet.start_daemon();
    add(&fleet, &["slow", "--at", "in 1s", "--timeout", "1s", "--run", &format!("{TICK}; sleep 600 & sleep 600")]);
    await_fires(&fleet, "slow", "timeout", 1);
    fleet.until_seen("nobody to be left", || fleet.agents().is_empty());
    assert_eq!(ticks(&fleet).len(), 1);
    assert_eq!(
        fires(&fleet, "slow")[0]["error"].as_str().map(|why| why.contains("longer than its job may: 1s")),
        Some(true)
    );
}

#[test]
fn a_job_that_fails_again_and_again_is_disabled_and_somebody_is_told() {
    let fleet = ticking();
    fleet.set("cron.retries", "0");
    fleet.set("cron.max_failures", "2");
    fleet.start_daemon();
    add(&fleet, &["bad", "--every", "1s", "--run", "echo oh no >&2; exit 3"]);
    fleet.until_events("job.disabled", None, 1);
    let shown = fleet.town.gt(["cron", "show", "bad", "--json"]).json();
    assert_eq!((&shown["state"], &shown["next_at"]), (&"disabled".into(), &serde_json::Value::Null));
    let reason = shown["reason"].as_str().expect("a reason");
    assert!(reason.contains("2 times in a row") && reason.contains("oh no"), "{reason}");
    assert_eq!(fires(&fleet, "bad").len(), 2);
    let mail = fleet.town.gt(["mail", "inbox"]).stdout;
    assert!(mail.contains("the job bad is disabled"), "{mail}");
    let status = fleet.town.gt(["status"]).stdout;
    assert!(status.contains("the job bad is disabled: `gt cron resume bad`"), "{status}");
    fleet.town.gt(["cron", "resume", "bad"]).success();
    await_fires(&fleet, "bad", "failed", 3);
}

#[test]
fn an_answer_that_cannot_be_delivered_runs_nobody_again() {
    let fleet = ticking();
    answers(&fleet, "echo \"re: $text\"");
    let double = Double::new(|_, n| if n < 2 { Answer::Status(500, "", String::new()) } else { ok() });
    hook(&fleet, &double);
    fleet.start_daemon();
    add(&fleet, &["news", "--at", "in 1s", "--message", "What is new?", "--channel", "ops"]);
    await_fires(&fleet, "news", "ok", 1);
    let fire = fires(&fleet, "news").remove(0);
    assert!(fire["delivery"] == "waiting" || fire["delivery"] == "delivered", "{fire}");
    fleet.until_seen("the delivery", || fires(&fleet, "news")[0]["delivery"] == "delivered");
    assert_eq!((turns(&fleet).len(), double.requests().len()), (1, 3));
    assert_eq!(fleet.town.gt(["cron", "list", "--json"]).stdout.trim(), "[]", "the run was well, so the job is gone");
}

#[test]
fn one_job_never_runs_beside_itself_unless_that_is_allowed() {
    let fleet = ticking();
    fleet.set("lanes.cron", "8");
    fleet.start_daemon();
    let wait = format!("{TICK}; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done");
    add(&fleet, &["alone", "--every", "1s", "--run", &wait]);
    add(&fleet, &["crowd", "--every", "1s", "--overlap", "--run", &wait]);
    fleet.await_trace("^tick crowd", 3);
    await_fires(&fleet, "alone", "skipped", 1);
    let by_hand = fleet.town.gt(["cron", "run", "alone"]);
    assert_eq!(by_hand.code, 5, "{by_hand}");
    assert_eq!(ticks(&fleet).iter().filter(|(job, ..)| job == "alone").count(), 1);
    let skipped = fires(&fleet, "alone").into_iter().find(|fire| fire["status"] == "skipped").expect("one was");
    assert!(skipped["error"].as_str().is_some_and(|why| why.contains("was not over")), "{skipped}");
    fleet.open_gate("gate");
    await_fires(&fleet, "alone", "ok", 1);
}

#[test]
fn jobs_of_one_instant_start_second_by_second_where_a_second_has_a_limit() {
    let fleet = ticking();
    fleet.set("lanes.cron", "8");
    fleet.set("guards.starts_per_second", "1");
    fleet.start_daemon();
    // Nothing that ends wakes the daemon meanwhile.
    let wait = format!("{TICK}; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done");
    for name in ["a", "b", "c"] {
        add(&fleet, &[name, "--at", "in 1s", "--run", &wait]);
    }
    fleet.await_trace("^tick", 3);
    fleet.open_gate("gate");
    await_fires(&fleet, "%", "ok", 3);
}

#[test]
fn by_hand_a_job_runs_at_once_and_its_schedule_stays() {
    let fleet = ticking();
    add(&fleet, &["report", "--at", "in 2h", "--run", "echo the report"]);
    let before = fleet.town.gt(["cron", "show", "report", "--json"]).json()["next_at"].clone();
    let answer = fleet.town.gt(["cron", "run", "report", "--wait"]);
    assert_eq!(answer.stdout, "the report\n", "{answer}");
    assert_eq!(fleet.town.gt(["cron", "show", "report", "--json"]).json()["next_at"], before);
    fleet.town.gt(["cron", "edit", "report", "--run", "echo broken >&2; exit 1"]).success();
    let answer = fleet.town.gt(["cron", "run", "report", "--wait"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stderr.contains("broken"), "{answer}");
}

#[test]
fn who_waits_without_a_daemon_waits_for_one_attempt() {
    let fleet = ticking();
    add(&fleet, &["shaky", "--every", "1h", "--retries", "3", "--run", &format!("{TICK}; exit 7")]);
    let failed = fleet.town.gt(["cron", "run", "shaky", "--wait"]);
    assert!(failed.code != 0 && failed.stderr.contains("exit code 7"), "{failed}");
    assert_eq!(ticks(&fleet).len(), 1);
    assert_eq!(fires(&fleet, "shaky")[0]["status"], "failed");
}

#[test]
fn work_that_could_not_be_slung_says_why() {
    let fleet = Fleet::new("");
    let bead = fleet.town.create(&["Closed", "--rig", "shop"]);
    add(&fleet, &["late", "--every", "1h", "--sling", &bead]);
    fleet.town.gt(["close", &bead]).success();
    assert_ne!(fleet.town.gt(["cron", "run", "late", "--wait"]).code, 0);
    let error = fires(&fleet, "late")[0]["error"].as_str().expect("a reason").to_owned();
    assert!(error.contains(&bead) && error.contains("closed") && !error.contains("hint"), "{error}");
    let others = [1, 2].map(|n| fleet.town.create(&[&format!("Open {n}"), "--rig", "shop"]));
    add(&fleet, &["both", "--every", "1h", "--sling", &others[0], &others[1]]);
    fleet.town.gt(["rig", "park", "shop"]).success();
    assert_ne!(fleet.town.gt(["cron", "run", "both", "--wait"]).code, 0);
    let error = fires(&fleet, "both")[0]["error"].as_str().expect("a reason").to_owned();
    assert!(error.contains(&format!("nothing was slung; {}: ", others[0])) && error.contains("park"), "{error}");
}

#[test]
fn a_command_that_fails_says_why_also_if_it_says_so_where_it_answers() {
    let fleet = ticking();
    for (name, command, why) in [
        ("loud", "echo all is well; echo 'the disk is full' >&2; exit 3", "the disk is full (exit code 3)"),
        ("plain", "echo 'FAIL test_login'; exit 1", "FAIL test_login (exit code 1)"),
        ("silent", "exit 1", "exit code 1"),
    ] {
        add(&fleet, &[name, "--every", "24h", "--retries", "0", "--run", command]);
        assert_ne!(fleet.town.gt(["cron", "run", name, "--wait"]).code, 0);
        assert_eq!(fires(&fleet, name)[0]["error"], why);
    }
}

#[test]
fn new_work_is_made_once_however_often_it_is_tried() {
    let fleet = Fleet::new(FINISHES);
    fleet.set("scheduler.max_polecats", "1");
    add(&fleet, &["new", "--every", "1h", "--new", "Made by the clock", "--rig", "shop"]);
    fleet.town.gt(["cron", "run", "new", "--wait"]).success();
    let made = || {
        fleet.town.gt(["bead", "list", "--all", "--type", "task", "--json"]).stdout.matches("Made by the clock").count()
    };
    assert_eq!(made(), 1);
    // Its first attempt was cut off after it had made the bead.
    let again = ["sling", "--new", "Made by the clock", "shop"];
    fleet.town.call(again).env("GT_FIRE", "1").run();
    assert_eq!(made(), 1);
    fleet.town.gt(["cron", "run", "new", "--wait"]).success();
    assert_eq!(made(), 2, "another slot is other work");
}

#[test]
fn a_job_that_slings_what_is_under_way_leaves_it_out_and_is_not_disabled() {
    let fleet = ticking();
    fleet.script("while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done\ngt done --no-changes");
    fleet.hold(&["gt-1", "gt-2"]);
    fleet.set("cron.max_failures", "1");
    fleet.town.gt(["sling", "gt-1", "gt-2"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 2);
    add(&fleet, &["again", "--every", "24h", "--sling", "gt-1"]);
    fleet.town.gt(["cron", "run", "again"]).success();
    await_fires(&fleet, "again", "skipped", 1);
    let why = fires(&fleet, "again")[0]["error"].as_str().expect("a reason").to_owned();
    assert!(why.contains("gt-1 is already on the hook of"), "{why}");
    assert_eq!(fleet.town.gt(["cron", "show", "again", "--json"]).json()["state"], "active");
    add(&fleet, &["both", "--at", "in 1s", "--sling", "gt-1", "gt-2"]);
    await_fires(&fleet, "both", "skipped", 1);
    let job = fleet.town.gt(["cron", "show", "both", "--json"]).json();
    let reason = job["reason"].as_str().expect("what runs once and did not is kept, and says why");
    assert!(reason.starts_with("its only time was left out: ") && reason.contains("gt-1"), "{reason}");
    fleet.open_gate("gate");
}

#[test]
fn who_waits_for_a_job_is_told_what_that_waits_for() {
    let fleet = ticking();
    add(&fleet, &["late", "--every", "24h", "--run", TICK]);
    fleet.town.gt(["scheduler", "pause"]).success();
    let mut waits = fleet.town.command(GT);
    waits.args(["cron", "run", "late", "--wait"]).stderr(std::process::Stdio::piped());
    let mut waits = waits.spawn().expect("it starts");
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(waits.stderr.take().expect("a pipe")), &mut said)
        .expect("it says something");
    assert!(said.starts_with("late waits: the scheduler is paused by "), "{said}");
    let again = fleet.town.gt(["cron", "run", "late"]);
    assert_eq!(again.code, 5, "{again}");
    assert!(again.stderr.contains("the job `late` waits to be started: the scheduler is paused by"), "{again}");
    assert!(again.stderr.contains("no daemon runs: `gt daemon start`"), "{again}");
    fleet.town.gt(["scheduler", "resume"]).success();
    assert!(waits.wait().expect("it is a child").success());
}
