//! What people do with jobs: adding, showing, changing, pausing, removing, running by hand. // SPEC K1

use gt_core::job::{BadJob, Missed, Payload, Schedule};
use gt_core::refusal::Refusal;
use gt_store::{Fire, FireFilter, FiresOf, JobPlan, StoreError};
use jiff::Timestamp;

use crate::jobs_clock::{Clock, DAY, HOUR, MINUTE, SECOND, at, cron, every, job, says, time, words};

fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Refusal {
    match answer {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

fn exists(name: &str) -> Refusal {
    Refusal::Job(BadJob::Exists { name: name.to_owned() })
}

#[test]
fn a_job_is_found_by_its_name_and_by_its_id() {
    let mut clock = Clock::with(&[every("report", 10)]);
    let job = clock.job("report");
    assert_eq!((job.id(), job.name(), job.next_at), ("job-1".to_owned(), "report", Some(time("00:10"))));
    assert_eq!(clock.job("job-1"), job);
    assert_eq!(job.plan, every("report", 10));
    assert_eq!(clock.events("job.added"), ["report"]);
    for (name, near) in [("reprot", vec!["report".to_owned()]), ("job-7", Vec::new())] {
        match clock.town.store.job(name) {
            Err(StoreError::NoJob { near: found, .. }) => assert_eq!(found, near, "{name}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn all_that_is_set_for_a_job_is_remembered() {
    let plan = JobPlan {
        tz: "America/Toronto".to_owned(),
        payload: Payload::Sling { words: vec!["gt-1".to_owned(), "--force".to_owned()] },
        missed: gt_core::job::Missed::All,
        may_overlap: true,
        grace: Some(SECOND * 7),
        timeout: Some(MINUTE),
        retries: Some(9),
        lane: Some("main".to_owned()),
        deliver: Some(crate::jobs_clock::to("tg", Some("7"))),
        ..cron("all", "0 9 * * *")
    };
    let mut clock = Clock::with(std::slice::from_ref(&plan));
    clock.restart();
    assert_eq!(clock.job("all").plan, plan);
    assert_eq!(clock.state("all"), "active 14:00", "nine o'clock in Toronto");
}

#[test]
fn a_name_is_taken_once_and_several_jobs_are_added_all_or_none() {
    let mut clock = Clock::with(&[every("x", 1)]);
    assert_eq!(refusal(clock.try_add(&[every("x", 2)])), exists("x"));
    assert_eq!(refusal(clock.try_add(&[every("y", 2), every("x", 2)])), exists("x"));
    assert_eq!(refusal(clock.try_add(&[every("y", 2), every("y", 3)])), exists("y"));
    assert!(clock.is_gone("y"));
    assert_eq!(clock.events("job.added"), ["x"]);
    clock.remove("x");
    let again = clock.try_add(&[every("x", 2)]).expect("the name is free");
    assert_eq!(again[0].id(), "job-2", "numbers are not given twice");
}

#[test]
fn what_cannot_name_a_job_is_refused() {
    let mut clock = Clock::with(&[every("x", 1)]);
    let long = "x".repeat(101);
    for name in ["", "a b", "job-12", "-x", ".x", "a\u{202e}b", "a/b", "heartbeat:anna", "heartbeat:", &long] {
        let refused = refusal(clock.try_add(&[every(name, 1)]));
        assert!(matches!(refused, Refusal::Job(BadJob::Name { .. })), "{name:?}: {refused:?}");
        let refused = refusal(clock.edit("x", |plan| name.clone_into(&mut plan.name)));
        assert!(matches!(refused, Refusal::Job(BadJob::Name { .. })), "{name:?}: {refused:?}");
    }
    for name in ["job-x", "Größe.2", "9", "job-12b"] {
        clock.try_add(&[every(name, 1)]).expect("it is a name");
        assert_eq!(clock.job(name).name(), name);
    }
}

#[test]
fn a_job_that_would_never_run_is_refused() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.town.now += HOUR;
    let mars = JobPlan { tz: "Mars/Olympus".to_owned(), ..every("m", 1) };
    let broken = job("b", Schedule::Broken { kind: "moon".to_owned(), text: "full".to_owned() });
    let cases = [
        (at("p", "00:59"), "2026-01-01T00:59:00Z has passed"),
        (at("n", "01:00"), "2026-01-01T01:00:00Z has passed"),
        (cron("f", "0 0 30 2 *"), "no such time ever comes"),
        (mars, "there is no time zone `Mars/Olympus`"),
        (broken, "its schedule `full` cannot be read"),
    ];
    for (plan, why) in cases {
        let name = plan.name.clone();
        let expected = |name: &str| Refusal::Job(BadJob::NeverRuns { name: name.to_owned(), why: why.to_owned() });
        assert_eq!(refusal(clock.try_add(std::slice::from_ref(&plan))), expected(&name));
        let (schedule, tz) = (plan.schedule, plan.tz);
        let edited = clock.edit("x", |plan| (plan.schedule, plan.tz) = (schedule, tz));
        assert_eq!(refusal(edited), expected("x"));
        assert_eq!(clock.state("x"), "active 00:10", "it stays as it was");
    }
}

#[test]
fn jobs_are_listed_by_when_they_come_and_those_without_a_time_last() {
    let mut clock = Clock::with(&[every("late", 9), every("paused", 1), every("soon", 2), at("sooner", "00:01")]);
    clock.pause("paused");
    let names = |clock: &mut Clock, limit| {
        let jobs = clock.town.store.jobs(false, limit).expect("it answers");
        jobs.iter().map(|job| job.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut clock, None), ["sooner", "soon", "late", "paused"]);
    assert_eq!(names(&mut clock, Some(2)), ["sooner", "soon"]);
    clock.fire_at("00:02");
    assert_eq!(names(&mut clock, None), ["soon", "late", "paused", "sooner"], "what has come has no next time");
}

#[test]
fn another_schedule_finds_the_next_slot_anew_and_any_other_edit_leaves_it() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.set("00:04");
    clock.edit("x", |plan| plan.payload = says("else", None)).expect("it is changed");
    clock.edit("x", |plan| plan.retries = Some(1)).expect("it is changed");
    assert_eq!(clock.state("x"), "active 00:10");
    clock.edit("x", |plan| plan.schedule = cron("x", "30 * * * *").schedule).expect("it is changed");
    assert_eq!(clock.state("x"), "active 00:30");
    clock.edit("x", |plan| plan.tz = "Asia/Kolkata".to_owned()).expect("it is changed");
    assert_eq!(clock.state("x"), "active 01:00", "half past there");
    let anchor = clock.town.now;
    clock.edit("x", |plan| plan.schedule = Schedule::Every { span: MINUTE, anchor }).expect("it is changed");
    assert_eq!(clock.state("x"), "active 00:05");
    clock.restart();
    assert_eq!(clock.job("x").plan.schedule, Schedule::Every { span: MINUTE, anchor });
    let n_told = clock.events("job.changed").len();
    clock.edit("x", |_| ()).expect("nothing is changed");
    assert_eq!(clock.events("job.changed").len(), n_told);
}

#[test]
fn a_job_with_another_name_keeps_what_is_known_of_it() {
    let mut clock = Clock::with(&[every("x", 10), every("y", 60)]);
    clock.fire_at("00:10");
    assert_eq!(refusal(clock.edit("x", |plan| plan.name = "y".to_owned())), exists("y"));
    clock.edit("x", |plan| plan.name = "z".to_owned()).expect("the name is free");
    assert!(clock.is_gone("x"));
    clock.fire_at("00:20");
    assert_eq!(clock.run_one("yes").text, "x");
    clock.fire_at("00:30");
    assert_eq!(clock.run_one("yes").session, "cron:z");
    assert_eq!(clock.log("z"), ["00:10 ok", "00:20 skipped", "00:30 ok"]);
}

#[test]
fn another_schedule_wakes_a_disabled_job_and_another_edit_does_not() {
    let mut clock = Clock::with(&[at("x", "00:10")]);
    clock.retries = 0;
    clock.fire_at("00:10");
    clock.fail_for_good();
    let why = "disabled its only run failed: exit code 1";
    assert_eq!(clock.state("x"), why);
    clock.edit("x", |plan| plan.payload = says("else", None)).expect("it is changed");
    assert_eq!(clock.state("x"), why);
    clock.edit("x", |plan| plan.schedule = at("x", "00:20").schedule).expect("it is changed");
    assert_eq!(clock.state("x"), "active 00:20");
    clock.fire_at("00:20");
    assert_eq!(clock.run_one("yes").text, "else");
    assert!(clock.is_gone("x"));
    assert_eq!(clock.log("x"), ["00:10 failed", "00:20 ok"]);
}

#[test]
fn a_paused_job_that_is_edited_stays_paused() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.pause("x");
    clock.edit("x", |plan| plan.schedule = every("x", 3).schedule).expect("it is changed");
    assert_eq!(clock.state("x"), "paused");
    assert_eq!(clock.fire_at("00:10").n_fired, 0);
    assert!(clock.resume("x"));
    assert_eq!(clock.state("x"), "active 00:12");
}

#[test]
fn a_paused_job_does_not_get_a_schedule_that_never_comes() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.pause("x");
    for schedule in [cron("x", "0 0 30 2 *").schedule, at("x", "00:00").schedule] {
        let refused = refusal(clock.edit("x", |plan| plan.schedule = schedule));
        assert!(matches!(refused, Refusal::Job(BadJob::NeverRuns { .. })), "{refused:?}");
    }
    let refused = refusal(clock.edit("x", |plan| plan.tz = "Mars/Olympus".to_owned()));
    assert!(matches!(refused, Refusal::Job(BadJob::NeverRuns { .. })), "{refused:?}");
    assert_eq!(clock.job("x").plan, every("x", 10));
}

#[test]
fn another_zone_alone_does_not_wake_a_disabled_job() {
    let mut clock = Clock::with(&[cron("x", "30 * * * *")]);
    (clock.retries, clock.failures_max) = (0, 1);
    clock.fire_at("00:30");
    clock.fail_for_good();
    let disabled = clock.state("x");
    assert!(disabled.starts_with("disabled"), "{disabled}");
    clock.edit("x", |plan| plan.tz = "Asia/Kolkata".to_owned()).expect("it is changed");
    assert_eq!((clock.state("x"), clock.job("x").failures), (disabled, 1));
    clock.resume("x");
    assert_eq!(clock.state("x"), "active 01:00", "half past there");
}

#[test]
fn what_came_while_a_job_was_paused_is_nobodys() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    clock.run_one("yes");
    assert!(clock.pause("x"));
    assert!(!clock.pause("x"), "it was already");
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None);
    assert_eq!(clock.fire_at("00:45").n_fired, 0);
    assert!(clock.resume("x"));
    assert!(!clock.resume("x"));
    assert_eq!(clock.fire(), gt_store::Fired::default());
    assert_eq!(clock.state("x"), "active 00:50");
    clock.fire_at("00:50");
    clock.run_one("yes");
    assert_eq!(clock.log("x"), ["00:10 ok", "00:50 ok"]);
    assert_eq!(clock.events("job.changed"), ["x", "x"]);
}

