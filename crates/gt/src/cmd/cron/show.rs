//! `gt cron show`: a job, what came of it, and why it does not run.

use clap::Args;
use gt_core::job::{FireStatus, JobState, Payload};
use gt_core::text::one_line;
use gt_store::{FireFilter, FiresOf, Job, Store, UnderWay};
use jiff::Timestamp;
use serde_json::Value;

use super::list::job_json;
use super::runs::{fire_json, lines};
use super::{clock_words, missing, next_words, schedule_words, shown, under_way_words};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BOLD, DIM, paint};

/// Fires that are shown with a job.
const FIRES: usize = 10;

/// Show a job, its rules and what became of its last times
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron show report
  gt cron show job-3 --json")]
pub(super) struct ShowArgs {
    /// Its name or id
    #[arg(value_name = "JOB")]
    job: String,
}

pub(super) fn run(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let job = store.job(&args.job).map_err(|error| missing(&mut store, &args.job, error))?;
    let fires = store.fires(&FireFilter { of: FiresOf::One(job.id()), status: None, limit: Some(FIRES) })?;
    let waits = why_waiting(context, &mut store, &job)?;
    let under_way = store.under_way()?;
    if context.wants_json() {
        let mut body = job_json(&job, &under_way);
        body["waits"] = waits.into();
        body["runs"] = fires.iter().map(fire_json).collect::<Vec<Value>>().into();
        return context.json(&body);
    }
    let mut text = paint(BOLD, &shown(job.name()));
    for (name, value) in fields(context.now(), &job, under_way.get(&job.id()), waits) {
        text.extend(["\n  ", &paint(DIM, &format!("{name:<9}")), " ", &one_line(&value)]);
    }
    if !fires.is_empty() {
        text.extend(["\n\n", &lines(&fires, context.now())]);
    }
    context.say(&text)?;
    if job.state == JobState::Active {
        context.note_missing_daemon(&context.town()?);
    }
    Ok(())
}

/// Why what is under way has not begun.
fn why_waiting(context: &Context, store: &mut Store, job: &Job) -> Result<Option<String>, Failure> {
    let filter = FireFilter { of: FiresOf::One(job.id()), status: Some(FireStatus::Running), limit: Some(1) };
    let Some(turn) = store.fires(&filter)?.pop().and_then(|fire| fire.turn) else { return Ok(None) };
    let town = context.town()?;
    let policy = context.settings(&town)?.policy(town.root());
    Ok(store.why_waiting(turn, &policy, context.now())?)
}

fn fields(now: Timestamp, job: &Job, at: Option<&UnderWay>, waits: Option<String>) -> Vec<(&'static str, String)> {
    let plan = &job.plan;
    let does = match &plan.payload {
        Payload::Message { session: Some(session), agent, .. } => {
            let to = agent.as_ref().map(|agent| format!(" to {agent}")).unwrap_or_default();
            format!("says{to} in {session}: {}", plan.payload.words())
        }
        Payload::Message { agent, .. } => {
            format!("asks {}: {}", agent.as_deref().unwrap_or("the default agent"), plan.payload.words())
        }
        Payload::Run { command } => format!("runs: {command}"),
        _ => plan.payload.words(),
    };
    let next = job.next_at.map(|at| format!("{}, {}", clock_words(at, &plan.tz), next_words(at, now)));
    let state = match &job.why {
        Some(why) => format!("{}: {why}", job.state.as_str()),
        None => job.state.as_str().to_owned(),
    };
    let to = plan.deliver.as_ref().map(|to| match &to.recipient {
        Some(who) => format!("{} to {who}", to.channel),
        None => to.channel.clone(),
    });
    let fields = [
        ("id", Some(job.id())),
        ("schedule", Some(format!("{} ({})", schedule_words(plan), plan.tz))),
        ("does", Some(does)),
        ("state", Some(state)),
        ("next", next),
        ("now", at.map(|at| under_way_words(at, now))),
        ("waits", waits),
        ("missed", Some(plan.missed.as_str().to_owned())),
        ("overlap", plan.may_overlap.then(|| "allowed".to_owned())),
        ("grace", plan.grace.map(|span| format!("{span:#}"))),
        ("timeout", plan.timeout.map(|span| format!("{span:#}"))),
        ("retries", plan.retries.map(|n| n.to_string())),
        ("lane", plan.lane.clone()),
        ("delivers", to),
        ("failures", Some(job.failures.to_string()).filter(|_| job.failures > 0)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
