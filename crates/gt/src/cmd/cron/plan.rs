//! The words in which a job is described, for adding and for changing one.

use clap::Args;
use gt_core::cron::Expr;
use gt_core::job::{Missed, Payload, Schedule, every};
use gt_core::near;
use gt_core::session::{TEXT_BYTES_MAX, flaw_of_key};
use gt_core::text::one_line;
use gt_core::when;
use gt_engine::agents::find_for_turns;
use gt_engine::config::parse_duration;
use gt_engine::settings::Settings;
use gt_store::Address;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cmd::send::require_channel;
use crate::failure::{Failure, Kind};

/// When it runs.
#[derive(Debug, Args)]
pub(super) struct WhenArgs {
    /// Once, at that time: `tomorrow 9:00`, `in 2h`, `2026-12-01 09:00`
    #[arg(long, value_name = "TIME", conflicts_with_all = ["every", "cron"])]
    pub(super) at: Option<String>,
    /// Every so often, counted from now: `30m`, `6h`
    #[arg(long, value_name = "SPAN", conflicts_with = "cron")]
    pub(super) every: Option<String>,
    /// By a cron expression of five fields: `0 9 * * 1-5`, `@daily`, `0 18 L * *`
    #[arg(long, value_name = "EXPR")]
    pub(super) cron: Option<String>,
    /// The time zone that these are in; else this machine's
    #[arg(long, value_name = "ZONE")]
    pub(super) tz: Option<String>,
}

/// What it does.
#[derive(Debug, Args)]
pub(super) struct WhatArgs {
    /// Ask an agent this
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["sling", "new", "run"])]
    pub(super) message: Option<String>,
    /// In this session, as one of its messages; else in a fresh conversation each time
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Who answers, or works; else the default agent
    #[arg(long, value_name = "AGENT")]
    pub(super) agent: Option<String>,
    /// Sling these: beads, an epic, a convoy, or a formula with `--on`; and perhaps a rig
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["new", "run"])]
    pub(super) sling: Vec<String>,
    /// The bead that the formula after `--sling` is for
    #[arg(long, value_name = "BEAD", requires = "sling")]
    pub(super) on: Option<String>,
    /// Make a bead with this title each time, and sling it
    #[arg(long, value_name = "TITLE", conflicts_with = "run")]
    pub(super) new: Option<String>,
    /// The rig that the new bead is for
    #[arg(long, value_name = "RIG", requires = "new")]
    pub(super) rig: Option<String>,
    /// The recipe to work by
    #[arg(long, value_name = "FORMULA")]
    pub(super) formula: Option<String>,
    /// Instructions for whoever works
    #[arg(long, value_name = "TEXT")]
    pub(super) args: Option<String>,
    /// Run this command of the shell, in the town's directory
    #[arg(long, value_name = "CMD")]
    pub(super) run: Option<String>,
}

/// By what rules.
#[derive(Debug, Args)]
pub(super) struct HowArgs {
    /// What becomes of times that come while no daemon runs: skip, once (the newest of them) or all
    #[arg(long, value_name = "WHAT")]
    pub(super) missed: Option<String>,
    /// How late a missed one may still come; `default`: as `cron.grace` says
    #[arg(long, value_name = "SPAN")]
    pub(super) grace: Option<String>,
    /// Let a run begin while the one before goes on
    #[arg(long, conflicts_with = "no_overlap")]
    pub(super) overlap: bool,
    /// One run at a time, as usual
    #[arg(long)]
    pub(super) no_overlap: bool,
    /// How long a run may take; `default`: as `cron.timeout` says
    #[arg(long, value_name = "SPAN")]
    pub(super) timeout: Option<String>,
    /// How often a failure is tried again; `default`: as `cron.retries` says
    #[arg(long, value_name = "N")]
    pub(super) retries: Option<String>,
    /// The lane that it counts in; else `cron`
    #[arg(long, value_name = "LANE")]
    pub(super) lane: Option<String>,
    /// Deliver its answer by this channel; `none`: nowhere
    #[arg(long, value_name = "CHANNEL")]
    pub(super) channel: Option<String>,
    /// To whom, in the channel's own words
    #[arg(long, value_name = "WHO", requires = "channel")]
    pub(super) to: Option<String>,
}

