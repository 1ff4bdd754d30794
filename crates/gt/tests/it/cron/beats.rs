//! Heartbeats: the five steps, with a real agent's process; never in a person's way. // SPEC H1, H2, seed 003 §5

use serde_json::Value;

use super::{Clocked, answers, await_fires, ticking};
use crate::channels::double::{Answer, Double, ok};
use crate::fleet::Fleet;
use crate::town::snapshot;

const BEAT: &str = "heartbeat:scripted";

/// A town whose agent answers heartbeats with what is in `reply`, and people with `re: TEXT`.
fn beating(fleet: &Fleet) {
    let script = "case $GT_SESSION in heartbeat:*) cat \"$HOME/reply\";; *) echo \"re: $text\";; esac";
    answers(fleet, script);
    reply(fleet, "HEARTBEAT_OK");
    fleet.town.write("HEARTBEAT.md", "- Is the shop up?\n");
}

fn reply(fleet: &Fleet, text: &str) {
    std::fs::write(fleet.home("reply"), text).expect("the home can be written");
}

fn hook(fleet: &Fleet, double: &Double) {
    fleet.set("channels.ops.url", &format!("{}/ops", double.url));
    fleet.set("channels.ops.kind", "webhook");
}

fn logs(fleet: &Fleet) -> Vec<Value> {
    let mut logs = fleet.town.gt(["heartbeat", "logs", "--limit", "0", "--json"]).json();
    let logs = logs.as_array_mut().expect("a list");
    logs.reverse();
    std::mem::take(logs)
}

/// The last beat: its status, its delivery and why.
fn last(fleet: &Fleet) -> String {
    let last = logs(fleet).pop().expect("one has been");
    let word = |name: &str| last[name].as_str().unwrap_or("-").to_owned();
    format!("{} {}: {} {}", word("status"), word("delivery"), word("error"), word("delivery_error"))
}

#[test]
fn each_step_that_ends_a_heartbeat_is_recorded_with_its_reason() {
    let clocked = Clocked::at("2027-01-12T06:00:00Z");
    beating(&clocked);
    clocked.set("heartbeat.active_hours", "08:00-22:00");
    clocked.set("heartbeat.tz", "UTC");
    clocked.start_daemon();
    clocked.until_events("job.added", None, 1);
    // 1: outside the hours; the next one is the first within them.
    clocked.strike("2027-01-12T06:30:00Z");
    await_fires(&clocked, BEAT, "skipped", 1);
    assert_eq!(last(&clocked), "skipped -: it was outside its active hours, 08:00-22:00 (UTC) -");
    assert_eq!(next(&clocked), "08:00");
    // 2: nothing in the file, or no file.
    clocked.town.write("HEARTBEAT.md", "# Only a heading\n");
    clocked.strike("2027-01-12T08:00:00Z");
    await_fires(&clocked, BEAT, "skipped", 2);
    assert_eq!(last(&clocked), "skipped -: there is nothing to do in HEARTBEAT.md -");
    std::fs::remove_file(clocked.town.path("HEARTBEAT.md")).expect("it is there");
    clocked.strike("2027-01-12T08:30:00Z");
    await_fires(&clocked, BEAT, "skipped", 3);
    assert_eq!(last(&clocked), "skipped -: there is no HEARTBEAT.md -");
    // 3 and 4: it runs, and all is well.
    clocked.town.write("HEARTBEAT.md", "- Is the shop up?\n");
    clocked.strike("2027-01-12T09:00:00Z");
    await_fires(&clocked, BEAT, "ok", 1);
    assert_eq!(last(&clocked), "ok suppressed: - all is well");
    // 5: something new is told; with no channel in use, as a letter.
    reply(&clocked, "The shop is down. HEARTBEAT_NOT_OK");
    clocked.strike("2027-01-12T09:30:00Z");
    await_fires(&clocked, BEAT, "ok", 2);
    assert_eq!(last(&clocked), "ok mailed: - no channel was used yet, so the mayor got a letter");
    // The same within a day is not told again, nor after a restart; a day later it is.
    clocked.kill_daemon();
    clocked.start_daemon_to_strike("2027-01-12T10:00:00Z");
    await_fires(&clocked, BEAT, "ok", 3);
    assert_eq!(last(&clocked), "ok repeated: - it said the same within 24 hours");
    clocked.strike("2027-01-13T10:00:00Z");
    await_fires(&clocked, BEAT, "ok", 4);
    assert_eq!(last(&clocked), "ok mailed: - no channel was used yet, so the mayor got a letter");
}

