//! Work that is done step by step: one run for each step, in order, and nothing done twice. // SPEC P9

use gt_core::run::Outcome;
use gt_store::{Ended, Findings, PlannedStep, Prescription, Report, Sling};

use crate::yard::{Yard, asked, ended, started};

fn by_step(bead: &str, steps: &[&str]) -> Sling {
    let steps = steps.iter().map(|id| PlannedStep { id: (*id).to_owned(), title: format!("Do {id}") }).collect();
    let prescription = Prescription { formula: Some("x".to_owned()), steps, objection: None };
    let mut sling = asked(&[bead]);
    sling.prescriptions.insert(bead.to_owned(), prescription);
    sling
}

/// Its step's place, how many there are, and the notes of those before it.
fn step_of(yard: &mut Yard, run: &str) -> (String, usize, usize, Vec<Option<String>>) {
    let step = yard.store.assignment(run).expect("it answers").expect("it lives").step.expect("it has a step");
    (step.id, step.place, step.total, step.done.into_iter().map(|done| done.note).collect())
}

fn say(yard: &mut Yard, run: &str, note: &str) {
    let report = Report {
        run: run.to_owned(),
        outcome: Outcome::Completed,
        note: Some(note.to_owned()),
        cost: None,
        merge: None,
        tip: None,
    };
    let stamp = yard.stamp();
    yard.store.report(&report, &stamp).expect("it is heard").expect("it is new");
    yard.check();
}

fn well(run: &str) -> Ended {
    Ended { code: Some(0), ..ended(run) }
}

/// The end of a run and the start of what that makes possible, in one transaction.
fn end_and_claim(yard: &mut Yard, end: Ended) -> Vec<String> {
    let claimed = yard.pass_with(&Findings { ended: vec![end], ..Findings::default() }, None);
    let runs: Vec<String> = claimed.into_iter().map(|assignment| assignment.run).collect();
    for run in &runs {
        yard.start(run);
    }
    runs
}

/// Slings by step, and sees the first one working.
fn begun(steps: &[&str]) -> (Yard, String) {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.try_sling(&by_step("gt-1", steps)).expect("it is slung");
    let run = yard.claim_one().run;
    yard.start(&run);
    (yard, run)
}

#[test]
fn each_step_is_a_run_of_its_own_and_the_last_one_closes_the_bead() {
    let (mut yard, first) = begun(&["a", "b", "c"]);
    assert_eq!(step_of(&mut yard, &first), ("a".to_owned(), 1, 3, vec![]));
    say(&mut yard, &first, "a is done");
    assert_eq!(yard.holder("gt-1").0, "in_progress", "the bead is not done with its step");
    let second = end_and_claim(&mut yard, ended(&first)).remove(0);
    assert_eq!(yard.run(&first).outcome, Some(Outcome::StepDone));
    assert_eq!(step_of(&mut yard, &second), ("b".to_owned(), 2, 3, vec![Some("a is done".to_owned())]));
    let third = end_and_claim(&mut yard, well(&second)).remove(0);
    assert_eq!(step_of(&mut yard, &third), ("c".to_owned(), 3, 3, vec![Some("a is done".to_owned()), None]));
    say(&mut yard, &third, "all done");
    assert_eq!(yard.holder("gt-1").0, "closed");
    assert!(end_and_claim(&mut yard, ended(&third)).is_empty());
    let outcomes: Vec<_> = [first, second, third].map(|run| yard.run(&run).outcome).into();
    assert_eq!(outcomes, [Some(Outcome::StepDone), Some(Outcome::StepDone), Some(Outcome::Completed)]);
}

#[test]
fn the_next_step_starts_from_the_branch_of_the_one_before() {
    let (mut yard, first) = begun(&["a", "b"]);
    let second = end_and_claim(&mut yard, well(&first)).remove(0);
    let step = yard.store.assignment(&second).expect("it answers").expect("it lives").step.expect("it has a step");
    assert_eq!(step.from_branch(), Some(format!("polecat/{first}").as_str()));
}

