//! The config file on disk: read, edit, and replace in one step.
//!
//! The only part of the config that does IO. A reader sees the old file or the new
//! one, never half of either; two writers wait for each other. It does not watch the
//! file for changes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Config, ConfigError, edit};
use crate::error::without_temporary_name;
use crate::whole_file::{absent_as_none, follow, replace};

/// What a file holds when its last key is gone.
const NOTHING_SET: &str = "# Every setting has its default.\n";

/// A config file, which need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    path: PathBuf,
}

impl ConfigFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file's text. A file without any, or none at all, is a broken edit: comments only would be a config.
    pub fn read(&self) -> Result<String, ConfigError> {
        let text = read(&self.path).map_err(|source| self.unreadable(source))?;
        self.require(text)
    }

    /// Reads a text as this file's config.
    pub fn parse(&self, text: &str) -> Result<Config, ConfigError> {
        Config::parse(text).map_err(|error| self.locate(error))
    }

    /// Reads the file as it is, whether it is in force or not.
    pub fn load(&self) -> Result<Config, ConfigError> {
        self.parse(&self.read()?)
    }

    /// Works out what setting a key does to the file.
    pub fn plan_set(&self, key: &str, raw: &str) -> Result<Edit, ConfigError> {
        self.plan(|old| edit::set(old, key, raw).map(Some))
    }

    /// Works out what removing a key does to the file.
    pub fn plan_unset(&self, key: &str) -> Result<Edit, ConfigError> {
        self.plan_unset_all(&[key.to_owned()])
    }

    /// The same of several keys.
    pub fn plan_unset_all(&self, keys: &[String]) -> Result<Edit, ConfigError> {
        // An empty file would be a broken one.
        let or_comment = |text: String| if is_blank(&text) { NOTHING_SET.to_owned() } else { text };
        self.plan(|old| Ok(edit::unset_all(old, keys)?.map(or_comment)))
    }

    /// Sets a key and tells whether that changed the file.
    pub fn set(&self, key: &str, raw: &str) -> Result<bool, ConfigError> {
        self.plan_set(key, raw)?.write()
    }

    /// Removes a key and tells whether it was set.
    pub fn unset(&self, key: &str) -> Result<bool, ConfigError> {
        self.plan_unset(key)?.write()
    }

    /// Locks the file and edits its text; other writers wait until the edit is written or dropped.
    fn plan(&self, edit: impl FnOnce(&str) -> Result<Option<String>, ConfigError>) -> Result<Edit, ConfigError> {
        let target = follow(&self.path).map_err(|source| self.unreadable(source))?;
        let lock = lock(&target).map_err(|source| self.unreadable(source))?;
        let old = self.require(read(&target).map_err(|source| self.unreadable(source))?)?;
        let new = edit(&old).map_err(|error| self.locate_document(error))?;
        let new = new.filter(|new| old != *new);
        Ok(Edit { file: self.clone(), target, old, new, _lock: lock })
    }

    fn require(&self, text: Option<String>) -> Result<String, ConfigError> {
        match text {
            None => Err(ConfigError::Missing { path: self.path.clone() }),
            Some(text) if is_blank(&text) && !gt_core::defect!("blank-config-counts") => {
                Err(ConfigError::Blank { path: self.path.clone() })
            }
            Some(text) => Ok(text),
        }
    }

    fn locate(&self, problem: ConfigError) -> ConfigError {
        ConfigError::InFile { path: self.path.clone(), problem: Box::new(problem) }
    }

    fn locate_document(&self, problem: ConfigError) -> ConfigError {
        if problem.is_about_document() {
            return self.locate(problem);
        }
        problem
    }

    fn unreadable(&self, source: io::Error) -> ConfigError {
        let path = self.path.clone();
        ConfigError::Read { path, source }
    }

    fn unwritable(&self, source: io::Error) -> ConfigError {
        let path = self.path.clone();
        ConfigError::Write { path, source: without_temporary_name(source) }
    }
}

/// A change to the file that is worked out and not yet written.
#[derive(Debug)]
pub struct Edit {
    file: ConfigFile,
    target: PathBuf,
    old: String,
    /// `None` where nothing changes.
    new: Option<String>,
    _lock: Option<File>,
}

impl Edit {
    /// Whether writing it changes anything.
    pub fn changes(&self) -> bool {
        self.new.is_some()
    }

    /// The config as it is after the edit.
    pub fn config(&self) -> Result<Config, ConfigError> {
        self.file.parse(self.text())
    }

    /// The file's text after the edit.
    pub fn text(&self) -> &str {
        self.new.as_ref().unwrap_or(&self.old)
    }

    /// Writes it and tells whether that changed the file.
    pub fn write(self) -> Result<bool, ConfigError> {
        if let Some(new) = &self.new {
            replace(&self.target, |file| file.write_all(new.as_bytes()))
                .map_err(|source| self.file.unwritable(source))?;
        }
        Ok(self.changes())
    }
}

/// Whether there is nothing in it but white space.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

fn read(path: &Path) -> io::Result<Option<String>> {
    absent_as_none(fs::read_to_string(path))
}

/// Locks the file against other writers, until the returned handle is dropped.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let Some(file) = absent_as_none(File::open(path))? else {
            return Ok(None);
        };
        file.lock()?;
        // Whoever held the lock before has put a new file in place: lock that one.
        let current = absent_as_none(fs::metadata(path))?;
        let held = file.metadata()?;
        if current.is_some_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())) {
            return Ok(Some(file));
        }
    }
}
