//! Awkward moments: settings that change under a pass, times that come while much else happens, work that is taken away
//! or moved while somebody is at it.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};

use crate::fleet::{FINISHES, Fleet};
use crate::town::GT;

const STAYS: &str = "exec sleep 600";

/// Writes into the town all the time while something is waited for.
fn amid_noise<T>(fleet: &Fleet, wait: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let command = || {
            let mut command = fleet.town.command(GT);
            command.args(["create", "noise"]).stdout(Stdio::null());
            command
        };
        let mut noise = command();
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                noise.status().expect("the binary can be started");
            }
        });
        let answer = wait();
        is_over.store(true, Ordering::Relaxed);
        answer
    })
}

fn at(event: &serde_json::Value) -> Timestamp {
    event["ts"].as_str().expect("it has a time").parse().expect("it is one")
}

#[test]
fn a_lowered_cap_counts_for_the_very_next_sling() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.start_daemon();
    for round in 0..4 {
        fleet.set("scheduler.max_polecats", "5");
        fleet.town.gt(["create", "a write that the daemon hears of"]).success();
        fleet.set("scheduler.max_polecats", "1");
        fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
        fleet.until_events("run.started", None, round + 1);
        // Whatever the daemon claimed it claimed in one step, and one more pass finds the town full.
        assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
        assert_eq!(fleet.scheduler_status()["active_polecats"], 1, "round {round}");
        fleet.town.gt(["scheduler", "clear"]).success();
        let name = fleet.town.gt(["polecat", "list", "--json"]).json()[0]["name"].as_str().expect("a name").to_owned();
        fleet.town.gt(["polecat", "stop", &name]).success();
    }
}

#[test]
fn a_deferral_that_runs_out_amid_much_else_is_noticed() {
    let fleet = Fleet::with_cap(3, FINISHES);
    fleet.set("daemon.heartbeat", "1h");
    fleet.hold(&["gt-a"]);
    let until = Timestamp::now() + SignedDuration::from_secs(1);
    fleet.town.gt(["bead", "update", "gt-a", "--defer", &until.to_string()]).success();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = amid_noise(&fleet, || fleet.until_events("bead.hooked", Some("gt-a"), 1));
    let hooked = events.iter().find(|event| event["type"] == "bead.hooked").map(at).expect("it was hooked");
    assert!(hooked >= until, "{until} {hooked}");
}

#[test]
fn a_run_that_is_too_long_is_stopped_amid_much_else() {
    let fleet = Fleet::with_cap(5, STAYS);
    fleet.set("daemon.heartbeat", "1h");
    fleet.set("witness.max_run", "1s");
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c"]).success();
    fleet.start_daemon();
    amid_noise(&fleet, || fleet.until_events("run.ended", None, 3));
}

#[test]
fn the_agent_of_a_deleted_bead_is_ended_and_its_slot_freed() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["bead", "delete", "gt-a"]).success();
    // Ten seconds of grace, as for a bead that is closed.
    fleet.until_events("run.started", Some("gt-b"), 1);
}

#[test]
fn a_bead_that_an_agent_works_on_is_nobody_elses_though_it_was_opened() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.town.gt(["bead", "update", "gt-a", "--status", "open", "--assignee", ""]).success();
    let claimed = fleet.town.gt(["ready", "--claim", "--actor", "ada"]);
    assert!(!claimed.stdout.contains("ada has gt-a"), "{claimed}");
    assert_eq!(fleet.town.gt(["explain", "gt-a", "--json"]).json()["state"], "running");
}

#[test]
fn a_rig_whose_repository_was_moved_goes_on_and_its_old_worktree_can_be_removed() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    fs::rename(fleet.town.path("shop"), fleet.town.path("moved")).expect("it can be moved");
    fleet.town.gt(["rig", "remove", "shop", "--force"]).success();
    fleet.town.gt(["rig", "add", "shop", "moved", "--prefix", "gt"]).success();
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    fleet.town.gt(["polecat", "nuke", "Toast", "--force"]).success();
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn a_rig_whose_repository_is_gone_is_held_up_and_its_beads_are_not_to_blame() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.hold(&["gt-a"]);
    fs::rename(fleet.town.path("shop"), fleet.home("shop")).expect("it can be moved");
    fleet.town.gt(["sling", "gt-a"]).success();
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
    let listed = fleet.town.gt(["scheduler", "list", "--json"]).json();
    assert_eq!(listed[0]["dispatch_failures"], 0);
    assert!(
        listed[0]["reason"]
            .as_str()
            .is_some_and(|why| why.starts_with("rig shop is held up: there is no repository at")),
        "{listed}"
    );
}