#[test]
fn an_agent_that_ends_well_and_says_nothing_has_done_its_step_even_the_last() {
    let (mut yard, first) = begun(&["a", "b"]);
    let second = end_and_claim(&mut yard, well(&first)).remove(0);
    assert!(end_and_claim(&mut yard, well(&second)).is_empty());
    assert_eq!(yard.holder("gt-1").0, "closed");
    assert_eq!(yard.run(&second).outcome, Some(Outcome::Completed));
}

#[test]
fn what_is_left_uncommitted_is_no_step_that_was_done() {
    let (mut yard, first) = begun(&["a", "b"]);
    let dirty = Ended { kept: Some("it has uncommitted changes".to_owned()), ..well(&first) };
    assert!(end_and_claim(&mut yard, dirty).is_empty(), "it cools down first");
    assert_eq!((yard.run(&first).outcome, yard.holder("gt-1").0), (Some(Outcome::Died), "open".to_owned()));
}

#[test]
fn a_step_that_fails_is_tried_again_and_those_before_it_are_not() {
    let (mut yard, first) = begun(&["a", "b"]);
    let second = end_and_claim(&mut yard, well(&first)).remove(0);
    assert!(end_and_claim(&mut yard, ended(&second)).is_empty());
    assert_eq!(yard.explained("gt-1"), "scheduled: scheduled cooling-down step");
    yard.pass(600);
    let third = yard.claim_one();
    let step = third.step.expect("it has a step");
    assert_eq!((step.id.as_str(), third.attempts), ("b", 1));
}

/// Seed 5 of formulas: the step before was done by a clock that showed less than when its runs were claimed.
#[test]
fn after_the_clock_was_set_back_a_worker_is_told_only_of_attempts_at_its_own_step() {
    let (mut yard, first) = begun(&["a", "b", "c"]);
    yard.end(&first);
    yard.pass(600);
    let second = yard.claim_one();
    assert_eq!((second.attempts, second.left_branch), (1, Some(format!("polecat/{first}"))));
    yard.start(&second.run);
    yard.pass(-3600);
    let third = end_and_claim(&mut yard, well(&second.run)).remove(0);
    let told = |yard: &mut Yard, run: &str| {
        let assignment = yard.store.assignment(run).expect("it answers").expect("it lives");
        (assignment.step.expect("it has a step").id, assignment.attempts, assignment.left_branch)
    };
    assert_eq!(told(&mut yard, &third), ("b".to_owned(), 0, None));
    yard.pass(-3600);
    yard.end(&third);
    yard.pass(600);
    let fourth = yard.claim_one().run;
    assert_eq!(told(&mut yard, &fourth), ("b".to_owned(), 1, Some(format!("polecat/{third}"))));
}

#[test]
fn a_step_out_of_attempts_waits_for_a_person_and_goes_on_from_there() {
    let (mut yard, mut run) = begun(&["a", "b"]);
    run = end_and_claim(&mut yard, well(&run)).remove(0);
    for _ in 0..=yard.policy.redispatch_attempts {
        yard.end(&run);
        yard.pass(600);
        if let Some(next) = yard.claim().pop() {
            run = next.run;
            yard.start(&run);
        }
    }
    assert_eq!(yard.explained("gt-1"), "ready: out-of-attempts step");
    let stamp = yard.stamp();
    yard.store.retry("gt-1", &stamp).expect("it is tried again");
    assert_eq!(yard.claim_one().step.expect("it has a step").id, "b");
}

#[test]
fn caps_hold_between_steps_and_the_place_in_the_queue_is_kept() {
    let (mut yard, first) = begun(&["a", "b"]);
    yard.policy.caps.town = Some(1);
    yard.pass(1);
    yard.sling(&["gt-2"]);
    let claimed = yard.pass_with(&Findings { ended: vec![well(&first)], ..Findings::default() }, None);
    let beads: Vec<&str> = claimed.iter().map(|assignment| assignment.bead.as_str()).collect();
    assert_eq!(beads, ["gt-1"], "it was slung first, and there is one slot");
}

#[test]
fn what_is_said_twice_or_ends_twice_does_one_step() {
    let (mut yard, first) = begun(&["a", "b", "c"]);
    say(&mut yard, &first, "once");
    assert_eq!(yard.report(&first, Outcome::Completed).expect("it is heard"), None);
    let second = end_and_claim(&mut yard, ended(&first)).remove(0);
    yard.end(&first);
    assert_eq!(step_of(&mut yard, &second).0, "b");
}

