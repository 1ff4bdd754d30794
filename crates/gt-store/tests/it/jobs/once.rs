//! Jobs that run once: never lost, never twice, whatever comes in between. // SPEC K1, K3, K4

use gt_core::job::Missed;
use gt_core::run::Outcome;
use gt_store::{Ended, JobPlan, StoreError};
use jiff::SignedDuration;

use crate::jobs_clock::{Clock, DAY, MINUTE, at, is_ok};
use crate::yard::ended;

#[test]
fn what_ran_once_is_gone_and_its_log_is_not() {
    let mut clock = Clock::with(&[at("x", "00:10")]);
    clock.fire_at("00:10");
    assert_eq!(clock.state("x"), "active", "until it has ended");
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None);
    clock.run_one("yes");
    assert!(clock.is_gone("x"));
    assert_eq!((clock.log("x"), clock.log("job-1")), (vec!["00:10 ok".into()], vec!["00:10 ok".into()]));
    assert_eq!((clock.events("job.removed"), clock.letters()), (vec!["x".to_owned()], Vec::new()));
}

#[test]
fn what_failed_once_is_kept_and_says_why() {
    let mut clock = Clock::with(&[at("failed", "00:10"), at("timeout", "00:20"), at("cancelled", "00:30")]);
    clock.fire_at("00:10");
    assert_eq!(clock.fail_for_good(), 4);
    for (slot, outcome) in [("00:20", Outcome::TimedOut), ("00:30", Outcome::Stopped)] {
        clock.fire_at(slot);
        let run = clock.start_one().run;
        clock.stop(&run, outcome);
    }
    for (name, why) in [
        ("failed", "its only run failed: exit code 1"),
        ("timeout", "its only run took too long: ada said so (killed by signal 15)"),
        ("cancelled", "its only run was cancelled: ada said so (killed by signal 15)"),
    ] {
        assert_eq!(clock.state(name), format!("disabled {why}"));
    }
    assert_eq!(clock.letters(), ["failed", "timeout", "cancelled"].map(|name| format!("the job {name} is disabled")));
    clock.try_now("failed").expect("it is free");
    clock.fail_for_good();
    assert_eq!(clock.letters().len(), 3, "who runs it by hand sees that");
    clock.try_now("failed").expect("it is free");
    clock.run_one("yes");
    assert!(clock.is_gone("failed"), "by hand it went well");
}

#[test]
fn what_comes_once_is_better_late_than_never_unless_somebody_says_otherwise() {
    let skip = JobPlan { missed: Missed::Skip, ..at("skip", "00:10") };
    let strict = JobPlan { grace: Some(MINUTE), ..at("strict", "00:10") };
    let all = JobPlan { missed: Missed::All, ..at("all", "00:10") };
    let mut clock = Clock::with(&[at("once", "00:10"), skip, strict, all]);
    clock.town.now += DAY * 3;
    clock.restart();
    clock.fire();
    let texts: Vec<String> = clock.answer_all().into_iter().map(|turn| turn.text).collect();
    assert_eq!(texts, ["once", "all"]);
    for name in ["skip", "strict"] {
        assert_eq!(clock.log(name), ["00:10 missed"]);
        assert_eq!(clock.state(name), "disabled its time has passed, and it did not run");
    }
    assert_eq!(clock.letters(), ["the job skip is disabled", "the job strict is disabled"]);
}

/// Where a daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Point {
    Fired,
    Claimed,
    Started,
    RetryWaits,
    Retried,
}

/// Goes on with a job until it is over, as a daemon does that finds whatever is left.
fn go_on(clock: &mut Clock) {
    for _ in 0..9 {
        let lost: Vec<String> =
            clock.town.store.live_runs().expect("it answers").iter().map(|run| run.id.clone()).collect();
        for run in lost {
            clock.end(Ended { code: None, is_lost: true, ..ended(&run) });
        }
        clock.fire();
        clock.answer_all();
        clock.town.now += MINUTE;
    }
}

#[test]
fn what_runs_once_is_neither_lost_nor_done_twice_wherever_the_daemon_dies() {
    for point in [Point::Fired, Point::Claimed, Point::Started, Point::RetryWaits, Point::Retried] {
        for down in [SignedDuration::ZERO, DAY] {
            let mut clock = Clock::with(&[at("x", "00:10")]);
            clock.fire_at("00:10");
            if point != Point::Fired {
                let turns = clock.claim();
                if point != Point::Claimed {
                    clock.starts(&turns);
                }
                if matches!(point, Point::RetryWaits | Point::Retried) {
                    clock.fail(&turns[0].run);
                }
                if point == Point::Retried {
                    clock.town.now += MINUTE;
                    clock.fire();
                }
            }
            clock.town.now += down;
            clock.restart();
            go_on(&mut clock);
            assert!(clock.is_gone("x"), "{point:?}: {:?}", clock.fires("x"));
            let fires = clock.fires("x");
            assert!(fires.len() == 1 && is_ok(&fires[0]), "{point:?}: {fires:?}");
            assert_eq!(fires[0].attempt, if point == Point::Fired { 1 } else { 2 }, "{point:?}");
            assert_eq!(clock.rows("SELECT count(*) || '' FROM turn WHERE outcome = 'done'"), ["1"]);
        }
    }
}

#[test]
fn what_is_run_by_hand_before_its_time_keeps_it() {
    let mut clock = Clock::with(&[at("x", "00:10")]);
    clock.set("00:05");
    clock.try_now("x").expect("it is free");
    clock.run_one("yes");
    assert_eq!(clock.state("x"), "active 00:10");
    clock.fire_at("00:10");
    clock.run_one("yes");
    assert!(clock.is_gone("x"));
    assert_eq!(clock.log("x"), ["00:05 ok", "00:10 ok"]);
}

