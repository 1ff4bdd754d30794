//! What becomes of failures: which are tried again and when, what they cost, and when a job is given up. // SPEC K4

use gt_core::agent::{Told, Usage, Vendor};
use gt_core::job::{FireStatus, Missed, Payload};
use gt_core::run::Outcome;
use gt_store::{Ended, Fault, Fire, JobPlan, Telling};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::jobs_clock::{Clock, HOUR, MINUTE, SECOND, at, every, runs, time};
use crate::yard::ended;

/// The end of a run that has told this.
pub(crate) fn told(clock: &Clock, run: &str, line: &Value) -> Ended {
    let mut told = Told::default();
    told.hear_line(Vendor::Claude, &line.to_string(), clock.town.now);
    let telling = Telling { run: run.to_owned(), vendor: Vendor::Claude, told };
    Ended { told: Some(telling), ..ended(run) }
}

fn refused(status: u16) -> Value {
    json!({ "type": "result", "is_error": true, "api_error_status": status, "result": "no" })
}

/// How long the last fire of a job waits to be tried again.
fn wait(clock: &mut Clock, name: &str) -> SignedDuration {
    let at = clock.last(name).retry_at.expect("it is tried again");
    at.duration_since(clock.town.now)
}

#[test]
fn a_failure_is_tried_again_three_times_with_growing_waits_and_then_it_is_one() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.fire_at("01:00");
    for (attempt, seconds) in [(1, 2), (2, 4), (3, 8)] {
        let turn = clock.start_one();
        assert_eq!(turn.fire.as_ref().map(|fire| (fire.attempt, fire.slot)), Some((attempt, time("01:00"))));
        clock.town.now += SECOND * 7;
        clock.fail(&turn.run);
        let (wait, whole) = (wait(&mut clock, "x"), SECOND * seconds);
        assert!(wait >= whole * 3 / 4 && wait <= whole * 5 / 4, "{wait} after attempt {attempt}");
        clock.town.now += wait - SignedDuration::from_micros(1);
        assert_eq!((clock.fire().n_fired, clock.claim().len()), (0, 0), "not before its time");
        clock.town.now += SignedDuration::from_micros(1);
        assert_eq!(clock.fire().n_fired, 1);
        assert_eq!(clock.fire().n_fired, 0, "once");
    }
    let turn = clock.start_one();
    clock.fail(&turn.run);
    let Fire { status, attempt, error, started_at, retry_at, earlier, .. } = clock.last("x");
    assert_eq!((status, attempt, retry_at), (FireStatus::Failed, 4, None));
    let told: Vec<_> = earlier.iter().map(|attempt| (attempt.number, attempt.error.as_deref())).collect();
    assert_eq!(told, [1, 2, 3].map(|number| (number, Some("exit code 1"))));
    for attempt in &earlier {
        let took = attempt.ended_at.expect("it ended").duration_since(attempt.started_at.expect("it began"));
        assert_eq!((took, attempt.run.is_some()), (SECOND * 7, true));
    }
    assert_eq!((error.as_deref(), started_at), (Some("exit code 1"), Some(time("01:00"))));
    assert_eq!((clock.job("x").failures, clock.job("x").last_status), (1, Some(FireStatus::Failed)));
    assert_eq!((clock.events("job.fired"), clock.events("job.ended")), (vec!["x".to_owned()], vec!["x".to_owned()]));
    assert_eq!(clock.state("x"), "active 02:00");
}

#[test]
fn no_wait_is_longer_than_half_a_minute_and_a_quarter_and_they_differ() {
    let plan = |name: &str| JobPlan { retries: Some(9), ..every(name, 60) };
    let mut clock = Clock::with(&[plan("x"), plan("y")]);
    let mut waits = Vec::new();
    clock.fire_at("01:00");
    for _ in 0..2 {
        let turn = clock.start_one();
        clock.fail(&turn.run);
    }
    assert_ne!(wait(&mut clock, "x"), wait(&mut clock, "y"), "not all at once");
    clock.remove("y");
    for _ in 0..8 {
        let wait_x = wait(&mut clock, "x");
        clock.town.now += wait_x;
        clock.fire();
        let turn = clock.start_one();
        clock.fail(&turn.run);
        waits.push(wait(&mut clock, "x"));
    }
    assert!(waits[4..].iter().all(|wait| *wait >= SECOND * 45 / 2 && *wait <= SECOND * 75 / 2), "{waits:?}");
}

#[test]
fn who_waits_to_be_tried_again_waits_though_others_come() {
    let mut clock = Clock::with(&[every("x", 60), at("y", "01:00:01")]);
    clock.fire_at("01:00");
    let run = clock.start_one().run;
    clock.fail(&run);
    assert_eq!(clock.fire_at("01:00:01").n_fired, 1);
    assert_eq!(clock.run_one("yes").text, "y");
    assert!(clock.last("x").retry_at.is_some());
}

