//! The lock on a run's log, which says that a process of the run lives.
//!
//! The keeper locks the log before it starts the process, which inherits the lock with its standard output, through
//! fork and exec. So a run can be known to live before the kernel shows its environment, and after its program has cleared
//! that; and no run is started twice. A file system without locks leaves only the environment to go by.
//!
//! The log also carries the number of that process, as an extended attribute. A helper of the agent may hold the lock longer
//! than the agent lives, and is not taken for it.
//!
//! Until a process that was forked at the same time executes its program, it holds the lock too. So a held lock means "not
//! known yet", and the next look tells.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, XattrFlags, flock, fremovexattr, getxattr, setxattr};
use rustix::io::Errno;

use super::spawn::open_log;
use crate::{Handle, StartError};

/// The attribute of a log that names the first process of its run.
const FIRST: &str = "user.gasworks.process";

/// Opens a log for the process that is about to be started, and locks it.
pub(super) fn take(path: &Path) -> Result<File, StartError> {
    let log = open_log(path)?;
    if flock(&log, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(StartError::Unknown { cause: "an earlier start of this run still lives".to_owned() });
    }
    // Of an earlier start; most logs are new and have none.
    fremovexattr(&log, FIRST).ok();
    Ok(log)
}

/// Notes which process was started with this log, where the file system keeps such notes.
pub(super) fn note_first(path: &Path, first: &Handle) {
    setxattr(path, FIRST, format!("{} {}", first.pid, first.birth).as_bytes(), XattrFlags::empty()).ok();
}

/// The process that was started with this log, if its start was noted.
pub(super) fn first(path: &Path) -> Option<Handle> {
    let mut bytes = [0; 64];
    let n = getxattr(path, FIRST, &mut bytes[..]).ok()?;
    let (pid, birth) = std::str::from_utf8(bytes.get(..n)?).ok()?.split_once(' ')?;
    Some(Handle { pid: pid.parse().ok()?, birth: birth.parse().ok()? })
}

/// Whether a process lives that was started with this log.
pub(super) fn is_held(path: &Path) -> bool {
    let Ok(log) = File::open(path) else { return false };
    flock(&log, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}
