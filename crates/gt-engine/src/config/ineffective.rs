//! Settings that are valid and have no effect: they name a rig, an agent, a channel or a host that does not exist, or
//! nothing reads them. // SPEC T8
//!
//! `gt config set` refuses them; in a file they are warnings, and stop nothing.

use std::collections::BTreeSet;

use gt_core::lane::{Lanes, POLECAT};
use gt_core::near::closest;
use gt_core::text::one_line;

use super::{Config, ConfigError, Source, Value, join, keys};
use crate::agents;
use crate::notify;

/// What the config cannot know by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// The rigs that are registered.
    pub rigs: Vec<String>,
    /// The hosts on which the town runs.
    pub hosts: Vec<String>,
    /// The formulas that the town can use, where a setting names one.
    pub formulas: BTreeSet<String>,
    /// The rigs that are to be pushed and have no `origin`.
    pub without_origin: Vec<String>,
}

impl KnownNames {
    /// Whether a key is about a rig that is not registered.
    pub fn is_of_missing_rig(&self, key: &str) -> bool {
        is_of_missing_rig(&self.rigs, key)
    }
}

/// Whether a key is about a rig that is none of these.
pub fn is_of_missing_rig(rigs: &[String], key: &str) -> bool {
    let path = keys::split_any(key).unwrap_or_default();
    matches!(&path[..], [group, rig, _] if group == "rigs" && !rigs.contains(rig))
}

/// A setting that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ineffective {
    pub key: String,
    /// The key, or the part of its value that has no effect.
    what: String,
    pub why: String,
    /// What to type instead.
    pub hint: String,
    /// Whether a later setting is to complete it, so that it may come first.
    is_part: bool,
}

impl Ineffective {
    fn new(key: &str, why: impl Into<String>, hint: impl Into<String>) -> Ineffective {
        let what = format!("`{}`", one_line(key));
        Ineffective { key: key.to_owned(), what, why: why.into(), hint: one_line(&hint.into()), is_part: false }
    }

    /// It has an effect once something else is set, or used.
    fn yet(self) -> Ineffective {
        Ineffective { is_part: true, ..self }
    }
}

impl std::fmt::Display for Ineffective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let yet = if self.is_part { " yet" } else { "" };
        write!(f, "{} does nothing{yet}: {}", self.what, self.why)
    }
}

/// Refuses a key whose setting would have no effect. Returns one that has none until another setting completes it.
pub fn refuse_ineffective(config: &Config, names: &KnownNames, key: &str) -> Result<Option<Ineffective>, ConfigError> {
    match ineffective(config, names).into_iter().find(|one| one.key == key) {
        Some(one) if !one.is_part => Err(ConfigError::Ineffective { what: one.what, why: one.why, hint: one.hint }),
        part => Ok(part),
    }
}

/// Lists the settings of a config that have no effect.
pub fn ineffective(config: &Config, names: &KnownNames) -> Vec<Ineffective> {
    let set = config.list().into_iter().filter(|setting| setting.source == Source::File);
    set.filter_map(|setting| {
        let path = keys::split_any(&setting.key).ok()?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let known = Known { config, names, key: &setting.key };
        known.missing_owner(&path).or_else(|| known.check(&path, setting.value.as_ref()?))
    })
    .collect()
}

/// Says what a key names that does not exist, whether or not it is set.
pub fn missing_owner(config: &Config, names: &KnownNames, key: &str) -> Option<Ineffective> {
    let path = keys::split_any(key).ok()?;
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    Known { config, names, key }.missing_owner(&path)
}

/// A key, and what its setting may refer to.
struct Known<'a> {
    config: &'a Config,
    names: &'a KnownNames,
    key: &'a str,
}

