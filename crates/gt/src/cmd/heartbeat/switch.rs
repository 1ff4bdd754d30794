//! `gt heartbeat enable` and `disable`.

use clap::Args;
use gt_core::job::JobState;
use gt_core::text::one_line;
use gt_engine::jobs;
use gt_engine::settings::Settings;
use gt_engine::{Town, TownError};
use gt_store::{Job, Store, beat_of};
use serde_json::json;

use crate::cmd::config;
use crate::cmd::cron::beat_agent;
use crate::context::Context;
use crate::failure::Failure;

const KEY: &str = "heartbeat.enabled";

/// Have hearts beat again that were stopped, or have stopped themselves
///
/// Without a name heartbeats are switched on (`heartbeat.enabled`), and those that stopped themselves go on; who was stopped
/// by name stays so. With names, only what stops these is undone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt heartbeat enable\n  gt heartbeat enable codex")]
pub(super) struct EnableArgs {
    /// Whose; else all that nobody has stopped by name
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
    if args.agents.is_empty() { enable_all(context, &town) } else { enable_named(context, &town, &args.agents) }?;
    context.note_missing_daemon(&town);
    Ok(())
}

/// Switches heartbeats on. Who stopped itself goes on; who was stopped by a person does not.
fn enable_all(context: &Context, town: &Town) -> Result<(), Failure> {
    let was_on = context.settings(town)?.config.boolean(KEY);
    let switched = switched(town, "true")?;
    if !was_on {
        config::change(context, KEY, "true")?;
    }
    let (mut store, stamp) = (context.store()?, context.stamp());
    jobs::keep_beats(town, &switched, &mut store, &stamp)?;
    let beats = store.beats()?;
    let named = |state: JobState| beats.iter().filter(move |job| job.state == state).map(Job::name);
    let tired: Vec<&str> = named(JobState::Disabled).collect();
    if !tired.is_empty() {
        store.resume_jobs(&tired, &stamp)?;
    }
    let tired: Vec<String> = tired.into_iter().filter_map(beat_agent).collect();
    let stopped: Vec<String> = named(JobState::Paused).filter_map(beat_agent).collect();
    tell(context, true, &tired, &enabled_words(was_on, &tired, &stopped))
}

/// The settings once heartbeats are switched; a rehearsal goes by them too.
fn switched(town: &Town, is_on: &str) -> Result<Settings, Failure> {
    let config = town.config_file().plan_set(KEY, is_on).and_then(|edit| edit.config());
    Ok(Settings::new(config.map_err(TownError::from)?))
}

fn enabled_words(was_on: bool, tired: &[String], stopped: &[String]) -> String {
    let again = if was_on { "" } else { " again" };
    let all = match stopped {
        [] if was_on && !tired.is_empty() => None,
        [] => Some(format!("Hearts beat{again}: `gt heartbeat status` says whose.")),
        stopped => {
            let command = format!("`gt heartbeat enable {}`", stopped.join(" "));
            Some(format!("Hearts beat{again}, all but {}: {command}", stopped.join(", ")))
        }
    };
    let tired = match tired {
        [] => None,
        [one] => Some(format!("The heart of {one}, which had stopped itself, beats again.")),
        many => Some(format!("The hearts of {}, which had stopped themselves, beat again.", many.join(", "))),
    };
    [all, tired].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Undoes what stops these hearts by themselves; whether all are off is another matter.
fn enable_named(context: &Context, town: &Town, agents: &[String]) -> Result<(), Failure> {
    let settings = context.settings(town)?;
    let is_on = settings.config.boolean(KEY);
    let (mut store, stamp) = (context.store()?, context.stamp());
    let agents = super::known(town, &settings, &mut store, agents)?;
    jobs::keep_beats(town, &settings, &mut store, &stamp)?;
    let stopped = stopped_among(&mut store, &agents)?;
    if !stopped.is_empty() {
        store.resume_jobs(&stopped, &stamp)?;
        jobs::keep_beats(town, &settings, &mut store, &stamp)?;
    }
    let is_new = |agent: &&String| stopped.contains(&beat_of(agent));
    let [new, old] = [true, false].map(|is| shown(agents.iter().filter(|agent| is_new(agent) == is)));
    let agents = shown(&agents);
    let words = if is_on {
        hearts(&new, "beats", "beat", " again.") + &hearts(&old, "beats", "beat", " already.")
    } else {
        hearts(&agents, "beats", "beat", " as soon as heartbeats are switched on: `gt heartbeat enable`")
    };
    tell(context, is_on, &agents, words.trim_end())
}

/// The hearts of these agents that somebody stopped, or that stopped themselves.
fn stopped_among(store: &mut Store, agents: &[String]) -> Result<Vec<String>, Failure> {
    // One that has a reason, and has not stopped itself, rests only as long as all do.
    let is_stopped = |job: &Job| match job.state {
        JobState::Active => false,
        JobState::Paused => job.why.is_none(),
        JobState::Disabled => true,
    };
    let beats = store.beats()?.into_iter().filter(|job| agents.iter().any(|agent| beat_of(agent) == job.name()));
    Ok(beats.filter(is_stopped).map(|job| job.plan.name).collect())
}

pub(super) fn disable(context: &Context, args: &DisableArgs) -> Result<(), Failure> {
    let town = context.town()?;
    if args.agents.is_empty() {
        let switched = switched(&town, "false")?;
        config::change(context, KEY, "false")?;
        jobs::keep_beats(&town, &switched, &mut context.store()?, &context.stamp())?;
        return tell(context, false, &[], &format!("No heart beats any more: {KEY} is false."));
    }
    let settings = context.settings(&town)?;
    let (mut store, stamp) = (context.store()?, context.stamp());
    let agents = super::known(&town, &settings, &mut store, &args.agents)?;
    refuse_untold(&settings, &mut store, &agents)?;
    jobs::keep_beats(&town, &settings, &mut store, &stamp)?;
    store.pause_jobs(&agents.iter().map(|agent| beat_of(agent)).collect::<Vec<_>>(), &stamp)?;
    let agents = shown(&agents);
    tell(context, false, &agents, hearts(&agents, "rests", "rest", ".").trim_end())
}

/// While all are off, nobody could remember that one is stopped of which nothing is known yet.
fn refuse_untold(settings: &Settings, store: &mut Store, agents: &[String]) -> Result<(), Failure> {
    let beats = store.beats()?;
    let is_told = |agent: &&String| beats.iter().any(|job| job.name() == beat_of(agent));
    match agents.iter().find(|agent| !is_told(agent)).filter(|_| !settings.config.boolean(KEY)) {
        Some(agent) => Err(super::none_while_off(agent)),
        None => Ok(()),
    }
}

/// A sentence about the hearts of these; nothing if there are none.
fn hearts(agents: &[String], one: &str, many: &str, rest: &str) -> String {
    match agents {
        [] => String::new(),
        [agent] => format!("The heart of {agent} {one}{rest}\n"),
        agents => format!("The hearts of {} {many}{rest}\n", agents.join(", ")),
    }
}

fn shown<'a>(agents: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    agents.into_iter().map(|agent| one_line(agent)).collect()
}

fn tell(context: &Context, is_on: bool, agents: &[String], words: &str) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "enabled": is_on, "agents": agents }));
    }
    context.say(words)
}
