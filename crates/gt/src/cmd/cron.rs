//! `gt cron`: jobs that the clock starts. // SPEC K1–K4

mod add;
mod check;
mod edit;
pub(crate) mod list;
mod next;
pub(crate) mod once;
mod plan;
pub(crate) mod runs;
mod show;
mod switch;
mod what;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use gt_core::job::{BadJob, Schedule};
use gt_core::refusal::Refusal;
use gt_core::text::one_line;
use gt_store::{JobPlan, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::context::Context;
use crate::failure::Failure;

/// Have work done at a time, every so often, or by a cron expression
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron add report --cron '0 9 * * 1-5' --tz Europe/Berlin --message 'What is new?' --channel ops
  gt cron add backup --every 6h --run './backup.sh'
  gt cron add reminder --at 'tomorrow 9:00' --message 'Remind me of the release'
  gt cron add weekly --cron '0 8 * * mon' --new 'Update the dependencies' --rig shop
  gt cron list
  gt cron runs report
  gt cron next '30 2 * * *' --tz America/New_York")]
pub(crate) struct CronArgs {
    #[command(subcommand)]
    command: CronCommand,
}

#[derive(Debug, Subcommand)]
enum CronCommand {
    Add(Box<add::AddArgs>),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Edit(Box<edit::EditArgs>),
    Pause(switch::PauseArgs),
    Resume(switch::ResumeArgs),
    Remove(switch::RemoveArgs),
    Run(once::RunArgs),
    Runs(runs::RunsArgs),
    Next(next::NextArgs),
}

pub(crate) fn run(context: &Context, args: CronArgs) -> Result<ExitCode, Failure> {
    match args.command {
        CronCommand::Add(args) => add::run(context, &args)?,
        CronCommand::List(args) => list::run(context, &args)?,
        CronCommand::Show(args) => show::run(context, &args)?,
        CronCommand::Edit(args) => edit::run(context, &args)?,
        CronCommand::Pause(args) => switch::pause(context, &args)?,
        CronCommand::Resume(args) => switch::resume(context, &args)?,
        CronCommand::Remove(args) => switch::remove(context, &args)?,
        CronCommand::Run(args) => return once::run(context, &args),
        CronCommand::Runs(args) => runs::run(context, &args)?,
        CronCommand::Next(args) => next::run(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whoever looks after hearts has commands of its own, which know when they rest.
fn refuse_heartbeats(store: &mut Store, jobs: &[String]) -> Result<(), Failure> {
    for name in jobs {
        let job = store.job(name)?;
        if job.is_beat {
            return Err((&Refusal::from(BadJob::IsHeartbeat { name: job.plan.name })).into());
        }
    }
    Ok(())
}

/// When a job comes, in words: what comes once as it reads in its zone.
fn schedule_words(plan: &JobPlan) -> String {
    match plan.schedule {
        Schedule::At(at) => format!("at {}", clock_words(at, &plan.tz)),
        _ => format!("{} {}", plan.schedule.kind(), plan.schedule.words()),
    }
}

/// A time as it reads in a zone: `Tue 2026-11-17 09:00 +01:00`.
pub(crate) fn clock_words(at: Timestamp, tz: &str) -> String {
    let zone = TimeZone::get(tz).unwrap_or(TimeZone::UTC);
    let at = at.to_zoned(zone);
    let seconds = if at.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    at.strftime(&format!("%a %Y-%m-%d {seconds} %:z")).to_string()
}

/// How far off a time is: `in 2h 5m`, `3m ago`.
pub(crate) fn off_words(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.duration_since(now).as_secs();
    let (days, hours, minutes) = (seconds.abs() / 86_400, seconds.abs() / 3600 % 24, seconds.abs() / 60 % 60);
    let span = match (days, hours, minutes) {
        (0, 0, 0) => format!("{}s", seconds.abs()),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, 0) => format!("{hours}h"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, 0, _) => format!("{days}d"),
        (days, hours, _) => format!("{days}d {hours}h"),
    };
    if at <= now { format!("{span} ago") } else { format!("in {span}") }
}

/// A name as it may be shown.
fn shown(name: &str) -> String {
    one_line(name)
}

#[cfg(test)]
mod tests;
