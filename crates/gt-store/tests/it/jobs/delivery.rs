//! Where answers of jobs go, and that it is known apart from how the job went. // SPEC K4, L6

use gt_core::job::FireStatus;
use gt_core::run::Outcome;
use gt_store::{Fire, JobPlan, Parcel};

use crate::jobs_clock::{Clock, HOUR, MINUTE, SECOND, at, every, runs, says, to};

fn telling(plan: JobPlan) -> JobPlan {
    JobPlan { deliver: Some(to("tg", Some("7"))), ..plan }
}

/// What is to be delivered by `tg` now.
fn parcel(clock: &mut Clock) -> Parcel {
    clock.town.store.due_parcels("tg", clock.town.now, 9).expect("it answers").remove(0)
}

fn delivery(clock: &mut Clock, name: &str) -> (Option<String>, Option<String>) {
    let Fire { delivery, delivery_error, .. } = clock.last(name);
    (delivery, delivery_error)
}

fn word(word: &str, error: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(word.to_owned()), error.map(str::to_owned))
}

#[test]
fn an_answer_goes_where_the_job_says_and_the_log_knows_whether_it_arrived() {
    let mut clock = Clock::with(&[telling(every("x", 10)), every("silent", 10)]);
    clock.fire_at("00:10");
    clock.answer_all();
    assert_eq!(clock.outbox(), ["tg:7 done yes"]);
    assert_eq!(
        (delivery(&mut clock, "x"), delivery(&mut clock, "silent")),
        (word("waiting", None), word("none", None))
    );
    let first = parcel(&mut clock);
    let later = clock.town.now + SECOND;
    clock.does(|store, stamp| store.not_delivered(&first, "nobody there", Some(later), stamp)).expect("it is recorded");
    let again = "nobody there; it is tried again at 2026-01-01T00:10:01Z";
    assert_eq!(delivery(&mut clock, "x"), word("waiting", Some(again)));
    clock.town.now = later;
    clock.does(|store, stamp| store.delivered(first.id, stamp)).expect("it is recorded");
    assert_eq!(delivery(&mut clock, "x"), word("delivered", None));
}

#[test]
fn why_an_answer_waits_that_no_channel_takes_is_known() {
    let mut clock = Clock::with(&[telling(every("x", 10))]);
    clock.fire_at("00:10");
    clock.answer_all();
    let note = |clock: &mut Clock, channels: &[&str]| {
        clock.does(|store, stamp| store.note_stranded(channels, stamp)).expect("it is recorded")
    };
    assert!(!note(&mut clock, &["tg"]));
    assert_eq!(delivery(&mut clock, "x"), word("waiting", None));
    assert!(note(&mut clock, &["web"]));
    assert!(!note(&mut clock, &["web"]), "once");
    assert_eq!(delivery(&mut clock, "x"), word("waiting", Some("there is no channel `tg` that runs")));
    let first = parcel(&mut clock);
    assert_eq!(first.tries, 0, "nobody has tried");
    clock.does(|store, stamp| store.delivered(first.id, stamp)).expect("it is recorded");
    assert_eq!(delivery(&mut clock, "x"), word("delivered", None));
}

#[test]
fn what_does_not_arrive_is_known_and_nothing_is_run_again_for_it() {
    let mut clock = Clock::with(&[telling(every("x", 10)), telling(at("once", "00:10"))]);
    clock.fire_at("00:10");
    clock.answer_all();
    for _ in 0..2 {
        let parcel = parcel(&mut clock);
        clock.does(|store, stamp| store.not_delivered(&parcel, "gone for good", None, stamp)).expect("it is recorded");
    }
    for name in ["x", "once"] {
        assert_eq!(delivery(&mut clock, name), word("failed", Some("gone for good")));
        assert_eq!(clock.last(name).status, FireStatus::Ok, "it ran well all the same");
    }
    clock.fire_at("00:15");
    assert_eq!((clock.claim(), clock.job("x").failures, clock.letters()), (Vec::new(), 0, Vec::new()));
    assert!(clock.is_gone("once"), "and is not run fifteen times");
    clock.restart();
    assert_eq!((clock.fire().n_fired, clock.claim()), (0, Vec::new()));
}

#[test]
fn a_reply_that_says_nothing_or_asks_for_silence_is_not_delivered() {
    let cases = [
        ("", "none"),
        (" \n", "none"),
        ("NO_REPLY", "suppressed"),
        ("all is well, no_reply.", "suppressed"),
        ("HEARTBEAT_OK", "waiting"),
        ("NO_REPLYING", "waiting"),
    ];
    for (reply, expected) in cases {
        let mut clock = Clock::with(&[telling(every("x", 10))]);
        clock.fire_at("00:10");
        clock.run_one(reply);
        let why = (expected == "suppressed").then_some("it said NO_REPLY");
        assert_eq!(delivery(&mut clock, "x"), word(expected, why), "{reply:?}");
        assert_eq!(clock.outbox().len(), usize::from(expected == "waiting"));
    }
}