/// When the heart beats next, to the minute.
fn next(clocked: &Clocked) -> String {
    let next = clocked.gt(&["heartbeat", "status", "--json"]).json()["agents"][0]["next_at"].clone();
    next.as_str().and_then(|next| next.get(11..16)).unwrap_or("-").to_owned()
}

#[test]
fn other_hours_count_at_once_for_a_heart_that_waits_for_the_old_ones() {
    let clocked = Clocked::at("2027-01-12T06:00:00Z");
    beating(&clocked);
    clocked.set("heartbeat.active_hours", "08:00-09:00");
    clocked.set("heartbeat.tz", "UTC");
    clocked.start_daemon();
    clocked.until_events("job.added", None, 1);
    clocked.strike("2027-01-12T06:30:00Z");
    await_fires(&clocked, BEAT, "skipped", 1);
    assert_eq!(next(&clocked), "08:00");
    clocked.set("heartbeat.active_hours", "06:00-07:00");
    clocked.until_seen("another time", || next(&clocked) == "07:00");
    clocked.strike("2027-01-12T07:00:00Z");
    await_fires(&clocked, BEAT, "skipped", 2);
    assert_eq!(next(&clocked), "06:00", "the next day");
    // The same when no daemon has seen the change.
    clocked.kill_daemon();
    clocked.set("heartbeat.tz", "Pacific/Honolulu");
    clocked.start_daemon();
    clocked.until_seen("another time", || next(&clocked) == "07:30");
}

#[test]
fn an_alert_goes_to_the_channel_that_was_used_last_or_to_the_one_that_is_named() {
    let fleet = ticking();
    beating(&fleet);
    fleet.set("sessions.debounce_ms", "0");
    let double = Double::new(|_, _| ok());
    hook(&fleet, &double);
    fleet.start_daemon();
    fleet.town.gt(["send", "dm:anna", "hi", "--channel", "ops", "--to", "anna", "--wait"]).success();
    double.until("a request", |all| !all.is_empty());
    reply(&fleet, "The shop is down.");
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    let told = double.until("2 requests", |all| all.len() >= 2).pop().expect("two");
    assert_eq!(
        (told.json()["text"].as_str(), told.json()["session"].as_str()),
        (Some("The shop is down."), Some(BEAT))
    );
    fleet.until_seen("the delivery to be known", || last(&fleet) == "ok delivered: - -");
    // It is nobody's turn in Anna's session, and begins no conversation that anybody goes on with.
    let shown = fleet.town.gt(["session", "show", "dm:anna", "--json"]).json();
    assert_eq!(shown["turns"].as_array().map(Vec::len), Some(1), "{shown}");
    fleet.set("heartbeat.target", "none");
    reply(&fleet, "The shop is on fire.");
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    assert_eq!(last(&fleet), "ok none: - `heartbeat.target` is none");
    fleet.set("heartbeat.target", "ops");
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    assert_eq!(double.until("3 requests", |all| all.len() >= 3)[2].json()["text"], "The shop is on fire.");
}

