//! `gt heartbeat`: agents that look after things by themselves. // SPEC H1, H2

mod status;
mod switch;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use gt_core::text::one_line;
use gt_engine::Town;
use gt_engine::jobs;
use gt_engine::settings::Settings;
use gt_store::{FireFilter, FiresOf, Job, Store, beat_of};

use super::cron::once;
use super::cron::runs::{fire_json, lines};
use super::send;
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Have agents look at HEARTBEAT.md every so often, and tell what needs attention
///
/// The town's `HEARTBEAT.md` is looked after by `heartbeat.agent`, `agents/NAME/HEARTBEAT.md` by the agent NAME. Each time
/// is a fresh conversation; an agent that answers HEARTBEAT_OK is heard by nobody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt heartbeat status
  gt heartbeat run --wait
  gt heartbeat logs
  gt heartbeat disable codex")]
pub(crate) struct HeartbeatArgs {
    #[command(subcommand)]
    command: HeartbeatCommand,
}

#[derive(Debug, Subcommand)]
enum HeartbeatCommand {
    Status(status::StatusArgs),
    Run(RunArgs),
    Enable(switch::EnableArgs),
    Disable(switch::DisableArgs),
    Logs(LogsArgs),
}

/// Have an agent look now, at whatever hour
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt heartbeat run
  gt heartbeat run codex --wait")]
struct RunArgs {
    /// Whose heart; else the one of `heartbeat.agent`
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Wait for its end, and print what came of it
    #[arg(long)]
    wait: bool,
}

/// Show what came of each heartbeat, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt heartbeat logs
  gt heartbeat logs codex --limit 5 --json")]
struct LogsArgs {
    /// Whose; else of all
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// At most so many; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

pub(crate) fn run(context: &Context, args: HeartbeatArgs) -> Result<ExitCode, Failure> {
    match args.command {
        HeartbeatCommand::Status(_) => status::run(context)?,
        HeartbeatCommand::Run(args) => return beat(context, &args),
        HeartbeatCommand::Enable(args) => switch::enable(context, &args)?,
        HeartbeatCommand::Disable(args) => switch::disable(context, &args)?,
        HeartbeatCommand::Logs(args) => logs(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn beat(context: &Context, args: &RunArgs) -> Result<ExitCode, Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let mut store = context.store()?;
    if !settings.config.boolean("heartbeat.enabled") {
        return Err(Failure::new(Kind::Refused, "heartbeats are switched off").hint("`gt heartbeat enable`"));
    }
    // Without a daemon nobody has seen to it yet that there is one.
    jobs::keep_beats(&town, &settings, &mut store, &context.stamp())?;
    let agent = args.agent.clone().unwrap_or_else(|| jobs::main_agent(&settings));
    let job = require(&town, &settings, &mut store, &agent)?;
    send::require_agent(&settings, &agent)?;
    once::carry_out(context, &town, &settings, &mut store, job.name(), args.wait)
}

/// The heartbeat of an agent, or what it takes to have one.
fn require(town: &Town, settings: &Settings, store: &mut Store, agent: &str) -> Result<Job, Failure> {
    let there = store.beats()?;
    if let Some(job) = there.into_iter().find(|job| job.name() == beat_of(agent)) {
        return Ok(job);
    }
    let has_file = jobs::file_of(town, settings, agent).is_file();
    let is_off = !settings.config.boolean("heartbeat.enabled");
    Err(if has_file && is_off { none_while_off(agent) } else { none_of(town, settings, agent) })
}

/// The agents that are named, each once, if all of them have heartbeats or are to have some; changes nothing.
fn known(town: &Town, settings: &Settings, store: &mut Store, agents: &[String]) -> Result<Vec<String>, Failure> {
    let beating = jobs::beating(town, settings, &store.beats()?);
    let mut known: Vec<String> = Vec::new();
    for agent in agents {
        match beating.contains(agent) {
            false => return Err(none_of(town, settings, agent)),
            true if known.contains(agent) => (),
            true => known.push(agent.clone()),
        }
    }
    Ok(known)
}

fn none_of(town: &Town, settings: &Settings, agent: &str) -> Failure {
    let path = jobs::file_of(town, settings, agent);
    let shown = path.strip_prefix(town.root()).unwrap_or(&path).display().to_string();
    Failure::new(Kind::NotFound, format!("there is no heartbeat of `{}`", one_line(agent)))
        .hint(format!("write what to look after into `{}`", one_line(&shown)))
}

fn none_while_off(agent: &str) -> Failure {
    let words = format!("heartbeats are switched off, and `{}` has none yet", one_line(agent));
    Failure::new(Kind::Refused, words).hint("`gt heartbeat enable`")
}

fn logs(context: &Context, args: &LogsArgs) -> Result<(), Failure> {
    let of = args.agent.as_deref().map_or(FiresOf::Beats, |agent| FiresOf::One(beat_of(agent)));
    let filter = FireFilter { of, status: None, limit: Some(args.limit).filter(|limit| *limit > 0) };
    let mut store = context.store()?;
    let fires = store.fires(&filter)?;
    if fires.is_empty()
        && let Some(agent) = &args.agent
    {
        let town = context.town()?;
        require(&town, &context.settings(&town)?, &mut store, agent)?;
    }
    if context.wants_json() {
        return context.json(&fires.iter().map(fire_json).collect::<Vec<_>>());
    }
    if fires.is_empty() {
        return context.say("No heart has beaten yet: `gt heartbeat status` says when one does.");
    }
    context.say(&lines(&fires, context.now()))
}
