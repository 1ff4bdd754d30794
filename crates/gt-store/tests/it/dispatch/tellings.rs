//! What agents tell: activity, usage, limits that hold up an account, and how a run ends after it.

use gt_core::agent::{Activity, Need, Told, Vendor, read_hook};
use gt_core::run::Outcome;
use gt_store::{Ended, Findings, Report, Telling};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::yard::{Yard, asked, ended};

/// What is known after these lines of Claude's stream.
fn telling(yard: &Yard, run: &str, lines: &[Value]) -> Telling {
    let mut told = Told::default();
    for line in lines {
        told.hear_line(Vendor::Claude, &line.to_string(), yard.now);
    }
    Telling { run: run.to_owned(), vendor: Vendor::Claude, told }
}

fn hooked(yard: &Yard, run: &str, calls: &[Value]) -> Telling {
    let mut told = Told::default();
    let hooks = calls.iter().filter_map(|call| read_hook(Vendor::Claude, &call.to_string(), yard.now));
    for hook in hooks {
        told.hear_hook(&hook);
    }
    Telling { run: run.to_owned(), vendor: Vendor::Claude, told }
}

fn tell(yard: &mut Yard, telling: Telling) {
    yard.record(&Findings { told: vec![telling], ..Findings::default() });
}

fn limited(reset_after: i64, yard: &Yard) -> Vec<Value> {
    let at = yard.now.as_second() + reset_after;
    vec![
        json!({ "type": "rate_limit_event", "rate_limit_info": { "status": "rejected", "resetsAt": at } }),
        json!({ "type": "result", "is_error": true, "api_error_status": 429, "result": "limit reached" }),
    ]
}

fn asks() -> Value {
    json!({ "hook_event_name": "PermissionRequest", "session_id": "s-1" })
}

fn kinds(yard: &Yard) -> Vec<String> {
    yard.rows("SELECT type || coalesce(' ' || (data ->> '$.for'), '') FROM event WHERE type IN ('run.waiting', 'run.resumed', 'scheduler.held_up') ORDER BY seq")
}

#[test]
fn a_run_that_waits_is_told_once_and_resumes_once() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let waiting = hooked(&yard, &run, &[asks()]);
    tell(&mut yard, waiting.clone());
    tell(&mut yard, waiting);
    assert_eq!(yard.run(&run).waits_for(), Some(Need::Approval));
    assert_eq!(yard.run(&run).conversation.as_deref(), Some("s-1"));
    assert_eq!(yard.explained("gt-1"), "running: waiting-for-a-person");
    let message = yard.explain("gt-1").reasons.remove(0).message;
    assert_eq!(message, "shop/Toast waits for an approval, since 2026-01-01T00:00:00Z: `gt polecat attach Toast`");
    yard.pass(5);
    let goes_on = hooked(&yard, &run, &[asks(), json!({ "hook_event_name": "PostToolUse" })]);
    tell(&mut yard, goes_on);
    let now = yard.run(&run);
    assert_eq!((now.activity, now.activity_at), (Some(Activity::Working), Some(yard.now)));
    assert_eq!(yard.explained("gt-1"), "running: running");
    assert_eq!(kinds(&yard), ["run.waiting approval", "run.resumed"]);
}

#[test]
fn what_an_ended_or_stopped_run_tells_changes_nothing() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let (first, second) = (yard.working("gt-1").run, yard.working("gt-2").run);
    yard.end(&first);
    yard.stop(&second, Outcome::Stopped);
    for run in [&first, &second, &"stranger".to_owned()] {
        let lines = limited(3600, &yard);
        let told = telling(&yard, run, &lines);
        tell(&mut yard, told);
    }
    assert_eq!((yard.run(&first).activity, yard.run(&second).activity), (None, None));
    assert_eq!(kinds(&yard), Vec::<String>::new());
}

#[test]
fn a_limit_costs_no_attempt_and_holds_up_the_agent_until_its_time() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    let run = yard.working("gt-1").run;
    let lines = limited(3600, &yard);
    let told = telling(&yard, &run, &lines);
    yard.end_as(Ended { told: Some(told), ..ended(&run) });
    let ended = yard.run(&run);
    assert_eq!(
        (ended.outcome, ended.end_reason.as_deref()),
        (Some(Outcome::RateLimited), Some("limit reached (exit code 1)"))
    );
    assert_eq!(yard.number("SELECT attempts FROM dispatch_record"), 0);
    assert_eq!(yard.holder("gt-1"), ("open".to_owned(), None));
    yard.pass(1);
    yard.sling(&["gt-2"]);
    let mut other = asked(&["gt-3"]);
    other.fields.agent = Some("codex".to_owned());
    let stamp = yard.stamp();
    yard.store.sling(&other, None, &stamp).expect("it is slung");
    assert_eq!(yard.held_by("gt-1"), ["agent-held-up"]);
    assert_eq!(
        yard.scheduled("gt-2").reasons[0].message,
        "agent `claude` is held up: it is rate limited: limit reached; next try in 1 h, or at once with `gt scheduler resume`"
    );
    assert_eq!(yard.claims(), ["gt-3"], "other agents go on");
    let (policy, now) = (yard.policy.clone(), yard.now);
    let due = yard.store.next_deadline(&policy, now).expect("it answers");
    assert_eq!(due, Some(now + SignedDuration::from_secs(3599)), "and a pass comes by itself");
    yard.pass(3598);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.pass(1);
    assert_eq!(yard.claims(), ["gt-1", "gt-2"], "the first in the queue is the first again");
}

