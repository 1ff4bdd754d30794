//! What jobs need stays, however short `retention.messages` is. // SPEC H1, K4

use gt_core::job::{Beat, FireStatus};
use gt_store::{BeatWord, Ended};

use crate::jobs_beats::{NAME, beating, beats, keep, says};
use crate::jobs_clock::{Clock, DAY, MINUTE, SECOND, beat, every, time};
use crate::yard::ended;

/// Forgets all that ended before now.
fn prune(clock: &mut Clock) {
    let before = clock.town.now;
    let prune = clock.does(|store, stamp| {
        store.prune_turns(before, stamp)?;
        store.prune_fires(before, stamp)
    });
    prune.expect("it is pruned");
}

/// A heartbeat that a person asked for has failed, and is due to be retried at night.
fn failed_before_the_night() -> Clock {
    let mut clock = beating("tg");
    clock.try_add(&[every("x", 60)]).expect("it is fine");
    clock.try_now(NAME).expect("it is free");
    let run = clock.start_one().run;
    clock.fail(&run);
    clock.word = BeatWord::Skip { why: "it is night".to_owned(), open: Some((time("08:00"), time("09:00"))) };
    clock.set("00:01");
    clock
}

#[test]
fn the_turn_of_a_fire_that_is_retried_is_kept() {
    let mut clock = failed_before_the_night();
    prune(&mut clock);
    assert_eq!(clock.fire().n_fired, 1);
    let turn = clock.start_one();
    assert_eq!(turn.text, "look");
    clock.town.now += SECOND;
    prune(&mut clock);
    assert_eq!(clock.last(NAME).earlier.len(), 1, "its first attempt is known as long as it runs");
    clock.answer(&turn.run, "HEARTBEAT_OK");
    clock.town.now += SECOND;
    prune(&mut clock);
    assert_eq!((clock.rows("SELECT id || '' FROM turn"), clock.log(NAME)), (vec![], vec![]));
}

#[test]
fn a_retry_whose_turn_is_gone_is_left_out_and_other_jobs_go_on() {
    let mut clock = failed_before_the_night();
    clock.peek.execute("DELETE FROM turn", []).expect("it is SQL");
    clock.set("01:00");
    assert_eq!(clock.fire().n_fired, 1);
    assert_eq!(clock.run_one("yes").text, "x");
    let fire = clock.fires(NAME).remove(0);
    assert_eq!((fire.status, fire.error.as_deref()), (FireStatus::Skipped, Some("it is night")));
}

#[test]
fn what_was_told_within_a_day_is_known_however_little_is_kept() {
    let mut clock = beating("tg:7");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    let parcel = clock.town.store.due_parcels("tg", clock.town.now, 9).expect("it answers").remove(0);
    clock.does(|store, stamp| store.delivered(parcel.id, stamp)).expect("it is recorded");
    clock.town.now += SECOND;
    prune(&mut clock);
    assert_eq!(says(&mut clock, "the earth quakes"), "waiting");
    clock.town.now += SECOND;
    prune(&mut clock);
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    clock.town.now = time("00:30") + DAY + SECOND;
    prune(&mut clock);
    assert_eq!(clock.log(NAME), ["01:00 ok"], "only what still counts is kept");
}

#[test]
fn an_answer_whose_end_was_not_seen_is_not_told_again_after_another() {
    let mut clock = beating("tg:7");
    clock.fire_at("00:30");
    let run = clock.start_one().run;
    clock.end(Ended { code: None, reply: Some("the sky falls".to_owned()), ..ended(&run) });
    assert!(clock.outbox()[0].contains("may be incomplete"), "{:?}", clock.outbox());
    assert_eq!(says(&mut clock, "the earth quakes"), "waiting");
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
}

#[test]
fn what_was_told_is_known_though_another_answer_counts_as_an_alert_by_now() {
    let mut clock = beating("tg:7");
    let long = "x".repeat(301);
    assert_eq!(says(&mut clock, &format!("HEARTBEAT_OK {long}")), "waiting");
    let more = Beat { target: "tg:7".to_owned(), ack_max_chars: 1000, ..beat("claude") };
    keep(&mut clock, &gt_store::Beats { beats: vec![more], ..beats(&[], 30) });
    assert_eq!(says(&mut clock, "the earth quakes"), "waiting");
    assert_eq!(says(&mut clock, &long), "repeated");
}

#[test]
fn an_alert_that_waits_to_be_delivered_is_a_letter_in_the_end_however_little_is_kept() {
    let mut clock = beating("tg:7");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    let parcel = clock.town.store.due_parcels("tg", clock.town.now, 9).expect("it answers").remove(0);
    clock.town.now += DAY + MINUTE;
    prune(&mut clock);
    clock.does(|store, stamp| store.not_delivered(&parcel, "gone for good", None, stamp)).expect("it is recorded");
    assert_eq!(clock.letters(), ["the heartbeat of claude has something to tell"]);
    clock.town.now += SECOND;
    prune(&mut clock);
    assert_eq!(clock.log(NAME), [""; 0]);
}
