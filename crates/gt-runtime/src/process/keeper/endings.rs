//! Endings that nobody has acknowledged yet, in a file, so that they outlive the keeper.
//!
//! The keeper is the only writer, and reads the file once, when it starts. It is a journal: a line for each ending and for each
//! acknowledgement. Once nothing is left of it, it is emptied; when most of it is history, it is written anew.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Ending, Handle, Sighting};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    pub handle: Handle,
    pub ending: Ending,
}

/// One line of the journal.
#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    /// Nothing: it was acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Ended>,
}

/// A journal that is shorter is not worth being written anew.
const HISTORY_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Endings {
    path: PathBuf,
    journal: File,
    n_bytes: u64,
    /// When it is to be written anew.
    n_bytes_max: u64,
    /// Whether its last line is not whole.
    is_torn: bool,
    /// With whether they are in the journal.
    by_run: BTreeMap<String, (Ended, bool)>,
}

/// Whether a run's name can be that of a file.
pub fn is_file_name(run: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !run.is_empty() && run.len() <= 128 && !run.starts_with('.') && run.bytes().all(is_plain)
}

impl Endings {
    pub(super) fn load(keeper_dir: &Path) -> io::Result<Self> {
        let path = keeper_dir.join("endings");
        let journal = open(&path)?;
        let text = fs::read(&path)?;
        let mut by_run = BTreeMap::new();
        // What is no line was half written when the machine went down: then its run is gone too, as a survey will find.
        for line in text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok()) {
            match line.ended {
                Some(ended) => drop(by_run.insert(line.run, (ended, true))),
                None => drop(by_run.remove(&line.run)),
            }
        }
        let is_torn = text.last().is_some_and(|last| *last != b'\n');
        let n_bytes = text.len() as u64;
        Ok(Self { path, journal, n_bytes, n_bytes_max: HISTORY_BYTES_MAX, is_torn, by_run })
    }

    pub(super) fn handle(&self, run: &str) -> Option<Handle> {
        self.by_run.get(run).map(|(ended, _)| ended.handle.clone())
    }

    pub(super) fn sightings(&self) -> BTreeMap<String, Sighting> {
        let sighting = |ended: &Ended| Sighting::Ended(ended.ending.clone());
        self.by_run.iter().map(|(run, (ended, _))| (run.clone(), sighting(ended))).collect()
    }

    /// Keeps an ending; in memory only when it cannot be written.
    pub(super) fn insert(&mut self, run: &str, ended: Ended) -> io::Result<()> {
        let line = Line { run: run.to_owned(), ended: Some(ended.clone()) };
        let written = self.append(&[line]);
        self.by_run.insert(run.to_owned(), (ended, written.is_ok()));
        written
    }

    /// Writes what could not be written before.
    pub(super) fn write_rest(&mut self) -> io::Result<()> {
        let rest = self.by_run.iter().filter(|(_, (_, is_written))| !is_written);
        let lines: Vec<Line> =
            rest.map(|(run, (ended, _))| Line { run: run.clone(), ended: Some(ended.clone()) }).collect();
        self.append(&lines)?;
        self.by_run.values_mut().for_each(|(_, is_written)| *is_written = true);
        Ok(())
    }

    pub(super) fn are_written(&self) -> bool {
        self.by_run.values().all(|(_, is_written)| *is_written)
    }

    /// If they stay in the journal, the next keeper tells of them again, and they are acknowledged again.
    pub(super) fn forget(&mut self, runs: &[String]) {
        let known = runs.iter().filter(|run| self.by_run.remove(*run).is_some());
        let lines: Vec<Line> = known.map(|run| Line { run: run.clone(), ended: None }).collect();
        if !lines.is_empty() && self.by_run.is_empty() && self.journal.set_len(0).is_ok() {
            (self.n_bytes, self.is_torn) = (0, false);
            return;
        }
        self.append(&lines).ok();
        if self.n_bytes > self.n_bytes_max {
            // What cannot be written anew now is left to grow.
            self.write_anew().ok();
            self.n_bytes_max = self.n_bytes.saturating_mul(2).max(HISTORY_BYTES_MAX);
        }
    }

    fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        bytes.extend(text_of(lines)?);
        let written = self.journal.write_all(&bytes);
        self.is_torn = written.is_err();
        self.n_bytes += bytes.len() as u64;
        written
    }

    /// Leaves out what is history.
    fn write_anew(&mut self) -> io::Result<()> {
        let known = self.by_run.iter().filter(|(_, (_, is_written))| *is_written);
        let lines: Vec<Line> =
            known.map(|(run, (ended, _))| Line { run: run.clone(), ended: Some(ended.clone()) }).collect();
        let (bytes, draft) = (text_of(&lines)?, self.path.with_extension("draft"));
        fs::remove_file(&draft).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let mut journal = open(&draft)?;
        journal.write_all(&bytes)?;
        fs::rename(&draft, &self.path)?;
        (self.journal, self.n_bytes, self.is_torn) = (journal, bytes.len() as u64, false);
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn text_of(lines: &[Line]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
