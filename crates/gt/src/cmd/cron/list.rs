//! `gt cron list`, and a job in JSON.

use clap::Args;
use gt_core::job::{FireStatus, JobState, Payload, Schedule};
use gt_core::text::one_line;
use gt_store::Job;
use serde_json::{Value, json};

use super::{clock_words, off_words, schedule_words, shown};
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
    let jobs = context.store()?.jobs(args.all, Some(args.limit).filter(|limit| *limit > 0))?;
    if context.wants_json() {
        return context.json(&jobs.iter().map(job_json).collect::<Vec<_>>());
    }
    if jobs.is_empty() {
        return context.say("There are no jobs yet: `gt cron add --help` shows how to make one.");
    }
    let width = |text: &dyn Fn(&Job) -> String| jobs.iter().map(|job| text(job).chars().count()).max().unwrap_or(0);
    let (names, schedules) = (width(&|job| shown(job.name())), width(&schedule));
    let line = |job: &Job| {
        let name = format!("{:<names$}", shown(job.name()));
        let schedule = format!("{:<schedules$}", schedule(job));
        format!("{} {name}  {schedule}  {}{}", sign(job), when(context, job), last(job))
    };
    context.say(&jobs.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn schedule(job: &Job) -> String {
    match job.plan.schedule {
        Schedule::At(_) if job.next_at.is_some() => "once".to_owned(), // its time stands beside it
        _ => one_line(&schedule_words(&job.plan)),
    }
}

pub(super) fn sign(job: &Job) -> String {
    match job.state {
        JobState::Paused => paint(YELLOW, "‖"),
        JobState::Disabled => paint(RED, "✗"),
        JobState::Active if job.next_at.is_none() => paint(BLUE, "▶"),
        JobState::Active => paint(GREEN, "○"),
    }
}

fn when(context: &Context, job: &Job) -> String {
    match (job.state, job.next_at) {
        (JobState::Active, Some(at)) => {
            let clock = format!("{} ({})", clock_words(at, &job.plan.tz), job.plan.tz);
            format!("{} {}", off_words(at, context.now()), paint(DIM, &clock))
        }
        (JobState::Active, None) => "runs now".to_owned(),
        (state, _) => match &job.why {
            Some(why) => format!("{}: {}", state.as_str(), one_line(why)),
            None => state.as_str().to_owned(),
        },
    }
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

/// A job as scripts see it.
pub(crate) fn job_json(job: &Job) -> Value {
    let plan = &job.plan;
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
        "last_at": job.last_at,
        "last_status": job.last_status.map(FireStatus::as_str),
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
