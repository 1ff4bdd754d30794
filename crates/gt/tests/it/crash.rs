//! Daemons, keepers, agents and machines killed at odd moments, and all at once: nothing is lost or done twice.
//! // SPEC P6
//!
//! Each point between intent and record is in `crash/points.rs` and `crash/anywhere.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, kill};
use crate::place;

#[path = "crash/points.rs"]
pub(crate) mod points;

/// An agent that ends its bead once the test lets it.
pub(crate) const WAITS: &str = "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; gt done --no-changes";

pub(crate) const SIGKILL: i32 = 9;

/// Every bead's agent has started exactly once, and all is over.
pub(crate) fn assert_done_once(fleet: &Fleet, beads: &[String]) {
    fleet.until_done(beads);
    let (mut started, mut wanted) = (fleet.starts(), beads.to_vec());
    started.sort();
    wanted.sort();
    assert_eq!(started, wanted, "an agent started twice or never\n{}", fleet.story());
    fleet.assert_at_rest(beads);
}

pub(crate) fn sling_many(fleet: &Fleet, n: usize) -> Vec<String> {
    let line = |n: usize| format!(r#"{{"id":"gt-{n:03}","title":"Bead {n}","issue_type":"task"}}"#);
    let lines: Vec<String> = (0..n).map(line).collect();
    fleet.town.call(["bead", "import", "-"]).stdin(lines.join("\n").as_bytes()).run().success();
    let beads: Vec<String> = (0..n).map(|n| format!("gt-{n:03}")).collect();
    fleet.town.call(["sling", "--json"].into_iter().chain(beads.iter().map(String::as_str))).run().success();
    beads
}

fn kill_daemon_under_load(isolation: &str) {
    let fleet = Fleet::with_cap(4, FINISHES);
    fleet.set("rigs.shop.isolation", isolation);
    let beads = sling_many(&fleet, 30);
    let n_before = fleet.town.events().len();
    fleet.start_daemon();
    for k in [2, 5, 9, 14, 22, 31, 45, 58, 76, 95, 118] {
        fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
        fleet.kill_daemon();
        fleet.start_daemon();
    }
    assert_done_once(&fleet, &beads);
}

#[test]
fn a_daemon_killed_at_odd_moments_under_load_starts_nothing_twice() {
    kill_daemon_under_load("none");
}

#[test]
fn a_daemon_killed_at_odd_moments_under_load_starts_nothing_twice_in_worktrees() {
    kill_daemon_under_load("worktree");
}

/// The outcomes of a bead's runs, in order.
fn outcomes(events: &[Value], bead: &str) -> Vec<String> {
    let ended = events.iter().filter(|event| event["type"] == "run.ended" && event["bead"] == bead);
    ended.map(|event| event["data"]["outcome"].as_str().expect("an end has an outcome").to_owned()).collect()
}

/// Each bead was finished by its last run, and by no other; those before it are known to have died.
fn assert_finished_in_the_end(fleet: &Fleet, beads: &[String]) {
    fleet.until_done(beads);
    let events = fleet.town.events();
    for bead in beads {
        let outcomes = outcomes(&events, bead);
        let (last, before) = outcomes.split_last().expect("it ran");
        assert_eq!(last, "completed", "{bead}");
        assert!(before.iter().all(|outcome| outcome == "died"), "{bead}: {outcomes:?}");
        assert!(fleet.starts().iter().filter(|start| *start == bead).count() <= outcomes.len(), "{bead}");
    }
    fleet.assert_at_rest(beads);
}

#[test]
fn agents_killed_together_with_the_daemon_are_noticed_and_their_beads_tried_again() {
    let fleet = Fleet::with_cap(4, "sleep 0.03; gt done --no-changes");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "100");
    let beads = sling_many(&fleet, 30);
    let n_before = fleet.town.events().len();
    fleet.start_daemon();
    for k in [7, 13, 26, 40, 61, 85, 120] {
        fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
        fleet.kill_daemon();
        fleet.agents().into_iter().filter(|agent| agent.leads).for_each(|agent| kill(agent.pid));
        fleet.start_daemon();
    }
    assert_finished_in_the_end(&fleet, &beads);
}

