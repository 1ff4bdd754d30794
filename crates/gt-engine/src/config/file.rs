//! The config file on disk: read, edit, and replace in one step.
//!
//! The only part of the config that does IO. A reader sees the old file or the new
//! one, never half of either; two writers wait for each other. It does not watch the
//! file for changes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Config, ConfigError, edit, template};
use crate::error::without_temporary_name;
use crate::whole_file::{absent_as_none, follow, replace};

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

    /// Reads the config; a missing file gives the defaults.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let text = read(&self.path).map_err(|source| self.unreadable(source))?;
        Config::parse(&text.unwrap_or_default()).map_err(|error| self.locate(error))
    }

    /// Works out what setting a key does to the file; a missing file begins as the template.
    pub fn plan_set(&self, key: &str, raw: &str) -> Result<Edit, ConfigError> {
        self.plan(|old| edit::set(&old.unwrap_or_else(template), key, raw).map(Some))
    }

    /// Works out what removing a key does to the file.
    pub fn plan_unset(&self, key: &str) -> Result<Edit, ConfigError> {
        self.plan(|old| edit::unset(&old.unwrap_or_default(), key))
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
    fn plan(
        &self,
        edit: impl FnOnce(Option<String>) -> Result<Option<String>, ConfigError>,
    ) -> Result<Edit, ConfigError> {
        let target = follow(&self.path).map_err(|source| self.unreadable(source))?;
        let lock = lock(&target).map_err(|source| self.unreadable(source))?;
        let old = read(&target).map_err(|source| self.unreadable(source))?;
        let new = edit(old.clone()).map_err(|error| self.locate_document(error))?;
        let new = new.filter(|new| old.as_ref() != Some(new));
        Ok(Edit { file: self.clone(), target, old: old.unwrap_or_default(), new, _lock: lock })
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
        Config::parse(self.new.as_ref().unwrap_or(&self.old)).map_err(|error| self.file.locate(error))
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
