//! Runs: how starts and ends are recorded, what they cost the bead, and whose word counts.

use gt_core::run::Outcome;
use gt_store::{BeadPatch, Ended, Fault, Findings, NotStarted, Report, Store};
use jiff::SignedDuration;

use crate::yard::{Yard, codes, ended, forced, started};

fn own(word: &str, who: Option<&str>) -> (String, Option<String>) {
    (word.to_owned(), who.map(str::to_owned))
}

/// Lets the start of a bead fail until its circuit breaks.
fn break_circuit(yard: &mut Yard, bead: &str) {
    yard.sling(&[bead]);
    for _ in 0..yard.policy.max_failures {
        let run = yard.claim_one().run;
        yard.fail(&run, "no such tool", Fault::Bead);
        yard.pass(10);
    }
}

#[test]
fn a_start_makes_the_bead_in_progress_and_closes_the_context() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let claimed = yard.claim_one();
    assert_eq!(yard.holder("gt-1"), own("hooked", Some("shop/polecats/Toast")));
    assert_eq!(yard.explained("gt-1"), "starting: starting");
    yard.pass(3);
    yard.start(&claimed.run);
    assert_eq!(yard.holder("gt-1"), own("in_progress", Some("shop/polecats/Toast")));
    let context = yard.store.bead(&claimed.context).expect("it reads as a bead").bead;
    assert_eq!(context.body.text("close_reason").as_deref(), Some("dispatched"));
    let run = yard.run(&claimed.run);
    assert_eq!((run.started_at, run.pid, run.birth), (Some(yard.now), Some(4711), Some(99)));
    let polecat = yard.store.polecats().expect("it answers").remove(0);
    assert_eq!((polecat.run.as_deref(), polecat.worktree), (Some(run.id.as_str()), run.worktree));
    assert_eq!(yard.explained("gt-1"), "running: running");
    let bead = yard.store.bead("gt-1").expect("it is there").bead;
    assert_eq!(bead.body.text("started_at").as_deref(), Some("2026-01-01T00:00:03Z"));
}

#[test]
fn a_failed_start_is_tried_again_ever_later_and_breaks_the_circuit() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    for (failures, wait) in [(1, 1), (2, 2)] {
        let run = yard.claim_one().run;
        yard.fail(&run, "no such tool", Fault::Bead);
        assert_eq!(yard.holder("gt-1"), own("open", None));
        let scheduled = yard.scheduled("gt-1");
        assert_eq!((scheduled.failures, scheduled.last_failure.as_deref()), (failures, Some("no such tool")));
        assert_eq!(codes(&scheduled.reasons), ["backing-off"]);
        let (policy, now) = (yard.policy.clone(), yard.now);
        let next = yard.store.next_deadline(&policy, now).expect("it answers");
        assert_eq!(next, Some(now + SignedDuration::from_secs(wait)));
        yard.pass(wait - 1);
        assert_eq!(yard.claims(), Vec::<String>::new());
        yard.pass(1);
    }
    let last = yard.claim_one();
    yard.fail(&last.run, "no such tool", Fault::Bead);
    assert_eq!(yard.outlook().scheduled.len(), 0);
    assert_eq!(yard.explained("gt-1"), "ready: circuit-broken");
    assert_eq!(
        yard.explain("gt-1").reasons[0].message,
        "its circuit is broken (no such tool); one more try at 2026-01-01T01:00:03Z, or now with \
         `gt scheduler retry gt-1`"
    );
    let context = yard.store.bead(&last.context).expect("it reads as a bead").bead;
    assert_eq!(context.body.text("close_reason").as_deref(), Some("circuit-broken"));
}

#[test]
fn a_broken_circuit_lets_one_try_through_and_keeps_its_count() {
    let mut yard = Yard::with(&["gt-1"]);
    break_circuit(&mut yard, "gt-1");
    let (policy, now) = (yard.policy.clone(), yard.now);
    let due = yard.store.next_deadline(&policy, now).expect("it answers").expect("one more try");
    yard.now = due - SignedDuration::from_secs(1);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.now = due;
    let run = yard.claim_one().run;
    yard.fail(&run, "still none", Fault::Bead);
    assert_eq!(yard.explained("gt-1"), "ready: circuit-broken", "one failure is enough now");
    yard.now = due + SignedDuration::from_hours(1);
    let run = yard.claim_one();
    assert_eq!((run.fields.dispatch_failures, run.fields.last_failure.as_deref()), (4, Some("still none")));
    yard.start(&run.run);
    assert_eq!(yard.explained("gt-1"), "running: running");
}

