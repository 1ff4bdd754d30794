//! `gt cron list`, and a job in JSON.

use std::collections::BTreeMap;

use clap::Args;
use gt_core::job::{FireStatus, JobState, Payload, Schedule};
use gt_core::text::one_line;
use gt_store::{Job, Stage, UnderWay};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{clock_words, next_words, schedule_words, shown, under_way_words};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BLUE, DIM, GREEN, RED, YELLOW, paint};

/// List jobs, the one that comes next first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron list
  gt cron list --all --json")]
pub(super) struct ListArgs {
    /// Heartbeats too
    #[arg(long)]
    all: bool,
    /// At most so many; 0: all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
}

pub(super) fn run(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let jobs = store.jobs(args.all, Some(args.limit).filter(|limit| *limit > 0))?;
    let under_way = store.under_way()?;
    if context.wants_json() {
        return context.json(&jobs.iter().map(|job| job_json(job, &under_way)).collect::<Vec<_>>());
    }
    if jobs.is_empty() {
        return context.say("There are no jobs yet: `gt cron add --help` shows how to make one.");
    }
    let width = |text: &dyn Fn(&Job) -> String| jobs.iter().map(|job| text(job).chars().count()).max().unwrap_or(0);
    let (names, schedules) = (width(&|job| shown(job.name())), width(&schedule));
    let line = |job: &Job| {
        let name = format!("{:<names$}", shown(job.name()));
        let schedule = format!("{:<schedules$}", schedule(job));
        let at = under_way.get(&job.id());
        format!("{} {name}  {schedule}  {}{}", sign(job, at), when(job, at, context.now()), last(job))
    };
    context.say(&jobs.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    if jobs.iter().any(|job| job.state == JobState::Active) {
        context.note_missing_daemon(&town);
    }
    Ok(())
}

fn schedule(job: &Job) -> String {
    match job.plan.schedule {
        Schedule::At(_) if job.next_at.is_some() => "once".to_owned(), // its time stands beside it
        _ => one_line(&schedule_words(&job.plan)),
    }
}

fn sign(job: &Job, at: Option<&UnderWay>) -> String {
    match (job.state, at.map(|at| at.stage)) {
        (_, Some(Stage::Runs { .. })) => paint(BLUE, "▶"),
        (JobState::Paused, _) => paint(YELLOW, "‖"),
        (JobState::Disabled, _) => paint(RED, "✗"),
        (JobState::Active, Some(Stage::Waits | Stage::TriedAgain { .. })) => paint(YELLOW, "◌"),
        (JobState::Active, None) => paint(GREEN, "○"),
    }
}

/// When it comes, or why it does not; and what it is at.
fn when(job: &Job, at: Option<&UnderWay>, now: Timestamp) -> String {
    let at = at.map(|at| under_way_words(at, now));
    let comes = match (job.state, job.next_at, &job.why) {
        (JobState::Active, Some(at), _) => {
            let clock = format!("{} ({})", clock_words(at, &job.plan.tz), job.plan.tz);
            format!("{} {}", next_words(at, now), paint(DIM, &clock))
        }
        (JobState::Active, None, _) => return at.unwrap_or_else(|| "its time has come".to_owned()),
        (state, _, Some(why)) => format!("{}: {}", state.as_str(), one_line(why)),
        (state, _, None) => state.as_str().to_owned(),
    };
    std::iter::once(comes).chain(at).collect::<Vec<_>>().join("  ")
}

fn last(job: &Job) -> String {
    let Some(status) = job.last_status else { return String::new() };
    let style = match status {
        FireStatus::Failed | FireStatus::Timeout => RED,
        FireStatus::Missed | FireStatus::Skipped | FireStatus::Cancelled => YELLOW,
        FireStatus::Ok | FireStatus::Running => DIM,
    };
    format!("  {}", paint(style, &format!("last {}", status.as_str())))
}

/// The slot of a job that is its last so far, and what became of it.
fn last_fire(job: &Job, at: Option<&UnderWay>) -> (Option<Timestamp>, Option<FireStatus>) {
    match at.map(|at| at.last_slot).filter(|slot| job.last_at.is_none_or(|last| *slot >= last)) {
        Some(slot) => (Some(slot), Some(FireStatus::Running)),
        None => (job.last_at, job.last_status),
    }
}

/// A job as scripts see it, with what jobs are at.
pub(crate) fn job_json(job: &Job, under_way: &BTreeMap<String, UnderWay>) -> Value {
    let plan = &job.plan;
    let (last_at, last_status) = last_fire(job, under_way.get(&job.id()));
    let payload = match &plan.payload {
        Payload::Broken(text) => json!({ "unreadable": text }),
        known => json!(known),
    };
    json!({
        "id": job.id(),
        "name": plan.name,
        "kind": plan.schedule.kind(),
        "schedule": plan.schedule.words(),
        "tz": plan.tz,
        "state": job.state.as_str(),
        "reason": job.why,
        "next_at": job.next_at,
        "last_at": last_at,
        "last_status": last_status.map(FireStatus::as_str),
        "failures": job.failures,
        "payload": payload,
        "missed": plan.missed.as_str(),
        "overlap": plan.may_overlap,
        "grace_ms": plan.grace.map(|span| span.as_millis() as i64),
        "timeout_ms": plan.timeout.map(|span| span.as_millis() as i64),
        "retries": plan.retries,
        "lane": plan.lane,
        "channel": plan.deliver.as_ref().map(|to| &to.channel),
        "to": plan.deliver.as_ref().and_then(|to| to.recipient.as_ref()),
        "made_at": job.made_at,
    })
}
