//! The queue's side of a claim: what was queued is under its own limits, and stays so. // SPEC Q1

use gt_core::plan::{PerSide, Policy, QueueRules};
use gt_core::run::Outcome;
use gt_store::{Claimant, Fault, Findings, Kinds, Sling};

use crate::town::Town;
use crate::yard::{Yard, asked, beads_of, rig};

const FOUR: [&str; 4] = ["gt-1", "gt-2", "gt-3", "gt-4"];

fn queue(yard: &mut Yard, beads: &[&str]) {
    let mut sling = asked(beads);
    sling.fields.queued = true;
    yard.try_sling(&sling).expect("it is queued");
    yard.pass(1);
}

fn rules(cap: Option<usize>, batch: Option<usize>, is_open: bool) -> Policy {
    Policy { queue: Some(QueueRules { cap, batch, is_open }), ..Policy::default() }
}

/// gt-1 and gt-3 are queued, gt-2 and gt-4 slung, in the order of their numbers.
fn mixed(policy: Policy) -> Yard {
    let mut yard = Yard::with(&FOUR);
    yard.policy = policy;
    for (at, bead) in FOUR.into_iter().enumerate() {
        if at % 2 == 0 {
            queue(&mut yard, &[bead]);
        } else {
            yard.sling(&[bead]);
            yard.pass(1);
        }
    }
    yard
}

#[test]
fn a_closed_queue_holds_what_is_queued_and_nobody_else_until_it_opens() {
    let mut yard = mixed(rules(None, None, false));
    assert_eq!(yard.held_by("gt-1"), ["queue-off"]);
    assert_eq!(yard.explained("gt-3"), "scheduled: scheduled queue-off");
    assert_eq!(yard.claims(), ["gt-2", "gt-4"]);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.policy = rules(None, None, true);
    assert_eq!(yard.claims(), ["gt-1", "gt-3"]);
}

#[test]
fn everybody_alive_counts_against_the_cap_of_the_queue_and_only_the_queue_is_held_by_it() {
    let mut yard = mixed(rules(Some(2), None, true));
    assert_eq!(yard.claims(), ["gt-1", "gt-2", "gt-4"], "the slung ones have no cap");
    assert_eq!(yard.held_by("gt-3"), ["queue-full"]);
    assert_eq!((yard.outlook().capacity, yard.outlook().n_live), (Some(-1), 3));
    let runs: Vec<String> = yard.live().into_iter().map(|run| run.id).collect();
    for run in &runs[..2] {
        yard.start(run);
        yard.report(run, Outcome::Completed).expect("it is recorded");
        yard.end(run);
    }
    assert_eq!(yard.claims(), ["gt-3"], "two slots of the queue, one of them taken");
}

#[test]
fn the_batch_of_the_queue_is_not_the_batch_of_the_scheduler() {
    let mut yard = mixed(Policy { batch: Some(1), ..rules(None, Some(2), true) });
    assert_eq!(yard.claims(), ["gt-1", "gt-2", "gt-3"]);
    assert_eq!(yard.held_by("gt-4"), Vec::<&str>::new());
}

#[test]
fn with_a_cap_of_the_scheduler_all_stand_in_one_queue() {
    let mut policy = Policy { is_deferred: true, ..Policy::default() };
    policy.caps.town = Some(3);
    let mut yard = mixed(policy);
    assert_eq!(yard.claims(), ["gt-1", "gt-2", "gt-3"]);
    assert_eq!(yard.held_by("gt-4"), ["no-capacity"]);
}

#[test]
fn a_claim_can_be_limited_on_either_side() {
    for (scheduler, queue, wanted) in [
        (Some(0), None, vec!["gt-1", "gt-3"]),
        (None, Some(0), vec!["gt-2", "gt-4"]),
        (Some(1), Some(1), vec!["gt-1", "gt-2"]),
        (Some(0), Some(0), vec![]),
    ] {
        let mut yard = mixed(rules(None, None, true));
        let (stamp, policy) = (yard.stamp(), yard.policy.clone());
        let mut n = 0;
        let mut new_run = || {
            n += 1;
            format!("run-{n}")
        };
        let limits = PerSide { scheduler, queue };
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits,
            n_before: 0,
            probe: &|_, _| None,
        };
        let advance = yard.store.advance(&Findings::default(), &policy, Some(&mut claimant), &stamp);
        assert_eq!(beads_of(&advance.expect("it is claimed").claimed), wanted, "{limits:?}");
    }
}