#[test]
fn a_channel_that_takes_only_certain_sessions_loses_no_alert_and_is_refused_to_jobs() {
    let fleet = ticking();
    beating(&fleet);
    let double = Double::new(|_, _| ok());
    hook(&fleet, &double);
    fleet.set("channels.ops.allow", "[\"dm:*\"]");
    fleet.set("heartbeat.target", "ops");
    reply(&fleet, "The shop is down.");
    fleet.start_daemon();
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    let why = "`channels.ops.allow` does not name the session heartbeat:scripted, so the mayor got a letter";
    fleet.until_seen("the letter", || last(&fleet) == format!("ok mailed: - {why}"));
    assert!(fleet.town.gt(["mail", "inbox"]).stdout.contains("the heartbeat of scripted has something to tell"));
    assert_eq!(fleet.town.gt(["heartbeat", "status", "--json"]).json()["agents"][0]["last_reason"], why);
    let job = ["cron", "add", "tells", "--every", "1h", "--run", "date", "--channel", "ops"];
    snapshot!(fleet.town.refused(job), @r#"
    $ gt cron add tells --every 1h --run date --channel ops
    ! error: `channels.ops.allow` does not name the session cron:tells
    ! hint: let it in with another pattern, such as "cron:*", in `channels.ops.allow`
    [exit 1]
    "#);
    fleet.set("channels.ops.allow", "[\"cron:*\"]");
    fleet.town.gt(job).success();
}

#[test]
fn an_alert_for_a_channel_that_is_not_there_or_not_any_more_is_a_letter() {
    let fleet = ticking();
    beating(&fleet);
    // `gt config set` refuses it.
    fleet.town.write("town.toml", fleet.town.read("town.toml") + "\n[heartbeat]\ntarget = \"nosuch\"\n");
    reply(&fleet, "The shop is down.");
    fleet.start_daemon();
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    assert_eq!(last(&fleet), "ok mailed: - there is no channel `nosuch`, so the mayor got a letter");
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("there is no channel nosuch, so alerts are letters (`gt mail inbox`)"), "{status}");
    // One that nobody answers at, and that is then taken away with what waits for it.
    let double = Double::new(|_, _| Answer::Status(503, "", String::new()));
    hook(&fleet, &double);
    fleet.set("heartbeat.target", "ops");
    reply(&fleet, "The shop is on fire.");
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    double.until("a try", |all| !all.is_empty());
    fleet.until_seen("why it waits", || last(&fleet).contains("; it is tried again at 2"));
    assert!(last(&fleet).starts_with("ok waiting: - "), "{}", last(&fleet));
    let logs = fleet.town.gt(["heartbeat", "logs", "--limit", "1"]).stdout;
    assert!(logs.contains("waiting: ") && logs.contains("503"), "{logs}");
    for key in ["kind", "url"] {
        fleet.town.gt(["config", "unset", &format!("channels.ops.{key}")]).success();
    }
    fleet.until_seen("the letter", || {
        last(&fleet) == "ok mailed: - there is no channel `ops`, so the mayor got a letter"
    });
    let mail = fleet.town.gt(["mail", "inbox"]).stdout;
    assert_eq!(mail.matches("the heartbeat of scripted has something to tell").count(), 2, "{mail}");
}

#[test]
fn what_waits_for_a_channel_that_does_not_run_says_so() {
    let fleet = ticking();
    beating(&fleet);
    fleet.set("daemon.heartbeat", "1s");
    fleet.set("channels.ops.kind", "webhook");
    fleet.set("heartbeat.target", "ops");
    reply(&fleet, "The shop is down.");
    fleet.start_daemon();
    fleet.town.gt(["heartbeat", "run", "--wait"]).success();
    fleet.until_seen("why it waits", || last(&fleet) == "ok waiting: - there is no channel `ops` that runs");
    // Once it runs, it is told.
    let double = Double::new(|_, _| ok());
    hook(&fleet, &double);
    fleet.until_seen("the delivery to be known", || last(&fleet) == "ok delivered: - -");
}

#[test]
fn a_busy_agent_is_left_alone_and_a_heartbeat_gives_way_to_a_message() {
    let fleet = ticking();
    beating(&fleet);
    let waits = "case $GT_SESSION in heartbeat:*) touch \"$HOME/in-beat\"; sleep 600;; *) \
                 while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; echo \"re: $text\";; esac";
    answers(&fleet, waits);
    fleet.set("sessions.debounce_ms", "0");
    fleet.set("agents.scripted.max", "1");
    fleet.set("heartbeat.interval", "1s");
    fleet.start_daemon();
    fleet.await_file("in-beat");
    // The agent has one place, and a heartbeat has it: whoever asks gets it.
    fleet.town.gt(["send", "dm:anna", "first"]).success();
    fleet.await_trace("^turn dm:anna first", 1);
    let way = logs(&fleet).into_iter().find(|beat| beat["status"] == "cancelled").expect("it gave way");
    assert!(way["error"].as_str().is_some_and(|why| why.contains("gave way")), "{way}");
    // While it answers, heartbeats are left out.
    await_fires(&fleet, BEAT, "skipped", 2);
    assert_eq!(last(&fleet), "skipped -: scripted was busy -");
    let by_hand = fleet.town.gt(["heartbeat", "run"]);
    assert_eq!(by_hand.code, 5, "{by_hand}");
    fleet.open_gate("gate");
    fleet.until_seen("the answer", || {
        let shown = fleet.town.gt(["session", "show", "dm:anna", "--json"]).json();
        shown["turns"][0]["reply"] == "re: first"
    });
}