/// Otherwise a paused town with a broken circuit wakes its daemon for ever.
#[test]
fn a_circuit_that_is_due_is_no_deadline_while_dispatch_is_paused() {
    let mut yard = Yard::with(&["gt-1"]);
    break_circuit(&mut yard, "gt-1");
    let stamp = yard.stamp();
    yard.store.pause(None, &stamp).expect("it is paused");
    yard.pass(7200);
    assert_eq!(yard.claims(), Vec::<String>::new());
    let (policy, now) = (yard.policy.clone(), yard.now);
    assert_eq!(yard.store.next_deadline(&policy, now).expect("it answers"), None);
    assert_eq!(yard.explained("gt-1"), "ready: circuit-broken", "its one try comes after the pause");
    assert_eq!(yard.outlook().scheduled.len(), 0);
    yard.told(Store::resume);
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// D5: what is assigned to a person is left to them on every automatic path.
#[test]
fn an_automatic_try_leaves_a_bead_to_the_person_who_got_it_meanwhile() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    break_circuit(&mut yard, "gt-1");
    yard.assign("gt-1", Some("ada"));
    yard.pass(7200);
    assert_eq!((yard.claims(), yard.held_by("gt-1")), (Vec::new(), vec!["assigned"]));
    // The same after a death: ada got it during the run, and has put it back.
    let run = yard.working("gt-2").run;
    yard.assign("gt-2", Some("ada"));
    yard.end(&run);
    yard.set_status("gt-2", "open");
    yard.pass(600);
    assert_eq!((yard.claims(), yard.held_by("gt-2")), (Vec::new(), vec!["assigned"]));
    yard.assign("gt-2", None);
    assert_eq!(yard.claims(), ["gt-2"]);
}

#[test]
fn a_record_that_cannot_be_tried_again_stops_nobody_else() {
    let spoil = |yard: &Yard| yard.peek.execute("UPDATE context SET fields = '{'", []).expect("it is spoilt");
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    break_circuit(&mut yard, "gt-1");
    let run = yard.working("gt-2").run;
    spoil(&yard);
    yard.end(&run);
    assert_eq!(yard.run(&run).outcome, Some(Outcome::Died));
    assert_eq!(yard.holder("gt-2"), own("open", None));
    yard.pass(7200);
    yard.sling(&["gt-3"]);
    assert_eq!(yard.claims(), ["gt-3"]);
}

#[test]
fn a_run_whose_bead_is_closed_is_complete_however_it_exits() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    // By its report …
    let by_report = yard.working("gt-1").run;
    yard.report(&by_report, Outcome::Completed).expect("it is taken");
    let bead = yard.store.bead("gt-1").expect("it is there").bead;
    assert_eq!(bead.status.as_str(), "closed");
    assert_eq!(bead.body.text("closed_by_session").as_deref(), Some(by_report.as_str()));
    assert_eq!(yard.explained("gt-1"), "done: ending closed");
    // … or by whoever closed it.
    let by_close = yard.working("gt-2").run;
    yard.close("gt-2");
    for run in [by_report, by_close] {
        yard.end_as(Ended { code: None, signal: Some(9), ..ended(&run) });
        let run = yard.run(&run);
        assert_eq!((run.outcome, run.end_reason.as_deref()), (Some(Outcome::Completed), Some("killed by signal 9")));
    }
    assert_eq!(yard.number("SELECT count(*) FROM dispatch_record"), 0, "nothing is held against it");
    assert_eq!(yard.outlook().scheduled.len(), 0);
}