#[test]
fn a_job_that_is_paused_while_it_runs_ends_and_rests() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.pause("x");
    clock.fail(&run);
    assert_eq!(clock.log("x"), ["00:10 failed"], "nobody wants it to be tried again");
    assert_eq!((clock.state("x"), clock.job("x").failures), ("paused".to_owned(), 1));
    clock.resume("x");
    assert_eq!((clock.state("x"), clock.job("x").failures), ("active 00:20".to_owned(), 0), "it begins anew");
}

#[test]
fn what_came_while_nobody_looked_is_recorded_though_its_job_was_changed_before_anybody_did() {
    let plans = ["edited", "moved", "paused", "removed", "renamed"].map(|name| every(name, 10));
    let mut clock = Clock::with(&plans);
    clock.try_add(&[at("once", "00:15"), at("again", "00:15")]).expect("they are fine");
    clock.set("00:25");
    clock.edit("edited", |plan| plan.schedule = cron("x", "30 * * * *").schedule).expect("it is changed");
    clock.edit("moved", |plan| plan.tz = "Asia/Kolkata".to_owned()).expect("it is changed");
    clock.pause("paused");
    clock.remove("removed");
    clock.edit("renamed", |plan| plan.name = "other".to_owned()).expect("it is changed");
    clock.pause("once");
    clock.edit("again", |plan| plan.schedule = Schedule::At(time("01:00"))).expect("it is changed");
    for (name, done) in [("edited", "changed"), ("moved", "changed"), ("paused", "paused"), ("removed", "removed")] {
        assert_eq!(clock.log(name), ["00:10 missed", "00:20 missed"], "{name}");
        assert_eq!(clock.last(name).error, Some(format!("nobody saw to it before its job was {done}")));
    }
    assert_eq!((clock.log("once"), clock.log("again")), (vec!["00:15 missed".into()], vec!["00:15 missed".into()]));
    assert_eq!(clock.log("other"), [""; 0], "what keeps its times is seen to by the daemon");
    clock.resume("paused");
    clock.fire();
    assert_eq!(clock.log("paused").len() + clock.log("edited").len(), 4, "each once");
}