#[test]
fn a_time_that_comes_while_a_job_is_run_by_hand_is_not_lost() {
    for is_good in [true, false] {
        let mut clock = Clock::with_lane(9, &[JobPlan { retries: Some(0), ..at("x", "00:10") }]);
        clock.set("00:09");
        clock.try_now("x").expect("it is free");
        let by_hand = clock.start_one().run;
        clock.fire_at("00:10");
        assert_eq!(clock.claim().len(), 0, "not beside itself");
        clock.end_so(&by_hand, is_good);
        clock.run_one("yes");
        assert!(clock.is_gone("x"));
        assert_eq!(clock.log("x"), [if is_good { "00:09 ok" } else { "00:09 failed" }, "00:10 ok"]);
    }
}

#[test]
fn a_job_that_gets_another_time_while_it_runs_keeps_that() {
    for is_good in [true, false] {
        let mut clock = Clock::with(&[JobPlan { retries: Some(0), ..at("x", "00:10") }]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.edit("x", |plan| plan.schedule = at("x", "00:30").schedule).expect("it is changed");
        assert_eq!(clock.state("x"), "active 00:30");
        clock.end_so(&run, is_good);
        assert_eq!(clock.state("x"), "active 00:30", "its end is not the end of the job");
        clock.fire_at("00:30");
        clock.run_one("yes");
        assert!(clock.is_gone("x"));
    }
}

#[test]
fn another_time_that_comes_while_the_first_still_runs_is_not_lost() {
    for end in ["first", "second"] {
        let mut clock = Clock::with_lane(9, &[at("x", "00:10")]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.edit("x", |plan| plan.schedule = at("x", "00:12").schedule).expect("it is changed");
        clock.fire_at("00:12");
        // The first fails, and is to be tried again while the second runs.
        clock.end_so(&run, end == "first");
        clock.run_one("yes");
        clock.town.now += MINUTE;
        clock.fire();
        clock.answer_all();
        assert!(clock.is_gone("x"), "{}", clock.state("x"));
        assert_eq!(clock.town.store.next_job_at().expect("it answers"), None, "nothing is looked for in vain");
        assert_eq!(clock.log("x")[1], "00:12 ok");
    }
}

#[test]
fn a_job_that_may_run_beside_itself_is_over_with_its_own_run_not_with_one_by_hand() {
    let plan = JobPlan { may_overlap: true, retries: Some(0), ..at("x", "00:10") };
    let mut clock = Clock::with_lane(9, &[plan]);
    clock.fire_at("00:10");
    let own = clock.start_one().run;
    clock.try_now("x").expect("it may");
    clock.run_one("yes");
    assert_eq!(clock.state("x"), "active", "its own run is still under way");
    clock.fail(&own);
    assert_eq!(clock.state("x"), "disabled its only run failed: exit code 1");
    assert_eq!(clock.letters().len(), 1);
}

#[test]
fn what_was_to_be_tried_again_by_hand_is_over_with_its_job() {
    let mut clock = Clock::with_lane(9, &[JobPlan { may_overlap: true, ..at("x", "00:10") }]);
    clock.set("00:09:59");
    clock.try_now("x").expect("it may");
    let by_hand = clock.start_one().run;
    clock.fire_at("00:10");
    let own = clock.start_one().run;
    clock.fail(&by_hand);
    clock.answer(&own, "yes");
    assert!(clock.is_gone("x"));
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None, "nobody is left to be tried again");
    assert_eq!(clock.log("x"), ["00:09:59 failed", "00:10 ok"]);
}

#[test]
fn a_job_that_is_paused_before_its_time_does_not_run_and_can_get_another() {
    let mut clock = Clock::with(&[at("x", "00:10")]);
    clock.pause("x");
    assert_eq!(clock.fire_at("00:20").n_fired, 0);
    let answer = clock.does(|store, stamp| store.resume_job("x", stamp));
    let StoreError::Refused(refusal) = answer.expect_err("its time has passed") else { panic!("it is no refusal") };
    assert_eq!(refusal.to_string(), "the job `x` would never run: 2026-01-01T00:10:00Z has passed");
    assert!(refusal.hint().contains("`gt cron edit x --at TIME`"), "{}", refusal.hint());
    clock.edit("x", |plan| plan.schedule = at("x", "00:30").schedule).expect("it is changed");
    assert_eq!(clock.state("x"), "paused");
    clock.resume("x");
    clock.fire_at("00:30");
    clock.run_one("yes");
    assert!(clock.is_gone("x"));
}

#[test]
fn a_job_that_is_paused_while_it_runs_is_over_when_that_ends() {
    for is_good in [true, false] {
        let mut clock = Clock::with(&[at("x", "00:10")]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.pause("x");
        clock.end_so(&run, is_good);
        assert_eq!(clock.is_gone("x"), is_good);
        if !is_good {
            assert_eq!(clock.state("x"), "disabled its only run failed: exit code 1");
        }
    }
}

#[test]
fn a_job_by_a_clock_that_was_set_back_does_not_run_again() {
    let mut clock = Clock::with(&[JobPlan { retries: Some(0), ..at("x", "00:10") }]);
    clock.fire_at("00:10");
    clock.fail_for_good();
    clock.set("00:05");
    clock.resume("x");
    assert_eq!(clock.state("x"), "active 00:10");
    assert_eq!(clock.fire_at("00:10").n_fired, 0);
    assert_eq!(clock.state("x"), "disabled its time has passed, and it did not run", "not again");
}
