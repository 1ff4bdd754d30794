//! From sling to done, with a daemon and without: the first things that have to work.

use crate::fleet::{FINISHES, Fleet};

#[test]
fn a_single_ready_bead_starts_at_once_and_says_who_is_on_it() {
    let fleet = Fleet::new(FINISHES);
    let bead = fleet.town.create(&["Fix it", "--rig", "shop"]);
    let answer = fleet.town.gt(["sling", &bead]);
    answer.success();
    assert!(answer.stdout.contains("Toast is on it"), "{answer}");
    fleet.until_events("run.reported", Some(&bead), 1);
    assert_eq!(fleet.starts(), [bead]);
}

#[test]
fn a_daemon_starts_what_a_close_makes_ready() {
    let fleet = Fleet::with_cap(3, FINISHES);
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    fleet.town.gt(["sling", &first, &second]).success();
    assert!(fleet.starts().is_empty(), "in deferred mode a sling starts nothing");
    fleet.start_daemon();
    fleet.until_done(&[first.clone(), second.clone()]);
    assert_eq!(fleet.starts(), [first, second]);
}

#[test]
fn without_a_cap_and_a_daemon_a_chain_goes_on_by_itself() {
    let fleet = Fleet::new(FINISHES);
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    let third = fleet.town.create(&["Third", "--rig", "shop", "--blocked-by", &second]);
    fleet.town.gt(["sling", &first, &second, &third]).success();
    fleet.until_done(&[first.clone(), second.clone(), third.clone()]);
    assert_eq!(fleet.starts(), [first, second, third]);
}

#[test]
fn without_a_cap_and_a_daemon_a_close_starts_what_it_makes_ready() {
    let fleet = Fleet::new(FINISHES);
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    fleet.town.gt(["sling", &second]).success();
    assert!(fleet.starts().is_empty());
    let answer = fleet.town.gt(["close", &first]);
    assert!(answer.stderr.contains("Toast is on it"), "{answer}");
    fleet.until_done(std::slice::from_ref(&second));
    assert_eq!(fleet.starts(), [second]);
}

#[test]
fn with_a_cap_and_no_daemon_nothing_starts_by_itself() {
    let fleet = Fleet::with_cap(3, FINISHES);
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    fleet.town.gt(["sling", &first, &second]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    // That the first has ended is recorded all the same, and frees its slot.
    fleet.until_events("run.ended", Some(&first), 1);
    assert_eq!(fleet.starts(), [first]);
    fleet.town.gt(["scheduler", "run"]).success();
    fleet.until_done(&[second]);
}
