//! A town that was deleted leaves nothing running, and one that was moved goes on.

use std::fs;

use crate::fleet::{Agent, Fleet};

/// An agent that ends only when it has to.
const STAYS: &str = "trap '' TERM HUP; touch \"$HOME/ready\"; while :; do sleep 0.2; done";

/// It has said that it is done, and does not end by itself either.
const DONE: &str = "trap '' TERM HUP; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done
    gt done --no-changes; touch \"$HOME/said\"; while :; do sleep 0.2; done";

/// A bead whose agent is at work.
fn at_work(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(2, script);
    fleet.hold(&["gt-a"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet
}

/// Deletes the town's directory, which the daemon may write into meanwhile.
fn delete(fleet: &Fleet) {
    fleet.until_true("the town deleted", || {
        fs::remove_dir_all(fleet.town.root()).unwrap_or_default();
        !fleet.town.root().exists()
    });
}

/// The processes that agents consist of, without what they run for a moment.
fn leaders(fleet: &Fleet) -> Vec<Agent> {
    fleet.agents().into_iter().filter(|agent| agent.leads).collect()
}

fn assert_ends(fleet: &Fleet) {
    fleet.until_true("the end of its agents", || fleet.agents().is_empty());
    fleet.until_true("the end of its keeper", || fleet.keepers().is_empty());
    fleet.until_true("the end of its daemon", || !fleet.daemon_lives());
    fleet.until_true("the end of everything else", || fleet.processes().is_empty());
    assert!(!fleet.town.root().exists(), "a part of the town is back");
}

#[test]
fn a_deleted_town_has_neither_a_daemon_nor_a_keeper_nor_agents() {
    let fleet = at_work(STAYS);
    fleet.await_file("ready");
    assert!(!fleet.keepers().is_empty() && fleet.daemon_lives());
    delete(&fleet);
    assert_ends(&fleet);
    assert_eq!(fleet.n_said(&["the town was deleted"]), 1);
}

#[test]
fn agents_that_said_done_to_a_stopped_daemon_end_with_their_town() {
    let fleet = at_work(DONE);
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.await_daemon_death();
    fleet.open_gate("gate");
    fleet.await_file("said");
    assert_eq!(leaders(&fleet).len(), 1, "without a daemon it goes on");
    delete(&fleet);
    assert_ends(&fleet);
}

#[test]
fn a_town_that_was_moved_keeps_its_daemon_its_keeper_and_its_agents() {
    let (moved, deleted) = (at_work(STAYS), at_work(STAYS));
    let before = (moved.keepers(), leaders(&moved));
    let elsewhere = moved.home("elsewhere");
    fs::rename(moved.town.root(), &elsewhere).expect("it can be moved");
    // A file that goes makes the keeper look.
    fs::write(elsewhere.join(".gt/keeper/stray"), "").expect("the town can be written");
    fs::remove_file(elsewhere.join(".gt/keeper/stray")).expect("it was just written");
    // By the time at which a town that was deleted later has ended, they have looked.
    delete(&deleted);
    assert_ends(&deleted);
    assert_eq!((moved.keepers(), leaders(&moved)), before);
    assert!(moved.daemon_lives());
    fs::rename(&elsewhere, moved.town.root()).expect("nothing was made where it was");
    moved.town.gt(["polecat", "stop", "Toast"]).success();
    moved.until_events("run.ended", Some("gt-a"), 1);
}
