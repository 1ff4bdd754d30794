//! `gt cron runs`: what became of each time. // SPEC K4

use clap::Args;
use gt_core::agent::Usage;
use gt_core::job::FireStatus;
use gt_core::text::one_line;
use gt_store::{Attempt, Fire, FireFilter, FiresOf, Store};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{again_words, clock_words, plan, shown};
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BLUE, DIM, GREEN, RED, YELLOW, paint};

/// Show what became of each time of a job, or of all jobs, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron runs
  gt cron runs report --limit 5
  gt cron runs --status missed --json")]
pub(crate) struct RunsArgs {
    /// Its name or id; what had this name before, and is gone, is shown too
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Only those: running, ok, failed, timeout, cancelled, missed or skipped
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// At most so many; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

pub(super) fn run(context: &Context, args: &RunsArgs) -> Result<(), Failure> {
    let status = args.status.as_deref().map(parse_status).transpose()?;
    let of = args.job.clone().map_or(FiresOf::Jobs, FiresOf::One);
    let filter = FireFilter { of, status, limit: Some(args.limit).filter(|limit| *limit > 0) };
    let mut store = context.store()?;
    let fires = store.fires(&filter)?;
    let nothing = if fires.is_empty() { nothing(&mut store, args, &filter)? } else { String::new() };
    if context.wants_json() {
        return context.json(&fires.iter().map(fire_json).collect::<Vec<_>>());
    }
    context.say(&if fires.is_empty() { nothing } else { lines(&fires, context.now()) })?;
    if fires.iter().any(|fire| fire.status == FireStatus::Running && !fire.is_live) {
        context.note_missing_daemon(&context.town()?);
    }
    Ok(())
}

/// What to say where there is nothing to show.
fn nothing(store: &mut Store, args: &RunsArgs, filter: &FireFilter) -> Result<String, Failure> {
    let is_any = !store.fires(&FireFilter { status: None, limit: Some(1), ..filter.clone() })?.is_empty();
    match (filter.status, &args.job) {
        (Some(status), _) if is_any => return Ok(format!("None of them is {}.", status.as_str())),
        (_, Some(job)) if !is_any => drop(store.job(job)?), // if there is none, this says so
        (_, None) => return Ok("There are no runs yet.".to_owned()),
        _ => (),
    }
    Ok("Nothing has come of it yet.".to_owned())
}

fn parse_status(word: &str) -> Result<FireStatus, Failure> {
    FireStatus::parse(word).ok_or_else(|| {
        let known = FireStatus::ALL.map(FireStatus::as_str).join(", ");
        Failure::new(Kind::Usage, format!("`{}` is no status of a run", one_line(word)))
            .hint(format!("say one of {known}"))
    })
}

/// Fires as people read them.
pub(crate) fn lines(fires: &[Fire], now: Timestamp) -> String {
    let tz = plan::zone(None).map_or_else(|_| "UTC".to_owned(), |(_, name)| name);
    let width = fires.iter().map(|fire| shown(&fire.job).chars().count()).max().unwrap_or(0);
    let line = |fire: &Fire| {
        let (sign, style) = match fire.status {
            FireStatus::Running if fire.is_live => ("▶", BLUE),
            FireStatus::Running => ("◌", YELLOW),
            FireStatus::Ok => ("✓", GREEN),
            FireStatus::Failed | FireStatus::Timeout => ("✗", RED),
            FireStatus::Cancelled | FireStatus::Missed | FireStatus::Skipped => ("–", YELLOW),
        };
        let name = format!("{:<width$}", shown(&fire.job));
        format!("{} {name}  {}  {}", paint(style, sign), clock_words(fire.slot, &tz), words(fire, &tz, now))
    };
    let traced = fires.iter().find_map(|fire| Some((fire.id, failed_run(fire)?)));
    let trace = |fire: &Fire| {
        let (_, run) = traced.filter(|(id, _)| *id == fire.id)?;
        Some(paint(DIM, &format!("    see `gt trace show {run}`")))
    };
    let all = fires.iter().flat_map(|fire| std::iter::once(line(fire)).chain(trace(fire)).chain(earlier_lines(fire)));
    all.collect::<Vec<_>>().join("\n")
}

/// The run of a fire that has failed, or is to be tried again because it has.
fn failed_run(fire: &Fire) -> Option<&str> {
    fire.run.as_deref().filter(|_| fire.status.is_failure() || fire.retry_at.is_some())
}

/// The attempts before the one that a fire tells of, the newest first as all else.
fn earlier_lines(fire: &Fire) -> Vec<String> {
    let line = |attempt: &Attempt| {
        let took = took(attempt.started_at, attempt.ended_at);
        let why = attempt.error.as_deref().map_or_else(String::new, |error| format!(": {}", one_line(error)));
        paint(DIM, &format!("    attempt {} failed{took}{why}", attempt.number))
    };
    fire.earlier.iter().rev().map(line).collect()
}

/// For how long something went on, if that is known.
fn took(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    let Some(ms) = span_ms(from, to) else { return String::new() };
    format!(" in {}.{:03} s", ms / 1000, ms % 1000)
}

/// What became of it, in words.
fn words(fire: &Fire, tz: &str, now: Timestamp) -> String {
    let mut text = match (fire.status, fire.is_live, fire.retry_at) {
        (FireStatus::Running, _, Some(at)) => again_words(at, now),
        (FireStatus::Running, false, None) => "waits for its turn".to_owned(),
        (status, ..) => status.as_str().to_owned(),
    };
    text.push_str(&took(fire.started_at, fire.ended_at));
    if fire.attempt > 1 {
        text.extend([format!(", attempt {}", fire.attempt)]);
    }
    // What is under way again has not failed so; the attempt before it has.
    let is_over = fire.status != FireStatus::Running || fire.retry_at.is_some();
    if let Some(error) = fire.error.as_ref().filter(|_| is_over) {
        text.extend([": ", &one_line(error)]);
    }
    if let Some(until) = fire.until {
        text.extend([", until ", &clock_words(until, tz)]);
    }
    let more = match (fire.delivery.as_deref(), &fire.delivery_error) {
        (None | Some("none"), None) => String::new(),
        (None | Some("none"), Some(why)) => format!("  not delivered: {}", one_line(why)),
        (Some(state), Some(why)) => format!("  {state}: {}", one_line(why)),
        (Some("waiting"), None) => "  to be delivered".to_owned(),
        (Some(state), None) => format!("  {state}"),
    };
    if more.is_empty() { text } else { text + &paint(DIM, &more) }
}

fn span_ms(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    // By a clock that was set back meanwhile it took less than no time.
    Some(to?.duration_since(from?).as_millis().max(0) as i64)
}

/// A fire as scripts see it.
pub(crate) fn fire_json(fire: &Fire) -> Value {
    let late_ms = fire.started_at.map(|at| at.duration_since(fire.slot).as_millis() as i64);
    json!({
        "id": fire.id.to_string(),
        "job": fire.job,
        "job_id": fire.job_id(),
        "slot": fire.slot,
        "until": fire.until,
        "manual": fire.is_manual,
        "started_at": fire.started_at,
        "late_ms": late_ms,
        "ended_at": fire.ended_at,
        "status": fire.status.as_str(),
        "attempt": fire.attempt,
        "retry_at": fire.retry_at,
        "duration_ms": span_ms(fire.started_at, fire.ended_at),
        "error": fire.error,
        "delivery": fire.delivery,
        "delivery_error": fire.delivery_error,
        "run": fire.run,
        "usage": usage_json(&fire.usage),
        "earlier": fire.earlier.iter().map(earlier_json).collect::<Vec<_>>(),
    })
}

fn earlier_json(attempt: &Attempt) -> Value {
    json!({
        "attempt": attempt.number,
        "status": FireStatus::Failed.as_str(),
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "duration_ms": span_ms(attempt.started_at, attempt.ended_at),
        "error": attempt.error,
        "run": attempt.run,
        "usage": usage_json(&attempt.usage),
    })
}

fn usage_json(usage: &Usage) -> Option<Value> {
    (*usage != Usage::default()).then(|| {
        json!({ "tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "tokens_cached": usage.tokens_cached,
                "cost_usd": usage.cost_micros as f64 / 1e6 })
    })
}
