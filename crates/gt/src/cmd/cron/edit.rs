//! `gt cron edit`.

use clap::Args;
use gt_core::job::{BadJob, Schedule};
use gt_core::refusal::Refusal;
use gt_engine::Town;
use gt_engine::settings::Settings;
use gt_store::{Job, JobPlan};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::add::summary;
use super::check::check_sling;
use super::list::job_json;
use super::plan::{self, HowArgs, WhenArgs};
use super::shown;
use super::what::{self, WhatArgs};
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Change a job; what is not named stays as it is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron edit report --cron '0 8 * * 1-5'
  gt cron edit report --message 'What is new since yesterday?' --timeout 20m
  gt cron edit report --timeout default --channel none
  gt cron edit report --name morning-report")]
pub(super) struct EditArgs {
    /// Its name or id
    #[arg(value_name = "JOB")]
    job: String,
    /// Call it otherwise
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    when: WhenArgs,
    #[command(flatten)]
    what: WhatArgs,
    #[command(flatten)]
    how: HowArgs,
}

pub(super) fn run(context: &Context, args: &EditArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let job = loop {
        // Everything is looked at before anything is changed, and again if somebody else was faster.
        let before = town.open_store()?.job(&args.job)?;
        if before.is_beat {
            return Err((&Refusal::from(BadJob::IsHeartbeat { name: before.plan.name })).into());
        }
        let after = changed(context, args, &town, &settings, &before.plan)?;
        if let Some(job) = replace(context, args, &town, &before.plan, after)? {
            break job;
        }
    };
    if context.wants_json() {
        return context.json(&job_json(&job));
    }
    context.say(&format!("Changed {}.", summary(context, &job)))
}

/// The plan with what was asked for.
fn changed(
    context: &Context,
    args: &EditArgs,
    town: &Town,
    settings: &Settings,
    before: &JobPlan,
) -> Result<JobPlan, Failure> {
    let mut after = before.clone();
    change_when(context, args, &mut after)?;
    if let Some(payload) = what::changed(&args.what, &before.payload, settings)? {
        check_sling(context, town, &payload, settings)?;
        after.payload = payload;
    }
    change_how(&args.how, &mut after, settings)?;
    plan::refuse_idle_grace(&after)?;
    after.name = args.name.clone().unwrap_or(after.name);
    if after == *before {
        return Err(Failure::new(Kind::Usage, "nothing of it would change").hint("see `gt cron edit --help`"));
    }
    Ok(after)
}

/// Puts one plan in the place of another; `None`: that is not the job's plan any more.
fn replace(
    context: &Context,
    args: &EditArgs,
    town: &Town,
    before: &JobPlan,
    after: JobPlan,
) -> Result<Option<Job>, Failure> {
    let mut is_same = false;
    let change = |plan: &mut JobPlan| {
        is_same = plan == before;
        if is_same {
            *plan = after;
        }
    };
    let job = context.open(town)?.edit_job(&args.job, change, &context.stamp())?;
    Ok(Some(job).filter(|_| is_same))
}

fn change_when(context: &Context, args: &EditArgs, job: &mut JobPlan) -> Result<(), Failure> {
    let before = TimeZone::get(&job.tz).unwrap_or(TimeZone::UTC);
    let (zone, tz) = match &args.when.tz {
        Some(name) => plan::zone(Some(name))?,
        None => (before.clone(), job.tz.clone()),
    };
    match (plan::schedule(&args.when, &zone, context.now())?, &job.schedule) {
        (Some(schedule), _) => job.schedule = schedule,
        (None, Schedule::At(at)) if tz != job.tz => return Err(same_time_elsewhere(&job.name, *at, &before, &tz)),
        (None, _) => (),
    }
    job.tz = tz;
    Ok(())
}

/// The clock there shows another time then, and who names a zone may mean either.
fn same_time_elsewhere(name: &str, at: Timestamp, before: &TimeZone, tz: &str) -> Failure {
    let clock = before.to_datetime(at).strftime("%F %H:%M");
    let why = format!("another zone alone does not say when `{}` comes: it has one time", shown(name));
    Failure::new(Kind::Usage, why).hint(format!("say the time too, as in `--at '{clock}' --tz {tz}`"))
}

fn change_how(how: &HowArgs, job: &mut JobPlan, settings: &Settings) -> Result<(), Failure> {
    if let Some(word) = &how.missed {
        job.missed = plan::missed(word)?;
    }
    if let Some(text) = &how.grace {
        job.grace = plan::optional_span("--grace", text)?;
    }
    if let Some(text) = &how.timeout {
        job.timeout = plan::timeout(text)?;
    }
    if let Some(text) = &how.retries {
        job.retries = plan::retries(text)?;
    }
    if let Some(lane) = &how.lane {
        job.lane = plan::lane(lane)?;
    }
    job.deliver = plan::address(how, job.deliver.as_ref(), settings)?;
    job.may_overlap = (job.may_overlap || how.overlap) && !how.no_overlap;
    Ok(())
}
