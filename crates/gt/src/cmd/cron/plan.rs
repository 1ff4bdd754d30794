//! The words that say when and by what rules a job runs, for adding and for changing one.

use clap::Args;
use gt_core::cron::Expr;
use gt_core::job::{Missed, Payload, Schedule, every};
use gt_core::lane::Lanes;
use gt_core::near;
use gt_core::text::one_line;
use gt_core::when::{self, BadWhen};
use gt_engine::channels;
use gt_engine::config::parse_duration;
use gt_engine::settings::Settings;
use gt_store::{Address, JobPlan};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cmd::send::require_channel;
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// When it runs.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(super) struct WhenArgs {
    /// Once, at that time: `tomorrow 9:00`, `in 2h`, `2026-12-01 09:00`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["every", "cron"])]
    pub(super) at: Option<String>,
    /// Every so often, counted from now: `30m`, `6h`
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, conflicts_with = "cron")]
    pub(super) every: Option<String>,
    /// By a cron expression of five fields: `0 9 * * 1-5`, `@daily`, `0 18 L * *`
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(super) cron: Option<String>,
    /// The time zone that these are in; else this machine's
    #[arg(long, value_name = "ZONE")]
    pub(super) tz: Option<String>,
}

/// By what rules.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(super) struct HowArgs {
    /// What becomes of times that come while no daemon runs: skip, once (the newest of them) or all
    #[arg(long, value_name = "WHAT")]
    pub(super) missed: Option<String>,
    /// How late a missed one may still come; `default`: as `cron.grace` says
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    pub(super) grace: Option<String>,
    /// Let a run begin while the one before goes on
    #[arg(long, conflicts_with = "no_overlap")]
    pub(super) overlap: bool,
    /// One run at a time, as usual
    #[arg(long)]
    pub(super) no_overlap: bool,
    /// How long a run may take; `default`: as `cron.timeout` says
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    pub(super) timeout: Option<String>,
    /// How often a failure is tried again; `default`: as `cron.retries` says
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) retries: Option<String>,
    /// The lane that it counts in; else, or with `default`, `cron`
    #[arg(long, value_name = "LANE")]
    pub(super) lane: Option<String>,
    /// Deliver its answer by this channel; `none`: nowhere
    #[arg(long, value_name = "CHANNEL")]
    pub(super) channel: Option<String>,
    /// To whom, in the channel's own words
    #[arg(long, value_name = "WHO", allow_hyphen_values = true)]
    pub(super) to: Option<String>,
}

/// A zone and its name; what is no zone is refused with those that it may have been meant for.
pub(super) fn zone(name: Option<&str>) -> Result<(TimeZone, String), Failure> {
    let Some(name) = name else {
        return machine_zone(TimeZone::system());
    };
    if let Ok(zone) = TimeZone::get(name) {
        let name = zone.iana_name().unwrap_or(name).to_owned();
        return Ok((zone, name));
    }
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let ends_so = |zone: &&String| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    let mut meant: Vec<String> = known.iter().filter(ends_so).take(3).cloned().collect();
    meant.extend(near::closest(name, known.iter().map(String::as_str)));
    let hint = match meant.as_slice() {
        [] => "name it as in `Europe/Berlin` or `UTC`".to_owned(),
        meant => format!("did you mean {}?", meant.join(" or ")),
    };
    Err(Failure::new(Kind::Usage, format!("there is no time zone `{}`", one_line(name))).hint(hint))
}

/// The zone that these times are in. A length of time is the same in all of them.
pub(super) fn zone_of(args: &WhenArgs) -> Result<(TimeZone, String), Failure> {
    let is_span = args.every.is_some() || args.at.as_deref().is_some_and(|at| at.trim_start().starts_with("in "));
    match zone(args.tz.as_deref()) {
        Err(_) if is_span && args.tz.is_none() => Ok((TimeZone::UTC, "UTC".to_owned())),
        zone => zone,
    }
}

/// The zone of this machine, if others would find it by its name.
fn machine_zone(zone: TimeZone) -> Result<(TimeZone, String), Failure> {
    let name = zone.iana_name().filter(|name| TimeZone::get(name).is_ok()).map(str::to_owned);
    match name {
        Some(name) => Ok((zone, name)),
        None if zone.is_unknown() => Ok((TimeZone::UTC, "UTC".to_owned())),
        None => Err(Failure::new(Kind::Usage, "the time zone of this machine has no name that a job could keep")
            .hint("name one: `--tz Europe/Berlin`, or `--tz UTC`")),
    }
}

/// The schedule that was asked for; `None`: none was.
pub(super) fn schedule(args: &WhenArgs, zone: &TimeZone, now: Timestamp) -> Result<Option<Schedule>, Failure> {
    if let Some(text) = &args.at {
        let at = when::parse_at(text, now, zone).map_err(|bad| bad_when(&bad))?;
        return Ok(Some(Schedule::At(gt_core::time::truncate(at))));
    }
    if let Some(text) = &args.every {
        let span = span("--every", text)?;
        let bad =
            |bad: gt_core::job::BadSchedule| Failure::new(Kind::Usage, bad.to_string()).hint("say `30s`, `5m` or `6h`");
        return every(span, now).map(Some).map_err(bad);
    }
    let parsed = args.cron.as_deref().map(Expr::parse).transpose();
    parsed.map(|expr| expr.map(Schedule::Cron)).map_err(|bad| bad_expr(&bad))
}