#[test]
fn what_is_slung_is_found_behind_any_number_of_queued_ones() {
    let ids: Vec<String> = (0..600).map(|n| format!("gt-{n:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut town = Town::new();
    let stamp = town.stamp();
    town.store.add_rig(&rig("shop", "gt"), &stamp).expect("the rig is new");
    town.import(&crate::town::file(&ids));
    for (beads, queued) in [(&ids[..299], true), (&ids[299..300], false), (&ids[300..599], true), (&ids[599..], false)]
    {
        let mut sling = asked(beads);
        sling.fields.queued = queued;
        let stamp = town.stamp();
        town.store.sling(&sling, None, &stamp).expect("they are scheduled");
        town.pass(1);
    }
    let mut n = 0;
    let mut new_run = || {
        n += 1;
        format!("run-{n}")
    };
    let mut claims = |policy: &Policy| {
        let limits = PerSide::both(None);
        let mut claimant =
            Claimant { policy, starter: "me:1", new_run: &mut new_run, limits, n_before: 0, probe: &|_, _| None };
        let stamp = town.stamp();
        let advance = town.store.advance(&Findings::default(), policy, Some(&mut claimant), &stamp);
        beads_of(&advance.expect("they are claimed").claimed).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(claims(&rules(None, Some(2), true)), ["gt-000", "gt-001", "gt-299", "gt-599"]);
    assert_eq!(claims(&Policy { by_priority: true, ..rules(None, None, false) }), Vec::<String>::new());
    assert_eq!(claims(&rules(None, None, true)).len(), 596);
}

#[test]
fn the_kinds_of_what_is_ready_are_told_apart() {
    let mut yard = Yard::with(&FOUR);
    let kinds = |yard: &mut Yard| {
        let now = yard.now;
        [Kinds::All, Kinds::Slung, Kinds::Queued]
            .map(|kinds| yard.store.has_ready_contexts(kinds, now).expect("it answers"))
    };
    assert_eq!(kinds(&mut yard), [false, false, false]);
    queue(&mut yard, &["gt-1"]);
    assert_eq!(kinds(&mut yard), [true, false, true]);
    let now = yard.now;
    for (is_open, is_startable) in [(false, false), (true, true)] {
        let policy = rules(None, None, is_open);
        assert_eq!(yard.store.has_startable_contexts(&policy, now).expect("it answers"), is_startable);
    }
    yard.sling(&["gt-2"]);
    assert_eq!(kinds(&mut yard), [true, true, true]);
}

/// However it comes back, it comes back as what it was asked for.
#[test]
fn what_is_queued_stays_queued_through_failures_attempts_and_retries() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.policy = Policy { max_failures: 2, ..rules(None, None, true) };
    queue(&mut yard, &["gt-1"]);
    let assert_queued = |yard: &mut Yard, when: &str| assert!(yard.scheduled("gt-1").is_queued, "{when}");
    let run = yard.claim_one().run;
    yard.fail(&run, "no such branch", Fault::Bead);
    assert_queued(&mut yard, "after a failed start");
    yard.pass(60);
    let run = yard.claim_one().run;
    yard.fail(&run, "no such branch", Fault::Bead);
    assert_eq!(yard.explained("gt-1"), "ready: circuit-broken");
    yard.pass(3600);
    let run = yard.claim_one().run;
    yard.start(&run);
    yard.end(&run);
    assert_queued(&mut yard, "after an attempt");
    let stamp = yard.stamp();
    yard.store.clear_contexts(Some("gt-1"), &stamp).expect("it is cleared");
    yard.store.retry("gt-1", &stamp).expect("it is tried again");
    assert_queued(&mut yard, "after a retry");
}

/// Seed 002: unqueued beads can be queued again; a sling of another kind then makes another kind of context.
#[test]
fn what_was_cleared_can_be_queued_or_slung_anew() {
    let mut yard = mixed(rules(None, None, false));
    let stamp = yard.stamp();
    yard.store.clear_contexts(None, &stamp).expect("they are cleared");
    queue(&mut yard, &["gt-2"]);
    yard.sling(&["gt-1"]);
    assert_eq!(yard.claims(), ["gt-1"]);
    assert_eq!(yard.held_by("gt-2"), ["queue-off"]);
}

#[test]
fn queuing_what_is_slung_and_slinging_what_is_queued_change_nothing() {
    let mut yard = mixed(rules(None, None, false));
    let mut queued = asked(&["gt-2"]);
    queued.fields.queued = true;
    for sling in [queued, Sling { is_batch: false, ..asked(&["gt-1"]) }] {
        let answer = yard.try_sling(&sling).expect("it answers").remove(0);
        assert_eq!(answer.outcome, gt_store::SlingOutcome::AlreadyScheduled);
    }
    assert_eq!(yard.claims(), ["gt-2", "gt-4"]);
}
