//! What jobs need stays, however short `retention.messages` is. // SPEC H1, K4

use gt_core::job::FireStatus;
use gt_store::BeatWord;

use crate::jobs_beats::{NAME, beating};
use crate::jobs_clock::{Clock, SECOND, every, time};

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
