//! `.gt/server.json`: where the server of a town answers, or why it does not.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use gt_engine::{Town, whole_file};
use serde::{Deserialize, Serialize};

/// What became of the server that a daemon started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Where it answers.
    pub address: Option<SocketAddr>,
    /// The daemon.
    pub pid: u32,
    /// Why it does not.
    pub error: Option<String>,
}

impl Report {
    pub(crate) fn new(address: Option<SocketAddr>, error: Option<String>) -> Report {
        Report { address, pid: std::process::id(), error }
    }

    /// What the last server of a town said of itself; a daemon that was killed could not take it back.
    pub fn read(town: &Town) -> Option<Report> {
        serde_json::from_slice(&std::fs::read(path(town)).ok()?).ok()
    }

    pub(crate) fn write(&self, town: &Town) -> io::Result<()> {
        whole_file::replace(&path(town), |file| {
            serde_json::to_writer(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    pub(crate) fn remove(town: &Town) {
        // One that is left names a process that is gone.
        std::fs::remove_file(path(town)).unwrap_or_default();
    }

    /// What the log of the daemon says of it.
    pub fn words(&self) -> String {
        match (&self.address, &self.error) {
            (Some(address), _) => format!("answering HTTP at {address}"),
            (None, error) => format!("no HTTP: {}", error.as_deref().unwrap_or("nobody knows why")),
        }
    }
}

fn path(town: &Town) -> PathBuf {
    town.state_dir().join("server.json")
}
