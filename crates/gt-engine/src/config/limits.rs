//! Settings that keep work from landing or agents from starting: which of them one config sets and the next one drops.
//!
//! Raising a number is an edit like any other. Removing a limit, by accident too, lets work through that was held before.

use gt_core::text::one_line;

use super::table::KEYS;
use super::{Config, Source, Value, join, keys};
use crate::agents;

/// How a setting holds something back.
#[derive(Debug, Clone, Copy)]
enum Limit {
    /// A number that may not be exceeded; 0 and less: no limit.
    AtMost,
    /// How much must be free; 0: no limit.
    AtLeast,
    /// A list of commands, or a command with its arguments. With fewer of them it may hold back less.
    Commands,
    /// The command of an agent, which may wrap a built-in one. Without it an agent of the user's own does not exist.
    Agent,
    /// One of these values; the first holds back most, any other value nothing.
    OneOf(&'static [&'static str]),
    /// `false` forbids something.
    No,
    /// Any value.
    Set,
    /// Sessions that may be talked to; `*` is all of them.
    Sessions,
    /// Who may use a channel, if its kind admits everybody where the list is empty.
    Channel,
}

const LIMITS: &[(&str, Limit)] = &[
    ("runtime", Limit::OneOf(&["exec"])),
    ("exec.command", Limit::Commands),
    ("rigs.NAME.gates", Limit::Commands),
    ("rigs.NAME.merge", Limit::OneOf(&["local", "mr"])),
    ("rigs.NAME.push", Limit::No),
    ("rigs.NAME.pull_request", Limit::Commands),
    ("rigs.NAME.max_polecats", Limit::AtMost),
    ("scheduler.max_polecats", Limit::AtMost),
    ("queue.max_polecats", Limit::AtMost),
    ("agents.NAME.command", Limit::Agent),
    ("agents.NAME.headless", Limit::Agent),
    ("agents.NAME.max", Limit::AtMost),
    ("hosts.NAME.max", Limit::AtMost),
    ("lanes.main", Limit::AtMost),
    ("lanes.subagent", Limit::AtMost),
    ("lanes.delegate", Limit::AtMost),
    ("lanes.cron", Limit::AtMost),
    ("lanes.NAME", Limit::AtMost),
    ("channels.NAME.allow", Limit::Channel),
    ("heartbeat.enabled", Limit::No),
    ("heartbeat.active_hours", Limit::Set),
    ("witness.max_run", Limit::AtMost),
    ("guards.max_agents", Limit::AtMost),
    ("guards.load_per_core", Limit::AtMost),
    ("guards.free_memory", Limit::AtLeast),
    ("guards.free_disk", Limit::AtLeast),
    ("guards.starts_per_second", Limit::AtMost),
    ("budget.daily", Limit::AtMost),
    ("server.allow", Limit::Sessions),
];

/// A limit that was set and no longer is, or holds back less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    pub key: String,
    /// What it was, as typed.
    pub was: String,
    /// What became of it: `were removed from`, with the verb that fits.
    words: String,
}

impl Dropped {
    /// Describes a limit that was dropped, by how it is set now.
    pub fn of(config: &Config, key: &str, was: &str, how: How) -> Dropped {
        Dropped { key: key.to_owned(), was: was.to_owned(), words: words(config, key, was, how) }
    }
}

/// `gates of rig shop were removed from town.toml`
impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

/// How a limit was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    InFile,
    ByCommand,
}

fn words(config: &Config, key: &str, was: &str, how: How) -> String {
    let path = keys::split_any(key).unwrap_or_default();
    let (what, verb) = match &path[..] {
        [group, rig, leaf] if group == "rigs" && leaf == "gates" => (format!("gates of rig {}", one_line(rig)), "were"),
        _ => (format!("the limit `{}` (it was {})", one_line(key), one_line(was)), "was"),
    };
    let counts =
        keys::shaped(&path).and_then(|key| match (key.kind.read_text(was)?, config.setting(key, &path).value?) {
            (Value::List(was), Value::List(now)) if !now.is_empty() => Some((was.len(), now.len())),
            _ => None,
        });
    match (counts, how) {
        (Some((from, to)), How::InFile) => format!("{what} {verb} changed from {from} to {to} in {FILE}"),
        (Some((from, to)), How::ByCommand) => format!("{what} {verb} changed from {from} to {to} with `gt config`"),
        (None, How::InFile) => format!("{what} {verb} removed from {FILE}"),
        (None, How::ByCommand) => format!("{what} {verb} removed with `gt config`"),
    }
}

