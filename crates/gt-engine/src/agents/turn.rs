//! One chat turn: what to start for a message, and what to read of it when it has ended. // SPEC L5
//!
//! Which command lines there are is in `presets`. Sessions, their queues and what is remembered of a turn are elsewhere.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use gt_core::agent::{REPLY_BYTES_MAX, Told, conversation_of, cut, is_lost_conversation};
use gt_core::output;
use gt_runtime::{Launch, Place};
use gt_store::FireOf;

use super::command::of_fire;
use super::launch::{Unfit, inherited};
use super::listen::open_file;
use super::presets::{self, TurnWords};
use super::{Agent, find};
use crate::config::{Config, Value, join};
use crate::town::Town;

/// Longest complaint that is shown.
const ERROR_CHARS_MAX: usize = 300;
/// Longest id of a conversation that is put into a command line.
const ID_CHARS_MAX: usize = 200;

/// A message that an agent has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnOrder<'a> {
    pub run: &'a str,
    /// The key of its session.
    pub session: &'a str,
    pub agent: &'a str,
    pub message: &'a str,
    /// The conversation to go on with, by the agent's own id. Some find it again only in the directory where it began.
    pub resume: Option<&'a str>,
    pub dir: &'a Path,
    pub log: &'a Path,
    /// Where it complains, apart from its reply.
    pub errors: &'a Path,
    /// The slot that it is of, if the clock brought it.
    pub fire: Option<&'a FireOf>,
}

/// How an agent takes a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// The user's own command, started as it stands.
    Own(Vec<String>),
    BuiltIn(TurnWords),
}

/// Looks up how an agent takes turns. Whoever has put a command of their own in the place of a built-in agent is not given
/// that agent after all.
pub(super) fn of(config: &Config, name: &str) -> Option<Turn> {
    let own = |leaf: &str| Some(config.texts(&join(&["agents", name, leaf]))).filter(|argv| !argv.is_empty());
    match (own("headless"), own("command")) {
        (Some(argv), _) => Some(Turn::Own(argv)),
        (None, Some(_)) => None,
        (None, None) => presets::of(name).map(|preset| Turn::BuiltIn(preset.turn)),
    }
}

/// Looks an agent kind up that is to take turns; the error says what is missing.
pub fn find_for_turns(config: &Config, name: &str) -> Result<Agent, String> {
    find(config, name).ok().filter(|agent| agent.turn.is_some()).ok_or_else(|| no_turns(name))
}

fn no_turns(name: &str) -> String {
    format!("agent `{name}` takes no chat turns; set `{}`", join(&["agents", name, "headless"]))
}

/// What to start for a message.
pub fn turn_launch(agent: &Agent, order: &TurnOrder<'_>, town: &Town) -> Result<Launch, Unfit> {
    let turn = agent.turn.as_ref().ok_or_else(|| Unfit::Agent(no_turns(&agent.name)))?;
    Ok(Launch {
        run: order.run.to_owned(),
        session: format!("turn-{}", order.run),
        argv: turn.argv(order),
        dir: order.dir.to_owned(),
        env: environment(agent, order, town),
        stdin: Some(order.message.to_owned()),
        log: order.log.to_owned(),
        errors: Some(order.errors.to_owned()),
        place: Place::Here,
    })
}

impl Turn {
    fn argv(&self, order: &TurnOrder<'_>) -> Vec<String> {
        let (words, conversation) = match (self, order.resume.filter(|id| is_id(id))) {
            (Turn::Own(argv), _) => return argv.clone(),
            (Turn::BuiltIn(words), Some(id)) => (words.resume, id.to_owned()),
            (Turn::BuiltIn(words), None) => (words.begin, conversation_of(order.run)),
        };
        let filled = |word: &&str| if *word == "{conversation}" { conversation.clone() } else { (*word).to_owned() };
        words.iter().map(filled).collect()
    }
}

/// Whether it can stand in a command line: what an agent calls its conversation is a stranger's word.
fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.len() <= ID_CHARS_MAX && id.chars().all(is_plain)
}

fn environment(agent: &Agent, order: &TurnOrder<'_>, town: &Town) -> Vec<(String, String)> {
    let mut env = inherited(agent);
    let who = format!("session:{}", order.session);
    let ours = [
        ("GT_TOWN", town.root().display().to_string()),
        ("GT_RUN", order.run.to_owned()),
        ("GT_SESSION", order.session.to_owned()),
        ("GT_AGENT", order.agent.to_owned()),
        ("GT_CONVERSATION", order.resume.unwrap_or_default().to_owned()),
        ("GT_ACTOR", who.clone()),
        ("BD_ACTOR", who),
    ];
    env.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    env.extend(order.fire.into_iter().flat_map(of_fire));
    env.into_iter().collect()
}

/// How many tokens the context window of an agent holds; `None`: nobody knows.
pub fn context_window(config: &Config, agent: &str) -> Option<u64> {
    let own = config.value(&join(&["agents", agent, "context_window"]));
    let tokens = match own {
        Some(Value::Integer(tokens)) => u64::try_from(tokens).ok(),
        _ => presets::of(agent).map(|preset| preset.context_window),
    };
    tokens.filter(|tokens| *tokens > 0)
}

/// What a turn that has ended replied, with what it told where it speaks like somebody. Who prints nothing of the kind that
/// it was believed to speak has printed its reply.
pub fn reply(told: Option<&Told>, log: &Path) -> io::Result<String> {
    match told.filter(|told| told.activity().is_some() || told.conversation().is_some()) {
        Some(told) => Ok(told.reply().unwrap_or_default().to_owned()),
        None => plain_reply(log),
    }
}

/// What stands in a log, as a reply: all of it, but not without bound.
pub fn plain_reply(log: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // One more than is kept, so that a cut is seen.
    open_file(log)?.take(REPLY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > REPLY_BYTES_MAX;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !is_cut {
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
    }
    cut(&mut text);
    Ok(text)
}

/// What a process complained of last, in one line. What it calls an error counts more than what it says after that.
pub fn last_error(errors: &Path) -> Option<String> {
    let text = complaints(errors)?;
    // Where a program was when it gave up says nothing to a person.
    let said = text.split("\nStack backtrace:").next()?;
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let last = lines.clone().next()?;
    let line = lines.find_map(|line| line.strip_prefix("error: ")).unwrap_or(last);
    Some(gt_core::text::one_line(line).chars().take(ERROR_CHARS_MAX).collect())
}

/// Whether a turn could not go on with its conversation because the agent does not have it any more: then one that begins
/// anew can.
pub fn has_lost_conversation(told: Option<&Told>, errors: &Path) -> bool {
    let is_told = told.and_then(Told::failure).is_some_and(|failure| is_lost_conversation(&failure.message));
    is_told || complaints(errors).is_some_and(|text| is_lost_conversation(&text))
}

/// The last lines of them, without colours.
fn complaints(errors: &Path) -> Option<String> {
    let mut file = open_file(errors).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(output::TAIL_BYTES_MAX))).ok()?;
    let mut bytes = Vec::new();
    file.take(output::TAIL_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    output::last_lines(&bytes)
}

#[cfg(test)]
mod tests;
