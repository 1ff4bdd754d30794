//! `gt deacon`: work that somebody left. // SPEC R2
//!
//! The daemon does all of this by itself; these are the same verbs for whoever wants to do it now.

mod feed;

use std::time::Duration;

use clap::{Args, Subcommand};
use gt_core::text::one_line;
use gt_core::time;
use gt_engine::config;
use gt_store::{Redispatch, StaleHook};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::context::{After, Context};
use crate::failure::{Failure, Kind};
use crate::render::{DIM, paint};

/// Give out again what somebody left
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt deacon redispatch gt-a1b2     give it to another worker
  gt deacon feed-stranded          start what is ready in convoys, and nobody took
  gt deacon stale-hooks            release what is on a hook, and nobody works on")]
pub(crate) struct DeaconArgs {
    #[command(subcommand)]
    command: DeaconCommand,
}

#[derive(Debug, Subcommand)]
enum DeaconCommand {
    Redispatch(RedispatchArgs),
    FeedStranded(feed::FeedArgs),
    StaleHooks(StaleArgs),
}

/// Give a bead to another worker, unless something speaks against it
///
/// What runs or is scheduled stays as it is. A bead that cools down or is held is refused; one whose attempts are used up
/// is a letter to the mayor, once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt deacon redispatch gt-a1b2\n  gt deacon redispatch gt-a1b2 --dry-run")]
struct RedispatchArgs {
    /// The bead's id
    bead: String,
}

/// Release beads that are on a hook, and that nobody works on
///
/// What a person has taken is left alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt deacon stale-hooks
  gt deacon stale-hooks --max-age 10m --dry-run")]
struct StaleArgs {
    /// How long nothing may have changed; else deacon.stale_after
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_age: Option<Duration>,
}

pub(crate) fn run(context: &Context, args: DeaconArgs) -> Result<(), Failure> {
    match args.command {
        DeaconCommand::Redispatch(args) => redispatch(context, &args.bead),
        DeaconCommand::FeedStranded(args) => feed::run(context, &args),
        DeaconCommand::StaleHooks(args) => stale_hooks(context, &args),
    }
}

/// Reads `10m`.
fn duration(text: &str) -> Result<Duration, String> {
    config::parse_duration(text).ok_or_else(|| "a duration is a number with s, m, h or d, as in 10m".to_owned())
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

fn redispatch(context: &Context, bead: &str) -> Result<(), Failure> {
    let town = context.town()?;
    let policy = context.settings(&town)?.policy(town.root());
    let mut store = context.open(&town)?;
    let answer = store.redispatch(bead, &policy, &context.stamp())?;
    let (word, text) = match &answer {
        Redispatch::Scheduled { context } => ("scheduled", format!("{bead} is scheduled again (context: {context}).")),
        Redispatch::AlreadyScheduled { context } => {
            ("already-scheduled", format!("{bead} is scheduled already (context: {context})."))
        }
        Redispatch::Running { polecat } => ("running", format!("{polecat} works on {bead}; nothing was changed.")),
        Redispatch::Done => ("done", format!("The work of {bead} is done; nothing was changed.")),
        Redispatch::Escalated { attempts, is_new } => return refuse_escalated(bead, *attempts, *is_new),
        Redispatch::CoolingDown { until } => {
            let message = format!("{bead} cools down until {}", time::format(*until));
            return Err(Failure::new(Kind::NotNow, message).hint(format!("`gt scheduler retry {bead}` does not wait")));
        }
        Redispatch::Held { reason, until } => {
            let kind = if until.is_some() { Kind::NotNow } else { Kind::Refused };
            let message = format!("{bead} is not given out: {reason}");
            return Err(Failure::new(kind, message).hint(format!("see more with `gt explain {bead}`")));
        }
    };
    if context.wants_json() {
        context.json(&redispatch_json(bead, word, &answer))?;
    } else {
        context.say(&text)?;
    }
    context.carry_on(&town, &mut store, After::Command)
}

fn refuse_escalated(bead: &str, attempts: i64, is_new: bool) -> Result<(), Failure> {
    let asked = if is_new { "the mayor is asked" } else { "the mayor was asked before" };
    Err(Failure::new(Kind::Refused, format!("{bead} is out of attempts: {attempts} ended unfinished; {asked}"))
        .hint(format!("to try it again: `gt scheduler retry {bead}`")))
}

fn redispatch_json(bead: &str, outcome: &str, answer: &Redispatch) -> Value {
    let context = match answer {
        Redispatch::Scheduled { context } | Redispatch::AlreadyScheduled { context } => Some(context),
        _ => None,
    };
    let polecat = if let Redispatch::Running { polecat } = answer { Some(polecat) } else { None };
    let attempts = if let Redispatch::Escalated { attempts, .. } = answer { Some(attempts) } else { None };
    json!({ "bead": bead, "outcome": outcome, "context": context, "polecat": polecat, "attempts": attempts })
}

fn stale_hooks(context: &Context, args: &StaleArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let age = args.max_age.unwrap_or_else(|| settings.config.duration("deacon.stale_after"));
    let mut store = context.open(&town)?;
    let stamp = context.stamp();
    let released = match stamp.now.checked_sub(signed(age)) {
        Ok(before) => store.release_stale_hooks(before, &stamp)?,
        Err(_) => Vec::new(),
    };
    if context.wants_json() {
        context.json(&json!({ "released": released.iter().map(hook_json).collect::<Vec<_>>() }))?;
    } else if released.is_empty() {
        return context.say("No hook is stale.");
    } else {
        for hook in &released {
            context.say(&hook_line(hook))?;
        }
    }
    context.carry_on(&town, &mut store, After::Command)
}

fn hook_line(hook: &StaleHook) -> String {
    let who = hook.assignee.as_deref().map_or_else(|| "nobody".to_owned(), one_line);
    let since = paint(DIM, &format!("{} by {who} since {}", hook.status, time::format(hook.since)));
    format!("Released {} {}  {since}", hook.bead, one_line(&hook.title))
}

fn hook_json(hook: &StaleHook) -> Value {
    json!({
        "bead": hook.bead,
        "title": hook.title,
        "status": hook.status,
        "assignee": hook.assignee,
        "since": time::format(hook.since),
    })
}