#[test]
fn a_death_costs_an_attempt_on_the_bead_and_the_next_one_waits() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.policy.redispatch_attempts = 2;
    let mut run = yard.working("gt-1").run;
    for attempt in 1..=2 {
        let end = Findings { ended: vec![ended(&run)], ..Findings::default() };
        yard.record(&end);
        assert_eq!(yard.holder("gt-1"), own("open", None));
        assert_eq!(yard.explained("gt-1"), "scheduled: scheduled cooling-down");
        let words = &yard.scheduled("gt-1").reasons[0].message;
        assert!(words.starts_with(&format!("attempt {attempt} did not finish it (exit code 1")), "{words}");
        yard.pass(299);
        assert_eq!(yard.claims(), Vec::<String>::new());
        yard.pass(1);
        let claimed = yard.claim_one();
        assert_eq!(claimed.attempts, attempt);
        assert_eq!(claimed.left_branch, Some(format!("polecat/{run}")), "where the last one left its work");
        run = claimed.run;
        yard.start(&run);
    }
    let last = yard.store.last_event().expect("the log answers");
    yard.end(&run);
    let told = yard.told_since(last);
    assert!(told.iter().any(|event| event.starts_with("bead.escalated gt-1")), "{told:?}");
    assert_eq!(yard.explained("gt-1"), "ready: out-of-attempts");
    yard.pass(100_000);
    assert_eq!(yard.claims(), Vec::<String>::new(), "a person has to look");
    // A sling lifts the hold and keeps the count; a retry starts from nothing.
    yard.sling(&["gt-1"]);
    let claimed = yard.claim_one();
    assert_eq!(claimed.attempts, 3);
    yard.start(&claimed.run);
    yard.end(&claimed.run);
    assert_eq!(yard.explained("gt-1"), "ready: out-of-attempts");
    yard.told(|store, stamp| store.retry("gt-1", stamp));
    assert_eq!(yard.claim_one().attempts, 0);
}

#[test]
fn each_end_means_something_else_for_the_bead() {
    for (said, stop, outcome, status, explained) in [
        (Some(Outcome::Failed), None, Outcome::Failed, "open", "scheduled: scheduled cooling-down"),
        (Some(Outcome::Deferred), None, Outcome::Deferred, "deferred", "deferred: status-deferred"),
        (None, Some(Outcome::Stopped), Outcome::Stopped, "open", "ready: stopped"),
        (None, Some(Outcome::TimedOut), Outcome::TimedOut, "open", "scheduled: scheduled cooling-down"),
        (Some(Outcome::Failed), Some(Outcome::Stopped), Outcome::Failed, "open", "scheduled: scheduled cooling-down"),
        (None, None, Outcome::Died, "open", "scheduled: scheduled cooling-down"),
    ] {
        let mut yard = Yard::with(&["gt-1"]);
        let run = yard.working("gt-1").run;
        if let Some(said) = said {
            yard.report(&run, said).expect("it is taken");
        }
        if let Some(stop) = stop {
            assert!(yard.stop(&run, stop));
            assert!(yard.explained("gt-1").ends_with(": stopping"));
        }
        yard.end(&run);
        assert_eq!(yard.run(&run).outcome, Some(outcome));
        assert_eq!(yard.holder("gt-1"), own(status, None), "{outcome:?}");
        assert_eq!(yard.explained("gt-1"), explained);
        let attempts = yard.number("SELECT attempts FROM dispatch_record");
        assert_eq!(attempts, i64::from(outcome.costs_an_attempt()), "{outcome:?}");
    }
}

#[test]
fn the_note_of_a_failure_is_its_reason() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let note = Some("the tests\nneed a screen".to_owned());
    let report = Report { run: run.clone(), outcome: Outcome::Failed, note, cost: None, merge: None, tip: None };
    yard.told(|store, stamp| store.report(&report, stamp));
    yard.end(&run);
    let words = &yard.scheduled("gt-1").reasons[0].message;
    assert!(words.contains("(the tests need a screen)"), "{words}");
}

/// A person has stopped it; that its start failed as well does not bring it back.
#[test]
fn a_start_that_was_stopped_and_then_fails_is_held() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let run = yard.claim_one().run;
    assert!(yard.stop(&run, Outcome::Stopped));
    yard.fail(&run, "interrupted", Fault::Bead);
    assert_eq!(yard.explained("gt-1"), "ready: stopped");
    yard.pass(7200);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.told(|store, stamp| store.retry("gt-1", stamp));
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn a_start_that_timed_out_and_then_fails_counts_as_a_failed_start() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let run = yard.claim_one().run;
    assert!(yard.stop(&run, Outcome::TimedOut));
    yard.fail(&run, "longer than 5m", Fault::Bead);
    assert_eq!((yard.scheduled("gt-1").failures, yard.held_by("gt-1")), (1, vec!["backing-off"]));
}

