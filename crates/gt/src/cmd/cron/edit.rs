//! `gt cron edit`.

use clap::Args;
use gt_core::job::{BadJob, Schedule};
use gt_core::refusal::Refusal;
use gt_core::when::{self, BadWhen};
use gt_engine::Town;
use gt_engine::settings::Settings;
use gt_store::{Job, JobPlan, Stamp};
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

impl EditArgs {
    /// Whether nothing is said that could change something.
    fn is_idle(&self) -> bool {
        let EditArgs { job: _, name, when, what, how } = self;
        name.is_none() && *when == WhenArgs::default() && *what == WhatArgs::default() && *how == HowArgs::default()
    }
}

pub(super) fn run(context: &Context, args: &EditArgs) -> Result<(), Failure> {
    if args.is_idle() {
        return Err(Failure::new(Kind::Usage, "it is not said what to change")
            .hint(format!("for example `gt cron edit {} --every 2h`; see `gt cron edit --help`", shown(&args.job))));
    }
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let (job, is_new) = loop {
        // Everything is looked at before anything is changed, and again if somebody else was faster.
        let before = town.open_store()?.job(&args.job)?;
        if before.is_beat {
            return Err((&Refusal::from(BadJob::IsHeartbeat { name: before.plan.name })).into());
        }
        // All is reckoned from one moment, however long it takes to look at it.
        let stamp = context.stamp();
        let after = changed(context, args, &town, &settings, &before.plan, stamp.now)?;
        if after == before.plan {
            break (before, false);
        }
        if let Some(job) = replace(context, args, &town, &before.plan, after, &stamp)? {
            break (job, true);
        }
    };
    if context.wants_json() {
        return context.json(&job_json(&job, &town.open_store()?.under_way()?));
    }
    let done = if is_new { "Changed" } else { "Nothing to do for" };
    context.say(&format!("{done} {}.", summary(context, &job)))?;
    plan::note_lane(context, &job.plan, &settings.policy(town.root()).lanes);
    Ok(())
}

/// The plan with what was asked for.
fn changed(
    context: &Context,
    args: &EditArgs,
    town: &Town,
    settings: &Settings,
    before: &JobPlan,
    now: Timestamp,
) -> Result<JobPlan, Failure> {
    let mut after = before.clone();
    change_when(args, &mut after, now)?;
    if let Some(payload) = what::changed(&args.what, &before.payload, settings)? {
        check_sling(context, town, &payload, settings)?;
        after.payload = payload;
    }
    change_how(&args.how, &mut after, settings)?;
    plan::refuse_idle_grace(&after)?;
    after.name = args.name.clone().unwrap_or(after.name);
    if args.how.channel.is_some() {
        plan::refuse_closed_channel(&after, settings)?;
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
    stamp: &Stamp,
) -> Result<Option<Job>, Failure> {
    let mut is_same = false;
    let change = |plan: &mut JobPlan| {
        is_same = plan == before;
        if is_same {
            *plan = after;
        }
    };
    let job = context.open(town)?.edit_job(&args.job, change, stamp)?;
    Ok(Some(job).filter(|_| is_same))
}

fn change_when(args: &EditArgs, job: &mut JobPlan, now: Timestamp) -> Result<(), Failure> {
    let (zone, tz) = match &args.when.tz {
        Some(name) => plan::zone(Some(name))?,
        None => (TimeZone::get(&job.tz).unwrap_or(TimeZone::UTC), job.tz.clone()),
    };
    match (plan::schedule(&args.when, &zone, now)?, &job.schedule) {
        (Some(schedule), _) => job.schedule = schedule,
        (None, Schedule::At(at)) if tz != job.tz => {
            let time = same_time(*at, &zone, now);
            return Err(one_time(&job.name, time.as_deref().unwrap_or("TIME"), &tz));
        }
        (None, _) => (),
    }
    job.tz = tz;
    Ok(())
}

/// The clock there shows another time then, and who names a zone may mean either.
fn one_time(name: &str, time: &str, tz: &str) -> Failure {
    let why = format!("another zone alone does not say when `{}` comes: it has one time", shown(name));
    Failure::new(Kind::Usage, why).hint(format!("say the time there too, as in `--at {time} --tz {tz}`"))
}

/// A time as it is typed in a zone, if it is still to come.
fn same_time(at: Timestamp, zone: &TimeZone, now: Timestamp) -> Option<String> {
    let clock = zone.to_datetime(at);
    let clock = clock.strftime(if clock.second() == 0 { "%F %H:%M" } else { "%F %T" });
    let with_offset = || at.display_with_offset(zone.to_offset(at)).to_string();
    match when::parse_at(&clock.to_string(), now, zone) {
        Ok(_) => Some(format!("'{clock}'")),
        Err(BadWhen::Twice { .. }) => Some(with_offset()),
        Err(_) => None,
    }
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
