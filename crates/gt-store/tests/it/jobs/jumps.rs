//! A clock that was far ahead, and is right again, or is far behind for a while: what was done is done, and jobs go on from
//! now. // SPEC K2

use gt_core::job::{FireStatus, Missed, Schedule};
use gt_store::JobPlan;
use jiff::SignedDuration;

use crate::desk::message;
use crate::jobs_clock::{Clock, DAY, HOUR, MINUTE, at, cron, every, job, time, words};
use crate::jobs_slots::check_records;

/// The clock is set, and who runs the town notices.
fn set_back(clock: &mut Clock, to: &str) -> usize {
    clock.set(to);
    clock.since = clock.since.min(clock.town.now);
    clock.does(|store, stamp| store.heed_clock(jiff::SignedDuration::ZERO, stamp)).expect("it answers")
}

fn set_forward(clock: &mut Clock, by: SignedDuration) {
    clock.town.now += by;
    clock.since = clock.town.now;
    clock.fire();
}

#[test]
fn a_job_goes_on_from_now_when_the_clock_that_was_far_ahead_is_right_again() {
    for missed in Missed::ALL {
        let mut clock = Clock::with(&[JobPlan { missed, ..every("x", 60) }]);
        clock.set("00:30");
        set_forward(&mut clock, DAY * 2);
        let fired_ahead = clock.answer_all().len();
        assert_eq!(set_back(&mut clock, "00:31"), 1, "{missed:?}");
        assert_eq!(set_back(&mut clock, "00:31"), 0, "it is right now");
        assert_eq!(clock.state("x"), "active 01:00");
        let mut n_fired = 0;
        for hour in 1..=72 {
            clock.town.now = time("00:00") + HOUR * hour;
            clock.fire();
            n_fired += clock.answer_all().len();
        }
        assert_eq!(n_fired, 72 - fired_ahead, "{missed:?}: only what has fired does not fire again");
        let now = clock.town.now;
        check_records(&mut clock, "x", time("00:00"), now);
        assert!(clock.fires("x").iter().all(|fire| fire.status == FireStatus::Ok));
    }
}

#[test]
fn a_clock_that_was_a_little_ahead_is_waited_for() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.set("00:30");
    set_forward(&mut clock, HOUR * 2);
    clock.answer_all();
    assert_eq!(clock.state("x"), "active 03:00");
    assert_eq!(set_back(&mut clock, "00:31"), 0);
    assert_eq!(clock.state("x"), "active 03:00", "what was missed then is over");
    assert_eq!(clock.log("x"), ["01:00 missed", "02:00 missed", "02:00 ok"]);
}

#[test]
fn what_many_missed_slots_share_ends_where_the_clock_is_right() {
    let mut clock = Clock::with(&[cron("x", "* * * * *")]);
    set_forward(&mut clock, DAY * 3 + MINUTE / 2);
    clock.answer_all();
    assert!(clock.fires("x")[0].until.is_some_and(|until| until > time("23:00")));
    set_back(&mut clock, "12:00:30");
    assert_eq!(clock.state("x"), "active 12:01");
    for minute in 1..=90 {
        clock.town.now = time("12:00") + MINUTE * minute;
        assert_eq!(clock.fire().n_fired, 1);
        clock.answer_all();
    }
    check_records(&mut clock, "x", time("00:00"), time("13:30"));
}

#[test]
fn what_failed_by_a_clock_far_ahead_is_tried_again_and_holds_up_nobody() {
    let mut clock = Clock::with(&[every("x", 60), at("once", "00:20")]);
    clock.set("00:10");
    set_forward(&mut clock, DAY * 2);
    for _ in 0..2 {
        let run = clock.start_one().run;
        clock.fail(&run);
    }
    assert!(clock.last("x").retry_at.is_some_and(|at| at > time("00:00") + DAY));
    set_back(&mut clock, "00:11");
    clock.fire();
    assert_eq!(clock.answer_all().len(), 2);
    assert!(clock.is_gone("once"));
    clock.fire_at("01:00");
    assert_eq!(clock.answer_all().len(), 1, "{:?}", clock.log("x"));
}

#[test]
fn what_waits_for_its_lane_since_the_clock_was_far_ahead_starts() {
    let mut clock = Clock::with(&[every("x", 60), every("y", 60)]);
    clock.set("00:10");
    let rules = clock.sessions;
    clock.town.now += DAY * 2;
    let lanes = clock.policy.lanes.clone();
    clock.does(|store, stamp| store.send(&[message("dm:a", "hi")], &rules, &lanes, stamp)).expect("it is taken");
    clock.town.now -= DAY * 2;
    set_forward(&mut clock, DAY * 2);
    set_back(&mut clock, "00:11");
    assert_eq!(clock.answer_all().len(), 3, "two jobs and a message");
}

#[test]
fn a_job_that_was_made_by_a_clock_far_ahead_counts_from_now() {
    let mut clock = Clock::new();
    clock.set("00:10");
    clock.town.now += DAY * 9;
    let span = HOUR;
    let ahead = |name: &str, anchor| job(name, Schedule::Every { span, anchor });
    let now = clock.town.now;
    clock.try_add(&[ahead("fired", now), ahead("new", now + MINUTE)]).expect("they are fine");
    clock.town.now += HOUR;
    clock.fire();
    clock.answer_all();
    assert_eq!(set_back(&mut clock, "00:11"), 2);
    let states = (clock.state("fired"), clock.state("new"));
    assert_eq!(states, ("active 01:10".to_owned(), "active 01:11".to_owned()), "each in its rhythm");
    assert_eq!(set_back(&mut clock, "00:11"), 0);
    clock.restart();
    clock.fire_at("01:11");
    assert_eq!(clock.answer_all().len(), 2);
    assert_eq!(clock.state("new"), "active 02:11");
}