#[test]
fn after_the_whole_machine_went_down_every_run_is_known_to_have_ended_and_tried_again() {
    let fleet = Fleet::with_cap(3, WAITS);
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = sling_many(&fleet, 5);
    fleet.start_daemon();
    fleet.until_events("run.started", None, 3);
    fleet.until_seen("three agents at work", || fleet.starts().len() == 3);
    let running = fleet.agents();
    fleet.kill_daemon();
    fleet.kill_keepers();
    running.into_iter().chain(fleet.agents()).for_each(|agent| kill(agent.pid));
    fleet.start_daemon();
    fleet.until_events("run.ended", None, 3);
    fleet.open_gate("gate");
    assert_finished_in_the_end(&fleet, &beads);
    let events = fleet.town.events();
    let died: Vec<&Value> = events.iter().filter(|event| event["data"]["outcome"] == "died").collect();
    assert_eq!(died.len(), 3);
    for end in died {
        let seen = if place::KEEPS_STATUS { "killed by signal 9" } else { "nobody saw how it ended" };
        assert_eq!(end["data"]["reason"], seen, "{end}");
    }
    assert_eq!(fleet.starts().len(), 8);
}

#[test]
fn agents_outlive_their_keeper_and_their_end_is_seen_and_how_if_anybody_knows() {
    let script = format!(
        "case $GT_BEAD in gt-001) [ -e \"$HOME/crashed\" ] || {{ {}; }};; esac\n{WAITS}",
        "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; touch \"$HOME/crashed\"; exit 3"
    );
    let fleet = Fleet::with_cap(3, &script);
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = sling_many(&fleet, 3);
    fleet.start_daemon();
    fleet.until_seen("three agents at work", || fleet.starts().len() == 3);
    fleet.until_events("run.started", None, 3);
    let (keepers, agents) = (fleet.keepers(), leaders(&fleet));
    fleet.kill_keepers();
    fleet.until_seen("another keeper", || fleet.keepers().iter().any(|pid| !keepers.contains(pid)));
    if !place::OUTLIVES_KEEPER {
        fleet.until_events("run.ended", None, 3);
        assert!(leaders(&fleet).iter().all(|pid| !agents.contains(pid)), "an agent lives on whose run has ended");
        fleet.open_gate("gate");
        assert_finished_in_the_end(&fleet, &beads);
        return;
    }
    assert_eq!(leaders(&fleet), agents, "the agents live on");
    fleet.open_gate("gate");
    assert_finished_in_the_end(&fleet, &beads);
    let events = fleet.town.events();
    assert_eq!(outcomes(&events, "gt-001"), ["died", "completed"]);
    assert_eq!(fleet.starts().len(), 4);
    let first: Vec<&Value> = events.iter().filter(|event| event["type"] == "run.ended").take(3).collect();
    for end in first {
        let is_known = end["data"]["exit_code"] != Value::Null && end["data"]["reason"] != "nobody saw how it ended";
        assert_eq!(is_known, place::KEEPS_STATUS, "{end}");
    }
}

