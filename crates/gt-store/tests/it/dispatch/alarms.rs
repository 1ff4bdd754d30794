//! Whom it concerns: letters and notices about work that was recovered, or cannot go on. // SPEC R1–R3

use gt_core::run::Outcome;
use gt_store::{DEACON, Ended, Fault, Letter, MAYOR, Tries};
use jiff::{SignedDuration, Timestamp};

use crate::yard::{Yard, ended};

fn letters(yard: &mut Yard, who: &str) -> Vec<Letter> {
    yard.store.inbox(who, true, 100).expect("it answers").letters
}

fn subjects(yard: &mut Yard, who: &str) -> Vec<String> {
    letters(yard, who).into_iter().map(|letter| letter.subject).collect()
}

/// What is to be told: the event's word and the line.
fn notices(yard: &Yard) -> Vec<String> {
    yard.rows("SELECT kind || ' ' || bead || ': ' || text FROM notice ORDER BY id")
}

/// Lets a bead die until no attempt is left.
fn use_up(yard: &mut Yard, bead: &str) {
    yard.sling(&[bead]);
    for _ in 0..=yard.policy.redispatch_attempts {
        let run = yard.claim_one().run;
        yard.start(&run);
        yard.end_as(Ended { last_output: Some("boom\nand gone".to_owned()), ..ended(&run) });
        yard.pass(301);
    }
}

#[test]
fn a_run_that_died_is_told_to_the_deacon_with_what_it_printed_last() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.end_as(Ended { last_output: Some("boom\nand gone".to_owned()), ..ended(&run) });
    assert_eq!(yard.run(&run).last_output.as_deref(), Some("boom\nand gone"));
    let letter = letters(&mut yard, DEACON).remove(0);
    assert_eq!((letter.subject.as_str(), letter.bead.as_deref()), ("RECOVERED_BEAD gt-1", Some("gt-1")));
    assert_eq!(letter.run.as_deref(), Some(run.as_str()));
    insta::assert_snapshot!(letter.body, @r"
    gt-1

    bead: gt-1
    polecat: shop/Toast
    run: run-0001
    branch: polecat/run-0001
    ended: died: exit code 1

    last output:
        boom
        and gone
    ");
    let data = yard.rows("SELECT data ->> '$.last_output' FROM event WHERE type = 'run.ended'");
    assert_eq!(data, ["boom\nand gone"]);
    assert_eq!(subjects(&mut yard, MAYOR), Vec::<String>::new());
    assert_eq!(notices(&yard), Vec::<String>::new());
}

#[test]
fn who_finished_or_spoke_is_not_recovered() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    for (bead, outcome) in [("gt-1", Outcome::Completed), ("gt-2", Outcome::Failed), ("gt-3", Outcome::Deferred)] {
        let run = yard.working(bead).run;
        yard.report(&run, outcome).expect("its word counts");
        yard.end_as(Ended { last_output: Some("bye".to_owned()), ..ended(&run) });
        let kept = yard.run(&run).last_output;
        assert_eq!(kept.is_none(), outcome == Outcome::Completed, "{outcome:?}");
    }
    assert_eq!(subjects(&mut yard, DEACON), Vec::<String>::new());
}

#[test]
fn at_the_end_of_its_attempts_the_mayor_is_asked_once() {
    let mut yard = Yard::with(&["gt-1"]);
    use_up(&mut yard, "gt-1");
    assert_eq!(subjects(&mut yard, DEACON).len(), 4);
    let letter = letters(&mut yard, MAYOR).remove(0);
    assert_eq!(letter.subject, "gt-1 is out of attempts");
    insta::assert_snapshot!(letter.body, @"
    gt-1

    4 attempts ended unfinished.

    bead: gt-1
    polecat: shop/Toast
    run: run-0004
    branch: polecat/run-0004
    last: exit code 1; last output: and gone
    then: gt scheduler retry gt-1

    last output:
        boom
        and gone
    ");
    assert_eq!(notices(&yard), ["bead.escalated gt-1: gt-1 is out of attempts: gt-1"]);
    yard.pass(10_000);
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(subjects(&mut yard, MAYOR).len(), 1);
}

#[test]
fn a_circuit_that_breaks_is_one_letter_however_often_it_breaks_again() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    for _ in 0..yard.policy.max_failures {
        let run = yard.claim_one().run;
        yard.fail(&run, "no such tool", Fault::Bead);
        yard.pass(10);
    }
    for _ in 0..2 {
        yard.pass(3601);
        let run = yard.claim_one().run;
        yard.fail(&run, "no such tool", Fault::Bead);
    }
    let letter = letters(&mut yard, MAYOR);
    assert_eq!((letter.len(), letter[0].subject.as_str()), (1, "the circuit of gt-1 is broken"));
    insta::assert_snapshot!(letter[0].body, @r"
    3 starts have failed.

    last: no such tool
    then: gt scheduler retry gt-1
    ");
    assert_eq!(notices(&yard), ["bead.escalated gt-1: the circuit of gt-1 is broken: no such tool"]);
}

#[test]
fn who_asks_for_a_person_writes_to_the_mayor() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let stamp = yard.stamp();
    yard.store.escalate("gt-1", Some(&run), "which\nof the two?", &stamp).expect("it is taken");
    let letter = letters(&mut yard, MAYOR).remove(0);
    assert_eq!((letter.subject.as_str(), letter.body.as_str()), ("gt-1 needs a person", "which\nof the two?"));
    assert_eq!(notices(&yard), ["bead.escalated gt-1: gt-1 needs a person: which of the two?"]);
}

