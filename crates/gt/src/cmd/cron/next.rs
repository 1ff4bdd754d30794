//! `gt cron next`: when it would come, before anybody trusts it.

use clap::Args;
use gt_core::cron::{BadExpr, Expr};
use gt_core::job::{JobState, Schedule, flaw_of_name, is_id};
use gt_core::text::one_line;
use gt_core::when;
use gt_store::{Job, StoreError};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit};

use super::{beat_agent, clock_words, go_on_command, missing, plan, shown};
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// So long before its end the calendar may have no time left for an expression: leap days come every eight years at the least.
const LAST_YEARS: SignedDuration = SignedDuration::from_hours(24 * 366 * 8);

/// Most that are shown at once.
const COUNT_MAX: usize = 10_000;

/// Show when a cron expression, or a job, comes next
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron next '0 9 * * 1-5' --tz Europe/Berlin
  gt cron next '30 2 * * *' --tz America/New_York --from 2027-03-12 --count 4
  gt cron next report")]
pub(super) struct NextArgs {
    /// A cron expression, or the name of a job
    #[arg(value_name = "EXPR")]
    expr: String,
    /// The time zone that it is in; else this machine's, or the job's
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// After this time, past or to come, by the schedule alone; else now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// So many of them
    #[arg(long, value_name = "N", default_value_t = 5)]
    count: usize,
}

/// What is asked about: a schedule in a zone.
struct Asked {
    schedule: Schedule,
    zone: TimeZone,
    /// The job that comes so; in another zone than its own none does.
    job: Option<Job>,
}

pub(super) fn run(context: &Context, args: &NextArgs) -> Result<(), Failure> {
    if args.count == 0 || args.count > COUNT_MAX {
        return Err(
            Failure::new(Kind::Usage, format!("`--count` takes 1 to {COUNT_MAX}")).hint("for example `--count 5`")
        );
    }
    let asked = what(context, args)?;
    let first = match &asked.job {
        Some(job) if args.from.is_none() => waited_for(context, job)?,
        _ => first_from(context, args, &asked)?,
    };
    // What is due already has come by now; those after it are to come.
    let due = if first <= context.now() && args.from.is_none() { context.now() } else { first };
    let after = |last: &Timestamp| asked.schedule.next((*last).max(due), &asked.zone);
    let times = std::iter::successors(Some(first), after).take(args.count);
    let times: Vec<String> = times.map(|at| written(at, &asked.zone)).collect();
    if context.wants_json() { context.json(&times) } else { context.say(&times.join("\n")) }
}

/// The first time after the one that is named, or after now.
fn first_from(context: &Context, args: &NextArgs, asked: &Asked) -> Result<Timestamp, Failure> {
    let from = match &args.from {
        Some(text) => when::parse_from(text, context.now(), &asked.zone).map_err(|bad| plan::bad_when(&bad))?,
        None => context.now(),
    };
    asked.schedule.next(from, &asked.zone).ok_or_else(|| {
        let (what, from) = (one_line(&args.expr), from.round(Unit::Second).unwrap_or(from));
        let hint = match &asked.schedule {
            Schedule::At(at) => format!("it comes once, at {}", written(*at, &asked.zone)),
            _ if from > Timestamp::MAX - LAST_YEARS => "the calendar ends with the year 9999".to_owned(),
            _ => "does that day exist in that month?".to_owned(),
        };
        Failure::new(Kind::Refused, format!("no time of `{what}` comes after {}", written(from, &asked.zone)))
            .hint(hint)
    })
}

/// The slot that a job waits for, or why it waits for none.
fn waited_for(context: &Context, job: &Job) -> Result<Timestamp, Failure> {
    let name = shown(job.name());
    if let Some(at) = job.next_at {
        if at <= context.now() {
            context.note_missing_daemon(&context.town()?);
        }
        return Ok(at);
    }
    if let Schedule::At(at) = job.plan.schedule
        && (at <= context.now() || job.state == JobState::Active)
    {
        return Err(over(job, at));
    }
    let why = job.why.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    let rests = format!("the job `{name}` is {}{why}", job.state.as_str());
    let alone = format!("`gt cron next {name} --from now` shows its schedule alone");
    Err(Failure::new(Kind::NotNow, rests).hint(format!("`{}` has it go on; {alone}", go_on_command(job))))
}

/// Says that a job which comes once has had its time.
fn over(job: &Job, at: Timestamp) -> Failure {
    let name = shown(job.name());
    let time = clock_words(at, &job.plan.tz);
    if job.state == JobState::Active {
        let comes = format!("the job `{name}` comes once, and its time has come: {time}");
        return Failure::new(Kind::Refused, comes).hint(format!("see what becomes of it with `gt cron runs {name}`"));
    }
    let is = match &job.why {
        Some(why) => format!("is over: {}", one_line(why)),
        None => format!("is {}, and its time has passed: {time}", job.state.as_str()),
    };
    Failure::new(Kind::Refused, format!("the job `{name}` {is}")).hint(format!(
        "give it another time with `gt cron edit {name} --at TIME`, or run it now with `gt cron run {name}`"
    ))
}

/// What is meant: an expression, or else a job.
fn what(context: &Context, args: &NextArgs) -> Result<Asked, Failure> {
    let job = match Expr::parse(&args.expr) {
        Ok(expr) => {
            let (zone, _) = plan::zone(args.tz.as_deref())?;
            return Ok(Asked { schedule: Schedule::Cron(expr), zone, job: None });
        }
        Err(bad) => named(context, &args.expr, &bad)?,
    };
    let (zone, tz) = plan::zone(Some(args.tz.as_ref().unwrap_or(&job.plan.tz)))?;
    Ok(Asked { schedule: job.plan.schedule.clone(), zone, job: Some(job).filter(|job| job.plan.tz == tz) })
}

/// The job of that name, if it can be one.
fn named(context: &Context, word: &str, bad: &BadExpr) -> Result<Job, Failure> {
    let can_be_job = flaw_of_name(word).is_none() || is_id(word) || beat_agent(word).is_some();
    if !can_be_job {
        return Err(plan::bad_expr(bad));
    }
    let nickname = format!("@{word}");
    let mut store = context.store()?;
    store.job(word).map_err(|error| match error {
        StoreError::NoJob { .. } if Expr::parse(&nickname).is_ok() => {
            Failure::new(Kind::NotFound, error.to_string()).hint(format!("if a schedule is meant: `{nickname}`"))
        }
        error => missing(&mut store, word, error),
    })
}

/// RFC 3339, with the offset that holds there then.
fn written(at: Timestamp, zone: &TimeZone) -> String {
    at.display_with_offset(zone.to_offset(at)).to_string()
}
