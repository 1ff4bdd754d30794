//! `gt cron next`: when it would come, before anybody trusts it.

use clap::Args;
use gt_core::cron::Expr;
use gt_core::job::Schedule;
use gt_core::text::one_line;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::plan;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::when;

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
    /// After this time; else now
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// So many of them
    #[arg(long, value_name = "N", default_value_t = 5)]
    count: usize,
}

pub(super) fn run(context: &Context, args: &NextArgs) -> Result<(), Failure> {
    if args.count == 0 || args.count > COUNT_MAX {
        return Err(
            Failure::new(Kind::Usage, format!("`--count` takes 1 to {COUNT_MAX}")).hint("for example `--count 5`")
        );
    }
    let (schedule, zone) = what(context, args)?;
    let from = match &args.from {
        Some(text) => when::parse_zoned(text, context.now(), &zone)?,
        None => context.now(),
    };
    let mut times: Vec<String> = Vec::new();
    let mut after = from;
    while times.len() < args.count
        && let Some(next) = schedule.next(after, &zone)
    {
        times.push(written(next, &zone));
        after = next;
    }
    if times.is_empty() {
        let what = one_line(&args.expr);
        return Err(Failure::new(Kind::Refused, format!("no time of `{what}` comes after {}", written(from, &zone)))
            .hint("does that day exist in that month?"));
    }
    if context.wants_json() { context.json(&times) } else { context.say(&times.join("\n")) }
}

/// What is meant: an expression, or else a job.
fn what(context: &Context, args: &NextArgs) -> Result<(Schedule, TimeZone), Failure> {
    let (zone, _) = plan::zone(args.tz.as_deref())?;
    let bad = match Expr::parse(&args.expr) {
        Ok(expr) => return Ok((Schedule::Cron(expr), zone)),
        Err(bad) => bad,
    };
    let is_word = !args.expr.contains(char::is_whitespace) && !args.expr.starts_with('@');
    let job = context.store().ok().filter(|_| is_word).and_then(|mut store| store.job(&args.expr).ok());
    let Some(job) = job else { return Err(plan::bad_expr(&bad)) };
    let zone = if args.tz.is_some() { zone } else { plan::zone(Some(&job.plan.tz))?.0 };
    Ok((job.plan.schedule, zone))
}

/// RFC 3339, with the offset that holds there then.
fn written(at: Timestamp, zone: &TimeZone) -> String {
    at.display_with_offset(zone.to_offset(at)).to_string()
}
