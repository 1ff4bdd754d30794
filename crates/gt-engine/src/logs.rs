//! Pruning the files of runs in `.gt/logs`: by age, by size, and what says nothing that the store does not say. // SPEC B7
//!
//! A log is also the sign that a run has begun. So the files of a run stay until its end is recorded, and a while longer
//! for readers who follow its log.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gt_store::{Stamp, Store, StoreError, TurnState};
use jiff::SignedDuration;

use crate::error::TownError;
use crate::settings::Settings;
use crate::town::Town;

/// How long files that look unneeded are kept for readers who follow them.
const SETTLE: Duration = Duration::from_mins(1);
/// Only logs up to this size are compared with the store.
const COMPARED_BYTES_MAX: u64 = 64 * 1024;

/// The logs of a town, as its daemon prunes them.
#[derive(Debug, Default)]
pub struct Logs {
    /// Runs whose log was compared with the store, and stays.
    compared: BTreeSet<String>,
}

/// One file of a run.
struct RunFile {
    path: PathBuf,
    run: String,
    length: u64,
    modified: SystemTime,
}

impl RunFile {
    fn is(&self, extension: &str) -> bool {
        self.path.extension() == Some(OsStr::new(extension))
    }

    /// A time that lies ahead is one of a clock that was set back.
    fn is_older_than(&self, age: Duration) -> bool {
        SystemTime::now().duration_since(self.modified).is_ok_and(|old| old > age)
    }

    fn remove(&self) -> Result<(), TownError> {
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(TownError::io("remove", &self.path, source)),
            _ => Ok(()),
        }
    }
}

impl Logs {
    /// Removes what is too old, what the store has too, and the oldest of what is too much; never a file of a live run.
    pub fn prune(
        &mut self,
        town: &Town,
        store: &mut Store,
        settings: &Settings,
        stamp: &Stamp,
    ) -> Result<(), TownError> {
        // Read before the files: whoever begins after that has files that were just written.
        let live: BTreeSet<String> = store.live_runs()?.iter().map(|run| run.id.clone()).collect();
        let files = read_all(town)?;
        let total: u64 = files.iter().map(|file| file.length).sum();
        let age = settings.config.duration("retention.logs");
        let (mut left, mut n_removed) = (Vec::new(), 0);
        let known: BTreeSet<String> = files.iter().map(|file| file.run.clone()).collect();
        self.compared.retain(|run| known.contains(run));
        for file in files.into_iter().filter(|file| !live.contains(&file.run)) {
            if file.is_older_than(age) || self.is_unneeded(&file, store, stamp)? {
                file.remove()?;
                n_removed += file.length;
            } else {
                left.push(file);
            }
        }
        match settings.config.size_bytes("retention.logs_size") {
            0 => Ok(()),
            most => remove_oldest(left, (total - n_removed).saturating_sub(most)),
        }
    }

    fn is_unneeded(&mut self, file: &RunFile, store: &mut Store, stamp: &Stamp) -> Result<bool, TownError> {
        if !file.is_older_than(SETTLE) {
            return Ok(false);
        }
        if file.is("err") {
            return Ok(file.length == 0);
        }
        if !file.is("log") || file.length > COMPARED_BYTES_MAX || self.compared.contains(&file.run) {
            return Ok(false);
        }
        let is_known = match said(store, &file.run, stamp)? {
            Said::NotYet => return Ok(false),
            Said::Nothing => false,
            Said::Turn(reply) => holds_only(file, reply.as_deref()).unwrap_or(false),
        };
        if !is_known {
            self.compared.insert(file.run.clone());
        }
        Ok(is_known)
    }
}

/// What the store has of what a run printed.
enum Said {
    /// It has not ended, or just now.
    NotYet,
    /// It is no turn's, or not the last of one.
    Nothing,
    Turn(Option<String>),
}

fn said(store: &mut Store, run: &str, stamp: &Stamp) -> Result<Said, StoreError> {
    let Some(run) = store.run(run)? else { return Ok(Said::Nothing) };
    let settled = stamp.now - SignedDuration::try_from(SETTLE).unwrap_or(SignedDuration::MAX);
    if run.ended_at.is_none_or(|at| at > settled) {
        return Ok(Said::NotYet);
    }
    let Some(turn) = run.turn.as_ref().map(|turn| store.turn(turn.id)).transpose()?.flatten() else {
        return Ok(Said::Nothing);
    };
    let is_last = turn.state == TurnState::Ended && turn.run.as_deref() == Some(&run.id);
    Ok(if is_last { Said::Turn(turn.reply) } else { Said::Nothing })
}

/// Whether a log holds a reply and nothing else.
fn holds_only(log: &RunFile, reply: Option<&str>) -> io::Result<bool> {
    let bytes = fs::read(&log.path)?;
    let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    Ok(bytes[..end] == *reply.unwrap_or_default().trim_end_matches(['\n', '\r']).as_bytes())
}

fn read_all(town: &Town) -> Result<Vec<RunFile>, TownError> {
    let dir = town.logs_dir();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(TownError::io("read", &dir, source)),
    };
    // One that is gone meanwhile is pruned.
    let file = |entry: fs::DirEntry| {
        let (path, metadata) = (entry.path(), entry.metadata().ok()?);
        let run = path.file_stem()?.to_string_lossy().into_owned();
        Some(RunFile { run, length: metadata.len(), modified: metadata.modified().ok()?, path })
    };
    Ok(entries.flatten().filter_map(file).collect())
}

/// Removes runs that printed last the longest ago, until so many bytes are gone.
fn remove_oldest(files: Vec<RunFile>, excess: u64) -> Result<(), TownError> {
    let mut runs: BTreeMap<String, Vec<RunFile>> = BTreeMap::new();
    for file in files {
        runs.entry(file.run.clone()).or_default().push(file);
    }
    let last = |files: &Vec<RunFile>| files.iter().map(|file| file.modified).max();
    let mut runs: Vec<Vec<RunFile>> = runs.into_values().collect();
    runs.sort_by_key(last);
    let mut n_removed = 0;
    for run in runs {
        // What follows is younger still.
        if n_removed >= excess || run.iter().any(|file| !file.is_older_than(SETTLE)) {
            break;
        }
        run.iter().try_for_each(RunFile::remove)?;
        n_removed += run.iter().map(|file| file.length).sum::<u64>();
    }
    Ok(())
}