#[test]
fn a_heartbeat_that_fails_again_and_again_stops_itself_and_can_be_switched_on_again() {
    let fleet = ticking();
    beating(&fleet);
    answers(&fleet, "echo no credit >&2; exit 126");
    fleet.set("cron.max_failures", "2");
    fleet.set("heartbeat.interval", "1s");
    fleet.start_daemon();
    fleet.until_events("job.disabled", None, 1);
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("disabled: it failed 2 times in a row") && status.contains("no credit"), "{status}");
    let mail = fleet.town.gt(["mail", "inbox"]).stdout;
    assert!(mail.contains("the heartbeat of scripted stopped itself"), "{mail}");
    answers(&fleet, "echo HEARTBEAT_OK");
    fleet.town.gt(["heartbeat", "enable"]).success();
    await_fires(&fleet, BEAT, "ok", 1);
    fleet.town.gt(["heartbeat", "disable"]).success();
    fleet.until_seen("it to rest", || {
        let status = fleet.town.gt(["heartbeat", "status", "--json"]).json();
        status["agents"][0]["state"] == "paused"
    });
}

#[test]
fn a_new_list_is_taken_up_by_the_daemon_that_runs_and_until_then_the_status_says_when() {
    let fleet = ticking();
    beating(&fleet);
    std::fs::remove_file(fleet.town.path("HEARTBEAT.md")).expect("it is there");
    fleet.set("daemon.heartbeat", "10m");
    fleet.start_daemon();
    // The town's own is heard of.
    fleet.town.write("HEARTBEAT.md", "- Is the shop up?\n");
    fleet.until_events("job.added", None, 1);
    // A daemon that is about to look once more at the town's own list would find this one too.
    Fleet::signal(fleet.daemon_pid(), "-STOP");
    std::fs::create_dir_all(fleet.town.path("agents/other")).expect("the town can be written");
    fleet.town.write("agents/other/HEARTBEAT.md", "- Look after the garden\n");
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    Fleet::signal(fleet.daemon_pid(), "-CONT");
    assert!(status.contains("other  begins with the daemon's next patrol, one every 10m\n"), "{status}");
    fleet.town.write("HEARTBEAT.md", "- Is the shop still up?\n");
    fleet.until_events("job.added", None, 2);
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("scripted  next in ") && !status.contains("begins"), "{status}");
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.set("heartbeat.enabled", "false");
    std::fs::create_dir_all(fleet.town.path("agents/third")).expect("the town can be written");
    fleet.town.write("agents/third/HEARTBEAT.md", "- Look after the house\n");
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("third  rests\n"), "{status}");
    fleet.set("heartbeat.enabled", "true");
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("third  begins when a daemon runs\n"), "{status}");
}

#[test]
fn an_interval_that_no_heart_can_keep_is_refused() {
    let fleet = ticking();
    beating(&fleet);
    let refused = fleet.town.gt(["config", "set", "heartbeat.interval", "100ms"]);
    let range = "it must be a duration from `1s` to `3660d`";
    assert!(refused.code == 1 && refused.stderr.contains(range), "{refused}");
    // Whoever writes it into the file hears of it from whoever reads that.
    let config = fleet.town.path("town.toml");
    let text = std::fs::read_to_string(&config).expect("there is a config");
    std::fs::write(&config, format!("{text}\n[heartbeat]\ninterval = \"100ms\"\n")).expect("it can be written");
    let status = fleet.town.gt(["heartbeat", "status"]);
    assert!(status.code == 0 && status.stderr.contains("heartbeat.interval"), "{status}");
    assert!(status.stderr.contains(range), "{status}");
}