impl Known<'_> {
    /// Checks that what a key names exists.
    fn missing_owner(&self, path: &[&str]) -> Option<Ineffective> {
        match *path {
            ["rigs", name, leaf] if self.names.is_of_missing_rig(self.key) => {
                let near = closest(name, self.names.rigs.iter().map(String::as_str));
                let near: Vec<String> = near.iter().map(|name| join(&["rigs", name, leaf])).collect();
                let add = format!("add the rig: `gt rig add {} PATH`", one_line(name));
                Some(self.found(missing("rig", name), hint(&near, &add)))
            }
            ["agents", name, leaf] => {
                let near: Vec<String> =
                    agents::near(self.config, name)?.iter().map(|name| join(&["agents", name, leaf])).collect();
                Some(self.found(missing("agent", name), hint(&near, &define_agent(name))))
            }
            ["hosts", name, "max"] if !self.names.hosts.iter().any(|host| host == name) => {
                let why = format!("the town does not run on a host `{}`", one_line(name));
                let hosts: Vec<String> = self.names.hosts.iter().map(|host| join(&["hosts", host, "max"])).collect();
                Some(self.found(why, format!("for this host set `{}`", hosts.join("` or `"))))
            }
            ["channels", name, leaf] if self.kind(name).is_none() => {
                let others = self.config.names("channels").into_iter().filter(|name| self.kind(name).is_some());
                let near: Vec<String> =
                    closest(name, others).iter().map(|name| join(&["channels", name, leaf])).collect();
                // A channel starts when it gets its kind, so what it needs by then may come first.
                let is_part = near.is_empty() && ["url", "secret", "token", "allow"].contains(&leaf);
                let why = format!("the channel `{}` has no kind", one_line(name));
                Some(Ineffective { is_part, ..self.found(why, hint(&near, &define_channel(name))) })
            }
            _ => None,
        }
    }

    /// Checks that a setting of something that exists is read there, and that what its value names exists.
    fn check(&self, path: &[&str], value: &Value) -> Option<Ineffective> {
        match (path, value) {
            (["default_agent"] | ["heartbeat", "agent"], Value::Text(agent)) => self.no_agent(agent),
            (["heartbeat", "target"], Value::Text(target)) if ["last", "none"].contains(&target.as_str()) => None,
            (["heartbeat", "target"], Value::Text(channel)) => self.no_channel(channel),
            (["convoy", "notify"], Value::List(entries)) => entries.iter().find_map(|entry| self.no_target(entry)),
            (["agents", name, "prompt"], _) if self.config.texts(&join(&["agents", name, "command"])).is_empty() => {
                let why = format!("the agent `{}` has no command of its own", one_line(name));
                Some(self.found(why, format!("set it first: {}", set_command(name))))
            }
            (["channels", name, leaf], value) => self.check_channel(name, leaf, value),
            (["rigs", rig, leaf], value) => self.check_rig(rig, leaf, value),
            (["exec", leaf], _) if self.config.text("runtime").as_deref() != Some("exec") => {
                let why = format!("`exec.{leaf}` counts with `runtime = \"exec\"` alone");
                Some(self.found(why, "run agents elsewhere: `gt config set runtime exec`").yet())
            }
            (["queue", "max_polecats"], _) => self.other_cap("scheduler.max_polecats", "rules queued work too"),
            (["guards", "max_agents"], Value::Integer(1..)) => self
                .other_cap("scheduler.max_polecats", "limits agents already")
                .or_else(|| self.other_cap("queue.max_polecats", "limits agents already").filter(|_| self.has_queue())),
            (["lanes", POLECAT], _) => {
                let why = "polecats are limited by the scheduler";
                Some(self.found(why, "`gt config set scheduler.max_polecats N`"))
            }
            (["lanes", name], _) => self.check_lane(name),
            (["store", "url"], _) => {
                let why = "this version keeps all data in the town's own SQLite file";
                Some(self.found(why, "leave it out: `gt config unset store.url`"))
            }
            _ => None,
        }
    }

    fn check_rig(&self, rig: &str, leaf: &str, value: &Value) -> Option<Ineffective> {
        match (leaf, value) {
            ("default_formula", Value::Text(formula)) if !self.names.formulas.contains(formula) => {
                let near = closest(formula, self.names.formulas.iter().map(String::as_str));
                let why = missing("formula", formula);
                Some(self.found(why, hint(&near, "list formulas with `gt formula list`")))
            }
            ("push", Value::Boolean(true)) if self.names.without_origin.iter().any(|name| name == rig) => {
                let why = format!("the repository of rig {} has no remote `origin`", one_line(rig));
                Some(self.found(why, "add it there: `git remote add origin URL`"))
            }
            ("gates", Value::List(gates)) if !gates.is_empty() => {
                let key = join(&["rigs", rig, "merge"]);
                let is_local = self.config.text(&key).as_deref() == Some("local");
                // A bead that is slung with `--merge mr` passes them.
                let why = format!("finished work of rig {} is not merged, since `{key}` is local", one_line(rig));
                is_local.then(|| self.found(why, format!("`gt config set {key} mr`")).yet())
            }
            _ => None,
        }
    }

    /// A lane of one's own may be used by any session or job; one that is nearly called like another is a mistake.
    fn check_lane(&self, name: &str) -> Option<Ineffective> {
        let lanes = Lanes::default();
        let known: Vec<&str> = lanes.iter().map(|(name, _)| name).collect();
        let used = |channel: &str| self.config.text(&join(&["channels", channel, "lane"]));
        let is_used = self.config.names("channels").into_iter().any(|channel| used(channel).as_deref() == Some(name));
        if known.contains(&name) || is_used {
            return None;
        }
        let near: Vec<String> = closest(name, known).iter().map(|name| join(&["lanes", name])).collect();
        let why = format!("only turns that name the lane `{}` count in it", one_line(name));
        let set = format!("name it: `gt session set SESSION --lane {}`", one_line(name));
        (!near.is_empty()).then(|| self.found(why, hint(&near, &set)).yet())
    }

    /// A cap that does not count because another one does.
    fn other_cap(&self, key: &str, does: &str) -> Option<Ineffective> {
        let cap = self.config.integer(key);
        let why = format!("`{key}` = {cap} {does}");
        (cap > 0).then(|| self.found(why, format!("change that one: `gt config set {key} N`")))
    }

    fn has_queue(&self) -> bool {
        self.config.boolean("queue.enabled")
    }

    fn check_channel(&self, name: &str, leaf: &str, value: &Value) -> Option<Ineffective> {
        let kind = self.kind(name)?;
        let of = match leaf {
            "secret" => "webhook",
            "token" | "agent" | "lane" => "telegram",
            _ => return None,
        };
        match value {
            _ if kind != of => {
                let why = format!("only a channel of the kind {of} has a `{leaf}`");
                Some(self.found(why, format!("the kind of `{}` is {kind}: `docs/channels.md`", one_line(name))))
            }
            Value::Text(agent) if leaf == "agent" => self.no_agent(agent),
            _ => None,
        }
    }

    fn kind(&self, channel: &str) -> Option<String> {
        self.config.text(&join(&["channels", channel, "kind"]))
    }

    fn found(&self, why: impl Into<String>, hint: impl Into<String>) -> Ineffective {
        Ineffective::new(self.key, why, hint)
    }

    fn no_agent(&self, name: &str) -> Option<Ineffective> {
        let near = agents::near(self.config, name)?;
        Some(self.found(missing("agent", name), hint(&near, &define_agent(name))))
    }

    fn no_channel(&self, name: &str) -> Option<Ineffective> {
        let known = self.config.names("channels");
        let is_missing = !known.contains(&name);
        let near = closest(name, known);
        is_missing.then(|| self.found(missing("channel", name), hint(&near, &define_channel(name))))
    }

    /// An entry of `convoy.notify` that reaches nothing.
    fn no_target(&self, entry: &str) -> Option<Ineffective> {
        let of = |part: &str| format!("`{}` in `{}`", one_line(part), self.key);
        if let Some(channel) = notify::channel_of(entry) {
            return Some(Ineffective { what: of(&format!("channel:{channel}")), ..self.no_channel(&channel)? });
        }
        let notify::Mistyped { shown, meant } = notify::mistyped(entry)?;
        let near: Vec<String> = meant.into_iter().collect();
        let hint = hint(&near, "give `desktop`, `channel:NAME`, an http(s) URL or a command");
        Some(Ineffective { what: of(&shown), ..self.found("there is no such notification", hint) })
    }
}

fn define_agent(name: &str) -> String {
    format!("define it first: {}", set_command(name))
}

fn set_command(agent: &str) -> String {
    format!("`gt config set {} '[\"PROGRAM\"]'`", join(&["agents", agent, "command"]))
}

fn define_channel(name: &str) -> String {
    format!("define it: `gt config set {} webhook` (or telegram)", join(&["channels", name, "kind"]))
}

fn missing(what: &str, name: &str) -> String {
    format!("there is no {what} `{}`", one_line(name))
}

/// `near` are the names that are close, as they would be typed.
fn hint(near: &[String], otherwise: &str) -> String {
    match near {
        [] => otherwise.to_owned(),
        near => format!("did you mean `{}`? Or {otherwise}", near.join("` or `")),
    }
}