#[test]
fn a_job_may_have_a_number_of_its_own_and_none() {
    for (own, n) in [(None, 4), (Some(0), 1), (Some(1), 2)] {
        let mut clock = Clock::with(&[JobPlan { retries: own, ..every("x", 10) }]);
        clock.fire_at("00:10");
        assert_eq!(clock.fail_for_good(), n, "{own:?}");
    }
}

#[test]
fn what_goes_well_the_second_time_is_no_failure() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    let turn = clock.start_one();
    clock.fail(&turn.run);
    assert_eq!(clock.last("x").error.as_deref(), Some("exit code 1"), "whoever looks sees why it waits");
    clock.fire_at("00:11");
    clock.run_one("yes");
    let Fire { status, error, .. } = clock.last("x");
    assert_eq!((status, error, clock.job("x").failures), (FireStatus::Ok, None, 0));
}

/// One run of a job, and how it ends; says how it then stands.
fn after(payload: Payload, end: impl FnOnce(&mut Clock, &str)) -> String {
    let mut clock = Clock::with(&[JobPlan { payload, ..every("x", 10) }]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    end(&mut clock, &run);
    let fire = clock.last("x");
    assert_eq!(fire.retry_at.is_some(), fire.status == FireStatus::Running);
    assert!(fire.error.is_some_and(|error| !error.is_empty()));
    fire.status.as_str().to_owned()
}

#[test]
fn only_what_may_go_better_soon_is_tried_again() {
    let agent = || crate::jobs_clock::says("x", None);
    assert_eq!(after(agent(), |clock, run| clock.stop(run, Outcome::TimedOut)), "timeout");
    assert_eq!(after(agent(), |clock, run| clock.stop(run, Outcome::Stopped)), "cancelled");
    for (status, word) in
        [(401, "failed"), (402, "failed"), (413, "failed"), (429, "running"), (529, "running"), (400, "running")]
    {
        let end = |clock: &mut Clock, run: &str| clock.end(told(clock, run, &refused(status)));
        assert_eq!(after(agent(), end), word, "{status}");
    }
    let exits =
        |payload: Payload, code| after(payload, |clock, run| clock.end(Ended { code: Some(code), ..ended(run) }));
    for (code, word) in
        [(1, "running"), (2, "running"), (3, "running"), (126, "failed"), (127, "failed"), (255, "running")]
    {
        assert_eq!(exits(runs("x"), code), word, "a command that exits with {code}");
    }
    let sling = || Payload::Sling { words: vec!["gt-1".to_owned()] };
    for (code, word) in [(1, "failed"), (2, "failed"), (3, "failed"), (4, "running"), (5, "skipped"), (101, "running")]
    {
        assert_eq!(exits(sling(), code), word, "our own exit code {code}");
    }
    let killed = |run: &str| Ended { code: None, signal: Some(9), ..ended(run) };
    for payload in [agent(), runs("x"), sling()] {
        assert_eq!(after(payload.clone(), |clock, run| clock.end(killed(run))), "running");
        let lost = |clock: &mut Clock, run: &str| clock.end(Ended { is_lost: true, code: None, ..ended(run) });
        assert_eq!(after(payload, lost), "running");
    }
}

#[test]
fn a_start_that_fails_is_an_attempt_unless_the_whole_town_is_held_up() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.fire_at("01:00");
    let claimed = clock.claim().remove(0);
    let until = clock.town.now + MINUTE;
    clock.fail_start(&claimed.run, Fault::Town);
    assert_eq!((clock.log("x"), clock.claim().len()), (vec!["01:00 running".into()], 0));
    clock.town.now = until;
    let claimed = clock.claim().remove(0);
    assert_eq!(claimed.fire.as_ref().map(|fire| fire.attempt), Some(1), "it cost nothing");
    clock.fail_start(&claimed.run, Fault::Bead);
    assert!(wait(&mut clock, "x") < SECOND * 3);
    assert_eq!(clock.last("x").error.as_deref(), Some("no luck"));
    clock.town.now += SECOND * 3;
    clock.fire();
    clock.run_one("yes");
    assert_eq!(clock.log("x"), ["01:00 ok 2"]);
}

#[test]
fn who_has_no_agent_is_not_tried_again() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.fire_at("01:00");
    let claimed = clock.claim().remove(0);
    clock.fail_start(&claimed.run, Fault::Agent);
    assert_eq!(clock.log("x"), ["01:00 failed"]);
    assert_eq!(clock.job("x").failures, 1);
}