#[test]
fn who_is_disabled_while_all_are_stays_so_until_it_is_enabled_by_name() {
    let fleet = ticking();
    beating(&fleet);
    let gt = |words: &[&str]| fleet.town.call(words.iter().copied()).run();
    let state = || gt(&["heartbeat", "status", "--json"]).json()["agents"][0]["state"].clone();
    gt(&["heartbeat", "disable"]).success();
    // There is nothing to stop yet, and nothing that could be remembered.
    let refused = gt(&["heartbeat", "disable", "scripted"]);
    assert!(refused.code == 1 && refused.stderr.contains("heartbeats are switched off"), "{refused}");
    gt(&["heartbeat", "enable"]).success();
    gt(&["heartbeat", "disable"]).success();
    gt(&["heartbeat", "disable", "scripted"]).success();
    insta::assert_snapshot!(gt(&["heartbeat", "enable"]).stdout, @"Hearts beat again, all but scripted: `gt heartbeat enable scripted`");
    assert_eq!(state(), "paused");
    insta::assert_snapshot!(gt(&["heartbeat", "enable", "scripted"]).stdout, @"The heart of scripted beats again.");
    assert_eq!(state(), "active");
}

#[test]
fn each_agent_with_a_file_of_its_own_has_a_heart_of_its_own() {
    let fleet = ticking();
    beating(&fleet);
    let other = fleet.home("turn.sh").display().to_string();
    fleet.set("agents.other.headless", &serde_json::json!(["bash", other]).to_string());
    std::fs::create_dir_all(fleet.town.path("agents/other")).expect("the town can be written");
    fleet.town.write("agents/other/HEARTBEAT.md", "- Look after the garden\n");
    fleet.set("heartbeat.interval", "1s");
    fleet.start_daemon();
    await_fires(&fleet, BEAT, "ok", 1);
    await_fires(&fleet, "heartbeat:other", "ok", 1);
    let trace = std::fs::read_to_string(fleet.home("trace")).expect("they have beaten");
    assert!(trace.contains("Look after the garden") && trace.contains("Is the shop up?"), "{trace}");
}

#[test]
fn what_is_no_file_is_not_read_and_holds_up_nobody() {
    let fleet = ticking();
    beating(&fleet);
    fleet.start_daemon();
    fleet.until_events("job.added", None, 1);
    std::fs::remove_file(fleet.town.path("HEARTBEAT.md")).expect("it is there");
    let made = std::process::Command::new("mkfifo").arg(fleet.town.path("HEARTBEAT.md")).status();
    assert!(made.expect("mkfifo is there").success());
    fleet.set("heartbeat.interval", "1s");
    await_fires(&fleet, BEAT, "skipped", 1);
    assert_eq!(last(&fleet), "skipped -: HEARTBEAT.md is not a file -");
}

#[test]
fn a_heartbeat_that_could_not_start_within_its_hours_is_left_out() {
    let clocked = Clocked::at("2027-01-12T21:00:00Z");
    beating(&clocked);
    clocked.set("heartbeat.active_hours", "08:00-22:00");
    clocked.set("heartbeat.tz", "UTC");
    clocked.start_daemon();
    clocked.until_events("job.added", None, 1);
    clocked.gt(&["scheduler", "pause"]).success();
    clocked.strike("2027-01-12T21:30:00Z");
    await_fires(&clocked, BEAT, "running", 1);
    clocked.set_clock("2027-01-12T22:10:00Z");
    await_fires(&clocked, BEAT, "skipped", 1);
    let why = "its active hours, 08:00-22:00 (UTC), were over before it could start";
    assert_eq!(logs(&clocked)[0]["error"], why);
    clocked.gt(&["scheduler", "resume"]).success();
}

#[test]
fn hearts_are_not_looked_after_as_other_jobs_are() {
    let fleet = ticking();
    beating(&fleet);
    fleet.start_daemon();
    fleet.until_events("job.added", None, 1);
    for verb in ["run", "pause", "resume", "remove"] {
        let answer = fleet.town.gt(["cron", verb, BEAT]);
        assert_eq!(answer.code, 1, "{answer}");
        assert!(answer.stderr.contains("is a heartbeat, which the config makes"), "{answer}");
    }
}
