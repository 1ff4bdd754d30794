//! Troubles that only a new try can end: looked for beforehand, at growing distances, one try for all. // SPEC D5

use gt_core::plan::{Missing, TroubleOf};
use gt_core::rig::Rig;
use gt_store::{Fault, Findings, NotStarted, Store};
use jiff::SignedDuration;

use crate::yard::{Yard, asked, started};

const THREE: [&str; 3] = ["gt-1", "gt-2", "gt-3"];

/// Three beads for an agent whose program is not there.
fn yard() -> Yard {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    yard.sling(&THREE);
    yard.lacks = no_claude;
    yard
}

fn no_claude(agent: &str, _: &Rig) -> Option<Missing> {
    let missing = Missing { of: TroubleOf::Program("claude".to_owned()), reason: "agent `claude` is away".to_owned() };
    (agent == "claude").then_some(missing)
}

fn n_held_up(yard: &Yard) -> i64 {
    yard.number("SELECT count(*) FROM event WHERE type = 'scheduler.held_up'")
}

/// Minutes until something is tried again.
fn minutes(yard: &mut Yard) -> Option<i64> {
    let (policy, now) = (yard.policy.clone(), yard.now);
    let at = yard.store.next_deadline(&policy, now).expect("it answers")?;
    Some(at.duration_since(now).as_mins())
}

#[test]
fn what_is_missing_is_looked_for_at_growing_distances_and_told_once() {
    let mut yard = yard();
    let mut distances = Vec::new();
    for _ in 0..6 {
        assert_eq!(yard.claims(), Vec::<String>::new());
        let message = yard.scheduled("gt-3").reasons[0].message.clone();
        assert!(message.starts_with("agent `claude` is away; next try in "), "{message}");
        yard.lacks = |_, _| panic!("it is not looked for before its time");
        yard.claims();
        yard.lacks = no_claude;
        let span = minutes(&mut yard).expect("a time");
        distances.push(span);
        yard.now += SignedDuration::from_mins(span);
    }
    assert_eq!(distances, [1, 2, 4, 8, 15, 15]);
    assert_eq!(n_held_up(&yard), 1);
    assert_eq!(yard.number("SELECT count(*) FROM run") + yard.number("SELECT count(*) FROM polecat"), 0);
}

#[test]
fn one_look_serves_all_that_it_holds_and_other_agents_go_on() {
    let mut yard = yard();
    let mut codex = asked(&["gt-4"]);
    codex.fields.agent = Some("codex".to_owned());
    yard.try_sling(&codex).expect("it is slung");
    assert_eq!(yard.claims(), ["gt-4"]);
    for bead in THREE {
        assert_eq!(yard.held_by(bead), ["agent-cannot-start"]);
    }
}

#[test]
fn when_its_time_has_come_one_is_tried_and_the_others_start_after_it() {
    let mut yard = yard();
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.lacks = |_, _| None;
    assert_eq!(yard.claims(), Vec::<String>::new(), "not before its time");
    yard.pass(60);
    let tried = yard.claim_one();
    assert_eq!(yard.claims(), Vec::<String>::new(), "the others wait for it");
    assert_eq!(yard.held_by("gt-2"), ["agent-cannot-start"]);
    let findings = Findings { started: vec![started(&tried.run)], ..Findings::default() };
    assert_eq!(yard.pass_with(&findings, None).len(), 2);
    assert_eq!(n_held_up(&yard), 1);
}

#[test]
fn starts_that_fail_together_are_one_try_and_the_next_one_is_for_all() {
    let mut yard = yard();
    yard.lacks = |_, _| None;
    let failure = |run: String| NotStarted { run, error: "no".to_owned(), fault: Fault::Agent, worktree: None };
    let not_started = yard.claim().into_iter().map(|one| failure(one.run)).collect();
    yard.record(&Findings { not_started, ..Findings::default() });
    assert_eq!((minutes(&mut yard), n_held_up(&yard)), (Some(1), 1));
    yard.pass(60);
    let tried = yard.claim_one();
    yard.fail(&tried.run, "no", Fault::Agent);
    assert_eq!((minutes(&mut yard), n_held_up(&yard)), (Some(2), 1), "it is no news");
    yard.pass(120);
    let tried = yard.claim_one();
    yard.fail(&tried.run, "something else", Fault::Agent);
    assert_eq!((minutes(&mut yard), n_held_up(&yard)), (Some(4), 2));
}

#[test]
fn resuming_a_changed_config_and_a_long_time_begin_anew() {
    for begin_anew in [
        |yard: &mut Yard| drop(yard.told(Store::resume)),
        |yard: &mut Yard| drop(yard.told(Store::forget_troubles)),
        |yard: &mut Yard| yard.pass(60 * 60),
    ] {
        let mut yard = yard();
        yard.claims();
        yard.pass(60);
        yard.claims();
        assert_eq!(minutes(&mut yard), Some(2));
        begin_anew(&mut yard);
        yard.claims();
        assert_eq!((minutes(&mut yard), n_held_up(&yard)), (Some(1), 2), "it is new");
        begin_anew(&mut yard);
        yard.lacks = |_, _| None;
        assert_eq!(yard.claims(), THREE);
    }
}