#[test]
fn a_job_that_rests_is_left_alone_and_comes_to_all_its_slots_when_it_goes_on() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.set("00:10");
    set_forward(&mut clock, DAY);
    clock.answer_all();
    clock.pause("x");
    set_back(&mut clock, "00:11");
    assert_eq!(clock.state("x"), "paused");
    clock.resume("x");
    assert_eq!(clock.fire_at("01:00").n_fired, 1);
}

#[test]
fn a_one_shot_keeps_its_time_whatever_the_clock_was() {
    let mut clock = Clock::with(&[at("x", "23:00"), every("y", 60)]);
    clock.set("00:10");
    set_forward(&mut clock, HOUR * 10);
    clock.answer_all();
    assert_eq!(set_back(&mut clock, "00:11"), 1);
    assert_eq!(clock.state("x"), "active 23:00");
    assert_eq!(words(clock.job("y").next_at.expect("it is active")), "01:00");
}

#[test]
fn a_job_whose_zone_is_gone_is_not_lost_with_the_clock() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.set("00:10");
    set_forward(&mut clock, DAY);
    clock.answer_all();
    clock.peek.execute("UPDATE job SET tz = 'Mars/Olympus'", []).expect("it is spoiled");
    set_back(&mut clock, "00:11");
    clock.fire();
    assert_eq!(clock.state("x"), "disabled there is no time zone `Mars/Olympus`");
}

#[test]
fn a_clock_that_is_years_behind_for_a_while_takes_nothing_back_and_brings_nothing_twice() {
    for missed in Missed::ALL {
        let mut clock =
            Clock::with(&[JobPlan { missed, ..every("x", 60) }, JobPlan { missed, ..cron("y", "30 * * * *") }]);
        clock.set("02:10");
        clock.restart();
        clock.fire();
        clock.answer_all();
        let (before, made_at) = ((clock.log("x"), clock.log("y")), clock.job("x").made_at);
        assert!(before.0.contains(&"01:00 missed".to_owned()), "{before:?}");
        // The machine starts with a clock from years ago, which is set right after a while.
        clock.town.now -= DAY * 2200;
        clock.restart();
        assert_eq!(clock.does(|store, stamp| store.heed_clock(SignedDuration::ZERO, stamp)).expect("it answers"), 2);
        assert_eq!((clock.log("x"), clock.log("y")), before, "{missed:?}: nothing is taken back");
        let n_then = clock.fires("x").len();
        let n_fired: usize = (0..60)
            .map(|_| {
                clock.town.now += MINUTE;
                clock.fire();
                clock.answer_all().len()
            })
            .sum();
        assert_eq!(n_fired, 2, "{missed:?}: they go on by the clock that there is");
        assert_eq!(clock.fires("x").len(), n_then + 1);
        clock.set("04:15");
        clock.restart();
        clock.fire();
        clock.answer_all();
        let since = |clock: &mut Clock, name: &str| {
            let fires = clock.fires(name).into_iter().filter(|fire| fire.slot >= time("00:00"));
            fires
                .map(|fire| words(fire.slot))
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(since(&mut clock, "x"), ["01:00", "02:00", "03:00", "04:00"], "{missed:?}");
        assert_eq!(since(&mut clock, "y"), ["00:30", "01:30", "02:30", "03:30"], "{missed:?}");
        assert!(clock.fires("x").len() <= 10, "{missed:?}: {:?}", clock.log("x"));
        assert_eq!(clock.job("x").made_at, made_at);
        assert_eq!(clock.state("x"), "active 05:00", "in its rhythm");
        check_records(&mut clock, "x", time("00:00"), time("04:15"));
    }
}

#[test]
fn of_many_that_share_a_record_one_that_comes_after_all_is_taken_out() {
    let mut clock = Clock::with(&[cron("x", "*/5 * * * *")]);
    clock.town.now += DAY * 300;
    clock.restart();
    clock.fire();
    clock.answer_all();
    let end = clock.town.now;
    set_back(&mut clock, "00:02");
    for slot in ["00:05", "00:10", "03:00"] {
        clock.fire_at(slot);
        assert_eq!(clock.answer_all().len(), 1, "{slot}");
        check_records(&mut clock, "x", time("00:00"), end);
    }
    (clock.town.now, clock.since) = (end + MINUTE, end + MINUTE);
    clock.fire();
    check_records(&mut clock, "x", time("00:00"), end);
}

#[test]
fn who_was_changed_or_went_on_by_a_clock_far_ahead_does_not_wait_for_it() {
    let mut clock = Clock::with(&[cron("resumed", "*/5 * * * *"), cron("changed", "*/5 * * * *")]);
    clock.pause("resumed");
    clock.set("09:00");
    clock.resume("resumed");
    clock.edit("changed", |plan| plan.schedule = cron("x", "*/10 * * * *").schedule).expect("it is changed");
    set_back(&mut clock, "00:02");
    assert_eq!((clock.state("resumed"), clock.state("changed")), ("active 00:05".into(), "active 00:10".into()));
}