#[test]
fn many_slots_that_were_passed_over_have_one_record_together() {
    let mut clock = Clock::with(&[every("x", 1)]);
    clock.town.now += DAY;
    clock.pause("x");
    let fires = clock.fires("x");
    let first = fires.iter().find(|fire| fire.until.is_some()).expect("one stands for many");
    assert_eq!((fires.len(), first.slot), (1_001, time("00:01")));
    assert_eq!(first.until, Some(clock.town.now - MINUTE * 1_000));
}

#[test]
fn who_is_paused_or_removed_starts_nothing_that_waits_and_what_runs_goes_on() {
    for is_paused in [true, false] {
        let why = if is_paused { "its job was paused" } else { "its job was removed" };
        let mut clock = Clock::with(&[JobPlan { missed: Missed::All, may_overlap: true, ..every("x", 10) }]);
        clock.policy.lanes = clock.policy.lanes.clone().with([("cron".to_owned(), 1)]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        for slot in ["00:20", "00:30"] {
            clock.fire_at(slot);
        }
        assert_eq!(clock.log("x"), ["00:10 running", "00:20 running", "00:30 running"]);
        if is_paused {
            assert!(clock.pause("x"));
        } else {
            clock.remove("x");
        }
        assert_eq!(clock.log("x"), ["00:10 running", "00:20 cancelled", "00:30 cancelled"], "{why}");
        assert_eq!(clock.last("x").error.as_deref(), Some(why));
        clock.answer(&run, "yes");
        assert_eq!(clock.claim(), [], "{why}");
        assert_eq!(clock.log("x")[0], "00:10 ok");
        assert!(!is_paused || clock.state("x") == "paused");
    }
}

#[test]
fn a_job_that_is_paused_while_it_waits_to_be_tried_again_is_not() {
    for plan in [every("x", 10), at("x", "00:10")] {
        let mut clock = Clock::with(&[plan]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.fail(&run);
        clock.pause("x");
        assert_eq!(clock.fire_at("00:11").n_fired, 0);
        assert_eq!((clock.log("x"), clock.state("x")), (vec!["00:10 failed".to_owned()], "paused".to_owned()));
        assert!(clock.last("x").error.is_some_and(|why| why.ends_with("; its job was paused")));
    }
}

#[test]
fn a_one_shot_that_is_paused_while_it_waits_is_not_lost() {
    let mut clock = Clock::with_lane(1, &[at("first", "00:10"), at("x", "00:10")]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.pause("x");
    clock.answer(&run, "yes");
    assert_eq!(
        (clock.claim(), clock.log("x"), clock.state("x")),
        (vec![], vec!["00:10 cancelled".to_owned()], "paused".to_owned())
    );
    clock.edit("x", |plan| plan.schedule = at("x", "00:20").schedule).expect("it gets another time");
    clock.resume("x");
    clock.fire_at("00:20");
    clock.run_one("yes");
    assert!(clock.is_gone("x"));
}

#[test]
fn a_job_never_runs_beside_itself_whatever_is_changed_about_it_meanwhile() {
    let renamed: fn(&mut JobPlan) = |plan| plan.name = "z".to_owned();
    let moved: fn(&mut JobPlan) = |plan| plan.payload = says("x", Some("dm:a"));
    for (change, name) in [(renamed, "z"), (moved, "x")] {
        let mut clock = Clock::with_lane(4, &[JobPlan { missed: Missed::All, ..every("x", 10) }]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.edit("x", change).expect("it is changed");
        clock.fire_at("00:20");
        assert_eq!(clock.claim(), [], "it waits");
        clock.answer(&run, "yes");
        let turn = clock.run_one("yes");
        assert_eq!(turn.fire.map(|fire| (fire.job, fire.slot)), Some((name.to_owned(), time("00:20"))));
    }
    let mut clock = Clock::with_lane(4, &[JobPlan { may_overlap: true, missed: Missed::All, ..every("x", 10) }]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.edit("x", |plan| plan.may_overlap = false).expect("it is changed");
    clock.fire_at("00:20");
    assert_eq!(clock.claim(), [], "it waits");
    clock.answer(&run, "yes");
    clock.run_one("yes");
}

#[test]
fn several_jobs_are_paused_resumed_and_removed_all_or_none() {
    let mut clock = Clock::with(&[every("x", 10), every("y", 20)]);
    let whole = |clock: &Clock| clock.rows("SELECT name || state || coalesce(next_at, '') FROM job ORDER BY id");
    let n_told = |clock: &Clock| clock.events("job.changed").len() + clock.events("job.removed").len();
    let nobody =
        |answer: Result<(), StoreError>| assert!(matches!(answer, Err(StoreError::NoJob { .. })), "{answer:?}");
    let (with_stranger, both) = (["x", "nobody"], ["x", "job-2", "job-1", "y", "x"]);
    let before = whole(&clock);
    nobody(clock.does(|store, stamp| store.pause_jobs(&with_stranger, stamp)).map(drop));
    nobody(clock.does(|store, stamp| store.remove_jobs(&with_stranger, stamp)).map(drop));
    assert_eq!((whole(&clock), n_told(&clock)), (before, 0));

    let names = |jobs: &[(gt_store::Job, bool)]| {
        jobs.iter().map(|(job, is_new)| format!("{} {is_new}", job.name())).collect::<Vec<_>>()
    };
    let paused = clock.does(|store, stamp| store.pause_jobs(&both, stamp)).expect("they are there");
    assert_eq!(names(&paused), ["x true", "y true"], "who is named twice is meant once");
    let before = whole(&clock);
    nobody(clock.does(|store, stamp| store.resume_jobs(&with_stranger, stamp)).map(drop));
    assert_eq!((whole(&clock), n_told(&clock)), (before, 2));
    let resumed = clock.does(|store, stamp| store.resume_jobs(&both, stamp)).expect("they are there");
    assert_eq!(names(&resumed), ["x true", "y true"]);

    let removed = clock.does(|store, stamp| store.remove_jobs(&both, stamp)).expect("they are there");
    assert_eq!(removed.iter().map(gt_store::Job::name).collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!((whole(&clock), n_told(&clock)), (Vec::new(), 6));
}

#[test]
fn a_removed_job_leaves_its_log_and_what_runs_goes_on() {
    for is_answered in [true, false] {
        let mut clock = Clock::with(&[every("x", 10)]);
        clock.fire_at("00:10");
        let run = clock.start_one().run;
        clock.remove("x");
        assert!(clock.is_gone("x"));
        assert_eq!(clock.log("x"), ["00:10 running"]);
        clock.end_so(&run, is_answered);
        assert_eq!(clock.log("x"), [if is_answered { "00:10 ok" } else { "00:10 failed" }], "nothing is tried again");
        assert_eq!(clock.fire_at("01:00"), gt_store::Fired::default());
        assert_eq!(clock.events("job.removed"), ["x"]);
    }
}

#[test]
fn what_would_be_tried_again_is_given_up_with_its_job() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.fail(&run);
    assert!(clock.last("x").retry_at.is_some());
    clock.remove("x");
    let Fire { error, retry_at, ended_at, .. } = clock.last("x");
    assert_eq!(error.as_deref(), Some("exit code 1; its job was removed"));
    assert_eq!((retry_at, ended_at), (None, Some(clock.town.now)));
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None);
}

#[test]
fn a_name_finds_the_log_of_all_that_had_it_and_an_id_that_of_one() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    clock.run_one("yes");
    clock.remove("x");
    assert_eq!(clock.log("job-1"), ["00:10 ok"], "by its id, though it is gone");
    clock.try_add(&[every("x", 10)]).expect("the name is free");
    assert_eq!((clock.log("x"), clock.log("job-2")), (vec!["00:10 ok".to_owned()], Vec::new()));
    clock.fire_at("00:20");
    clock.run_one("yes");
    assert_eq!((clock.log("x"), clock.log("job-2")), (words_of(&["00:10 ok", "00:20 ok"]), words_of(&["00:20 ok"])));
    assert_eq!(clock.fires("x").iter().map(Fire::job_id).collect::<Vec<_>>(), ["job-1", "job-2"]);
    let newest = FireFilter { of: FiresOf::One("x".to_owned()), limit: Some(1), ..FireFilter::default() };
    assert_eq!(clock.town.store.fires(&newest).expect("it answers")[0].slot, time("00:20"));
    let all = FireFilter { of: FiresOf::Jobs, limit: Some(9), ..FireFilter::default() };
    assert_eq!(clock.town.store.fires(&all).expect("it answers").len(), 2);
}

#[test]
fn who_has_another_name_by_now_takes_its_log_along() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    clock.run_one("yes");
    clock.edit("x", |plan| plan.name = "z".to_owned()).expect("the name is free");
    assert_eq!((clock.log("x"), clock.log("z")), (words_of(&["00:10 ok"]), words_of(&["00:10 ok"])));
    clock.try_add(&[every("x", 10)]).expect("the name is free");
    assert_eq!((clock.log("x"), clock.log("z")), (words_of(&[]), words_of(&["00:10 ok"])));
}

fn words_of(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_job_is_run_by_hand_whatever_its_schedule_says() {
    let mut clock = Clock::with(&[every("x", 10), every("p", 10)]);
    clock.pause("p");
    clock.set("00:03");
    let fire = clock.try_now("x").expect("it is free");
    assert_eq!((fire.is_manual, fire.slot, words(fire.slot)), (true, clock.town.now, "00:03".to_owned()));
    clock.run_one("yes");
    clock.try_now("job-2").expect("also while it is paused");
    clock.run_one("yes");
    assert_eq!((clock.state("x"), clock.state("p")), ("active 00:10".to_owned(), "paused".to_owned()));
    assert_eq!((clock.log("x"), clock.log("p")), (vec!["00:03 ok".to_owned()], vec!["00:03 ok".to_owned()]));
    assert!(matches!(clock.try_now("q"), Err(StoreError::NoJob { .. })));
}

#[test]
fn a_job_that_runs_is_not_run_by_hand_unless_it_may_run_beside_itself() {
    let twice = JobPlan { may_overlap: true, ..every("twice", 10) };
    let mut clock = Clock::with_lane(9, &[every("once", 10), twice]);
    clock.fire_at("00:10");
    for (is_started, phase) in [(false, "waiting"), (true, "running")] {
        if is_started {
            clock.start();
        }
        assert_eq!(refusal(clock.try_now("once")), Refusal::Job(BadJob::Runs { name: "once".to_owned() }), "{phase}");
    }
    let slots: Vec<Timestamp> = (0..2).map(|_| clock.try_now("twice").expect("it may").slot).collect();
    assert!(slots[0] > time("00:10") && slots[1] > slots[0], "each is a slot of its own: {slots:?}");
    assert_eq!(clock.start().len(), 2);
    assert_eq!(clock.town.store.live_runs().expect("it answers").len(), 4);
}

#[test]
fn a_slot_that_comes_while_a_job_is_run_by_hand_is_left_out() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.set("00:09");
    clock.try_now("x").expect("it is free");
    let run = clock.start_one().run;
    clock.fire_at("00:10");
    clock.answer(&run, "yes");
    clock.fire_at("00:20");
    clock.run_one("yes");
    assert_eq!(clock.log("x"), ["00:09 ok", "00:10 skipped", "00:20 ok"]);
    assert_eq!(clock.fires("x")[1].error.as_deref(), Some("the run of 2026-01-01T00:09:00Z was not over"));
}

#[test]
fn whoever_runs_a_job_at_its_very_time_has_run_its_slot() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.set("00:10");
    clock.try_now("x").expect("it is free");
    clock.fire();
    clock.run_one("yes");
    assert_eq!((clock.log("x"), clock.state("x")), (vec!["00:10 ok".to_owned()], "active 00:20".to_owned()));
}

#[test]
fn what_failed_by_hand_is_tried_again_and_does_not_count() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.pause("x");
    clock.try_now("x").expect("it is free");
    assert_eq!(clock.fail_for_good(), 4, "somebody wants it, though its slots are left out");
    assert_eq!((clock.job("x").failures, clock.state("x")), (0, "paused".to_owned()));
}

