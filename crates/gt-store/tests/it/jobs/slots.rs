//! Which slots fire: each at most once, whoever runs the town and whatever the clock does, and none without a record.
//! // SPEC K2, K3

use std::collections::BTreeSet;

use gt_core::job::{FireStatus, Missed, Schedule};
use gt_store::{Fire, JobPlan, Stamp};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::jobs_clock::{Clock, DAY, HOUR, MINUTE, SECOND, cron, every, job, says, time};

/// Every slot of a job in a span, as the schedule itself has them.
pub(crate) fn slots(clock: &mut Clock, name: &str, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let schedule = clock.job(name).plan.schedule;
    let next = |at: &Timestamp| schedule.next(*at, &TimeZone::UTC).filter(|next| *next <= until);
    std::iter::successors(next(&after), next).collect()
}

/// Whether these are all the records that a slot may have: one, or that it was missed and what then came of it.
pub(crate) fn are_of_one_slot(records: &[&Fire]) -> bool {
    match records {
        [_] => true,
        [missed, late] => {
            let runs = !matches!(late.status, FireStatus::Missed | FireStatus::Skipped);
            missed.status == FireStatus::Missed && missed.until.is_none() && runs
        }
        _ => false,
    }
}

/// Each slot of a span has its records: its own, or one that stands for many.
pub(crate) fn check_records(clock: &mut Clock, name: &str, after: Timestamp, until: Timestamp) {
    let fires = clock.fires(name);
    for slot in slots(clock, name, after, until) {
        let covers =
            |fire: &&Fire| fire.slot == slot || fire.slot < slot && fire.until.is_some_and(|until| until >= slot);
        let records: Vec<&Fire> = fires.iter().filter(covers).collect();
        assert!(are_of_one_slot(&records), "{slot}: {records:#?}");
    }
}

#[test]
fn a_slot_fires_once_however_often_somebody_looks() {
    let mut clock = Clock::with(&[every("x", 10)]);
    assert_eq!(clock.fire_at("00:09:59").n_fired, 0);
    assert_eq!(clock.fire_at("00:10").n_fired, 1);
    assert_eq!(clock.fire().n_fired, 0);
    clock.run_one("yes");
    assert_eq!(clock.fire_at("00:10:30").n_fired, 0);
    clock.restart();
    assert_eq!(clock.fire().n_fired, 0, "by another daemon");
    clock.set("00:09");
    for again in ["paused", "edited"] {
        if again == "paused" {
            clock.pause("x");
            clock.resume("x");
        } else {
            clock.edit("x", |plan| plan.schedule = every("x", 3).schedule).expect("it is changed");
            clock.edit("x", |plan| plan.schedule = every("x", 10).schedule).expect("it is changed");
        }
        assert_eq!(clock.state("x"), "active 00:10", "{again}: by a clock that was set back it comes again");
        assert_eq!(clock.fire_at("00:10").n_fired, 0, "{again}");
        assert_eq!(clock.state("x"), "active 00:20");
        clock.set("00:09");
    }
    assert_eq!(clock.log("x"), ["00:10 ok"]);
}

#[test]
fn however_many_run_the_town_each_slot_fires_once() {
    const JOBS: usize = 12;
    const MINUTES: i32 = 25;
    let names: Vec<String> = (0..JOBS).map(|n| format!("x{n}")).collect();
    let plans: Vec<JobPlan> = names.iter().map(|name| JobPlan { may_overlap: true, ..every(name, 1) }).collect();
    let mut clock = Clock::with(&plans);
    let (policy, sessions) = (clock.policy.clone(), clock.sessions);
    let rules = clock.rules(&policy, &sessions);
    let stores: Vec<_> = (0..3).map(|_| clock.open()).collect();
    let n_fired: usize = std::thread::scope(|scope| {
        let work = |(n, mut store): (usize, gt_store::Store)| {
            let rules = rules.clone();
            scope.spawn(move || {
                let look = |minute: i32| {
                    // One of them is always a little ahead, and all of them look twice.
                    let now = time("00:00") + MINUTE * (minute / 2) + SECOND * i32::try_from(n).expect("it is small");
                    let stamp = Stamp::new(now, format!("daemon-{n}"));
                    store.fire_due(&rules, &mut |_| unreachable!("no heart beats"), &stamp).expect("it fires").n_fired
                };
                (0..=2 * MINUTES + 1).map(look).sum::<usize>()
            })
        };
        let all: Vec<_> = stores.into_iter().enumerate().map(work).collect();
        all.into_iter().map(|one| one.join().expect("it does not panic")).sum()
    });
    clock.town.now = time("00:00") + MINUTE * MINUTES + MINUTE;
    clock.check();
    assert_eq!(n_fired, JOBS * MINUTES as usize);
    assert_eq!(clock.rows("SELECT count(*) || '' FROM turn"), [n_fired.to_string()]);
    for name in &names {
        assert_eq!(clock.fires(name).len(), MINUTES as usize);
        check_records(&mut clock, name, time("00:00"), time("00:25"));
    }
}