#[test]
fn a_rate_limit_is_waited_for() {
    let mut clock = Clock::with(&[every("x", 60)]);
    clock.fire_at("01:00");
    let run = clock.start_one().run;
    let limited = told(&clock, &run, &refused(429));
    clock.end(limited);
    clock.town.now += SECOND * 3;
    assert_eq!(clock.fire().n_fired, 1);
    assert_eq!(clock.claim().len(), 0, "its agent is held up for five minutes");
    clock.set("01:05");
    clock.run_one("yes");
    assert_eq!(clock.log("x"), ["01:00 ok 2"]);
}

/// However many of them there are, and whether their agent is held up or has no place left.
#[test]
fn those_whose_agent_cannot_answer_hold_up_nobody_behind_them() {
    let crowd: Vec<JobPlan> = (0..600).map(|n| every(&format!("x{n}"), 60)).collect();
    let shell = JobPlan { payload: runs("true"), ..every("shell", 61) };
    for is_held_up in [true, false] {
        let mut clock = Clock::with(&crowd);
        clock.try_add(std::slice::from_ref(&shell)).expect("it is fine");
        clock.set("01:00");
        while clock.fire().is_more {}
        let run = clock.start_one().run;
        if is_held_up {
            let limited = told(&clock, &run, &refused(429));
            clock.end(limited);
        } else {
            clock.policy.caps.agents.insert("claude".to_owned(), 1);
            clock.policy.lanes = clock.policy.lanes.clone().with([("cron".to_owned(), 2)]);
        }
        clock.fire_at("01:01");
        let claimed = clock.claim();
        assert_eq!(claimed.iter().map(|turn| turn.session.as_str()).collect::<Vec<_>>(), ["cron:shell"]);
    }
}

#[test]
fn a_job_that_fails_five_times_in_a_row_is_disabled_and_somebody_is_told() {
    let mut clock = Clock::with(&[every("x", 60), every("y", 60)]);
    for hour in 1..=5 {
        assert_eq!(clock.letters(), [""; 0]);
        clock.town.now = time("00:00") + HOUR * hour;
        clock.fire();
        let run = clock.start_one().run;
        clock.stop(&run, Outcome::TimedOut);
        clock.run_one("yes");
    }
    let why = "it failed 5 times in a row, the last time so: ada said so (killed by signal 15)";
    assert_eq!(clock.state("x"), format!("disabled {why}"));
    assert_eq!(clock.events("job.disabled"), ["x"]);
    assert_eq!(clock.letters(), ["the job x is disabled"]);
    assert_eq!(clock.rows("SELECT body FROM mail"), [format!("{why}\n\nthen: gt cron resume x\n")]);
    let notices = clock.town.store.due_notices(clock.town.now, 9).expect("it answers");
    assert_eq!(
        notices.iter().map(|one| one.text.clone()).collect::<Vec<_>>(),
        [format!("the job x is disabled: {why}")]
    );
    clock.set("06:00");
    assert_eq!(clock.fire().n_fired, 1, "only the other");
    clock.run_one("yes");
    assert!(clock.resume("x"));
    assert_eq!((clock.state("x"), clock.job("x").failures), ("active 07:00".to_owned(), 0));
}

#[test]
fn a_success_in_between_begins_the_count_anew_and_what_did_not_run_does_not() {
    let mut clock = Clock::with(&[JobPlan { retries: Some(0), ..every("x", 10) }]);
    clock.failures_max = 3;
    let mut failures = |ends: &[&str]| {
        let end = |end: &&str| {
            clock.town.now += MINUTE * 10;
            clock.fire();
            let run = clock.start_one().run;
            match *end {
                "ok" => clock.answer(&run, "yes"),
                "stop" => clock.stop(&run, Outcome::Stopped),
                _ => clock.fail(&run),
            }
            clock.job("x").failures
        };
        ends.iter().map(end).collect::<Vec<_>>()
    };
    assert_eq!(failures(&["fail", "fail", "ok", "fail", "stop", "fail"]), [1, 2, 0, 1, 1, 2]);
    clock.town.now += MINUTE * 15;
    clock.restart();
    clock.fire();
    clock.town.now += MINUTE * 5;
    clock.fire();
    assert_eq!(clock.job("x").last_status, Some(FireStatus::Skipped));
    assert_eq!((clock.job("x").failures, clock.fail_for_good()), (2, 1));
    assert_eq!(clock.job("x").state.as_str(), "disabled");
}

#[test]
fn a_job_may_fail_for_ever_where_nobody_counts() {
    let mut clock = Clock::with(&[JobPlan { retries: Some(0), ..every("x", 10) }]);
    clock.failures_max = 0;
    for _ in 0..20 {
        clock.town.now += MINUTE * 10;
        clock.fire();
        clock.fail_for_good();
    }
    assert_eq!((clock.job("x").failures, clock.job("x").state.as_str()), (20, "active"));
    assert_eq!(clock.letters(), [""; 0]);
}

