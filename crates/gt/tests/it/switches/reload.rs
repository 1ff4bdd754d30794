//! The config is edited while the daemon runs; the machine's guards come and go. // SPEC T5, D9

use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::{STAYS, hooked};
use crate::fleet::{Fleet, count};
use crate::town::{Answer, session, snapshot};

const WAITS: &str = "while [ ! -e \"$HOME/$GT_BEAD\" ]; do sleep 0.02; done; gt done";

/// The amounts of a machine are not a test's.
fn masked(answer: &Answer) -> String {
    mask_between(&answer.to_string(), "only ", " MB of")
}

fn mask_between(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(to) {
            Some((number, rest)) if number.chars().all(|c| c.is_ascii_digit()) => {
                masked.extend([from, "[FREE]", to, rest]);
            }
            _ => masked.extend([from, part]),
        }
    }
    masked
}

#[test]
fn a_raised_cap_is_taken_at_once() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.started", None, 1);
    assert_eq!(hooked(&events), ["gt-a"]);
    fleet.set("scheduler.max_polecats", "3");
    let events = fleet.until_events("run.started", None, 3);
    assert_eq!(hooked(&events), ["gt-a", "gt-b", "gt-c"]);
}

#[test]
fn a_broken_edit_keeps_the_last_good_config_and_says_so_and_a_mended_one_is_taken() {
    let fleet = Fleet::with_cap(1, WAITS);
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c", "gt-d"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 1);
    let good = fleet.town.read("town.toml");
    fleet.town.write("town.toml", format!("{good}\n[scheduler]\nmax_polecats = \"many\"\n"));
    fleet.until_events("config.rejected", None, 1);
    let status = fleet.town.gt(["status"]);
    fleet.open_gate("gt-a");
    let events = fleet.until_events("run.started", Some("gt-b"), 1);
    assert_eq!(count(&events, "run.started", None), 2, "the old cap holds");
    fleet.town.write("town.toml", good);
    fleet.set("scheduler.max_polecats", "3");
    fleet.until_events("run.started", None, 4);
    let mended = fleet.town.gt(["status"]);
    assert!(!mended.stdout.contains("town.toml"), "{mended}");
    snapshot!(status.to_string(), @"
    $ gt status
    [TOWN]  daemon runs (process [PID])
    1 of 1 agents running

    Needs a person (1)
      ! [TOWN]/town.toml: line 148, column 2: duplicate key in `[scheduler]`; the last good config stays in force

    Running (1)
      ● shop/Toast  working   gt-a Do gt-a  since [TIME]

    Waiting (3)
      ○ gt-b Do gt-b
          the one slot of the town is taken by shop/Toast
      ○ gt-c Do gt-c
          the one slot of the town is taken by shop/Toast
      ○ gt-d Do gt-d
          the one slot of the town is taken by shop/Toast

    Convoys (1)
      hq-cv-id01  0/4 done  Work: Do gt-a and 3 more
    ");
}

#[test]
fn a_daemon_that_never_read_a_good_config_starts_nothing_until_it_is_mended() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    let good = fleet.town.read("town.toml");
    fleet.town.forget_config();
    fleet.town.write("town.toml", "scheduler = 3\n");
    fleet.start_daemon();
    fleet.until_events("config.rejected", None, 1);
    // Any commit is a cause for a pass.
    fleet.town.gt(["create", "Something else", "--rig", "shop"]).success();
    fleet.town.write("town.toml", good);
    let events = fleet.until_events("run.started", None, 1);
    assert_eq!(hooked(&events), ["gt-a"], "the cap of the mended config holds");
    assert_eq!(events.iter().filter(|event| event["type"] == "run.ended").count(), 0, "nothing was tried before");
}

#[test]
fn a_config_is_not_read_before_its_writer_has_closed_it() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 1);
    let good = fleet.town.read("town.toml");
    let mut file = fs::File::create(fleet.town.path("town.toml")).expect("the town can be written");
    // An empty config is a broken one.
    fleet.town.gt(["create", "A cause for a pass", "--rig", "shop"]).success();
    file.write_all(good.replace("max_polecats = 1", "max_polecats = 2").as_bytes()).expect("the town can be written");
    drop(file);
    let events = fleet.until_events("run.started", None, 2);
    let agents: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "bead.hooked").map(|event| &event["data"]["agent"]).collect();
    assert_eq!(agents, ["scripted", "scripted"]);
}

#[test]
fn a_machine_without_memory_or_disk_starts_nothing_and_says_why() {
    for (key, absurd) in [("guards.free_memory", "900000 GB"), ("guards.free_disk", "900000 GB")] {
        let fleet = Fleet::with_cap(5, STAYS);
        fleet.set(key, absurd);
        fleet.hold(&["gt-a"]);
        fleet.town.gt(["sling", "gt-a"]).success();
        fleet.start_daemon();
        let run = fleet.town.gt(["scheduler", "run"]);
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stdout.contains(key), "{run}");
        assert_eq!(count(&fleet.town.events(), "bead.hooked", None), 0);
        fleet.town.gt(["config", "unset", key]).success();
        fleet.until_events("run.started", Some("gt-a"), 1);
    }
}

#[test]
fn a_tripped_guard_is_shown_wherever_somebody_looks() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("guards.free_memory", "900000 GB");
    fleet.hold(&["gt-a"]);
    let answers = [
        fleet.town.gt(["sling", "gt-a"]),
        fleet.town.gt(["scheduler", "status"]),
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["scheduler", "run"]),
        fleet.town.gt(["explain", "gt-a"]),
        fleet.town.gt(["status"]),
    ];
    snapshot!(answers.iter().map(masked).collect::<String>(), @r"
    $ gt sling gt-a
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
        only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB
    Tracked by convoy hq-cv-id02.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler status
    Scheduler
      State:  active, deferred dispatch
      Queued: 1 total, 1 ready
      Active: 0 of 5 polecats, 5 free
      ! only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
             only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB
    $ gt scheduler run
    ⏸ 1 ready bead waiting: only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB
    [exit 5]
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 5 agents running

    Needs a person (1)
      ! only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB

    Nothing runs.

    Waiting (1)
      ○ gt-a Do gt-a
          only [FREE] MB of memory are free, less than `guards.free_memory` = 900000000 MB

    Convoys (1)
      hq-cv-id02  0/1 done  Work: Do gt-a
    ");
}

#[test]
fn a_direct_sling_is_held_by_a_guard_too() {
    let fleet = Fleet::new(STAYS);
    fleet.set("guards.free_disk", "900000 GB");
    fleet.hold(&["gt-a"]);
    let answer = fleet.town.gt(["sling", "gt-a"]);
    assert!(fleet.starts().is_empty() && fleet.agents().is_empty(), "{answer}");
    let list = fleet.town.gt(["scheduler", "list"]);
    snapshot!(session([answer, list]).lines().filter(|line| !line.contains("MB of")).collect::<Vec<_>>().join("\n"), @r"
    $ gt sling gt-a
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
    Tracked by convoy hq-cv-id02.
    $ gt scheduler list
    shop
      ○   1  gt-a  Do gt-a
    ");
}