#[test]
fn many_jobs_are_fired_in_parts_and_none_is_forgotten() {
    let plans: Vec<JobPlan> = (0..300).map(|n| every(&format!("x{n}"), 10)).collect();
    let mut clock = Clock::with(&plans);
    let parts: Vec<(usize, bool)> = (0..4).map(|_| clock.fire_at("00:10")).map(|f| (f.n_fired, f.is_more)).collect();
    assert_eq!(parts, [(128, true), (128, true), (44, false), (0, false)]);
}

/// What becomes of a job that comes every ten minutes when nobody is there from `00:00` on until then.
fn down_until(clock: &str, missed: Missed, grace: Option<SignedDuration>) -> String {
    let mut town = Clock::with_lane(9, &[JobPlan { missed, grace, ..every("x", 10) }]);
    town.set(clock);
    town.restart();
    let fired = town.fire();
    let n_missed: usize = fired.missed.iter().map(|(_, n)| n).sum();
    let log = town.log("x");
    assert_eq!(log.iter().filter(|line| line.ends_with("missed")).count(), n_missed, "{log:?}");
    assert_eq!(town.events("job.missed").len(), n_missed);
    assert_eq!(log.iter().filter(|line| line.ends_with("running")).count(), fired.n_fired);
    let now = town.town.now;
    check_records(&mut town, "x", time("00:00"), now);
    assert_eq!(town.fire(), gt_store::Fired::default());
    log.join(", ")
}

#[test]
fn what_was_missed_is_made_up_for_as_the_job_says_and_always_recorded() {
    let short = Some(MINUTE * 4);
    let cases = [
        ("00:09", Missed::Skip, None, ""),
        ("00:09", Missed::Once, None, ""),
        ("00:09", Missed::All, None, ""),
        ("00:15", Missed::Skip, None, "00:10 missed"),
        ("00:15", Missed::Once, None, "00:10 missed, 00:10 running"),
        ("00:15", Missed::Once, short, "00:10 missed"),
        ("00:14", Missed::Once, short, "00:10 missed, 00:10 running"),
        ("00:15", Missed::All, short, "00:10 missed, 00:10 running"),
        ("00:45", Missed::Skip, None, "00:10 missed, 00:20 missed, 00:30 missed, 00:40 missed"),
        ("00:45", Missed::Once, None, "00:10 missed, 00:20 missed, 00:30 missed, 00:40 missed, 00:40 running"),
        ("00:45", Missed::Once, short, "00:10 missed, 00:20 missed, 00:30 missed, 00:40 missed"),
        (
            "00:35",
            Missed::All,
            None,
            "00:10 missed, 00:10 running, 00:20 missed, 00:20 running, 00:30 missed, 00:30 running",
        ),
    ];
    for (clock, missed, grace, expected) in cases {
        assert_eq!(down_until(clock, missed, grace), expected, "{clock} {missed:?} {grace:?}");
    }
}

#[test]
fn the_usual_grace_holds_where_a_job_has_none_of_its_own() {
    let mut clock = Clock::with(&[JobPlan { grace: Some(HOUR * 9), ..every("long", 180) }, every("usual", 180)]);
    clock.set("04:01");
    clock.restart();
    clock.fire();
    assert_eq!(clock.log("long"), ["03:00 missed", "03:00 running"]);
    assert_eq!(clock.log("usual"), ["03:00 missed"]);
    let error = clock.last("usual").error.expect("it says why");
    assert_eq!(error, "no daemon watched the clock then, and by now it is too late: its grace is 1h");
}

#[test]
fn a_slot_is_missed_by_who_comes_too_late_to_it_though_somebody_was_there() {
    let skip = JobPlan { missed: Missed::Skip, ..every("x", 10) };
    let mut clock = Clock::with(std::slice::from_ref(&skip));
    assert_eq!(clock.fire_at("00:11").n_fired, 1, "held up for a minute");
    let mut clock = Clock::with(std::slice::from_ref(&skip));
    clock.fire_at("00:11:01");
    assert_eq!(clock.log("x"), ["00:10 missed"]);
    let mut clock = Clock::with(&[skip]);
    clock.set("00:10:01");
    clock.restart();
    clock.fire();
    assert_eq!(clock.log("x"), ["00:10 missed"], "nobody was there");
}

