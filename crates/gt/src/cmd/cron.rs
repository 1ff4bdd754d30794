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
use gt_core::job::{BadJob, JobState, Schedule};
use gt_core::refusal::Refusal;
use gt_core::text::one_line;
use gt_store::{FireFilter, FiresOf, Job, JobPlan, Stage, Store, StoreError, UnderWay, beat_of};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::context::Context;
use crate::failure::{Failure, Kind};

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

/// How far off a time is: `in 2h 5m`, `3m ago`. As near as its unit allows, so that `in 2h` is read back as that.
pub(crate) fn off_words(at: Timestamp, now: Timestamp) -> String {
    let span = at.duration_since(now).abs();
    if at <= now { format!("{} ago", span_words(span)) } else { format!("in {}", span_words(span.max(SECOND))) }
}

/// The same for what comes next: a time that has come is due.
pub(crate) fn next_words(at: Timestamp, now: Timestamp) -> String {
    let off = off_words(at, now);
    if at <= now { format!("due {off}") } else { off }
}

/// What a job is at, in words.
pub(crate) fn under_way_words(at: &UnderWay, now: Timestamp) -> String {
    let words = match at.stage {
        Stage::Runs { since: Some(since) } => format!("runs now, started {}", off_words(since, now)),
        Stage::Runs { since: None } => "starts now".to_owned(),
        Stage::Waits => "waits for its turn".to_owned(),
        Stage::TriedAgain { at } => return again_words(at, now),
    };
    if at.attempt > 1 { format!("{words}, attempt {}", at.attempt) } else { words }
}

/// That something has failed, and when it is tried again.
fn again_words(at: Timestamp, now: Timestamp) -> String {
    if at <= now {
        "failed, waits to be tried again".to_owned()
    } else {
        format!("failed, tried again {}", off_words(at, now))
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

fn span_words(span: SignedDuration) -> String {
    let nearest = |unit: i64| (span + SignedDuration::from_millis(unit * 500)).as_secs() / unit;
    match (nearest(1), nearest(60), nearest(3600)) {
        (0, ..) => "0s".to_owned(),
        (seconds @ ..600, ..) => two_units([(seconds / 60, "m"), (seconds % 60, "s")]),
        (_, minutes @ ..1440, _) => two_units([(minutes / 60, "h"), (minutes % 60, "m")]),
        (.., hours) => two_units([(hours / 24, "d"), (hours % 24, "h")]),
    }
}

/// Numbers with their units, without those that are zero.
fn two_units(parts: [(i64, &str); 2]) -> String {
    let shown = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}"));
    shown.collect::<Vec<_>>().join(" ")
}

/// The agent whose heartbeat a job of that name is.
pub(crate) fn beat_agent(name: &str) -> Option<String> {
    name.strip_prefix(beat_of("").as_str()).map(one_line)
}

/// What has a job go on that rests, as it is typed.
pub(crate) fn go_on_command(job: &Job) -> String {
    let name = shown(job.name());
    match (beat_agent(job.name()), &job.plan.schedule) {
        // One that rests for a reason, and has not failed, rests because all do.
        (Some(_), _) if job.state == JobState::Paused && job.why.is_some() => "gt heartbeat enable".to_owned(),
        (Some(agent), _) => format!("gt heartbeat enable {agent}"),
        (None, Schedule::At(_)) if job.state == JobState::Disabled => format!("gt cron edit {name} --at TIME"),
        (None, Schedule::Broken { .. }) => format!("gt cron edit {name} --cron EXPR"),
        (None, _) => format!("gt cron resume {name}"),
    }
}

/// Why there is no such job. One that came once and is done with is known to the log.
fn missing(store: &mut Store, name: &str, error: StoreError) -> Failure {
    let filter = FireFilter { of: FiresOf::One(name.to_owned()), status: None, limit: Some(1) };
    let is_known =
        matches!(error, StoreError::NoJob { .. }) && store.fires(&filter).is_ok_and(|fires| !fires.is_empty());
    if !is_known {
        return error.into();
    }
    let name = shown(name);
    Failure::new(Kind::NotFound, format!("there is no job `{name}` any more"))
        .hint(format!("`gt cron runs {name}` shows what became of it"))
}

/// A name as it may be shown.
fn shown(name: &str) -> String {
    one_line(name)
}

#[cfg(test)]
mod tests;
