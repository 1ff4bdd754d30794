//! What a list says of jobs that are at something: that they run, wait, or are tried again. // SPEC K1, K4

use serde_json::{Value, json};

use super::{Clocked, TICK, add, answers, fires, instant, ticking};
use crate::fleet::Fleet;
use crate::town::Town;

const WAITS: &str = "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done";
const NO_DAEMON: &str = "note: no daemon runs, so nothing starts by itself: `gt daemon start`\n";

/// The line that begins with a sign and a name.
fn line(text: &str, name: &str) -> String {
    let is_its = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    text.lines().find(is_its).unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn listed(town: &Town, name: &str) -> String {
    line(&town.gt(["cron", "list"]).stdout, name)
}

fn job(town: &Town, name: &str) -> Value {
    let jobs = town.gt(["cron", "list", "--json"]).json();
    jobs.as_array().expect("a list").iter().find(|job| job["name"] == name).expect("it is there").clone()
}

#[test]
fn what_runs_is_marked_and_what_waits_for_its_lane_is_not_said_to_run() {
    let fleet = ticking();
    fleet.start_daemon();
    add(&fleet, &["long", "--at", "in 1s", "--run", &format!("{TICK}; {WAITS}")]);
    fleet.until_events("run.started", None, 1);
    // Each has its time; there is one place for all of them.
    add(&fleet, &["soon", "--at", "in 1s", "--run", TICK]);
    add(&fleet, &["often", "--every", "24h", "--run", TICK]);
    fleet.town.gt(["cron", "run", "often"]).success();
    fleet.until_seen("its time", || job(&fleet.town, "soon")["last_status"] == "running");
    let long = listed(&fleet.town, "long");
    assert!(long.starts_with("▶ long ") && long.contains("runs now, started "), "{long}");
    let soon = listed(&fleet.town, "soon");
    assert!(soon.starts_with("◌ soon ") && soon.ends_with("  waits for its turn"), "{soon}");
    let often = listed(&fleet.town, "often");
    assert!(
        often.starts_with("◌ often ") && often.contains("in 1d ") && often.ends_with("waits for its turn"),
        "{often}"
    );
    let shown = fleet.town.gt(["cron", "show", "often"]).stdout;
    assert!(shown.contains("\n  now       waits for its turn\n  waits     the lane `cron` is full"), "{shown}");
    for name in ["long", "soon", "often"] {
        let (job, fire) = (job(&fleet.town, name), fires(&fleet, name).remove(0));
        assert_eq!((&job["last_status"], &job["last_at"]), (&json!("running"), &fire["slot"]), "{name}");
    }
    let runs = fleet.town.gt(["cron", "runs"]).stdout;
    assert!(line(&runs, "long").starts_with("▶") && line(&runs, "long").ends_with("  running"), "{runs}");
    assert!(line(&runs, "soon").starts_with("◌") && line(&runs, "soon").ends_with("waits for its turn"), "{runs}");
    fleet.town.gt(["cron", "pause", "often"]).success();
    assert!(listed(&fleet.town, "often").starts_with("‖ often"), "what waited is given up");
    fleet.open_gate("gate");
    super::await_fires(&fleet, "soon", "ok", 1);
}

/// A job whose first attempt has failed, in a town whose daemon has died then. Its clock stands still until somebody sets it, so
/// that nothing is tried again before.
fn failed_once() -> Clocked {
    let clocked = Clocked::at("2027-01-12T10:20:00Z");
    clocked.stop_clock(instant("2027-01-12T10:20:00Z"));
    clocked.gt(&["cron", "add", "shaky", "--every", "24h", "--run", "echo oh no >&2; exit 7"]).success();
    clocked.start_daemon();
    clocked.gt(&["cron", "run", "shaky"]).success();
    clocked.until_seen("its first failure", || fires(&clocked, "shaky")[0]["error"].is_string());
    clocked.kill_daemon();
    clocked
}

#[test]
fn what_is_tried_again_says_when_and_an_attempt_that_waits_does_not_run() {
    let clocked = failed_once();
    let shaky = || line(&clocked.gt(&["cron", "list"]).stdout, "shaky");
    assert!(shaky().starts_with("◌ shaky ") && shaky().contains("  failed, tried again in "), "{}", shaky());
    clocked.stop_clock(instant("2027-01-12T10:25:00Z"));
    assert!(shaky().starts_with("◌ shaky ") && shaky().contains("  failed, waits to be tried again"), "{}", shaky());
    // The daemon is back, and something keeps the second attempt from being made.
    clocked.gt(&["scheduler", "pause"]).success();
    clocked.start_daemon();
    clocked.until_seen("its second attempt", || fires(&clocked, "shaky")[0]["attempt"] == 2);
    assert!(shaky().starts_with("◌ shaky ") && shaky().contains("waits for its turn, attempt 2"), "{}", shaky());
    let runs = clocked.gt(&["cron", "runs", "shaky"]).stdout;
    assert!(line(&runs, "shaky").ends_with("  waits for its turn, attempt 2"), "{runs}");
    assert!(runs.lines().nth(1).is_some_and(|line| line.contains("attempt 1 failed")), "{runs}");
}

#[test]
fn what_failed_last_names_the_command_that_shows_its_log() {
    let clocked = failed_once();
    let fleet: &Fleet = &clocked;
    let run = fires(fleet, "shaky")[0]["run"].as_str().expect("it ran").to_owned();
    let see = format!("    see `gt trace show {run}`");
    for verb in ["runs", "show"] {
        let text = fleet.town.gt(["cron", verb, "shaky"]).stdout;
        assert_eq!(text.lines().filter(|line| *line == see).count(), 1, "{text}");
    }
    let trace = fleet.town.gt(["trace", "show", &run]).stdout;
    assert!(trace.contains("oh no") && trace.contains("\n  log "), "{trace}");
    // Of several only the last, and nothing where all is well.
    clocked.gt(&["cron", "pause", "shaky"]).success();
    clocked.gt(&["cron", "run", "shaky", "--wait"]);
    let runs = clocked.gt(&["cron", "runs", "shaky"]).stdout;
    assert!(runs.lines().nth(1).is_some_and(|line| line.starts_with("    see `gt trace show ")), "{runs}");
    assert_eq!(runs.matches("gt trace show").count(), 1, "{runs}");
    clocked.gt(&["cron", "add", "well", "--every", "24h", "--run", "true"]).success();
    clocked.gt(&["cron", "run", "well", "--wait"]).success();
    assert!(!clocked.gt(&["cron", "runs", "well"]).stdout.contains("gt trace"));
}

#[test]
fn without_a_daemon_a_list_of_active_jobs_says_so() {
    let clocked = Clocked::at("2027-01-12T10:20:00Z");
    clocked.gt(&["cron", "add", "backup", "--every", "1h", "--tz", "UTC", "--run", "true"]).success();
    clocked.set_clock("2027-01-12T11:50:00Z");
    let list = clocked.gt(&["cron", "list"]);
    assert_eq!((list.stdout.contains("  due 30m ago "), list.stderr.as_str()), (true, NO_DAEMON), "{list}");
    assert_eq!(clocked.gt(&["cron", "list", "--json"]).stderr, "");
    assert!(clocked.gt(&["status"]).stdout.contains("  backup  due 30m ago  "));
    clocked.gt(&["cron", "pause", "backup"]).success();
    assert_eq!(clocked.gt(&["cron", "list"]).stderr, "", "nothing would start");
    clocked.gt(&["cron", "resume", "backup"]).success();
    clocked.start_daemon();
    assert_eq!(clocked.gt(&["cron", "list"]).stderr, "");
}

#[test]
fn a_heart_that_beats_right_now_is_seen_to() {
    let fleet = ticking();
    answers(&fleet, WAITS);
    fleet.town.write("HEARTBEAT.md", "- Is the shop up?\n");
    fleet.start_daemon();
    fleet.until_events("job.added", None, 1);
    fleet.town.gt(["heartbeat", "run"]).success();
    fleet.until_events("run.started", None, 1);
    let status = fleet.town.gt(["heartbeat", "status"]).stdout;
    assert!(status.contains("\n  runs now, started ") && !status.contains("last running"), "{status}");
    fleet.open_gate("gate");
    super::await_fires(&fleet, "heartbeat:scripted", "ok", 1);
}