pub(super) fn bad_when(bad: &BadWhen) -> Failure {
    Failure::new(Kind::Usage, bad.to_string()).hint(bad.hint())
}

pub(super) fn bad_expr(bad: &gt_core::cron::BadExpr) -> Failure {
    let usual = || "for example `0 9 * * 1-5`, at nine on workdays; try it with `gt cron next EXPR`".to_owned();
    Failure::new(Kind::Usage, bad.to_string()).hint(bad.hint().unwrap_or_else(usual))
}

pub(super) fn span(flag: &str, text: &str) -> Result<SignedDuration, Failure> {
    let span = parse_duration(text).and_then(|span| SignedDuration::try_from(span).ok());
    span.ok_or_else(|| {
        Failure::new(Kind::Usage, format!("`{}` is not a span of time for {flag}", one_line(text)))
            .hint("say `30s`, `5m` or `1h 30m`")
    })
}

/// A grace is for the one of the missed times that may still come.
pub(super) fn refuse_idle_grace(plan: &JobPlan) -> Result<(), Failure> {
    if plan.grace.is_none() || plan.missed == Missed::Once {
        return Ok(());
    }
    let what = format!("`--grace` means nothing with `--missed {}`", plan.missed.as_str());
    Err(Failure::new(Kind::Usage, what)
        .hint("leave it out, or say `--missed once`; of a job that has one: `--grace default`"))
}

pub(super) fn missed(word: &str) -> Result<Missed, Failure> {
    Missed::parse(word).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("`{}` does not say what becomes of missed times", one_line(word)))
            .hint("say `skip`, `once` or `all`")
    })
}

/// Reads a span, or `default`.
pub(super) fn optional_span(flag: &str, text: &str) -> Result<Option<SignedDuration>, Failure> {
    if text == "default" { Ok(None) } else { span(flag, text).map(Some) }
}

/// Reads how long a run may take, or `default`.
pub(super) fn timeout(text: &str) -> Result<Option<SignedDuration>, Failure> {
    match optional_span("--timeout", text)? {
        Some(span) if span.is_zero() => {
            Err(Failure::new(Kind::Usage, "a run that may take no time never gets anywhere")
                .hint("say how long it may take, as in `--timeout 8h`"))
        }
        span => Ok(span),
    }
}

/// Reads the name of a lane, or `default`.
pub(super) fn lane(text: &str) -> Result<Option<String>, Failure> {
    match text.trim() {
        "" => {
            Err(Failure::new(Kind::Usage, "the name of the lane is empty").hint("`gt lane list` shows what there is"))
        }
        "default" => Ok(None),
        lane => Ok(Some(lane.to_owned())),
    }
}

/// Tells of a lane that nobody has set up. // SPEC L1
pub(super) fn note_lane(context: &Context, plan: &JobPlan, lanes: &Lanes) {
    if let Some(lane) = plan.lane.as_deref().filter(|lane| !lanes.has(lane)) {
        let (name, other) = (one_line(lane), lanes.resolve(lane));
        context.note(&format!(
            "note: there is no lane `{name}`, so it counts in `{other}`; `gt lane list` shows what there is"
        ));
    }
}

pub(super) fn retries(text: &str) -> Result<Option<u32>, Failure> {
    match text {
        "default" => Ok(None),
        text => text.parse().ok().filter(|n| *n <= 100).map(Some).ok_or_else(|| {
            Failure::new(Kind::Usage, format!("`{}` is not a number of retries", one_line(text))).hint("say 0 to 100")
        }),
    }
}

/// Where its answer goes; `none` is nowhere. What is not said is as at present, but whom to tell is another's matter in another
/// channel.
pub(super) fn address(
    how: &HowArgs,
    present: Option<&Address>,
    settings: &Settings,
) -> Result<Option<Address>, Failure> {
    let channel = how.channel.as_deref().or(present.map(|to| to.channel.as_str()));
    let Some(channel) = channel.filter(|channel| *channel != "none") else {
        return match &how.to {
            Some(_) => {
                Err(Failure::new(Kind::Usage, "`--to` goes with a channel only").hint("say by which: `--channel NAME`"))
            }
            None => Ok(None),
        };
    };
    if how.channel.is_some() {
        require_channel(settings, channel)?;
    }
    let same = present.filter(|to| to.channel == channel);
    let recipient = how.to.clone().or_else(|| same.and_then(|to| to.recipient.clone()));
    Ok(Some(Address { channel: channel.to_owned(), recipient, reply_to: None }))
}

/// A channel that would refuse all that a job has to tell is of no use to it.
pub(super) fn refuse_closed_channel(plan: &JobPlan, settings: &Settings) -> Result<(), Failure> {
    let Some(to) = &plan.deliver else { return Ok(()) };
    let session = match &plan.payload {
        Payload::Message { session: Some(session), .. } => session.clone(),
        _ => format!("cron:{}", plan.name),
    };
    match channels::refusal(&settings.config, &to.channel, &session) {
        None => Ok(()),
        Some(why) => Err(Failure::new(Kind::Refused, why)
            .hint(format!("let it in with another pattern, such as \"cron:*\", in `channels.{}.allow`", to.channel))),
    }
}
