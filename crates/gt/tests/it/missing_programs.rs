//! What is missing on this machine is found before anything is claimed or made, once for all that it holds. // SPEC D5

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::fleet::{Fleet, count};
use crate::town::{Answer, session, snapshot};

/// A town whose default agent is a program that is not there yet.
fn fleet(cap: Option<&str>) -> Fleet {
    let fleet = Fleet::new("exec sleep 600");
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("agents.absent.command", &format!("[\"{}\"]", fleet.home("absent").display()));
    fleet.set("default_agent", "absent");
    fleet.set("agents.absent.prompt", "none");
    if let Some(cap) = cap {
        fleet.set("scheduler.max_polecats", cap);
    }
    fleet
}

fn install(fleet: &Fleet) {
    let path = fleet.home("absent");
    fs::write(&path, "#!/bin/sh\nexec sleep 600\n").expect("the home can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

fn beads(n: usize) -> Vec<String> {
    (1..=n).map(|n| format!("gt-{n}")).collect()
}

fn sling(fleet: &Fleet, beads: &[String]) -> Answer {
    fleet.hold(&beads.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.town.call(["sling"].into_iter().chain(beads.iter().map(String::as_str))).run()
}

/// Nothing was claimed, named, made or counted; the log has one line about each look.
fn assert_untouched(fleet: &Fleet, n: usize, n_looks: usize) {
    let events = fleet.town.events();
    for kind in ["bead.hooked", "run.started", "run.ended", "context.failed"] {
        assert_eq!(count(&events, kind, None), 0, "{kind}\n{}", fleet.story());
    }
    assert_eq!(count(&events, "scheduler.held_up", None), n_looks, "{}", fleet.story());
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json(), serde_json::json!([]));
    assert!(!fleet.town.path(".gt/polecats/shop").exists(), "no worktree was made");
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    let is_held = |one: &Value| {
        one["dispatch_failures"] == 0
            && one["reason"].as_str().is_some_and(|why| why.starts_with("agent `absent` cannot start"))
    };
    assert_eq!(list.as_array().expect("a list").iter().filter(|one| is_held(one)).count(), n, "{list}");
}

#[test]
fn a_hundred_beads_of_a_missing_program_are_held_before_anything_is_made() {
    let fleet = fleet(None);
    let beads = beads(100);
    let answer = sling(&fleet, &beads);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.ends_with("100 beads: 100 scheduled.\n"), "{answer}");
    assert_untouched(&fleet, 100, 1);
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
    assert_untouched(&fleet, 100, 1);
    fleet.start_daemon();
    fleet.until_events("scheduler.held_up", None, 2);
    // Whatever happens after its first look, the program is not looked for again before its time.
    fleet.town.gt(["close", "gt-100"]).success();
    fleet.until_events("context.closed", Some("gt-100"), 1);
    assert_untouched(&fleet, 99, 2);
    fleet.set("guards.max_agents", "3");
    install(&fleet);
    fleet.town.gt(["scheduler", "resume"]).success();
    fleet.until_events("run.started", None, 3);
}

#[test]
fn a_changed_config_or_a_resume_starts_all_that_a_missing_program_held_at_once() {
    let fleet = fleet(Some("20"));
    fleet.start_daemon();
    sling(&fleet, &beads(5)).success();
    fleet.until_events("scheduler.held_up", None, 1);
    assert_untouched(&fleet, 5, 1);
    install(&fleet);
    fleet.town.gt(["scheduler", "resume"]).success();
    fleet.until_events("run.started", None, 5);
    fleet.set("agents.other.command", "[\"no-such-program\"]");
    fleet.hold(&["gt-6", "gt-7"]);
    fleet.town.gt(["sling", "gt-6", "gt-7", "--agent", "other"]).success();
    fleet.until_events("scheduler.held_up", None, 2);
    fleet.set("agents.other.command", "[\"sleep\", \"600\"]");
    fleet.until_events("run.started", None, 7);
}

#[test]
fn every_view_says_what_is_missing_when_it_is_looked_for_again_and_what_to_type() {
    let fleet = fleet(None);
    fleet.set("agents.absent.command", "[\"no-such-program\"]");
    fleet.hold(&["gt-1"]);
    let answers = [
        fleet.town.gt(["sling", "gt-1"]),
        fleet.town.gt(["explain", "gt-1"]),
        fleet.town.gt(["scheduler", "list"]),
        fleet.town.gt(["scheduler", "status"]),
        fleet.town.gt(["status"]),
        fleet.town.gt(["scheduler", "run"]),
    ];
    snapshot!(session(answers), @"
    $ gt sling gt-1
    ✓ Scheduled gt-1 → shop (context: gt-wisp-id01)
        agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`
    Tracked by convoy hq-cv-id02.
    $ gt explain gt-1
    gt-1 is scheduled:
      - it is number 1 of 1 in the queue
      - agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`
    $ gt scheduler list
    shop
      ○   1  gt-1  Do gt-1
             agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`
    $ gt scheduler status
    Scheduler
      State:  active, direct dispatch
      Queued: 1 total, 1 ready
      Active: 0 polecats, no cap
      ! agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 agents running, no cap

    Needs a person (1)
      ! agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`

    Nothing runs.

    Waiting (1)
      ○ gt-1 Do gt-1
          agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`

    Convoys (1)
      hq-cv-id02  0/1 done  Work: Do gt-1
    $ gt scheduler run
    ⏸ 1 ready bead waiting: agent `absent` cannot start `no-such-program`: not found on the PATH; install it or set `agents.absent.command`; next try in [SPAN], or at once with `gt scheduler resume`
    [exit 5]
    ");
}

#[test]
fn a_new_daemon_looks_at_once_on_its_own_path() {
    let fleet = fleet(Some("20"));
    fleet.set("agents.absent.command", "[\"absent\"]");
    fleet.town.gt(["daemon", "start"]).success();
    sling(&fleet, &beads(2)).success();
    fleet.until_events("scheduler.held_up", None, 1);
    let why = "agent `absent` cannot start `absent`: not found on the daemon's PATH; install it, set \
               `agents.absent.command`, or run `gt daemon restart` if it is on your PATH; next try in ";
    assert!(fleet.town.gt(["status"]).stdout.contains(why));
    fleet.until_seen("a line in the daemon's log", || fleet.town.gt(["daemon", "logs"]).stdout.contains(why));
    install(&fleet);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", fleet.home("").display());
    fleet.town.call(["daemon", "restart"]).env("PATH", &path).run().success();
    fleet.until_events("run.started", None, 2);
    fleet.town.gt(["daemon", "stop"]).success();
}

#[test]
fn a_chat_turn_fails_at_once_though_beads_wait_for_the_program() {
    let fleet = fleet(None);
    fleet.set("agents.absent.headless", "[\"no-such-program\"]");
    sling(&fleet, &beads(1)).success();
    fleet.start_daemon();
    snapshot!(fleet.town.gt(["send", "dm:a", "x", "--wait"]), @"
    $ gt send dm:a x --wait
    ! failed: agent `absent` cannot start `no-such-program`: not found on the daemon's PATH; install it, set `agents.absent.headless`, or run `gt daemon restart` if it is on your PATH
    [exit 1]
    ");
}

#[test]
fn a_dry_run_says_what_is_missing_and_notes_nothing() {
    let fleet = fleet(None);
    fleet.hold(&["gt-1"]);
    let answer = fleet.town.gt(["sling", "gt-1", "--dry-run"]);
    assert!(answer.stdout.contains("agent `absent` cannot start"), "{answer}");
    assert_eq!(count(&fleet.town.events(), "scheduler.held_up", None), 0);
}

#[test]
fn a_rig_that_is_gone_is_met_before_anything_is_made() {
    let fleet = Fleet::new("exec sleep 600");
    fs::rename(fleet.town.path("shop"), fleet.town.path("elsewhere")).expect("it can be moved");
    let answer = sling(&fleet, &beads(3));
    assert_eq!(answer.code, 0, "{answer}");
    let events = fleet.town.events();
    let n = |kind: &str| count(&events, kind, None);
    assert_eq!([n("bead.hooked"), n("run.ended"), n("scheduler.held_up")], [0, 0, 1]);
    fs::rename(fleet.town.path("elsewhere"), fleet.town.path("shop")).expect("it can be moved");
    fleet.town.gt(["scheduler", "resume"]).success();
    fleet.until_events("run.started", None, 3);
}

#[test]
fn a_missing_git_is_met_before_anything_is_made() {
    let fleet = Fleet::new("exec sleep 600");
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.hold(&["gt-1", "gt-2"]);
    // All that the agent needs is there, and git is not.
    let bin = fleet.home("bin");
    fs::create_dir(&bin).expect("the home can be written");
    std::os::unix::fs::symlink("/bin/bash", bin.join("bash")).expect("a link can be made");
    let answer = fleet.town.call(["sling", "gt-1", "gt-2"]).env("PATH", &bin).run();
    assert_eq!(answer.code, 0, "{answer}");
    let events = fleet.town.events();
    let n = |kind: &str| count(&events, kind, None);
    assert_eq!([n("bead.hooked"), n("run.ended"), n("scheduler.held_up")], [0, 0, 1], "{answer}");
    assert!(answer.stdout.contains("git is not installed"), "{answer}");
    fleet.town.gt(["scheduler", "resume"]).success();
    fleet.until_events("run.started", None, 2);
}
