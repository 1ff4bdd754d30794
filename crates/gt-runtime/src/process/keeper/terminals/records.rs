//! What the next keeper has to know of a run in a terminal, in a file each: where its log is, and which process it was.
//!
//! A file is written before the session is made and goes when its end is recorded. The text for its standard input
//! lies beside it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Handle;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub log: PathBuf,
    /// Known once tmux has said what it started.
    pub handle: Option<Handle>,
}

#[derive(Debug)]
pub(super) struct Records {
    dir: PathBuf,
    by_run: BTreeMap<String, Record>,
}

impl Records {
    pub(super) fn load(keeper_dir: &Path) -> io::Result<Self> {
        // Absolute, for it is said to a shell that is elsewhere.
        let dir = keeper_dir.canonicalize()?.join("terminals");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let mut by_run = BTreeMap::new();
        for file in fs::read_dir(&dir)? {
            let path = file?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match (name.strip_suffix(".json"), read(&path)) {
                (Some(run), Some(record)) => drop(by_run.insert(run.to_owned(), record)),
                // Half written when its keeper was killed: then its session was never made.
                (Some(_), None) => fs::remove_file(&path)?,
                (None, _) => {}
            }
        }
        let records = Self { dir, by_run };
        records.clear_up()?;
        Ok(records)
    }

    /// Removes what belongs to no record: texts whose run is over, and drafts.
    fn clear_up(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.dir)? {
            let path = file?.path();
            let run = path.file_stem().and_then(|run| run.to_str()).unwrap_or_default();
            let is_text = path.extension().is_some_and(|kind| kind == "stdin");
            let is_draft = path.extension().is_some_and(|kind| kind == "tmp");
            if is_draft || is_text && self.get(run).is_none() {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, run: &str) -> Option<&Record> {
        self.by_run.get(run)
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &str> {
        self.by_run.keys().map(String::as_str)
    }

    pub(super) fn insert(&mut self, run: &str, record: Record) -> io::Result<()> {
        write_private(&self.dir.join(format!("{run}.json")), &serde_json::to_vec(&record)?)?;
        self.by_run.insert(run.to_owned(), record);
        Ok(())
    }

    /// Adds which process it is. If that cannot be written, the next keeper asks tmux.
    pub(super) fn set_handle(&mut self, run: &str, handle: &Handle) {
        if let Some(record) = self.by_run.get(run) {
            let record = Record { handle: Some(handle.clone()), ..record.clone() };
            self.insert(run, record).ok();
        }
    }

    /// Keeps a text until the record goes.
    pub(super) fn keep_input(&self, run: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.input_of(run);
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }

    pub(super) fn remove(&mut self, run: &str) {
        if self.by_run.remove(run).is_some() {
            // What stays is found again by the next keeper, and removed then.
            fs::remove_file(self.dir.join(format!("{run}.json"))).ok();
            fs::remove_file(self.input_of(run)).ok();
        }
    }

    fn input_of(&self, run: &str) -> PathBuf {
        self.dir.join(format!("{run}.stdin"))
    }
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a file for its owner only, in full or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_added_extension("tmp");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    fs::rename(&draft, path)
}
