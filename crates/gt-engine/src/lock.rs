//! Locks of a town: one daemon, one pass at a time. They go with the process that has them, however it ends.

use std::any::Any;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;

use crate::error::TownError;
use crate::town::Town;

/// Which lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Who runs the town.
    Daemon,
    /// Who looks, claims and starts right now.
    Pass,
    /// Whose `run` command is under way, also while it lets others pass.
    Run,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Held {
    _guard: Box<dyn Any + Send>,
    /// Whether somebody else had it first.
    pub waited: bool,
}

impl Held {
    /// Held for as long as the guard lives.
    pub fn by(guard: impl Any + Send, waited: bool) -> Held {
        Held { _guard: Box::new(guard), waited }
    }
}

/// Somebody who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Not known in the moment in which it is taken.
    pub pid: Option<u32>,
}

impl Lock {
    fn path(self, town: &Town) -> PathBuf {
        let name = match self {
            Lock::Daemon => "daemon.lock",
            Lock::Pass => "pass.lock",
            Lock::Run => "run.lock",
        };
        town.state_dir().join(name)
    }

    fn open(self, town: &Town) -> Result<File, TownError> {
        let path = self.path(town);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        open.map_err(|source| TownError::io("open", &path, source))
    }

    /// Takes the lock if nobody has it.
    pub fn try_take(self, town: &Town) -> Result<Option<Held>, TownError> {
        let file = self.open(town)?;
        match file.try_lock() {
            Ok(()) => self.sign(town, file, false).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(TownError::io("lock", &self.path(town), source)),
        }
    }

    /// Takes the lock, after whoever has it.
    pub fn take(self, town: &Town) -> Result<Held, TownError> {
        if let Some(held) = self.try_take(town)? {
            return Ok(held);
        }
        let file = self.open(town)?;
        file.lock().map_err(|source| TownError::io("lock", &self.path(town), source))?;
        self.sign(town, file, true)
    }

    /// Writes down who has the daemon's lock, for those who ask.
    fn sign(self, town: &Town, mut file: File, waited: bool) -> Result<Held, TownError> {
        if self == Lock::Daemon {
            let signed = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .and_then(|()| file.flush());
            signed.map_err(|source| TownError::io("write", &self.path(town), source))?;
        }
        Ok(Held::by(file, waited))
    }

    /// Who has the lock; `None`: nobody.
    pub fn holder(self, town: &Town) -> Result<Option<Holder>, TownError> {
        if !self.path(town).exists() {
            return Ok(None);
        }
        let mut file = self.open(town)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Who it is may not be written yet; that somebody has it is certain.
                file.read_to_string(&mut text).unwrap_or_default();
                Ok(Some(Holder { pid: text.trim().parse().ok() }))
            }
            Err(TryLockError::Error(source)) => Err(TownError::io("lock", &self.path(town), source)),
        }
    }
}

/// Asks a process to end.
pub fn terminate(pid: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| std::io::Error::other("its number is not known"))?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::TERM)?)
}