#[test]
fn silence_is_reported_once_and_interrupted_once_and_the_next_silence_is_another() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let (seen, since) = (yard.run(&run), yard.now);
    yard.pass(60);
    let stamp = yard.stamp();
    assert!(yard.store.report_stall(&seen, since, &stamp).expect("it is taken"));
    assert!(!yard.store.report_stall(&seen, since, &stamp).expect("it is taken"), "somebody else was first");
    let reported = yard.run(&run);
    assert_eq!((reported.stalled_at, reported.interrupted_at), (Some(yard.now), None));
    yard.pass(60);
    let stamp = yard.stamp();
    assert!(!yard.store.note_interrupt(&seen, since, &stamp).expect("it is taken"), "it was seen before the report");
    assert!(yard.store.note_interrupt(&reported, since, &stamp).expect("it is taken"));
    let interrupted = yard.run(&run);
    assert_eq!(interrupted.interrupted_at, Some(yard.now));
    yard.pass(600);
    let stamp = yard.stamp();
    assert!(yard.store.report_stall(&interrupted, stamp.now, &stamp).expect("it is taken"));
    assert_eq!((yard.run(&run).stalled_at, yard.run(&run).interrupted_at), (Some(yard.now), None));
    yard.stop(&run, Outcome::TimedOut);
    let seen = yard.run(&run);
    assert!(!yard.store.report_stall(&seen, since, &stamp).expect("it is taken"), "it was told to stop");
    let kinds = yard.rows("SELECT type FROM event WHERE type LIKE 'run.%' ORDER BY seq");
    assert_eq!(kinds, ["run.started", "run.stalled", "run.interrupted", "run.stalled", "run.stopping"]);
    assert_eq!(notices(&yard), ["run.stalled gt-1: shop/Toast gives no sign of life on gt-1"; 2]);
}

/// What is due, with who has been tried how often, and whether again.
fn due(yard: &mut Yard) -> Vec<(i64, Vec<String>)> {
    let now = yard.now;
    let due = yard.store.due_notices(now, 10).expect("it answers");
    let tried = |(who, tries): (String, Tries)| {
        format!("{who} {}{}", tries.n, if tries.next_at.is_some() { " again" } else { "" })
    };
    due.into_iter().map(|notice| (notice.id, notice.targets.into_iter().map(tried).collect())).collect()
}

#[test]
fn a_notice_is_due_until_everybody_knows_it_and_is_given_up_after_a_day() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let stamp = yard.stamp();
    yard.store.escalate("gt-1", None, "one", &stamp).expect("it is taken");
    yard.store.escalate("gt-2", None, "two", &stamp).expect("it is taken");
    assert_eq!(due(&mut yard), [(1, vec![]), (2, vec![])]);

    yard.store.note_told(1, "a", &stamp).expect("it is noted");
    yard.store.note_told(1, "a", &stamp).expect("it is noted");
    let next = yard.store.note_untold(1, "b", "b is away", &stamp).expect("it is noted");
    assert_eq!(next, Some(yard.now + SignedDuration::from_secs(1)));
    assert_eq!(due(&mut yard)[0], (1, vec!["a 1".to_owned(), "b 1 again".to_owned()]), "there may be a third");
    yard.store.settle_notice(1, next, &stamp).expect("it is noted");
    yard.store.note_told(2, "a", &stamp).expect("it is noted");
    yard.store.settle_notice(2, None, &stamp).expect("it is noted");
    assert_eq!(due(&mut yard), []);
    assert_eq!(yard.store.next_notice_at(stamp.now).expect("it answers"), next);
    yard.pass(1);
    assert_eq!(due(&mut yard), [(1, vec!["a 1".to_owned(), "b 1 again".to_owned()])]);
    let stamp = yard.stamp();
    let next = yard.store.note_untold(1, "b", "b is away", &stamp).expect("it is noted");
    assert_eq!(next, Some(yard.now + SignedDuration::from_secs(4)));
    let first = yard.store.note_untold(1, "c", "c is away", &stamp).expect("it is noted");
    assert_eq!(first, Some(yard.now + SignedDuration::from_secs(1)), "each has tries of his own");

    yard.pass(24 * 3600);
    let stamp = yard.stamp();
    assert_eq!(yard.store.note_untold(1, "b", "b is away", &stamp).expect("it is noted"), None);
    yard.store.settle_notice(1, None, &stamp).expect("it is noted");
    assert_eq!((due(&mut yard), yard.store.next_notice_at(stamp.now).expect("it answers")), (vec![], None));
    let given_up = yard.rows("SELECT bead || ' ' || data FROM event WHERE type = 'notice.failed'");
    let told = r#"{"error":"b is away","event":"bead.escalated","text":"gt-1 needs a person: one","tries":3}"#;
    assert_eq!(given_up, [format!("gt-1 {told}")]);

    assert_eq!(yard.store.prune_notices(Timestamp::MIN, &stamp).expect("it is cut"), 0);
    assert_eq!(yard.store.prune_notices(stamp.now, &stamp).expect("it is cut"), 2);
}