#[test]
fn a_run_that_ends_before_its_start_was_recorded_is_ended() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let run = yard.claim_one().run;
    yard.report(&run, Outcome::Completed).expect("a starting run is its own");
    yard.record(&Findings { started: vec![started(&run)], ended: vec![ended(&run)], ..Findings::default() });
    assert_eq!(yard.run(&run).outcome, Some(Outcome::Completed));
    assert_eq!(yard.holder("gt-1").0, "closed");
}

#[test]
fn a_bead_opened_again_under_a_finished_run_is_free_when_that_ends() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.report(&run, Outcome::Completed).expect("it is taken");
    // As `gt bead update --status` does it, which leaves the name where it was.
    yard.set_status("gt-1", "in_progress");
    yard.end(&run);
    assert_eq!(yard.holder("gt-1"), own("open", None), "nobody works on it");
    assert_eq!(yard.explained("gt-1"), "ready: ready");
}

#[test]
fn a_bead_set_aside_during_its_run_loses_the_name_of_the_run() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.set_status("gt-1", "blocked");
    yard.end(&run);
    assert_eq!(yard.holder("gt-1"), own("blocked", None));
    yard.set_status("gt-1", "open");
    yard.pass(300);
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn a_bead_slung_again_by_force_is_not_put_off_by_its_old_run() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.report(&run, Outcome::Deferred).expect("it is taken");
    yard.try_sling(&forced("gt-1")).expect("by force");
    yard.end(&run);
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// Its old run had failed before; that must not put it back on the queue. // SPEC D5
#[test]
fn what_was_cleared_while_its_old_run_was_ending_stays_cleared() {
    for said in [None, Some(Outcome::Failed)] {
        let mut yard = Yard::with(&["gt-1"]);
        let run = yard.working("gt-1").run;
        if let Some(said) = said {
            yard.report(&run, said).expect("it is taken");
        }
        yard.try_sling(&forced("gt-1")).expect("by force");
        yard.told(|store, stamp| store.clear_contexts(Some("gt-1"), stamp));
        yard.end(&run);
        assert_eq!(yard.explained("gt-1"), "ready: cleared");
        yard.pass(100_000);
        assert_eq!(yard.claims(), Vec::<String>::new());
    }
}

#[test]
fn a_bead_that_a_person_took_during_the_run_stays_theirs() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.assign("gt-1", Some("ada"));
    yard.end(&run);
    assert_eq!(yard.holder("gt-1"), own("in_progress", Some("ada")));
    assert_eq!(yard.held_by("gt-1"), ["in-progress", "cooling-down"]);
}

/// Everything of the store that a repeated or late message could change.
fn all_of(yard: &mut Yard) -> (String, i64, Vec<String>) {
    let tables = "SELECT id || state || ifnull(said, '') || ifnull(outcome, '') || ifnull(cost, '') FROM run
                  UNION ALL SELECT id || state || failures FROM context
                  UNION ALL SELECT name || ifnull(run, '') FROM polecat
                  UNION ALL SELECT attempts || ifnull(hold, '') FROM dispatch_record";
    (yard.export(), yard.store.last_event().expect("the log answers"), yard.rows(tables))
}

#[test]
fn what_is_recorded_twice_or_late_changes_nothing() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let failure =
        |run: &str| NotStarted { run: run.to_owned(), error: "late".to_owned(), fault: Fault::Bead, worktree: None };
    let run = yard.working("gt-1").run;
    let before = all_of(&mut yard);
    yard.start(&run);
    yard.fail(&run, "late", Fault::Bead);
    assert_eq!(before, all_of(&mut yard));
    yard.end(&run);
    let before = all_of(&mut yard);
    let late = Findings {
        started: vec![started(&run), started("run-unknown")],
        not_started: vec![failure(&run), failure("run-unknown")],
        ended: vec![ended(&run), ended("run-unknown")],
        told: vec![],
    };
    yard.record(&late);
    assert_eq!(before, all_of(&mut yard));
    yard.sling(&["gt-2"]);
    let run = yard.claim_one().run;
    yard.fail(&run, "no such tool", Fault::Bead);
    let before = all_of(&mut yard);
    yard.fail(&run, "no such tool", Fault::Bead);
    yard.start(&run);
    yard.end(&run);
    assert_eq!(before, all_of(&mut yard));
}