#[test]
fn the_longest_limit_counts_and_is_told_once() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let (first, second) = (yard.working("gt-1").run, yard.working("gt-2").run);
    let long = limited(3600, &yard);
    let told = telling(&yard, &first, &long);
    tell(&mut yard, told.clone());
    // It is heard of before the run ends, and again with its end; another run knows no time.
    yard.end_as(Ended { told: Some(told), ..ended(&first) });
    let vague = telling(&yard, &second, &[json!({ "type": "result", "is_error": true, "api_error_status": 429 })]);
    yard.end_as(Ended { told: Some(vague), ..ended(&second) });
    assert_eq!(kinds(&yard).iter().filter(|kind| *kind == "scheduler.held_up").count(), 1);
    assert_eq!(yard.number("SELECT until / 1000000 FROM trouble"), yard.now.as_second() + 3600);
}

#[test]
fn an_account_that_a_sling_names_is_held_up_alone() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    let work = |bead: &str| {
        let mut sling = asked(&[bead]);
        sling.fields.account = Some("work".to_owned());
        sling
    };
    let stamp = yard.stamp();
    yard.store.sling(&work("gt-1"), None, &stamp).expect("it is slung");
    let run = yard.claim_one().run;
    yard.start(&run);
    let lines = limited(60, &yard);
    let told = telling(&yard, &run, &lines);
    yard.end_as(Ended { told: Some(told), ..ended(&run) });
    yard.store.sling(&work("gt-2"), None, &stamp).expect("it is slung");
    yard.sling(&["gt-3"]);
    assert_eq!((yard.held_by("gt-1"), yard.held_by("gt-2")), (vec!["agent-held-up"], vec!["agent-held-up"]));
    assert_eq!(yard.claims(), ["gt-3"]);
}

#[test]
fn a_missing_login_holds_up_the_agent_and_names_the_way_on() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let line = json!({ "type": "result", "is_error": true, "result": "Not logged in · Please run /login" });
    let told = telling(&yard, &run, &[line]);
    yard.end_as(Ended { told: Some(told), ..ended(&run) });
    assert_eq!(yard.run(&run).outcome, Some(Outcome::AgentUnable));
    assert_eq!(
        yard.scheduled("gt-1").reasons[0].message,
        "agent `claude` is held up: it is not logged in: Not logged in · Please run /login; log in with `claude /login`; \
         next try in 10 min, or at once with `gt scheduler resume`"
    );
}

#[test]
fn a_run_that_went_with_its_place_costs_nothing_and_comes_again() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.policy.redispatch_cooldown = SignedDuration::from_secs(60);
    yard.sling(&["gt-1"]);
    for _ in 0..9 {
        let run = yard.claim_one().run;
        yard.start(&run);
        yard.end_as(Ended { code: None, is_lost: true, ..ended(&run) });
        assert_eq!(yard.run(&run).outcome, Some(Outcome::Lost));
        assert_eq!(yard.held_by("gt-1"), ["cooling-down"]);
        yard.pass(60);
    }
    assert_eq!(yard.claim_one().attempts, 0);
}

#[test]
fn a_failure_of_its_own_costs_an_attempt_and_says_why() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let line = json!({ "type": "result", "is_error": true, "result": "prompt is too long" });
    let told = telling(&yard, &run, &[line]);
    yard.end_as(Ended { told: Some(told), ..ended(&run) });
    let ended = yard.run(&run);
    assert_eq!(
        (ended.outcome, ended.end_reason.as_deref()),
        (Some(Outcome::Died), Some("prompt is too long (exit code 1)"))
    );
    assert_eq!(yard.number("SELECT attempts FROM dispatch_record"), 1);
    assert_eq!(yard.rows("SELECT failure FROM run"), ["context"]);
}

#[test]
fn a_run_that_closed_its_bead_has_completed_whatever_it_met() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.report(&run, Outcome::Completed).expect("it is heard");
    let lines = limited(3600, &yard);
    let told = telling(&yard, &run, &lines);
    yard.end_as(Ended { told: Some(told), ..ended(&run) });
    assert_eq!(yard.run(&run).outcome, Some(Outcome::Completed));
    assert_eq!(kinds(&yard), Vec::<String>::new());
}

#[test]
fn what_is_used_counts_towards_the_budget_of_the_day_and_never_becomes_less() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.policy.daily_micros = Some(1_000_000);
    let run = yard.working("gt-1").run;
    let used = |cost: f64| {
        let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3 });
        json!({ "type": "result", "is_error": false, "total_cost_usd": cost, "usage": usage })
    };
    for cost in [1.25, 0.5] {
        let told = telling(&yard, &run, &[used(cost)]);
        tell(&mut yard, told);
    }
    // Its own word may leave out what it has printed.
    let stamp = yard.stamp();
    let word =
        Report { run: run.clone(), outcome: Outcome::Failed, note: None, cost: Some(0.1), merge: None, tip: None };
    yard.store.report(&word, &stamp).expect("it is taken");
    let usage = yard.run(&run).usage;
    assert_eq!((usage.tokens_in, usage.tokens_cached, usage.tokens_out, usage.cost_micros), (15, 5, 3, 1_250_000));
    yard.sling(&["gt-2"]);
    assert_eq!(yard.held_by("gt-2"), ["guard-budget"]);
    yard.pass(24 * 3600);
    assert_eq!(yard.claims(), ["gt-2"], "another day, another budget");
}
