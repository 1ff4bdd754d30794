//! Changing jobs: what is named changes, the rest stays, and nobody's change is lost. // SPEC K1

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::town::{Town, snapshot};

/// A town with a job `e` that does this, each hour.
fn with_job(does: &[&str]) -> Fleet {
    let fleet = Fleet::new("");
    fleet.set("agents.other.headless", r#"["true"]"#);
    fleet.set("agents.scripted.headless", r#"["true"]"#);
    super::add(&fleet, &[&["e", "--every", "1h"], does].concat());
    fleet
}

fn edit(town: &Town, words: &[&str]) -> Value {
    let words = ["cron", "edit", "e"].iter().chain(words).chain(&["--json"]).copied();
    town.call(words).run().json()["payload"].take()
}

#[test]
fn two_changes_at_once_are_both_made() {
    let fleet = with_job(&["--run", "true"]);
    for round in 1..=12 {
        let (timeout, retries) = (format!("{round}m"), round.to_string());
        let change = |words: [&str; 2]| fleet.town.call(["cron", "edit", "e"].into_iter().chain(words)).spawn();
        let changes = [change(["--timeout", &timeout]), change(["--retries", &retries])];
        for child in changes {
            assert!(child.wait_with_output().expect("it ends").status.success());
        }
        let job = fleet.town.gt(["cron", "show", "e", "--json"]).json();
        assert_eq!((&job["timeout_ms"], &job["retries"]), (&json!(round * 60_000), &json!(round)));
    }
}

#[test]
fn of_a_message_only_what_is_named_changes() {
    let fleet = with_job(&["--run", "true"]);
    let message = |text: &str, session: &str, agent: &str| {
        let all = [("text", text), ("session", session), ("agent", agent)];
        let known = all.into_iter().filter(|(_, value)| !value.is_empty());
        json!({ "message": known.map(|(key, value)| (key.to_owned(), json!(value))).collect::<serde_json::Map<_, _>>() })
    };
    let edit = |words: &[&str]| edit(&fleet.town, words);
    assert_eq!(
        edit(&["--message", "hi", "--session", "dm:x", "--agent", "scripted"]),
        message("hi", "dm:x", "scripted")
    );
    assert_eq!(edit(&["--message", "hello"]), message("hello", "dm:x", "scripted"));
    assert_eq!(edit(&["--agent", "other", "--timeout", "5m"]), message("hello", "dm:x", "other"));
    assert_eq!(edit(&["--session", "dm:y"]), message("hello", "dm:y", "other"));
    assert_eq!(edit(&["--session", "none"]), message("hello", "", "other"));
    assert_eq!(edit(&["--agent", "default"]), message("hello", "", ""));
    assert_eq!(edit(&["--run", "true"]), json!({ "run": { "command": "true" } }));
}

#[test]
fn of_what_is_slung_only_what_is_named_changes() {
    let fleet = with_job(&["--new", "One", "--rig", "shop", "--args", "soon", "--agent", "scripted"]);
    fleet.hold(&["gt-1", "gt-2"]);
    let edit = |words: &[&str]| {
        let payload = edit(&fleet.town, words);
        let words = payload["sling"]["words"].as_array().expect("it slings").iter();
        words.map(|word| word.as_str().expect("a word").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(edit(&["--new", "Two"]), ["shop", "--new=Two", "--args=soon", "--agent=scripted"]);
    assert_eq!(edit(&["--args", "later"]), ["shop", "--new=Two", "--args=later", "--agent=scripted"]);
    assert_eq!(edit(&["--agent", "other"]), ["shop", "--new=Two", "--args=later", "--agent=other"]);
    assert_eq!(edit(&["--sling", "gt-1"]), ["gt-1", "--args=later", "--agent=other"]);
    assert_eq!(
        edit(&["--formula", "mol-polecat-work"]),
        ["gt-1", "--formula=mol-polecat-work", "--args=later", "--agent=other"]
    );
    assert_eq!(edit(&["--formula", "default", "--args", ""]), ["gt-1", "--agent=other"]);
    assert_eq!(
        edit(&["--sling", "mol-polecat-work", "--on", "gt-1"]),
        ["mol-polecat-work", "--on=gt-1", "--agent=other"]
    );
    assert_eq!(edit(&["--on", "gt-2"]), ["mol-polecat-work", "--on=gt-2", "--agent=other"]);
    assert_eq!(edit(&["--sling", "gt-1", "--agent", "default"]), ["gt-1"]);
}

#[test]
fn a_flag_that_does_not_fit_is_refused() {
    let fleet = with_job(&["--run", "true"]);
    let refused = |words: &[&str]| fleet.town.refused(["cron", "edit", "e"].into_iter().chain(words.iter().copied()));
    let runs =
        [&["--session", "dm:x"][..], &["--agent", "other"], &["--rig", "shop"], &["--on", "gt-1"], &["--to", "you"]];
    let runs = runs.map(refused).concat();
    fleet.town.gt(["cron", "edit", "e", "--message", "hi"]).success();
    let message =
        [&["--args", "x", "--retries", "1"][..], &["--agent", "nobody"], &["--session", " "], &["--message", " "]];
    snapshot!(runs + &message.map(refused).concat(), @"
    $ gt cron edit e --session dm:x
    ! error: `--session` goes with `--message` only
    ! hint: see `gt cron add --help`
    [exit 2]
    $ gt cron edit e --agent other
    ! error: `--agent` goes with `--message`, `--sling` and `--new` only
    ! hint: see `gt cron add --help`
    [exit 2]
    $ gt cron edit e --rig shop
    ! error: `--rig` goes with `--new` only
    ! hint: see `gt cron add --help`
    [exit 2]
    $ gt cron edit e --on gt-1
    ! error: `--on` goes with `--sling` only
    ! hint: see `gt cron add --help`
    [exit 2]
    $ gt cron edit e --to you
    ! error: `--to` goes with a channel only
    ! hint: say by which: `--channel NAME`
    [exit 2]
    $ gt cron edit e --args x --retries 1
    ! error: `--args` goes with `--sling` and `--new` only
    ! hint: see `gt cron add --help`
    [exit 2]
    $ gt cron edit e --agent nobody
    ! error: agent `nobody` takes no chat turns; set `agents.nobody.headless`
    [exit 2]
    $ gt cron edit e --session ' '
    ! error: ` ` cannot name a session: it begins or ends with a space
    ! hint: for example `dm:anna`
    [exit 2]
    $ gt cron edit e --message ' '
    ! error: the message is empty
    ! hint: for example `--message 'What is new?'`
    [exit 2]
    ");
}

#[test]
fn who_is_told_changes_alone_too() {
    let fleet = with_job(&["--run", "true"]);
    for channel in ["ops", "dev"] {
        fleet.set(&format!("channels.{channel}.url"), "http://127.0.0.1:9/");
        fleet.set(&format!("channels.{channel}.kind"), "webhook");
    }
    let edit = |words: &[&str]| {
        let words = ["cron", "edit", "e"].iter().chain(words).chain(&["--json"]).copied();
        let job = fleet.town.call(words).run().json();
        format!("{} {}", job["channel"], job["to"])
    };
    assert_eq!(edit(&["--channel", "ops", "--to", "you"]), r#""ops" "you""#);
    assert_eq!(edit(&["--to", "me"]), r#""ops" "me""#);
    assert_eq!(edit(&["--channel", "ops", "--retries", "2"]), r#""ops" "me""#);
    assert_eq!(edit(&["--channel", "dev"]), r#""dev" null"#, "who that is, another channel does not know");
    assert_eq!(edit(&["--channel", "none"]), "null null");
}

#[test]
fn a_change_is_rehearsed() {
    let fleet = with_job(&["--run", "true"]);
    fleet.hold(&["gt-1"]);
    let before = fleet.town.state();
    for words in [&["edit", "e", "--sling", "gt-1"][..], &["add", "x", "--every", "1h", "--sling", "gt-1"]] {
        fleet.town.call(["cron"].iter().chain(words).chain(&["--dry-run"]).copied()).run().success();
    }
    assert_eq!(fleet.town.state(), before);
}

#[test]
fn a_job_whose_time_has_passed_is_refused_with_what_helps() {
    let clocked = super::Clocked::at("2027-01-12T10:20:00Z");
    let gt = |words: &[&str]| clocked.gt(&[&["cron"], words].concat());
    gt(&["add", "k4", "--at", "11:00", "--tz", "UTC", "--run", "true"]).success();
    gt(&["pause", "k4"]).success();
    clocked.set_clock("2027-01-12T12:00:00Z");
    let answers = [gt(&["resume", "k4"]), gt(&["edit", "k4", "--at", "in 2h"]), gt(&["resume", "k4"])];
    snapshot!(crate::town::session(answers).replace(NO_DAEMON, ""), @"
    $ gt cron resume k4
    ! error: the job `k4` would never run: [TIME] has passed
    ! hint: give it another time with `gt cron edit k4 --at TIME`, or run it now with `gt cron run k4`
    [exit 1]
    $ gt cron edit k4 --at 'in 2h'
    Changed k4: at Tue 2027-01-12 14:00 +00:00 (UTC); it is paused.
    $ gt cron resume k4
    Resumed k4: at Tue 2027-01-12 14:00 +00:00 (UTC), in 2h.
    ");
}

const NO_DAEMON: &str = "! note: no daemon runs, so nothing starts by itself: `gt daemon start`\n";

#[test]
fn a_job_that_is_under_way_is_refused_with_what_helps() {
    let fleet = with_job(&["--message", "hi"]);
    super::add(&fleet, &["s", "--every", "1h", "--message", "hi", "--session", "dm:carl"]);
    super::add(&fleet, &["r", "--every", "1h", "--run", "false"]);
    for name in ["e", "s", "r"] {
        fleet.town.gt(["cron", "run", name]).success();
    }
    // As if it had failed, a moment ago.
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "UPDATE fire SET retry_at = 4102444800000000, error = 'oh no' WHERE name = 'r';
               UPDATE turn SET state = 'ended', outcome = 'failed', ended_at = made_at WHERE id = (SELECT turn FROM fire WHERE name = 'r')";
    store.execute_batch(sql).expect("it is a store");
    let refused = ["e", "s", "r"].map(|name| fleet.town.refused(["cron", "run", name])).concat();
    let stopped = ["cron:e", "dm:carl"].map(|key| fleet.town.gt(["session", "stop", key]).to_string()).concat();
    snapshot!(refused + &stopped, @"
    $ gt cron run e
    ! error: the job `e` waits to be started: no daemon runs: `gt daemon start`
    ! hint: see it with `gt cron runs e`, or stop it with `gt session stop cron:e`
    [exit 5]
    $ gt cron run s
    ! error: the job `s` waits to be started: no daemon runs: `gt daemon start`
    ! hint: see it with `gt cron runs s`, or stop it with `gt session stop dm:carl`
    [exit 5]
    $ gt cron run r
    ! error: the job `r` has failed, and waits for its next try
    ! hint: `gt cron runs r` shows when that is; `gt cron pause r` gives it up
    [exit 5]
    $ gt session stop cron:e
    Cancelled 1 message that waited.
    $ gt session stop dm:carl
    Cancelled 1 message that waited.
    ");
    fleet.town.gt(["cron", "run", "e"]).success();
}

#[test]
fn another_zone_alone_does_not_move_a_time_that_comes_once() {
    let clocked = super::Clocked::at("2027-01-12T10:20:00Z");
    let gt = |words: &[&str]| clocked.gt(&[&["cron"], words].concat());
    gt(&["add", "e", "--at", "tomorrow 9:00", "--tz", "UTC", "--run", "true"]).success();
    let answers = [
        gt(&["edit", "e", "--tz", "America/New_York"]),
        gt(&["edit", "e", "--tz", "America/New_York", "--at", "tomorrow 9:00"]),
        gt(&["edit", "e", "--tz", "America/New_York", "--retries", "1"]),
        gt(&["edit", "e", "--tz", "UTC", "--cron", "0 9 * * *"]),
        gt(&["edit", "e", "--tz", "America/New_York"]),
    ];
    snapshot!(crate::town::session(answers), @"
    $ gt cron edit e --tz America/New_York
    ! error: another zone alone does not say when `e` comes: it has one time
    ! hint: say the time there too, as in `--at '2027-01-13 04:00' --tz America/New_York`
    [exit 2]
    $ gt cron edit e --tz America/New_York --at 'tomorrow 9:00'
    Changed e: at Wed 2027-01-13 09:00 -05:00 (America/New_York), in 1d 4h.
    $ gt cron edit e --tz America/New_York --retries 1
    Changed e: at Wed 2027-01-13 09:00 -05:00 (America/New_York), in 1d 4h.
    $ gt cron edit e --tz UTC --cron '0 9 * * *'
    Changed e: cron 0 9 * * * (UTC); next Wed 2027-01-13 09:00 +00:00, in 22h 40m.
    $ gt cron edit e --tz America/New_York
    Changed e: cron 0 9 * * * (America/New_York); next Tue 2027-01-12 09:00 -05:00, in 3h 40m.
    ");
}

#[test]
fn where_nothing_would_change_nothing_is_done() {
    let clocked = super::Clocked::at("2027-01-12T10:20:00Z");
    let gt = |words: &[&str]| clocked.gt(&[&["cron"], words].concat());
    gt(&["add", "e", "--cron", "0 9 * * *", "--tz", "UTC", "--run", "true", "--retries", "2"]).success();
    let before = clocked.town.state();
    let same = gt(&["edit", "e", "--cron", "0 9 * * *", "--retries", "2", "--no-overlap"]);
    let job = gt(&["edit", "e", "--run", "true", "--json"]).json();
    assert_eq!((&job["name"], &job["retries"]), (&json!("e"), &json!(2)));
    assert_eq!(clocked.town.state(), before);
    snapshot!(crate::town::session([same]) + &clocked.town.refused(["cron", "edit", "e"]), @"
    $ gt cron edit e --cron '0 9 * * *' --retries 2 --no-overlap
    Nothing to do for e: cron 0 9 * * * (UTC); next Wed 2027-01-13 09:00 +00:00, in 22h 40m.
    $ gt cron edit e
    ! error: it is not said what to change
    ! hint: for example `gt cron edit e --every 2h`; see `gt cron edit --help`
    [exit 2]
    ");
}

#[test]
fn who_gives_a_time_another_zone_is_told_how_that_time_is_written_there() {
    let clocked = super::Clocked::at("2027-11-06T10:20:00Z");
    let gt = |words: &[&str]| clocked.gt(&[&["cron"], words].concat());
    gt(&["add", "q3", "--at", "2027-11-07 5:30", "--tz", "UTC", "--run", "true"]).success();
    let kolkata = gt(&["edit", "q3", "--tz", "Asia/Kolkata"]);
    // There it is half past one for the first time.
    let new_york = gt(&["edit", "q3", "--tz", "America/New_York"]);
    gt(&["pause", "q3"]).success();
    clocked.set_clock("2027-11-07T10:20:00Z");
    snapshot!(crate::town::session([kolkata, new_york, gt(&["edit", "q3", "--tz", "Asia/Kolkata"])]), @"
    $ gt cron edit q3 --tz Asia/Kolkata
    ! error: another zone alone does not say when `q3` comes: it has one time
    ! hint: say the time there too, as in `--at '2027-11-07 11:00' --tz Asia/Kolkata`
    [exit 2]
    $ gt cron edit q3 --tz America/New_York
    ! error: another zone alone does not say when `q3` comes: it has one time
    ! hint: say the time there too, as in `--at 2027-11-07T01:30:00-04:00 --tz America/New_York`
    [exit 2]
    $ gt cron edit q3 --tz Asia/Kolkata
    ! error: another zone alone does not say when `q3` comes: it has one time
    ! hint: say the time there too, as in `--at TIME --tz Asia/Kolkata`
    [exit 2]
    ");
    gt(&["edit", "q3", "--at", "2027-11-08 11:00", "--tz", "Asia/Kolkata"]).success();
}
