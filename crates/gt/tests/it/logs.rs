//! What is left of runs in `.gt/logs`: little of those that the store knows all of, and no more than is wanted. // SPEC B7

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fleet::Fleet;

/// A town whose agent answers, fails, or complains and answers.
fn talking() -> Fleet {
    let fleet = Fleet::new("");
    let script = r#"text=$(cat)
case "$text" in
  fail*) echo "no key" >&2; exit 3 ;;
  complain*) echo "a warning" >&2 ;;
esac
echo "re: $text"
"#;
    fs::write(fleet.home("turn.sh"), script).expect("the home can be written");
    fleet.set("agents.scripted.headless", &json!(["bash", fleet.home("turn.sh")]).to_string());
    fleet.set("sessions.debounce_ms", "0");
    fleet
}

/// The names of what is left, by how they end.
fn files(fleet: &Fleet, end: &str) -> Vec<String> {
    let entries = fs::read_dir(fleet.town.path(".gt/logs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(end)).collect()
}

/// As if a file had been written so long ago.
fn age(path: &Path, span: Duration) {
    let file = fs::File::options().write(true).open(path).expect("it is there");
    file.set_modified(SystemTime::now() - span).expect("it can be changed");
}

/// As if five minutes had passed since all that ended.
fn let_time_pass(fleet: &Fleet) {
    for name in files(fleet, "") {
        age(&fleet.town.path(&format!(".gt/logs/{name}")), Duration::from_mins(5));
    }
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    store.execute("UPDATE run SET ended_at = ended_at - 300000000", []).expect("it can be changed");
}

fn ask(fleet: &Fleet, text: &str) -> Value {
    let session = format!("dm:{}", text.replace(' ', "-"));
    fleet.town.gt(["send", &session, text, "--wait"]);
    fleet.town.gt(["trace", "show", &session, "--json"]).json()
}

#[test]
fn what_the_store_has_of_a_turn_is_not_kept_twice() {
    let fleet = talking();
    fleet.town.gt(["cron", "add", "tick", "--every", "1h", "--run", "echo tock"]).success();
    fleet.start_daemon();
    let answered: Vec<Value> = (0..5).map(|n| ask(&fleet, &format!("question {n}"))).collect();
    let (failed, complained) = (ask(&fleet, "fail"), ask(&fleet, "complain"));
    fleet.town.gt(["cron", "run", "tick"]).success();
    let runs = || fleet.town.gt(["cron", "runs", "tick", "--json"]).json();
    fleet.until_seen("that the job is over", || runs()[0]["status"] == "ok");
    assert_eq!((files(&fleet, ".log").len(), files(&fleet, ".err").len()), (8, 8), "whoever follows them finds them");
    let shown = runs();
    let_time_pass(&fleet);
    fleet.set("daemon.heartbeat", "1s");
    fleet.until_seen("fewer files", || files(&fleet, "").len() <= 2);
    let name = |trace: &Value| format!("{}.err", trace["run"].as_str().expect("a run"));
    let mut left = files(&fleet, "");
    left.sort();
    let mut wanted = [name(&failed), name(&complained)];
    wanted.sort();
    assert_eq!(left, wanted, "complaints are nowhere else");
    for before in &answered {
        let run = before["run"].as_str().expect("a run");
        let after = fleet.town.gt(["trace", "show", run, "--json"]).json();
        assert_eq!((&after["reply"], &after["prompt"]), (&before["reply"], &before["prompt"]));
        assert!(before["log"].is_string() && after["log"].is_null(), "{before} {after}");
        assert!(!fleet.town.gt(["trace", "show", run]).stdout.contains(".gt/logs"), "no path that leads nowhere");
    }
    assert_eq!(runs(), shown);
}

#[test]
fn the_log_of_a_polecat_stays_though_it_is_short() {
    let fleet = Fleet::new("echo working; gt done --no-changes");
    fleet.hold(&["gt-a"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    let_time_pass(&fleet);
    let before = fleet.town.gt(["polecat", "logs", "Toast"]).stdout;
    let old = fleet.town.path(".gt/logs/old.log");
    fs::write(&old, "").expect("it can be written");
    age(&old, Duration::from_hours(30 * 24));
    fleet.set("daemon.heartbeat", "1s");
    fleet.until_seen("a patrol", || !old.exists());
    assert!(before.contains("working"), "{before}");
    assert_eq!(fleet.town.gt(["polecat", "logs", "Toast"]).stdout, before);
}

#[test]
fn the_oldest_logs_go_when_all_are_too_large_but_none_of_a_live_run() {
    let script = r#"head -c 100000 /dev/zero | tr '\0' x
if [ "$GT_BEAD" = gt-live ]; then exec sleep 600; fi
gt done --no-changes"#;
    let fleet = Fleet::new(script);
    fleet.hold(&["gt-live", "gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-live"]).success();
    fleet.until_events("run.started", Some("gt-live"), 1);
    for (n, bead) in (0..).zip(["gt-a", "gt-b", "gt-c", "gt-d"]) {
        fleet.town.gt(["sling", bead]).success();
        fleet.until_events("run.ended", Some(bead), 1);
        let log = fleet.town.path(&format!(".gt/logs/{}.log", fleet.started_runs().last().expect("it has started")));
        // Each an hour younger than the one before.
        age(&log, Duration::from_hours(9 - n));
    }
    let runs = fleet.started_runs();
    let live = fleet.town.path(&format!(".gt/logs/{}.log", runs[0]));
    fleet.until_seen("all that it prints", || fs::metadata(&live).is_ok_and(|log| log.len() == 100_000));
    age(&live, Duration::from_hours(48));
    fleet.set("retention.logs_size", "350 kB");
    fleet.set("daemon.heartbeat", "1s");
    fleet.until_seen("fewer logs", || files(&fleet, ".log").len() == 3);
    let mut left = files(&fleet, ".log");
    let mut wanted = [&runs[0], &runs[3], &runs[4]].map(|run| format!("{run}.log"));
    left.sort();
    wanted.sort();
    assert_eq!(left, wanted, "the live one and the two youngest");
}
