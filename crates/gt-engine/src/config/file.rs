//! The config file on disk: read, edit, and replace in one step.
//!
//! The only part of the config that does IO. A reader sees the old file or the new
//! one, never half of either; two writers wait for each other. It does not watch the
//! file for changes.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use super::{Config, ConfigError, edit, template};
use crate::error::without_temporary_name;

/// As many links as the kernel follows before it calls them a loop.
const LINKS_MAX: usize = 40;

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
            replace(&self.target, new).map_err(|source| self.file.unwritable(source))?;
        }
        Ok(self.changes())
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    absent_as_none(fs::read_to_string(path))
}

fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Follows symbolic links to the file itself, which need not exist: renaming onto a
/// link would replace the link and leave its target as it was.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let link = absent_as_none(fs::symlink_metadata(&path))?;
        if !link.is_some_and(|metadata| metadata.is_symlink()) {
            return Ok(path);
        }
        path = directory(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
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

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let old = absent_as_none(fs::metadata(path))?;
    let name = path.file_name().unwrap_or(OsStr::new("town.toml"));
    let mut prefix = OsStr::new(".").to_owned();
    prefix.push(name);
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory(path))?;
    file.write_all(text.as_bytes())?;
    if let Some(old) = old {
        keep_access(file.as_file(), &old)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory(path))?.sync_all()
}

/// Gives the new file the owner and the permissions of the old one.
fn keep_access(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; without the right, the editor owns the file,
        // as after a save in any editor.
        fchown(file, Some(old.uid()), Some(old.gid())).ok();
    }
    file.set_permissions(old.permissions())
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