#[test]
fn what_a_command_prints_asks_for_nothing() {
    let mut clock = Clock::with(&[telling(JobPlan { payload: runs("grep NO_REPLY log"), ..every("x", 10) })]);
    clock.fire_at("00:10");
    clock.run_one("3: NO_REPLY");
    assert_eq!(delivery(&mut clock, "x"), word("waiting", None));
    assert_eq!(clock.outbox(), ["tg:7 done 3: NO_REPLY"]);
}

#[test]
fn a_failure_is_told_once_when_nobody_tries_again() {
    let mut clock = Clock::with(&[telling(every("x", 60))]);
    clock.fire_at("01:00");
    let run = clock.start_one().run;
    clock.fail(&run);
    assert_eq!((clock.outbox(), delivery(&mut clock, "x")), (Vec::new(), (None, None)), "it is not over");
    clock.town.now += MINUTE;
    clock.fire();
    clock.fail_for_good();
    assert_eq!(clock.outbox(), ["tg:7 failed The job x failed: exit code 1."]);
    assert_eq!(delivery(&mut clock, "x"), word("waiting", None));
    clock.set("02:00");
    clock.fire();
    let run = clock.start_one().run;
    clock.stop(&run, Outcome::Stopped);
    assert_eq!(
        clock.outbox()[1..],
        ["tg:7 cancelled "],
        "whoever stopped it knows; what shows that it runs is cleared"
    );
    assert_eq!(delivery(&mut clock, "x"), word("none", None));
    clock.set("03:00");
    clock.fire();
    let run = clock.start_one().run;
    clock.stop(&run, Outcome::TimedOut);
    assert_eq!(clock.outbox()[2], "tg:7 failed The job x failed: ada said so (killed by signal 15).");
}

#[test]
fn an_answer_in_somebodys_session_goes_where_its_answers_go() {
    let plan = JobPlan { payload: says("x", Some("dm:anna")), ..every("x", 10) };
    let own = JobPlan { deliver: Some(to("hook", None)), name: "own".to_owned(), ..plan.clone() };
    let mut clock = Clock::with(&[plan, own]);
    let wish = |wishes: &mut gt_store::Wishes| {
        (wishes.channel, wishes.recipient) = (Some("tg".to_owned()), Some("anna".to_owned()));
    };
    clock.does(|store, stamp| store.set_session("dm:anna", wish, stamp)).expect("it is set");
    clock.fire_at("00:10");
    clock.answer_all();
    assert_eq!(clock.outbox(), ["tg:anna done yes", "hook done yes"]);
}

#[test]
fn a_job_that_was_removed_meanwhile_still_answers() {
    let mut clock = Clock::with(&[telling(every("x", 10))]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.remove("x");
    clock.answer(&run, "yes");
    let first = parcel(&mut clock);
    clock.town.now += HOUR;
    clock.does(|store, stamp| store.delivered(first.id, stamp)).expect("it is recorded");
    assert_eq!(delivery(&mut clock, "x"), word("delivered", None));
}

#[test]
fn a_failure_that_never_had_a_turn_is_in_the_log_only() {
    let plan = JobPlan { retries: Some(0), payload: says("x", Some("dm:a")), ..every("x", 10) };
    let mut clock = Clock::with(&[telling(plan)]);
    (clock.sessions.cap, clock.sessions.overflow) = (0, gt_core::session::Overflow::New);
    clock.fire_at("00:10");
    assert_eq!((clock.log("x"), clock.outbox()), (vec!["00:10 failed".to_owned()], Vec::new()));
    assert_eq!(delivery(&mut clock, "x"), word("none", None));
}

#[test]
fn what_did_not_run_delivers_nothing() {
    let mut clock = Clock::with(&[telling(every("x", 10))]);
    clock.set("00:25");
    clock.restart();
    clock.fire();
    clock.fire_at("00:30");
    let deliveries: Vec<Option<String>> = clock.fires("x").into_iter().map(|fire| fire.delivery).collect();
    assert_eq!(
        (clock.log("x").join(", "), deliveries),
        ("00:10 missed, 00:20 missed, 00:20 running, 00:30 skipped".to_owned(), vec![None; 4])
    );
    assert_eq!(clock.outbox(), [""; 0]);
}
