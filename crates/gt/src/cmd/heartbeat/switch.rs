//! `gt heartbeat enable` and `disable`.

use clap::Args;
use gt_core::job::JobState;
use gt_core::text::one_line;
use gt_engine::jobs;
use gt_store::{Job, Store, beat_of};
use serde_json::json;

use crate::cmd::config;
use crate::context::Context;
use crate::failure::Failure;

/// Have hearts beat again that were stopped, or have stopped themselves
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt heartbeat enable\n  gt heartbeat enable codex")]
pub(super) struct EnableArgs {
    /// Whose; else all
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
}

/// Have hearts stop; what runs goes on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt heartbeat disable\n  gt heartbeat disable codex")]
pub(super) struct DisableArgs {
    /// Whose; else all, as `heartbeat.enabled` then says
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
}

pub(super) fn enable(context: &Context, args: &EnableArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let was_on = context.settings(&town)?.config.boolean("heartbeat.enabled");
    if !was_on {
        config::change(context, "heartbeat.enabled", "true")?;
    }
    let settings = context.settings(&town)?;
    let (mut store, stamp) = (context.store()?, context.stamp());
    jobs::keep_beats(&town, &settings, &mut store, &stamp)?;
    let mut names = Vec::new();
    for agent in &args.agents {
        names.push(super::require(&town, &settings, &mut store, agent)?.plan.name);
    }
    let resting = if args.agents.is_empty() { resting(&mut store)? } else { Vec::new() };
    // Where all were off, whoever was stopped apart from that stays so; where they were on, those are meant.
    let (meant, still) = if was_on { (resting, Vec::new()) } else { (Vec::new(), resting) };
    names.extend(meant);
    for name in &names {
        store.resume_job(name, &stamp)?;
    }
    let [agents, still] = [names, still].map(|names| names.iter().map(|name| agent_of(name)).collect::<Vec<_>>());
    tell(context, true, &agents, &enabled_words(&agents, &still))?;
    context.note_missing_daemon(&town);
    Ok(())
}

/// The names of hearts that do not beat.
fn resting(store: &mut Store) -> Result<Vec<String>, Failure> {
    let rests = |job: &Job| job.state != JobState::Active;
    Ok(store.beats()?.into_iter().filter(rests).map(|job| job.plan.name).collect())
}

fn enabled_words(agents: &[String], still: &[String]) -> String {
    match (agents, still) {
        ([], []) => "Hearts beat: `gt heartbeat status` says whose.".to_owned(),
        ([], still) => {
            format!("Hearts beat again, all but {}: `gt heartbeat enable {}`", still.join(", "), still.join(" "))
        }
        (agents, _) => format!("The hearts of {} beat again.", agents.join(", ")),
    }
}

pub(super) fn disable(context: &Context, args: &DisableArgs) -> Result<(), Failure> {
    let town = context.town()?;
    if args.agents.is_empty() {
        let setting = config::change(context, "heartbeat.enabled", "false")?;
        return tell(context, false, &[], &format!("No heart beats any more: {} is false.", setting.key));
    }
    let settings = context.settings(&town)?;
    let (mut store, stamp) = (context.store()?, context.stamp());
    jobs::keep_beats(&town, &settings, &mut store, &stamp)?;
    for agent in &args.agents {
        super::require(&town, &settings, &mut store, agent)?;
    }
    for agent in &args.agents {
        store.pause_job(&beat_of(agent), &stamp)?;
    }
    let agents: Vec<String> = args.agents.iter().map(|agent| one_line(agent)).collect();
    tell(context, false, &agents, &format!("The hearts of {} rest.", agents.join(", ")))
}

fn agent_of(name: &str) -> String {
    one_line(name.strip_prefix(beat_of("").as_str()).unwrap_or(name))
}

fn tell(context: &Context, is_on: bool, agents: &[String], words: &str) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "enabled": is_on, "agents": agents }));
    }
    context.say(words)
}