#[test]
fn however_often_somebody_tries_a_job_by_hand_its_own_time_comes() {
    let mut clock = Clock::with(&[job("once", Schedule::At(time("01:00"))), every("x", 60)]);
    (clock.retries, clock.failures_max) = (0, 2);
    for name in ["once", "x"].repeat(3) {
        clock.try_now(name).expect("it is free");
        clock.fail_for_good();
    }
    assert_eq!((clock.state("once"), clock.state("x")), ("active 01:00".to_owned(), "active 01:00".to_owned()));
    assert_eq!(clock.fire_at("01:00").n_fired, 2);
}

#[test]
fn the_log_is_forgotten_as_far_as_it_is_over_and_old() {
    let mut clock = Clock::with_lane(9, &[every("x", 10), every("y", 10), every("z", 10)]);
    clock.fire_at("00:10");
    let runs: Vec<String> = clock.start().into_iter().map(|turn| turn.run).collect();
    clock.answer(&runs[0], "yes");
    clock.fail(&runs[1]);
    clock.set("00:19");
    let prune =
        |clock: &mut Clock, before| clock.does(|store, stamp| store.prune_fires(before, stamp)).expect("it does");
    let told = clock.rows("SELECT count(*) || '' FROM event");
    assert_eq!(prune(&mut clock, time("00:10")), 0, "it ended just then");
    assert_eq!(prune(&mut clock, time("00:11")), 1);
    assert_eq!(
        (clock.log("x"), clock.log("y"), clock.log("z")),
        (vec![], vec!["00:10 running".into()], vec!["00:10 running".into()])
    );
    assert_eq!(clock.rows("SELECT count(*) || '' FROM event"), told);
    clock.answer(&runs[2], "yes");
    clock.fire();
    clock.run_one("yes");
    assert_eq!(clock.log("y")[0], "00:10 ok 2", "what was kept goes on");
}