#[test]
fn what_all_attempts_have_used_is_counted_together() {
    let mut clock = Clock::with(&[every("x", 10)]);
    let usage = |tokens: u64| json!({ "input_tokens": tokens, "output_tokens": 2, "cache_read_input_tokens": 1 });
    clock.fire_at("00:10");
    for (tokens, dollars) in [(10, 0.25), (100, 0.5)] {
        let run = clock.start_one().run;
        let line = json!({ "type": "result", "is_error": true, "result": "no", "usage": usage(tokens), "total_cost_usd": dollars });
        let end = told(&clock, &run, &line);
        clock.end(end);
        clock.town.now += SECOND * 8;
        clock.fire();
    }
    let run = clock.start_one().run;
    clock.fail(&run);
    clock.town.now += SECOND * 20;
    clock.fire();
    let run = clock.start_one().run;
    let line = json!({ "type": "result", "result": "yes", "usage": usage(1000), "total_cost_usd": 0.125 });
    let end = told(&clock, &run, &line);
    clock.end(Ended { code: Some(0), reply: Some("yes".to_owned()), ..end });
    let fire = clock.last("x");
    assert_eq!((fire.status, fire.attempt, fire.run.as_deref()), (FireStatus::Ok, 4, Some(run.as_str())));
    let all = Usage { tokens_in: 1113, tokens_out: 6, tokens_cached: 3, cost_micros: 875_000 };
    assert_eq!(fire.usage, all);
}

#[test]
fn the_time_that_a_job_may_take_is_its_own_or_the_towns() {
    let mut clock = Clock::with_lane(9, &[JobPlan { timeout: Some(MINUTE), ..every("own", 10) }, every("towns", 10)]);
    clock.timeout = Some(HOUR);
    clock.fire_at("00:10");
    clock.start();
    let live = clock.town.store.live_runs().expect("it answers");
    let timeouts: Vec<_> = live.iter().filter_map(|run| run.turn.as_ref()?.timeout).collect();
    assert_eq!(timeouts, [MINUTE, HOUR]);
}

#[test]
fn what_is_stopped_while_it_waits_is_cancelled_and_not_tried_again() {
    let mut clock = Clock::with(&[every("x", 10), at("once", "00:10")]);
    clock.fire_at("00:10");
    for session in ["cron:x", "cron:once"] {
        let stopped = clock.does(|store, stamp| store.stop_session(session, true, stamp)).expect("it answers");
        assert_eq!(stopped.n_cancelled, 1);
    }
    assert_eq!(
        (clock.log("x"), clock.last("x").error),
        (vec!["00:10 cancelled".into()], Some("tester stopped it".into()))
    );
    assert_eq!((clock.claim().len(), clock.job("x").failures), (0, 0));
    assert_eq!(clock.state("once"), "disabled its only run was cancelled: tester stopped it");
}

#[test]
fn a_job_that_is_disabled_runs_nothing_of_what_waits_and_what_runs_on_costs_it_nothing() {
    let plan = JobPlan { missed: Missed::All, may_overlap: true, retries: Some(0), ..every("x", 10) };
    let mut clock = Clock::with_lane(3, &[plan]);
    clock.failures_max = 2;
    for slot in ["00:10", "00:20", "00:30", "00:40", "00:50"] {
        clock.fire_at(slot);
    }
    let turns = clock.start();
    assert_eq!(turns.len(), 3);
    for turn in &turns {
        clock.fail(&turn.run);
    }
    assert_eq!(clock.state("x"), "disabled it failed 2 times in a row, the last time so: exit code 1");
    assert_eq!(clock.log("x")[2..], ["00:30 failed", "00:40 cancelled", "00:50 cancelled"]);
    assert_eq!(clock.last("x").error.as_deref(), Some("its job was disabled"));
    assert_eq!((clock.claim(), clock.job("x").failures, clock.letters().len()), (Vec::new(), 2, 1));
}

#[test]
fn the_event_of_the_end_names_the_run_of_the_last_attempt() {
    let mut clock = Clock::with(&[every("x", 10)]);
    let named =
        |clock: &Clock| clock.rows("SELECT coalesce(run, '-') FROM event WHERE type = 'job.ended' ORDER BY seq");
    clock.fire_at("00:10");
    let first = clock.claim().remove(0).run;
    clock.answer(&first, "yes");
    assert_eq!(named(&clock), [first.as_str()], "though its start was never recorded");
    clock.fire_at("00:20");
    let failed = clock.start_one().run;
    clock.fail(&failed);
    clock.fire_at("00:21");
    let second = clock.claim().remove(0).run;
    clock.answer(&second, "yes");
    assert_eq!(named(&clock)[1..], [second.as_str()]);
    clock.fire_at("00:30");
    let failed = clock.start_one().run;
    clock.fail(&failed);
    clock.fire_at("00:31");
    clock.pause("x");
    assert_eq!(named(&clock)[2..], ["-"], "the second attempt had none");
}
