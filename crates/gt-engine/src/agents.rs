//! Agents are data: what to start for a run, how to hear of it, and what to read of what it tells. // SPEC P5
//!
//! `presets` is the table of the agents that are known without config; `launch` makes of an agent and an assignment what
//! the runtime starts, `turn` the same of an agent and a chat message, `command` of what needs no agent; `hooks` writes what makes an agent tell us; `listen`
//! reads what it has told. What that means is `gt_core::agent`, what is remembered of it the store's. Nothing here starts or
//! stops anything.

mod command;
pub mod event;
mod hooks;
mod launch;
mod listen;
mod presets;
mod turn;

use std::collections::BTreeMap;

use gt_core::agent::Vendor;

use crate::config::{Config, Value, join};

pub use self::command::command_launch;
pub use self::launch::{Seeker, Unfit, Workplace, base_branch, cannot_start, launch, program, search_path};
pub use self::listen::Listener;
pub use self::presets::{Call, PRESETS, Preset, Prompt};
pub use self::turn::{
    TurnOrder, context_window, find_for_turns, has_lost_conversation, last_error, plain_reply, reply, turn_launch,
};

/// What is known of an agent kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    /// What to start for a bead in a terminal, and where there is none. `None`: it takes no beads there.
    pub terminal: Option<Call>,
    pub headless: Option<Call>,
    /// How it takes chat turns, if it does.
    turn: Option<turn::Turn>,
    /// Whose lines it speaks.
    pub speaks: Option<Vendor>,
    env: BTreeMap<String, String>,
    /// Variables that it must not inherit.
    cleared: Vec<String>,
}

/// The names that are close to that of an agent which is not there; `None`: it is there.
pub fn near(config: &Config, name: &str) -> Option<Vec<String>> {
    let is_there = |name: &str| find(config, name).is_ok();
    let own = config.names("agents").into_iter().filter(|name| is_there(name));
    let known = own.chain(PRESETS.iter().map(|preset| preset.name));
    (!is_there(name)).then(|| gt_core::near::closest(name, known))
}

/// Looks an agent kind up; the error says what is missing.
pub fn find(config: &Config, name: &str) -> Result<Agent, String> {
    let key = |leaf: &str| join(&["agents", name, leaf]);
    let preset = presets::of(name);
    let own = own_call(config, name);
    let turn = turn::of(config, name);
    let (terminal, headless) = match (own, preset) {
        (Some(own), _) => (Some(own.clone()), Some(own)),
        (None, Some(preset)) => (Some(preset.terminal.into()), preset.headless.map(Call::from)),
        (None, None) if turn.is_some() => (None, None),
        (None, None) => return Err(no_command(name)),
    };
    let mut env: BTreeMap<String, String> = preset.map(Preset::env).unwrap_or_default();
    if let Some(Value::Table(own)) = config.value(&key("env")) {
        env.extend(own.into_iter().map(|(name, secret)| (name, secret.reveal().to_owned())));
    }
    Ok(Agent {
        name: name.to_owned(),
        terminal,
        headless,
        turn,
        speaks: speaks(config, name),
        env,
        // A wrapper around an agent is as easily misled as that agent.
        cleared: preset
            .or_else(|| presets::of(speaks(config, name)?.as_str()))
            .map(|preset| preset.cleared)
            .unwrap_or_default()
            .iter()
            .map(|name| (*name).to_owned())
            .chain(secrets_of_channels(config))
            .collect(),
    })
}

/// Variables that hold secrets of channels: whoever writes there talks to an agent, which could tell them.
fn secrets_of_channels(config: &Config) -> Vec<String> {
    let secrets = config
        .names("channels")
        .into_iter()
        .flat_map(|channel| ["token", "secret"].map(|leaf| config.secret(&join(&["channels", channel, leaf]))));
    secrets.flatten().filter_map(|secret| secret.variable().map(str::to_owned)).collect()
}

fn no_command(name: &str) -> String {
    format!("agent `{name}` has no command; set `{}`", join(&["agents", name, "command"]))
}

/// The user's own command, which is started as it is, in a terminal or not.
fn own_call(config: &Config, name: &str) -> Option<Call> {
    let key = |leaf: &str| join(&["agents", name, leaf]);
    let argv = config.texts(&key("command"));
    let prompt = match config.text(&key("prompt")).as_deref() {
        Some("stdin") => Prompt::Stdin,
        Some("none") => Prompt::None,
        _ => Prompt::Arg,
    };
    (!argv.is_empty()).then_some(Call { argv, prompt })
}

/// Whose lines an agent speaks: as the config says, else as its name does.
pub fn speaks(config: &Config, name: &str) -> Option<Vendor> {
    match config.text(&join(&["agents", name, "speaks"])) {
        Some(word) => Vendor::parse(&word),
        None => presets::of(name).and_then(|preset| preset.speaks),
    }
}

#[cfg(test)]
mod tests;
