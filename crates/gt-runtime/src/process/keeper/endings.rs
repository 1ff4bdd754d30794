//! Endings that nobody has acknowledged yet, each in a file, so that they outlive the keeper.
//!
//! The keeper is the only writer, and reads the files once, when it starts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Ending, Handle, Sighting};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    pub handle: Handle,
    pub ending: Ending,
}

#[derive(Debug)]
pub(super) struct Endings {
    dir: PathBuf,
    /// With whether the file is written.
    by_run: BTreeMap<String, (Ended, bool)>,
}

/// Whether a run's name can be that of a file.
pub fn is_file_name(run: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !run.is_empty() && run.len() <= 128 && !run.starts_with('.') && run.bytes().all(is_plain)
}

impl Endings {
    pub(super) fn load(keeper_dir: &Path) -> io::Result<Self> {
        let dir = keeper_dir.join("ended");
        fs::create_dir_all(&dir)?;
        let mut by_run = BTreeMap::new();
        for file in fs::read_dir(&dir)? {
            let path = file?.path();
            match read(&path) {
                Some((run, ended)) => drop(by_run.insert(run, (ended, true))),
                // Half written when the machine went down: then its run is gone too, as a survey will find.
                None => fs::remove_file(&path)?,
            }
        }
        Ok(Self { dir, by_run })
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
        let written = write(&self.dir, run, &ended);
        self.by_run.insert(run.to_owned(), (ended, written.is_ok()));
        written
    }

    /// Writes what could not be written before.
    pub(super) fn write_rest(&mut self) -> io::Result<()> {
        for (run, (ended, is_written)) in &mut self.by_run {
            if !*is_written {
                write(&self.dir, run, ended)?;
                *is_written = true;
            }
        }
        Ok(())
    }

    pub(super) fn are_written(&self) -> bool {
        self.by_run.values().all(|(_, is_written)| *is_written)
    }

    pub(super) fn forget(&mut self, run: &str) {
        if self.by_run.remove(run).is_some() {
            // If it stays, the next keeper tells of it again, and it is acknowledged again.
            fs::remove_file(file_of(&self.dir, run)).ok();
        }
    }
}

fn file_of(dir: &Path, run: &str) -> PathBuf {
    dir.join(format!("{run}.json"))
}

fn read(path: &Path) -> Option<(String, Ended)> {
    let run = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
    let ended = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some((run, ended))
}

fn write(dir: &Path, run: &str, ended: &Ended) -> io::Result<()> {
    let draft = dir.join(format!("{run}.tmp"));
    let written = fs::write(&draft, serde_json::to_vec(ended)?).and_then(|()| fs::rename(&draft, file_of(dir, run)));
    match written {
        // The directory is gone, and the town with it: nobody will ever ask.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}
