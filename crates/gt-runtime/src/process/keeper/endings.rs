//! Endings that nobody has acknowledged yet, each in a file, so that they outlive the keeper.
//!
//! The keeper is the only writer, and reads the files once, when it starts. A file that is not needed any more is put aside and
//! used again: a file system that has deleted thousands of files takes long to make the next one.

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

/// So many files are put aside at the most.
const SPARE_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Endings {
    dir: PathBuf,
    /// Files that may be written anew.
    spare: Vec<PathBuf>,
    /// How many names have been given to them.
    n_spare: usize,
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
        let aside = keeper_dir.join("spare");
        fs::create_dir_all(&aside)?;
        let spare: Vec<PathBuf> = fs::read_dir(&aside)?.flatten().map(|file| file.path()).collect();
        let mut by_run = BTreeMap::new();
        for file in fs::read_dir(&dir)? {
            let path = file?.path();
            match read(&path) {
                Some((run, ended)) => drop(by_run.insert(run, (ended, true))),
                // Half written when the machine went down: then its run is gone too, as a survey will find.
                None => fs::remove_file(&path)?,
            }
        }
        let n_spare = spare.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).max().unwrap_or(0);
        Ok(Self { dir, spare, n_spare, by_run })
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
        let written = write(&self.dir, self.spare.pop(), run, &ended);
        self.by_run.insert(run.to_owned(), (ended, written.is_ok()));
        written
    }

    /// Writes what could not be written before.
    pub(super) fn write_rest(&mut self) -> io::Result<()> {
        for (run, (ended, is_written)) in &mut self.by_run {
            if !*is_written {
                write(&self.dir, None, run, ended)?;
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
            self.put_aside(&file_of(&self.dir, run)).ok();
        }
    }

    fn put_aside(&mut self, path: &Path) -> io::Result<()> {
        if self.spare.len() >= SPARE_MAX {
            return fs::remove_file(path);
        }
        self.n_spare += 1;
        let aside = self.dir.with_file_name("spare").join(self.n_spare.to_string());
        fs::rename(path, &aside)?;
        self.spare.push(aside);
        Ok(())
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

fn write(dir: &Path, spare: Option<PathBuf>, run: &str, ended: &Ended) -> io::Result<()> {
    let draft = spare.unwrap_or_else(|| dir.join(format!("{run}.tmp")));
    let written = fs::write(&draft, serde_json::to_vec(ended)?).and_then(|()| fs::rename(&draft, file_of(dir, run)));
    match written {
        // The directory is gone, and the town with it: nobody will ever ask.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}