/// A zone and its name; what is no zone is refused with those that it may have been meant for.
pub(super) fn zone(name: Option<&str>) -> Result<(TimeZone, String), Failure> {
    let Some(name) = name else {
        let zone = TimeZone::system();
        let name = zone.iana_name().filter(|name| TimeZone::get(name).is_ok()).unwrap_or("UTC").to_owned();
        return Ok((zone, name));
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

/// The schedule that was asked for; `None`: none was.
pub(super) fn schedule(args: &WhenArgs, zone: &TimeZone, now: Timestamp) -> Result<Option<Schedule>, Failure> {
    if let Some(text) = &args.at {
        let at = when::parse_at(text, now, zone)
            .map_err(|bad| Failure::new(Kind::Usage, bad.to_string()).hint(bad.hint()))?;
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

/// What it is to do; `None`: nothing was said of that.
pub(super) fn payload(args: &WhatArgs, settings: &Settings) -> Result<Option<Payload>, Failure> {
    let is_sling = !args.sling.is_empty() || args.new.is_some();
    let refuse = |is_wrong: bool, flag: &str, with: &str| {
        let refusal =
            || Failure::new(Kind::Usage, format!("`{flag}` goes with {with} only")).hint("see `gt cron add --help`");
        if is_wrong { Err(refusal()) } else { Ok(()) }
    };
    refuse(args.session.is_some() && args.message.is_none(), "--session", "`--message`")?;
    refuse(args.formula.is_some() && !is_sling, "--formula", "`--sling` and `--new`")?;
    refuse(args.args.is_some() && !is_sling, "--args", "`--sling` and `--new`")?;
    refuse(args.agent.is_some() && args.run.is_some(), "--agent", "`--message`, `--sling` and `--new`")?;
    if let Some(text) = &args.message {
        return message(text, args, settings).map(Some);
    }
    if let Some(command) = &args.run {
        return match command.trim() {
            "" => Err(Failure::new(Kind::Usage, "the command is empty").hint("for example `--run 'make backup'`")),
            _ => Ok(Some(Payload::Run { command: command.clone() })),
        };
    }
    Ok(is_sling.then(|| Payload::Sling { words: sling_words(args) }))
}

fn message(text: &str, args: &WhatArgs, settings: &Settings) -> Result<Payload, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the message is empty").hint("for example `--message 'What is new?'`"));
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Failure::new(Kind::Usage, format!("the message is longer than {TEXT_BYTES_MAX} bytes")));
    }
    if let Some((key, why)) = args.session.as_deref().and_then(|key| Some((key, flaw_of_key(key)?))) {
        let key = one_line(key);
        return Err(
            Failure::new(Kind::Usage, format!("`{key}` cannot name a session: {why}")).hint("for example `dm:anna`")
        );
    }
    if let Some(agent) = &args.agent {
        find_for_turns(&settings.config, agent).map_err(|why| Failure::new(Kind::Usage, one_line(&why)))?;
    }
    Ok(Payload::Message { text: text.to_owned(), session: args.session.clone(), agent: args.agent.clone() })
}

/// The words of `gt sling` that do it.
fn sling_words(args: &WhatArgs) -> Vec<String> {
    let mut words = args.sling.clone();
    let options = [
        ("--new", &args.new),
        ("--on", &args.on),
        ("--formula", &args.formula),
        ("--args", &args.args),
        ("--agent", &args.agent),
    ];
    words.extend(args.rig.iter().cloned());
    for (flag, value) in options {
        words.extend(value.iter().map(|value| format!("{flag}={value}")));
    }
    words
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

pub(super) fn retries(text: &str) -> Result<Option<u32>, Failure> {
    match text {
        "default" => Ok(None),
        text => text.parse().ok().filter(|n| *n <= 100).map(Some).ok_or_else(|| {
            Failure::new(Kind::Usage, format!("`{}` is not a number of retries", one_line(text))).hint("say 0 to 100")
        }),
    }
}

/// Where its answer goes; `none` is nowhere.
pub(super) fn address(channel: &str, to: Option<&str>, settings: &Settings) -> Result<Option<Address>, Failure> {
    if channel == "none" {
        return Ok(None);
    }
    require_channel(settings, channel)?;
    Ok(Some(Address { channel: channel.to_owned(), recipient: to.map(str::to_owned), reply_to: None }))
}
