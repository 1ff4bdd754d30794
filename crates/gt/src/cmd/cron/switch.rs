//! `gt cron pause`, `resume` and `remove`.

use clap::Args;
use gt_store::Job;

use super::add::summary;
use super::list::job_json;
use super::shown;
use crate::context::Context;
use crate::failure::Failure;

/// Pause jobs: their times are left out until they are resumed; what runs goes on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron pause report")]
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
    let (mut store, stamp) = (context.store()?, context.stamp());
    for name in &args.jobs {
        let (job, is_new) = store.pause_job(name, &stamp)?;
        let name = shown(job.name());
        tell(context, &job, &if is_new { format!("Paused {name}.") } else { format!("{name} was paused already.") })?;
    }
    Ok(())
}

pub(super) fn resume(context: &Context, args: &ResumeArgs) -> Result<(), Failure> {
    let (mut store, stamp) = (context.store()?, context.stamp());
    for name in &args.jobs {
        let (job, is_new) = store.resume_job(name, &stamp)?;
        let summary = summary(context, &job);
        tell(
            context,
            &job,
            &if is_new { format!("Resumed {summary}.") } else { format!("Nothing to do for {summary}.") },
        )?;
    }
    context.note_missing_daemon(&context.town()?);
    Ok(())
}

pub(super) fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let (mut store, stamp) = (context.store()?, context.stamp());
    for name in &args.jobs {
        let job = store.remove_job(name, &stamp)?;
        tell(context, &job, &format!("Removed {}.", shown(job.name())))?;
    }
    Ok(())
}

fn tell(context: &Context, job: &Job, words: &str) -> Result<(), Failure> {
    if context.wants_json() { context.json(&job_json(job)) } else { context.say(words) }
}