#[test]
fn of_more_missed_minutes_than_anybody_counts_the_oldest_share_a_record() {
    for (n, n_records) in [(999, 999), (1000, 1000), (1001, 1001), (1002, 1001), (4321, 1001), (600_000, 1001)] {
        let mut clock = Clock::with(&[cron("x", "* * * * *")]);
        clock.town.now += MINUTE * n + SECOND;
        clock.restart();
        assert_eq!(clock.fire().n_fired, 1);
        let mut fires = clock.fires("x");
        let late = fires.pop().expect("one has fired");
        assert_eq!((late.slot, late.status), (time("00:00") + MINUTE * n, FireStatus::Running));
        assert_eq!(fires.len(), n_records, "of {n}");
        let until = fires[0].until.unwrap_or(fires[0].slot);
        assert_eq!((fires[0].slot, until + MINUTE), (time("00:01"), fires[1].slot), "of {n}");
        assert!(fires[2..].iter().zip(&fires[1..]).all(|(one, before)| one.slot == before.slot + MINUTE));
        assert_eq!(fires.last().map(|fire| fire.slot), Some(time("00:00") + MINUTE * n));
        assert!(fires.iter().all(|fire| fire.status == FireStatus::Missed));
    }
}

#[test]
fn of_many_missed_slots_a_hundred_run_where_all_are_to() {
    let mut clock = Clock::with(&[JobPlan { missed: Missed::All, ..every("x", 1) }]);
    clock.town.now += DAY + SECOND;
    clock.restart();
    assert_eq!(clock.fire().n_fired, 100);
    let now = clock.town.now;
    check_records(&mut clock, "x", time("00:00"), now);
    let fires = clock.fires("x");
    let made_up = fires[fires.len() - 200..].chunks(2);
    let statuses = made_up.map(|pair| (pair[0].status, pair[1].status));
    assert!(statuses.into_iter().all(|pair| pair == (FireStatus::Missed, FireStatus::Running)));
    assert_eq!(
        fires[fires.len() - 201].error.as_deref(),
        Some("no daemon watched the clock then; of so many only 100 are made up for")
    );
    clock.town.now += MINUTE;
    clock.fire();
    assert_eq!(clock.last("x").error.as_deref(), Some("100 earlier ones were not over"));
    for _ in 0..100 {
        clock.run_one("yes");
    }
    let n_ok = clock.fires("x").iter().filter(|fire| fire.status == FireStatus::Ok).count();
    assert_eq!((n_ok, clock.claim().len()), (100, 0));
}

#[test]
fn a_job_never_runs_beside_itself() {
    let mut clock = Clock::with_lane(9, &[every("x", 10)]);
    clock.fire_at("00:10");
    assert_eq!(clock.fire_at("00:20").skipped[0].1, "the one of 2026-01-01T00:10:00Z had not begun yet");
    let run = clock.start_one().run;
    assert_eq!(clock.fire_at("00:30").skipped[0].1, "the run of 2026-01-01T00:10:00Z was not over");
    clock.fail(&run);
    let retry_at = clock.last("x").retry_at;
    assert_eq!(retry_at, None, "that is of the skipped one");
    clock.fire_at("00:40");
    let run = clock.start_one().run;
    clock.answer(&run, "yes");
    clock.fire_at("00:50");
    clock.run_one("yes");
    let expected = ["00:10 ok 2", "00:20 skipped", "00:30 skipped", "00:40 skipped", "00:50 ok"];
    assert_eq!(clock.log("x"), expected, "also while it waits to be tried again");
}

#[test]
fn a_job_that_may_run_beside_itself_does() {
    let mut clock = Clock::with_lane(9, &[JobPlan { may_overlap: true, ..every("x", 10) }]);
    let mut runs = Vec::new();
    for slot in ["00:10", "00:20", "00:30"] {
        clock.fire_at(slot);
        runs.push(clock.start_one());
    }
    assert_eq!(clock.town.store.live_runs().expect("it answers").len(), 3);
    let sessions: BTreeSet<&String> = runs.iter().map(|turn| &turn.session).collect();
    assert_eq!(sessions.len(), 3, "each in a session of its own");
    for turn in runs.iter().rev() {
        clock.answer(&turn.run, "yes");
    }
    assert_eq!(clock.log("x"), ["00:10 ok", "00:20 ok", "00:30 ok"]);
}

#[test]
fn where_all_slots_are_to_run_they_wait_in_line() {
    let mut clock = Clock::with_lane(9, &[JobPlan { missed: Missed::All, ..every("x", 10) }]);
    clock.set("00:35");
    clock.restart();
    assert_eq!(clock.fire().n_fired, 3);
    let first = clock.start_one();
    clock.fire_at("00:40");
    clock.answer(&first.run, "yes");
    let slots: Vec<_> = (0..3).map(|_| clock.run_one("yes").fire.expect("the clock brought it").slot).collect();
    assert_eq!(slots, [time("00:20"), time("00:30"), time("00:40")]);
}