/// The processes that lead a run.
fn leaders(fleet: &Fleet) -> Vec<u32> {
    let mut pids: Vec<u32> = fleet.agents().into_iter().filter(|agent| agent.leads).map(|agent| agent.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn a_keeper_killed_again_and_again_under_load_has_lost_and_doubled_nothing() {
    let fleet = Fleet::with_cap(4, FINISHES);
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "100");
    let beads = sling_many(&fleet, 20);
    let n_before = fleet.town.events().len();
    fleet.start_daemon();
    for k in [3, 8, 17, 29, 44, 63] {
        fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
        fleet.keepers().into_iter().for_each(kill);
    }
    if place::OUTLIVES_KEEPER {
        assert_done_once(&fleet, &beads);
    } else {
        assert_finished_in_the_end(&fleet, &beads);
    }
}

/// An agent dies in its first attempt and leaves a file; a daemon that is to die at `order` follows it.
fn assert_uncommitted_is_kept(order: &str) {
    let script = "if mkdir \"$HOME/first\" 2> /dev/null; then echo draft > draft; exit 3; fi; gt done --no-changes";
    let fleet = Fleet::with_cap(2, script);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = sling_many(&fleet, 1);
    fleet.start_daemon_with(&[("GT_CRASH_AT", order)]);
    if !order.is_empty() {
        fleet.await_daemon_death();
        fleet.until_seen("the end of the first agent", || fleet.home("first").exists() && fleet.agents().is_empty());
        fleet.start_daemon();
    }
    assert_finished_in_the_end(&fleet, &beads);
    let events = fleet.town.events();
    let kept: Vec<&Value> = events.iter().filter(|event| event["type"] == "polecat.kept").collect();
    assert_eq!(kept.len(), 1, "{order}: {events:?}");
    let worktree = kept[0]["data"]["worktree"].as_str().expect("it is known where");
    assert_eq!(fs::read_to_string(format!("{worktree}/draft")).expect("the draft is there"), "draft\n");
    let hooked = events.iter().filter(|event| event["type"] == "bead.hooked");
    let polecats: Vec<&Value> = hooked.map(|event| &event["data"]["polecat"]).collect();
    assert_ne!(polecats[0], polecats[1], "the second attempt began in the first one's place");
}

#[test]
fn what_a_dead_agent_left_uncommitted_is_kept() {
    assert_uncommitted_is_kept("");
}

#[test]
fn what_a_dead_agent_left_uncommitted_is_kept_though_its_start_was_not_recorded() {
    assert_uncommitted_is_kept("launched");
}

#[test]
fn what_a_dead_agent_left_uncommitted_is_kept_though_its_end_was_not_recorded() {
    assert_uncommitted_is_kept("saw-ends");
}

#[test]
fn a_worktree_made_for_a_start_that_fails_is_still_somebodys() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.set("rigs.shop.isolation", "worktree");
    sling_many(&fleet, 1);
    // Whether a path in the worktree is there can only be seen in the worktree.
    let config = fleet.town.read("town.toml").replace("command = [\"bash\",", "command = [\"./no-such-agent\",");
    fleet.town.write("town.toml", config);
    let ran = fleet.town.gt(["scheduler", "run", "--json"]);
    assert!(ran.stdout.contains("no-such-agent"), "{ran}");
    assert!(fleet.town.path(".gt/polecats/shop").read_dir().expect("it was made").next().is_some());
    fleet.assert_worktrees_are_known();
}

#[test]
fn an_agent_told_to_stop_while_it_is_being_started_does_not_run_on_unseen() {
    let fleet = Fleet::with_cap(2, WAITS);
    fleet.set("rigs.shop.isolation", "worktree");
    let hook = fleet.town.path("shop/.git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().expect("hooks have a place")).expect("the repository can be written");
    fs::write(&hook, "#!/bin/sh\nwhile [ ! -e \"$HOME/hook\" ]; do sleep 0.02; done\n").expect("the same");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it was just made");
    let beads = sling_many(&fleet, 1);
    fleet.start_daemon();
    fleet.until_events("bead.hooked", Some(&beads[0]), 1);
    let stop = fleet.town.call(["polecat", "stop", "Toast"]).spawn();
    fleet.until_events("run.stopping", Some(&beads[0]), 1);
    // Another pass looks at it too.
    fleet.town.call(["scheduler", "run"]).run();
    fleet.open_gate("hook");
    let output = stop.wait_with_output().expect("the binary can be waited for");
    assert!(output.status.success(), "{output:?}");
    fleet.until_events("run.ended", Some(&beads[0]), 1);
    let second = fleet.town.create(&["Second", "--rig", "shop"]);
    fleet.town.gt(["sling", &second]).success();
    fleet.until_events("run.started", Some(&second), 1);
    assert_eq!(leaders(&fleet).len(), 1, "the one that was stopped runs on");
    assert_eq!(outcomes(&fleet.town.events(), &beads[0]), ["stopped"]);
}
