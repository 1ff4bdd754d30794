//! Channels that do not work: those that cannot run, and those whose deliveries fail.
//!
//! What a channel needs from the environment only the daemon knows. It notes what is wrong in a file of the town, which
//! `gt status` and `gt doctor` read. Without a daemon they judge by their own environment.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;

use gt_core::text::one_line;
use gt_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::config::{Config, join};
use crate::lock::Lock;
use crate::town::Town;
use crate::whole_file;

/// A channel that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelTrouble {
    pub channel: String,
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// What the daemon found wrong.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    pid: u32,
    flaws: BTreeMap<String, String>,
}

/// Notes why channels of the daemon do not run.
pub(super) fn note(town: &Town, flaws: &BTreeMap<String, String>) -> io::Result<()> {
    let note = Note { pid: std::process::id(), flaws: flaws.clone() };
    whole_file::replace(&path(town), |file| {
        serde_json::to_writer(&mut *file, &note)?;
        file.write_all(b"\n")
    })
}

/// Lists the channels that do not work.
pub fn troubles(town: &Town, config: &Config, store: &mut Store) -> Result<Vec<ChannelTrouble>, StoreError> {
    let daemon = Lock::Daemon.holder(town).ok().flatten().map(|holder| holder.pid);
    let flaws = noted(town).filter(|note| daemon == Some(Some(note.pid))).map(|note| note.flaws);
    let mut found = Vec::new();
    for name in config.names("channels") {
        let own = || if daemon.is_none() { Spec::read(config, name).err() } else { None };
        let flaw = match &flaws {
            Some(flaws) => flaws.get(name).cloned(),
            None => own(),
        };
        let Some(flaw) = flaw else { continue };
        let message = format!("the channel {} does not run: {flaw}", one_line(name));
        found.push(ChannelTrouble { channel: name.to_owned(), message, hint: "`docs/channels.md`".to_owned() });
    }
    for failing in store.failing_channels()? {
        let name = one_line(&failing.channel);
        let waiting =
            if failing.n_waiting == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", failing.n_waiting) };
        let message = format!("the channel {name}: {waiting} not arrived; last error: {}", one_line(&failing.error));
        let hint = format!(
            "check `{}`; each is retried for 24 h, then given up",
            one_line(&join(&["channels", &failing.channel, "url"]))
        );
        found.push(ChannelTrouble { channel: failing.channel, message, hint });
    }
    Ok(found)
}

fn noted(town: &Town) -> Option<Note> {
    serde_json::from_slice(&std::fs::read(path(town)).ok()?).ok()
}

fn path(town: &Town) -> PathBuf {
    town.state_dir().join("channels.json")
}