const FILE: &str = "town.toml";

/// Lists the limits that `old` sets and `new` drops. A limit that is only a default was not chosen, and one of something that
/// does not exist (`is_void`) limits nothing.
pub fn dropped(old: &Config, new: &Config, is_void: impl Fn(&str) -> bool) -> Vec<Dropped> {
    let set = LIMITS.iter().filter_map(|(path, _)| KEYS.iter().find(|key| key.path == *path));
    let set = set.flat_map(|key| old.settings(key)).filter(|setting| setting.source == Source::File);
    let values = set.filter_map(|setting| Some((setting.key, setting.value?.to_string())));
    let lost = values.filter(|(key, was)| !is_void(key) && is_missing(new, key, was));
    lost.map(|(key, was)| Dropped::of(new, &key, &was, How::InFile)).collect()
}

/// Tells whether a limit that was dropped is still missing.
pub fn is_missing(config: &Config, key: &str, was: &str) -> bool {
    let path = keys::split_any(key).unwrap_or_default();
    let Some(key) = keys::shaped(&path) else { return false };
    let Some((_, limit)) = LIMITS.iter().find(|(path, _)| *path == key.path) else { return false };
    let Some(was) = key.kind.read_text(was) else { return false };
    let now = config.setting(key, &path);
    let strength = |value: Option<&Value>| limit.strength(value, config, &path);
    let (was, left) = (strength(Some(&was)), strength(now.value.as_ref()));
    // A number that stands in the file was chosen; a default that holds back less was not.
    let is_chosen = limit.is_number() && now.source == Source::File && left > 0;
    left < was && !is_chosen
}

impl Limit {
    fn is_number(self) -> bool {
        matches!(self, Limit::AtMost | Limit::AtLeast)
    }

    /// How much a value holds back; 0: nothing. Only values of one key can be compared.
    fn strength(self, value: Option<&Value>, config: &Config, path: &[String]) -> u64 {
        let texts = match value {
            Some(Value::List(texts)) => texts.as_slice(),
            _ => &[],
        };
        let name = path.get(1).map_or("", String::as_str);
        match self {
            Limit::AtMost => number(value).map_or(0, |number| u64::MAX - number),
            Limit::AtLeast => number(value).unwrap_or(0),
            Limit::Agent if agents::find(config, name).is_err() => u64::MAX,
            Limit::Commands | Limit::Agent => texts.len() as u64,
            Limit::OneOf(order) => {
                let at = order.iter().rev().position(|one| matches!(value, Some(Value::Text(text)) if text == one));
                at.map_or(0, |at| at as u64 + 1)
            }
            Limit::No => u64::from(value == Some(&Value::Boolean(false))),
            Limit::Set => u64::from(value.is_some()),
            Limit::Sessions => u64::from(!has_all(texts)),
            Limit::Channel => {
                let kind = config.text(&join(&["channels", name, "kind"]));
                let is_open = kind.as_deref() == Some("webhook") && (texts.is_empty() || has_all(texts));
                u64::from(!is_open)
            }
        }
    }
}

/// A number above 0, whatever its unit.
fn number(value: Option<&Value>) -> Option<u64> {
    let number = match value? {
        Value::Integer(number) => u64::try_from(*number).ok()?,
        Value::Size { bytes, .. } => *bytes,
        Value::Money { micros, .. } => *micros,
        Value::Duration { length, .. } => u64::try_from(length.as_millis()).ok()?,
        _ => return None,
    };
    Some(number).filter(|number| *number > 0)
}

/// Whether one of these patterns fits everything.
fn has_all(patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| !pattern.is_empty() && pattern.chars().all(|one| one == '*'))
}

#[cfg(test)]
mod tests {
    use super::{KEYS, LIMITS};

    #[test]
    fn every_limit_is_a_key() {
        for (path, _) in LIMITS {
            assert!(KEYS.iter().any(|key| key.path == *path), "{path}");
        }
    }
}