#[test]
fn an_end_without_a_recorded_start_does_its_step_too() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.try_sling(&by_step("gt-1", &["a", "b"])).expect("it is slung");
    let run = yard.claim_one().run;
    say(&mut yard, &run, "quick");
    let claimed = yard.pass_with(&Findings { ended: vec![ended(&run)], ..Findings::default() }, None);
    assert_eq!(claimed[0].step.as_ref().expect("it has a step").id, "b");
}

#[test]
fn a_run_that_was_stopped_after_its_step_keeps_the_step_and_starts_nothing() {
    let (mut yard, first) = begun(&["a", "b"]);
    say(&mut yard, &first, "done");
    yard.stop(&first, Outcome::Stopped);
    assert!(end_and_claim(&mut yard, ended(&first)).is_empty());
    assert_eq!(yard.explained("gt-1"), "ready: stopped step");
    let stamp = yard.stamp();
    yard.store.retry("gt-1", &stamp).expect("it is tried again");
    assert_eq!(yard.claim_one().step.expect("it has a step").id, "b");
}

#[test]
fn another_sling_begins_anew_and_the_old_run_counts_for_nothing() {
    let (mut yard, first) = begun(&["a", "b"]);
    let second = end_and_claim(&mut yard, well(&first)).remove(0);
    say(&mut yard, &second, "late"); // the last step: this closes the bead
    yard.end(&second);
    yard.reopen("gt-1");
    yard.pass(1);
    yard.try_sling(&by_step("gt-1", &["a", "b"])).expect("it is slung");
    let third = yard.claim_one();
    assert_eq!(third.step.expect("it has a step").place, 1);
    yard.start(&third.run);
    say(&mut yard, &third.run, "the old one's step");
    yard.pass(1);
    yard.try_sling(&Sling { force: true, ..by_step("gt-1", &["a", "b"]) }).expect("by force");
    let claimed = yard.pass_with(&Findings { ended: vec![ended(&third.run)], ..Findings::default() }, None);
    assert_eq!(claimed[0].step.as_ref().expect("it has a step").place, 1, "what the old run did is not of this sling");
}

#[test]
fn a_bead_that_is_closed_by_somebody_needs_no_more_steps() {
    let (mut yard, first) = begun(&["a", "b", "c"]);
    yard.close("gt-1");
    assert!(end_and_claim(&mut yard, ended(&first)).is_empty());
    assert_eq!((yard.holder("gt-1").0, yard.run(&first).outcome), ("closed".to_owned(), Some(Outcome::Completed)));
}

#[test]
fn a_formula_that_does_not_fit_is_the_last_guard_and_changes_nothing() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    yard.close("gt-3");
    let mut sling = asked(&["gt-1"]);
    let bad =
        Prescription { formula: Some("x".to_owned()), steps: Vec::new(), objection: Some("it is broken".to_owned()) };
    for bead in ["gt-1", "gt-3"] {
        sling.prescriptions.insert(bead.to_owned(), bad.clone());
    }
    let before = yard.work();
    let refused = yard.try_sling(&sling).expect_err("it does not cook").to_string();
    assert_eq!(refused, "gt-1 cannot be worked on by the formula `x`: it is broken");
    let closed = yard.try_sling(&Sling { beads: vec!["gt-3".to_owned()], ..sling.clone() }).expect_err("it is closed");
    assert!(closed.to_string().contains("closed"), "{closed}");
    assert_eq!(yard.work(), before);
    let batch = Sling { beads: vec!["gt-1".to_owned(), "gt-2".to_owned()], is_batch: true, ..sling };
    let answers = yard.try_sling(&batch).expect("a batch goes on");
    let outcomes: Vec<_> = answers.iter().map(|answer| answer.outcome).collect();
    assert_eq!(outcomes, [gt_store::SlingOutcome::Refused, gt_store::SlingOutcome::Scheduled]);
    let run = yard.claim_one().run;
    yard.record(&Findings { started: vec![started(&run)], ..Findings::default() });
}