#[test]
fn the_next_time_to_look_is_the_first_slot_or_the_first_that_is_tried_again() {
    let mut clock = Clock::new();
    let next = |clock: &mut Clock| clock.town.store.next_job_at().expect("it answers");
    assert_eq!(next(&mut clock), None);
    clock.try_add(&[every("x", 10), every("y", 30)]).expect("they are fine");
    assert_eq!(next(&mut clock), Some(time("00:10")));
    clock.fire_at("00:10");
    assert_eq!(next(&mut clock), Some(time("00:20")), "what runs is not waited for");
    let run = clock.start_one().run;
    clock.fail(&run);
    assert_eq!(next(&mut clock), clock.last("x").retry_at);
    assert!(next(&mut clock).is_some_and(|at| at < time("00:20")));
    clock.remove("x");
    assert_eq!(next(&mut clock), Some(time("00:30")));
    clock.pause("y");
    assert_eq!(next(&mut clock), None);
}

#[test]
fn a_rehearsal_shows_all_and_leaves_nothing() {
    let mut clock = Clock::with(&[every("x", 10)]);
    let whole = |clock: &Clock| {
        let tables = ["job", "fire", "turn", "session", "event", "mail", "notice", "outbox"];
        tables.map(|table| clock.rows(&format!("SELECT count(*) || ' ' || coalesce(max(rowid), 0) FROM {table}")))
    };
    let (before, state) = (whole(&clock), clock.job("x"));
    clock.set("00:10");
    let mut store = clock.open().rehearse().expect("nobody else writes");
    let (stamp, policy, sessions) = (clock.stamp(), clock.policy.clone(), clock.sessions);
    let rules = clock.rules(&policy, &sessions);
    let mut ask = |_: &gt_core::job::Beat| clock.word.clone();
    assert_eq!(store.add_jobs(&[every("y", 30)], &stamp).expect("it is fine").len(), 1);
    assert_eq!(store.fire_due(&rules, &mut ask, &stamp).expect("it fires").n_fired, 1);
    assert!(store.fire_now("y", &rules, &mut ask, &stamp).expect("it fires").is_manual);
    store.edit_job("x", |plan| plan.name = "z".to_owned(), &stamp).expect("it is changed");
    store.remove_job("z", &stamp).expect("it goes");
    assert_eq!(store.jobs(true, None).expect("it answers").len(), 1);
    drop(store);
    assert_eq!((whole(&clock), clock.job("x")), (before, state));
}
