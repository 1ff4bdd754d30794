//! The desk of a target: one worker at a time sits at it, and what lies on it is for others to see.
//!
//! The lock is the file's, and goes with the process. Who has it is written into the file, so that those who only want to
//! know need not touch the lock: a worker that found it taken for a moment would go away.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek as _, Write as _};
use std::path::Path;

use gt_store::Merge;

use crate::error::TownError;
use crate::process_id;

const FILE: &str = "lock";

/// Somebody who works on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtWork {
    pub pid: u32,
    /// The merges that it tries, in their order.
    pub merges: Vec<String>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Desk {
    file: File,
}

impl Desk {
    /// Takes the place, if nobody has it.
    pub(super) fn take(dir: &Path) -> Result<Option<Desk>, TownError> {
        let path = dir.join(FILE);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(|source| TownError::io("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => {
                let desk = Desk { file };
                desk.lay_out(&[]);
                Ok(Some(desk))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(TownError::io("lock", &path, source)),
        }
    }

    /// Shows what is worked on.
    pub(super) fn lay_out(&self, merges: &[Merge]) {
        let ids = merges.iter().map(|merge| merge.id.as_str());
        let lines: Vec<String> = std::iter::once(process_id::own()).chain(ids.map(str::to_owned)).collect();
        self.write(&(lines.join("\n") + "\n"));
    }

    /// That it can be seen is worth nothing to the work itself.
    fn write(&self, text: &str) {
        let mut file = &self.file;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.unwrap_or_default();
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.write("");
    }
}

/// Who sits there, if anybody does. Whoever was killed has left a name that nobody has any more.
pub(super) fn look(dir: &Path) -> Option<AtWork> {
    let text = fs::read_to_string(dir.join(FILE)).ok()?;
    let mut lines = text.lines();
    let who = lines.next().filter(|who| process_id::is_alive(who))?;
    let pid = who.split(':').next()?.parse().ok()?;
    Some(AtWork { pid, merges: lines.map(str::to_owned).collect() })
}