#[test]
fn a_report_twice_is_fine_and_one_that_is_stale_is_refused() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    let (fenced, over, twice) = (yard.working("gt-1").run, yard.working("gt-2").run, yard.working("gt-3").run);
    yard.stop(&fenced, Outcome::Stopped);
    yard.end(&over);
    yard.report(&twice, Outcome::Failed).expect("it is taken");
    let before = all_of(&mut yard);
    assert_eq!(yard.report(&twice, Outcome::Failed).expect("twice is fine"), None);
    for (run, why) in
        [(fenced.as_str(), "was told to stop"), (over.as_str(), "has ended"), ("run-unknown", "is not known here")]
    {
        for outcome in [Outcome::Completed, Outcome::Failed, Outcome::Deferred] {
            let error = yard.report(run, outcome).expect_err("it is refused").to_string();
            assert_eq!(error, format!("run {run} {why}: nothing that it says counts any more"));
        }
    }
    assert_eq!(before, all_of(&mut yard));
    yard.end(&twice);
    assert_eq!(yard.report(&twice, Outcome::Failed).expect("even after its end"), None);
    // A second thought counts while the run lives.
    yard.pass(300);
    let again = yard.claim();
    let run = again.iter().find(|assignment| assignment.bead == "gt-3").expect("it is tried again").run.clone();
    yard.report(&run, Outcome::Failed).expect("it is taken");
    yard.report(&run, Outcome::Completed).expect("it is taken");
    yard.end(&run);
    assert_eq!(yard.run(&run).outcome, Some(Outcome::Completed));
}

#[test]
fn an_order_to_stop_is_given_once() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    assert!(yard.stop(&run, Outcome::TimedOut));
    let before = all_of(&mut yard);
    assert!(yard.stop(&run, Outcome::Stopped), "it still lives");
    assert_eq!(before, all_of(&mut yard));
    assert_eq!(yard.run(&run).stop.map(|stop| stop.outcome), Some(Outcome::TimedOut), "the first one counts");
    yard.end(&run);
    assert!(!yard.stop(&run, Outcome::Stopped));
    assert!(!yard.stop("run-unknown", Outcome::Stopped));
}

#[test]
fn one_starter_takes_over_from_one_that_is_gone() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let id = yard.claim_one().run;
    let (run, stamp) = (yard.run(&id), yard.stamp());
    assert!(yard.store.take_over(&run, "you:2", &stamp).expect("it answers"));
    assert!(!yard.store.take_over(&run, "they:3", &stamp).expect("it answers"), "somebody was first");
    let run = yard.run(&id);
    assert_eq!(run.starter, "you:2");
    yard.start(&id);
    assert!(!yard.store.take_over(&run, "they:3", &stamp).expect("it answers"), "it has started");
    yard.check();
}

#[test]
fn a_polecat_is_forgotten_only_when_it_is_idle() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    assert!(!yard.told(|store, stamp| store.forget_polecat("shop", "Toast", stamp)).0);
    yard.patch("gt-1", &BeadPatch::default()).expect("nothing changes");
    yard.end(&run);
    assert!(yard.told(|store, stamp| store.forget_polecat("shop", "Toast", stamp)).0);
    assert!(!yard.told(|store, stamp| store.forget_polecat("shop", "Toast", stamp)).0);
}

/// Who lives is read anew after every change, whoever made it, and only then.
#[test]
fn who_lives_is_never_remembered_for_too_long() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let mut elsewhere = Store::open(yard.store.path()).expect("a second handle");
    let is_same = |store: &mut Store| {
        let [first, second] = [(); 2].map(|()| store.live_runs().expect("it answers"));
        assert!(std::sync::Arc::ptr_eq(&first, &second), "nothing has changed in between");
        first
    };
    assert!(is_same(&mut yard.store).is_empty() && is_same(&mut elsewhere).is_empty());
    let run = yard.working("gt-1").run;
    for store in [&mut yard.store, &mut elsewhere] {
        assert_eq!(is_same(store).iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), [run.as_str()]);
    }
    let patch = BeadPatch { title: Some("another".to_owned()), ..BeadPatch::default() };
    elsewhere.update_bead("gt-1", &patch, &yard.stamp()).expect("it is changed");
    for store in [&mut yard.store, &mut elsewhere] {
        assert_eq!(is_same(store)[0].title, "another", "a change of its bead is one of the run");
    }
    yard.end(&run);
    assert!(is_same(&mut elsewhere).is_empty() && is_same(&mut yard.store).is_empty());
}