#[test]
fn in_a_group_too_a_job_runs_one_at_a_time() {
    let plan = JobPlan { missed: Missed::All, payload: says("x", Some("group:ops")), ..every("x", 10) };
    let mut clock = Clock::with_lane(9, &[plan]);
    clock.set("00:35");
    clock.restart();
    assert_eq!(clock.fire().n_fired, 3);
    for slot in ["00:10", "00:20", "00:30"] {
        assert_eq!(clock.run_one("yes").fire.map(|fire| fire.slot), Some(time(slot)));
    }
}

#[test]
fn a_job_that_fires_late_does_not_drift() {
    let mut clock = Clock::with(&[every("x", 10), JobPlan { missed: Missed::All, ..every("all", 7) }]);
    for minute in 0..60 {
        clock.town.now = time("00:00") + MINUTE * minute + SECOND * 37;
        clock.fire();
        clock.answer_all();
    }
    assert_eq!(clock.log("x"), ["00:10 ok", "00:20 ok", "00:30 ok", "00:40 ok", "00:50 ok"]);
    assert_eq!(clock.log("all").len(), 8);
    assert_eq!((clock.state("x"), clock.state("all")), ("active 01:00".into(), "active 01:03".into()));
    clock.town.now += HOUR * 1000 + SECOND * 3;
    clock.restart();
    clock.fire();
    let next = clock.job("all").next_at.expect("it is active");
    assert_eq!(next.duration_since(time("00:00")).as_secs() % 420, 0);
}

#[test]
fn an_anchor_counts_as_in_the_originals_tests() {
    // (anchor, distance, now, next), in milliseconds. // facts/goclaw.md §2.2
    let cases: [(i64, i64, i64, i64); 5] = [
        (1000, 5000, 6500, 11000),
        (2000, 5000, 6500, 7000),
        (1000, 5000, 6000, 11000),
        (1000, 5000, 22000, 26000),
        (0, 1000, 86_400_000, 86_401_000),
    ];
    for (anchor, span, now, next) in cases {
        let time = |millis: i64| time("00:00") + SignedDuration::from_millis(millis);
        let plan = job("x", Schedule::Every { span: SignedDuration::from_millis(span), anchor: time(anchor) });
        let mut clock = Clock::new();
        clock.town.now = time(anchor);
        clock.try_add(&[plan]).expect("it is fine");
        clock.town.now = time(now);
        clock.fire();
        assert_eq!(clock.job("x").next_at, Some(time(next)), "{anchor} {span} {now}");
    }
}

#[test]
fn a_clock_that_is_set_forward_and_back_by_an_hour_fires_no_slot_twice_and_loses_none() {
    for missed in Missed::ALL {
        let mut clock = Clock::with_lane(9, &[JobPlan { missed, ..every("x", 5) }]);
        let mut seen = Vec::new();
        let mut look = |clock: &mut Clock, at: &str| {
            clock.set(at);
            clock.fire();
            seen.extend(clock.answer_all().into_iter().map(|turn| turn.fire.expect("the clock brought it").slot));
        };
        look(&mut clock, "00:05");
        clock.set("01:07");
        clock.restart();
        look(&mut clock, "01:07");
        assert_eq!(clock.state("x"), "active 01:10");
        for at in ["00:07", "00:10", "00:59", "01:05", "01:10", "01:15"] {
            clock.set(at);
            clock.since = clock.since.min(clock.town.now);
            assert_eq!(
                clock.does(|store, stamp| store.heed_clock(jiff::SignedDuration::ZERO, stamp)).expect("it answers"),
                0
            );
            look(&mut clock, at);
        }
        check_records(&mut clock, "x", time("00:00"), time("01:15"));
        let unique: BTreeSet<_> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "{seen:?}");
        let expected = match missed {
            Missed::Skip => 3,
            Missed::Once => 4,
            Missed::All => 15,
        };
        assert_eq!(seen.len(), expected, "{missed:?}: {seen:?}");
    }
}

/// Whoever comes back after a long time has much to write down, and lets others write in between.
#[test]
fn many_missed_slots_of_many_jobs_are_not_one_transaction() {
    let names: Vec<String> = (0..6).map(|n| format!("job{n}")).collect();
    let plans: Vec<JobPlan> = names.iter().map(|name| JobPlan { missed: Missed::Skip, ..every(name, 1) }).collect();
    let mut clock = Clock::with(&plans);
    clock.town.now += HOUR * 15;
    clock.since = clock.town.now;
    let mut parts = Vec::new();
    loop {
        let fired = clock.fire();
        parts.push(fired.missed.len());
        if !fired.is_more {
            break;
        }
    }
    assert_eq!(parts, [3, 3]);
    let n_records = clock.rows("SELECT count(*) || '' FROM fire WHERE status = 'missed'");
    assert_eq!(n_records, [(6 * (15 * 60 - 1)).to_string()], "and the last of each comes in time");
}
