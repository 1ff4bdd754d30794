//! Who is told: a command, a web hook, the desktop or a channel, each within ten seconds. What a channel gets waits in the outbox.

use std::path::Path;
use std::time::Duration;

use gt_core::near::closest;
use gt_core::text::one_line;
use gt_core::time;
use gt_runtime::exec::Errand;
use gt_store::{Address, Notice, Stamp};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::leash::Leash;
use crate::error::chain;
use crate::in_force;
use crate::surroundings::Machine;
use crate::town::Town;
use crate::web;

/// How long one telling may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How an entry begins that names a channel.
const CHANNEL: &str = "channel:";
/// What a desktop shows at the most.
const SHOWN_CHARS_MAX: usize = 500;

/// An entry of `convoy.notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Stands for the entry where it is remembered: the entry itself may hold a secret.
    pub(super) key: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Desktop,
    Web {
        url: String,
    },
    /// A channel, and who there.
    Channel {
        to: Address,
    },
    Command {
        command: String,
    },
}

/// Why somebody does not know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Untold {
    /// It may work later.
    Failed(String),
    /// It never will, as things are.
    Never(String),
    /// The daemon stops.
    CutShort,
}

impl Target {
    pub(super) fn parse(text: &str) -> Target {
        let hash = Sha256::digest(text.as_bytes());
        let key = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let is_web = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        let kind = match text {
            "desktop" => Kind::Desktop,
            url if is_web => Kind::Web { url: url.to_owned() },
            channel if channel.starts_with(CHANNEL) => Kind::Channel { to: address(channel) },
            command => Kind::Command { command: command.to_owned() },
        };
        Target { key, kind }
    }

    /// Tells it. Commands are on the leash; a web hook needs none, since nothing of it outlives this process.
    pub(super) fn tell(&self, notice: &Notice, town: &Path, leash: &Leash) -> Result<(), Untold> {
        match &self.kind {
            Kind::Desktop => show(notice, town, leash),
            Kind::Web { url } => post(url, &letter(notice, town)).map_err(Untold::Failed),
            Kind::Channel { to } => send(to, &self.key, notice, town).map_err(Untold::Failed),
            Kind::Command { command } => call(command, notice, town, leash),
        }
    }
}

/// The channel after its mark, and whom it names after another colon.
fn address(text: &str) -> Address {
    let rest = text.strip_prefix(CHANNEL).unwrap_or(text);
    let (channel, recipient) =
        rest.split_once(':').map_or((rest, None), |(channel, who)| (channel, Some(who.to_owned())));
    Address { channel: channel.to_owned(), recipient, reply_to: None }
}

/// The channel that an entry names, if it names one.
pub(crate) fn channel_of(entry: &str) -> Option<String> {
    match Target::parse(entry).kind {
        Kind::Channel { to } => Some(to.channel),
        _ => None,
    }
}

/// An entry that would run as a command and was meant to be something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistyped {
    /// The entry, without what may be a secret.
    pub(crate) shown: String,
    pub(crate) meant: Option<String>,
}

pub(crate) fn mistyped(entry: &str) -> Option<Mistyped> {
    let Kind::Command { command } = Target::parse(entry).kind else { return None };
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic());
    let is_near = |text: &str, word: &str| is_word(text) && !closest(text, [word]).is_empty();
    let found = |shown: String, meant| Some(Mistyped { shown, meant });
    match command.split_once(':') {
        Some((scheme, rest)) if is_word(scheme) && rest.starts_with("//") => found(format!("{scheme}://…"), None),
        Some((word, name)) if is_near(word, "channel") && !name.contains(char::is_whitespace) => {
            let meant = format!("{CHANNEL}{name}");
            found(command, Some(meant))
        }
        None if is_near(&command, "desktop") => found(command, Some("desktop".to_owned())),
        _ => None,
    }
}

/// Puts it into the outbox, once however often it is tried; from there the channel delivers it.
fn send(to: &Address, target: &str, notice: &Notice, town: &Path) -> Result<(), String> {
    let town = Town::at(town).map_err(|error| chain(&error))?;
    let mut store = town.open_store().map_err(|error| chain(&error))?;
    let in_force = in_force::load(&town, &mut store, &*Machine::here()).map_err(|error| chain(&error))?;
    if !in_force.config.names("channels").contains(&to.channel.as_str()) {
        return Err(format!("there is no channel `{}`", one_line(&to.channel)));
    }
    let stamp = Stamp::new(Timestamp::now(), "daemon");
    let id = format!("notice-{}-{target}", notice.id);
    store.post(&id, to, &notice.kind, &notice.text, &stamp).map_err(|error| chain(&error))
}

fn run(errand: &Errand, input: &Value, leash: &Leash) -> Result<(), Untold> {
    match leash.run(|end| errand.run_until(input, Some(end))) {
        None => Err(Untold::CutShort),
        Some(done) => done.map_err(Untold::Failed),
    }
}

/// What commands and web hooks get.
fn letter(notice: &Notice, town: &Path) -> Value {
    json!({
        "id": notice.id,
        "event": notice.kind,
        "bead": notice.bead,
        "text": notice.text,
        "at": time::format(notice.at),
        "town": town.display().to_string(),
        "data": notice.data,
    })
}

fn call(command: &str, notice: &Notice, town: &Path, leash: &Leash) -> Result<(), Untold> {
    let errand = Errand {
        name: format!("the command `{}`", one_line(command.split_whitespace().next().unwrap_or_default())),
        argv: ["sh", "-c", command, "notice"].map(Into::into).to_vec(),
        dir: town.to_owned(),
        env: vec![
            ("GT_EVENT", notice.kind.clone()),
            ("GT_BEAD", notice.bead.clone().unwrap_or_default()),
            ("GT_TEXT", notice.text.replace('\0', "")),
            ("GT_TOWN", town.display().to_string()),
        ],
        timeout: TIMEOUT,
    };
    run(&errand, &letter(notice, town), leash)
}

fn show(notice: &Notice, town: &Path, leash: &Leash) -> Result<(), Untold> {
    if !is_installed("notify-send") {
        return Err(Untold::Never("the desktop cannot be told: `notify-send` is not installed".to_owned()));
    }
    let text: String = one_line(&notice.text).chars().take(SHOWN_CHARS_MAX).collect();
    let errand = Errand {
        name: "`notify-send`".to_owned(),
        argv: ["notify-send", "--app-name=Gasworks", "--", "Gasworks", &text].map(Into::into).to_vec(),
        dir: town.to_owned(),
        env: Vec::new(),
        timeout: TIMEOUT,
    };
    run(&errand, &json!({}), leash)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Posts it.
fn post(url: &str, letter: &Value) -> Result<(), String> {
    let answer = web::caller(TIMEOUT).post(url).header("content-type", "application/json").send(letter.to_string());
    let who = host(url);
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("{who} answered with status {}", answer.status().as_u16())),
        // It would show the whole address.
        Err(ureq::Error::BadUri(_)) => Err(format!("{who} is no address")),
        Err(error) => Err(format!("{who} could not be told: {}", one_line(&error.to_string()))),
    }
}

/// The part of an address that is no secret.
fn host(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    one_line(&format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests;
