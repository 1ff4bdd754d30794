//! `gt cron add`.

use std::collections::BTreeMap;

use clap::Args;
use gt_core::job::Schedule;
use gt_engine::settings::Settings;
use gt_store::{Job, JobPlan};
use jiff::Timestamp;

use super::check::check_sling;
use super::list::job_json;
use super::plan::{self, HowArgs, WhenArgs};
use super::what::{self, WhatArgs};
use super::{clock_words, off_words, schedule_words, shown};
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Add a job: when it runs, and what it does
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron add report --cron '0 9 * * 1-5' --tz Europe/Berlin --message 'What is new?'
  gt cron add reminder --at 'in 2h' --message 'Remind me of the release' --channel my-phone
  gt cron add backup --every 6h --run './backup.sh' --timeout 1h --missed skip
  gt cron add weekly --cron '0 8 * * mon' --new 'Update the dependencies' --rig shop")]
pub(super) struct AddArgs {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    when: WhenArgs,
    #[command(flatten)]
    what: WhatArgs,
    #[command(flatten)]
    how: HowArgs,
}

pub(super) fn run(context: &Context, args: &AddArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    // All is reckoned from one moment, however long it takes to look at it.
    let stamp = context.stamp();
    let plan = make(args, &settings, stamp.now)?;
    check_sling(context, &town, &plan.payload, &settings)?;
    let mut store = context.open(&town)?;
    let job = store.add_jobs(&[plan], &stamp)?.remove(0);
    if context.wants_json() {
        context.json(&job_json(&job, &BTreeMap::new()))?;
    } else {
        context.say(&format!("Added {}.", summary(context, &job)))?;
    }
    plan::note_lane(context, &job.plan, &settings.policy(town.root()).lanes);
    context.note_missing_daemon(&town);
    Ok(())
}

/// A job in a sentence: what it is called, and when it comes.
pub(super) fn summary(context: &Context, job: &Job) -> String {
    let (plan, next) = (&job.plan, job.next_at);
    if let (Schedule::At(at), Some(next)) = (&plan.schedule, next)
        && *at == next
    {
        let off = off_words(next, context.now());
        return format!("{}: {} ({}), {off}", shown(&plan.name), schedule_words(plan), plan.tz);
    }
    let next = next.map_or_else(
        || format!("it is {}", job.state.as_str()),
        |at| format!("next {}, {}", clock_words(at, &plan.tz), off_words(at, context.now())),
    );
    format!("{}: {} ({}); {next}", shown(&plan.name), schedule_words(plan), plan.tz)
}

fn make(args: &AddArgs, settings: &Settings, now: Timestamp) -> Result<JobPlan, Failure> {
    let (zone, tz) = plan::zone_of(&args.when)?;
    let schedule = plan::schedule(&args.when, &zone, now)?.ok_or_else(|| {
        Failure::new(Kind::Usage, "it is not said when it runs")
            .hint("add `--at TIME`, `--every SPAN` or `--cron EXPR`")
    })?;
    let payload = what::payload(&args.what, settings)?.ok_or_else(|| {
        Failure::new(Kind::Usage, "it is not said what it does")
            .hint("add `--message TEXT`, `--sling ID`, `--new TITLE` or `--run CMD`")
    })?;
    let how = &args.how;
    let plan = JobPlan {
        name: args.name.clone(),
        schedule,
        tz,
        payload,
        missed: how.missed.as_deref().map(plan::missed).transpose()?.unwrap_or_default(),
        may_overlap: how.overlap,
        grace: how.grace.as_deref().map(|text| plan::optional_span("--grace", text)).transpose()?.flatten(),
        timeout: how.timeout.as_deref().map(plan::timeout).transpose()?.flatten(),
        retries: how.retries.as_deref().map(plan::retries).transpose()?.flatten(),
        lane: how.lane.as_deref().map(plan::lane).transpose()?.flatten(),
        deliver: plan::address(how, None, settings)?,
    };
    plan::refuse_idle_grace(&plan)?;
    plan::refuse_closed_channel(&plan, settings)?;
    Ok(plan)
}
