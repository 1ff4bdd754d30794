//! What a job is at: a run, the wait for one, or another try. // SPEC K1, K4

use gt_store::{Stage, UnderWay};

use crate::jobs_clock::{Clock, MINUTE, SECOND, at, every, time};

/// What a job is at, in words, and whether its last fire says the same.
fn is_at(clock: &mut Clock, name: &str) -> String {
    let id = clock.job(name).id();
    let all = clock.town.store.under_way().expect("it answers");
    let is_live = clock.fires(name).iter().any(|fire| fire.is_live);
    let Some(UnderWay { slot, stage, attempt, .. }) = all.get(&id) else { return format!("nothing, live: {is_live}") };
    let stage = match stage {
        Stage::Runs { since } => format!("runs since {}", since.map_or("-".to_owned(), crate::jobs_clock::words)),
        Stage::Waits => "waits".to_owned(),
        Stage::TriedAgain { at } => format!("is tried again after {}s", (*at - clock.town.now).get_seconds()),
    };
    format!("{} {stage}, attempt {attempt}, live: {is_live}", crate::jobs_clock::words(*slot))
}

#[test]
fn a_fire_runs_only_while_its_turn_does() {
    let mut clock = Clock::with(&[every("a", 10), at("b", "00:10")]);
    assert_eq!(is_at(&mut clock, "a"), "nothing, live: false");
    clock.fire_at("00:10");
    assert_eq!(is_at(&mut clock, "b"), "00:10 waits, attempt 1, live: false");
    // There is one place in the lane.
    clock.town.now += MINUTE;
    let turn = clock.start_one();
    let (first, other) = if turn.fire.as_ref().is_some_and(|fire| fire.job == "a") { ("a", "b") } else { ("b", "a") };
    assert_eq!(is_at(&mut clock, first), "00:10 runs since 00:11, attempt 1, live: true");
    assert_eq!(is_at(&mut clock, other), "00:10 waits, attempt 1, live: false");
    clock.fail(&turn.run);
    assert!(is_at(&mut clock, first).contains("00:10 is tried again after "), "{}", is_at(&mut clock, first));
    // Another has the place when it is tried again.
    let turn = clock.start_one();
    clock.town.now += SECOND * 30;
    clock.fire();
    assert_eq!(is_at(&mut clock, first), "00:10 waits, attempt 2, live: false");
    assert!(is_at(&mut clock, other).ends_with("live: true"), "{}", is_at(&mut clock, other));
    clock.answer(&turn.run, "yes");
    clock.run_one("yes");
    assert_eq!(clock.town.store.under_way().expect("it answers").len(), 0);
}

#[test]
fn of_several_fires_the_one_that_runs_counts() {
    let mut plan = every("a", 10);
    plan.may_overlap = true;
    let mut clock = Clock::with_lane(1, &[plan]);
    clock.fire_at("00:10");
    let turn = clock.start_one();
    clock.fire_at("00:20");
    assert_eq!(is_at(&mut clock, "a"), "00:10 runs since 00:10, attempt 1, live: true");
    let last: Vec<_> = clock.town.store.under_way().expect("it answers").into_values().map(|at| at.last_slot).collect();
    assert_eq!(last, [time("00:20")]);
    clock.answer(&turn.run, "yes");
    assert_eq!(is_at(&mut clock, "a"), "00:20 waits, attempt 1, live: false");
}
