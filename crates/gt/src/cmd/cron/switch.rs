//! `gt cron pause`, `resume` and `remove`.

use clap::Args;
use gt_store::{Job, Store};

use super::add::summary;
use super::list::job_json;
use super::{refuse_heartbeats, shown};
use crate::context::Context;
use crate::failure::Failure;

/// Pause jobs: their times are left out until they are resumed; what runs goes on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron pause report
  gt cron pause report backup")]
pub(super) struct PauseArgs {
    /// Names or ids
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
}

/// Resume jobs that were paused, or disabled because they failed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron resume report")]
pub(super) struct ResumeArgs {
    /// Names or ids
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
}

/// Remove jobs; what runs goes on, and `gt cron runs` still shows what they did
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron remove report")]
pub(super) struct RemoveArgs {
    /// Names or ids
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
}

pub(super) fn pause(context: &Context, args: &PauseArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    refuse_heartbeats(&mut store, &args.jobs)?;
    let paused = store.pause_jobs(&args.jobs, &context.stamp())?;
    tell(context, &mut store, &paused, |job, is_new| match shown(job.name()) {
        name if is_new => format!("Paused {name}."),
        name => format!("{name} was paused already."),
    })
}

pub(super) fn resume(context: &Context, args: &ResumeArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    refuse_heartbeats(&mut store, &args.jobs)?;
    let resumed = store.resume_jobs(&args.jobs, &context.stamp())?;
    tell(context, &mut store, &resumed, |job, is_new| match summary(context, job) {
        summary if is_new => format!("Resumed {summary}."),
        summary => format!("Nothing to do for {summary}."),
    })?;
    context.note_missing_daemon(&context.town()?);
    Ok(())
}

pub(super) fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let removed = store.remove_jobs(&args.jobs, &context.stamp())?;
    let removed: Vec<_> = removed.into_iter().map(|job| (job, true)).collect();
    tell(context, &mut store, &removed, |job, _| format!("Removed {}.", shown(job.name())))
}

/// A line for each; in JSON the one, or a list of all.
fn tell(
    context: &Context,
    store: &mut Store,
    jobs: &[(Job, bool)],
    words: impl Fn(&Job, bool) -> String,
) -> Result<(), Failure> {
    if !context.wants_json() {
        return context.say(&jobs.iter().map(|(job, is_new)| words(job, *is_new)).collect::<Vec<_>>().join("\n"));
    }
    let under_way = store.under_way()?;
    match jobs.iter().map(|(job, _)| job_json(job, &under_way)).collect::<Vec<_>>().as_slice() {
        [job] => context.json(job),
        jobs => context.json(jobs),
    }
}
