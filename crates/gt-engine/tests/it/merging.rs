//! The order of things in the refinery: what goes together, what gates see, who is blamed, and how long a target is held.

use std::slice;

use gt_core::merge::{MergeState, Strategy};
use gt_engine::refinery::{Worked, ref_of};
use jiff::{SignedDuration, Timestamp};

use crate::yard::{Yard, commit, git, stamp};

/// Gates that write down what they see, and refuse a file that is called `bad`.
const GATED: &str = "[rigs.shop]\ngates = [\"ls | xargs >> HOME/gate; test ! -e bad\"]\n";

#[test]
fn work_that_passes_its_gates_lands_together_and_leaves_nothing_behind() {
    let mut yard = Yard::new(GATED);
    let merges = ["a", "b"].map(|file| yard.handed_over(file, "x", Strategy::Queue));
    let worked = yard.work();
    assert_eq!(worked.merged, merges.clone().map(|merge| merge.bead));
    assert_eq!((worked.returned, worked.held), (Vec::new(), None));
    assert_eq!(yard.files(), ["a", "b", "file"]);
    assert_eq!(yard.lines("gate"), ["a b file"], "they are tried together");
    for merge in &merges {
        assert_eq!((yard.merge(&merge.id).state, yard.status(&merge.bead)), (MergeState::Merged, "closed".to_owned()));
    }
    assert_eq!(git(&yard.rig, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "", "the checkout has moved along");
}

#[test]
fn what_is_to_be_merged_directly_goes_alone_and_no_gate_sees_it_first() {
    let mut yard = Yard::new(GATED);
    let first = yard.handed_over("a", "x", Strategy::Queue);
    let direct = yard.handed_over("b", "x", Strategy::Direct);
    let last = yard.handed_over("c", "x", Strategy::Queue);
    assert_eq!(yard.work().merged, [first.bead, direct.bead, last.bead], "in their order");
    assert_eq!(yard.lines("gate"), ["a file", "a b c file"], "gates judge what comes before it, and what comes after");
}

#[test]
fn of_a_batch_that_fails_only_what_is_flawed_comes_back() {
    let mut yard = Yard::new(GATED);
    let good = yard.handed_over("a", "x", Strategy::Queue);
    let bad = yard.handed_over("bad", "x", Strategy::Queue);
    let late = yard.handed_over("c", "x", Strategy::Queue);
    let worked = yard.work();
    assert_eq!(worked.merged, [good.bead, late.bead]);
    let [(returned, reason)] = worked.returned.as_slice() else { panic!("one came back: {worked:?}") };
    assert_eq!(*returned, bad.bead);
    assert!(reason.contains("test ! -e bad"), "{reason}");
    assert_eq!(yard.files(), ["a", "c", "file"]);
    let merge = yard.merge(&bad.id);
    assert_eq!((merge.state, merge.rework.is_some(), merge.patch.is_some()), (MergeState::Returned, true, true));
    assert_eq!(git(&yard.rig, &["rev-parse", &bad.branch]), bad.tip, "its commits stay on its branch");
}

#[test]
fn what_conflicts_with_what_landed_before_it_comes_back() {
    let mut yard = Yard::new("");
    let first = yard.handed_over("same", "one", Strategy::Queue);
    let second = yard.handed_over("same", "two", Strategy::Queue);
    let worked = yard.work();
    assert_eq!(worked.merged, slice::from_ref(&first.bead));
    let [(bead, reason)] = worked.returned.as_slice() else { panic!("one came back: {worked:?}") };
    assert_eq!((bead, reason.as_str()), (&second.bead, "it conflicts with main in same"));
    assert_eq!(git(&yard.rig, &["show", "main:same"]), "one");
}

#[test]
fn a_target_that_fails_its_own_gates_is_held_and_no_work_is_blamed() {
    let mut yard = Yard::new(GATED);
    commit(&yard.rig, "bad", "x");
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    let worked = yard.work();
    assert_eq!((worked.merged.len(), worked.returned.len()), (0, 0));
    let reason = worked.held.expect("it is held");
    assert!(reason.starts_with("without anything new, "), "{reason}");
    assert_eq!(yard.merge(&merge.id).state, MergeState::Waiting);
    // A person mends it, and that is seen when the hold is over.
    git(&yard.rig, &["rm", "--quiet", "bad"]);
    git(&yard.rig, &["commit", "--quiet", "-m", "mend"]);
    assert_eq!(yard.work().merged, [""; 0], "it is not tried before its time");
    yard.pass_hold();
    assert_eq!(yard.work().merged, [merge.bead]);
    assert_eq!(yard.hold(), None);
}

#[test]
fn a_target_that_stays_unusable_is_tried_ever_more_rarely_and_a_success_begins_anew() {
    let mut yard = Yard::new("");
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    git(&yard.rig, &["branch", "-m", "main", "elsewhere"]);
    let mut pauses = Vec::new();
    while pauses.last() != Some(&60) {
        let before = Timestamp::now();
        let told = yard.work().held;
        let (after, hold) = (Timestamp::now(), yard.hold().expect("it is held"));
        assert_eq!(told.as_ref(), Some(&hold.reason));
        let wanted = SignedDuration::from_secs((1 << (hold.tries - 1).clamp(0, 10)).min(60));
        let until = (before + wanted)..=(after + wanted);
        assert!(until.contains(&hold.until), "try {}: {} is not in {until:?}", hold.tries, hold.until);
        pauses.push(wanted.as_secs());
        yard.pass_hold();
    }
    // On a slow machine its time may be over before the worker goes away, which then tries again.
    assert!(pauses.is_sorted() && pauses[0] < 60, "{pauses:?}");
    let n_tries = yard.hold().expect("it is held").tries;
    git(&yard.rig, &["branch", "-m", "elsewhere", "main"]);
    assert_eq!((yard.work().merged, yard.hold()), (vec![merge.bead], None));
    yard.handed_over("b", "x", Strategy::Queue);
    git(&yard.rig, &["branch", "-m", "main", "elsewhere"]);
    yard.work();
    assert!(yard.hold().expect("it is held").tries < n_tries);
}

#[test]
fn what_lost_its_commit_is_dropped_and_the_others_go_on() {
    let mut yard = Yard::new("");
    let lost = yard.handed_over("a", "x", Strategy::Queue);
    let other = yard.handed_over("b", "x", Strategy::Queue);
    git(&yard.rig, &["branch", "--quiet", "-D", &lost.branch]);
    git(&yard.rig, &["update-ref", "-d", &ref_of(&lost.id)]);
    git(&yard.rig, &["reflog", "expire", "--expire=now", "--all"]);
    git(&yard.rig, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(yard.work().merged, [other.bead]);
    let merge = yard.merge(&lost.id);
    assert_eq!(merge.state, MergeState::Dropped);
    assert!(merge.reason.is_some_and(|why| why.contains("is gone")));
    assert_eq!(yard.status(&lost.bead), "open");
}

#[test]
fn what_a_worker_that_died_has_landed_is_recorded_and_not_landed_again() {
    let mut yard = Yard::new(GATED);
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    git(&yard.rig, &["merge", "--quiet", "--no-ff", "-m", "as a worker would", &merge.branch]);
    let tip = git(&yard.rig, &["rev-parse", "main"]);
    assert_eq!(yard.work().merged, slice::from_ref(&merge.bead));
    assert_eq!(git(&yard.rig, &["rev-parse", "main"]), tip);
    assert_eq!((yard.merge(&merge.id).merged, yard.lines("gate").len()), (Some(tip), 0));
}

#[test]
fn nothing_is_merged_while_the_refinery_is_paused() {
    let mut yard = Yard::new("");
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    for rig in [None, Some("shop")] {
        yard.store.pause_refinery(rig, None, &stamp()).expect("it is paused");
        assert_eq!(yard.work(), Worked::default());
        yard.store.resume_refinery(rig, &stamp()).expect("it is resumed");
    }
    assert_eq!(yard.work().merged, [merge.bead]);
}
