//! Becoming the one daemon of a town.
//!
//! Owns: the daemon's lock, and what to do while another daemon has it.

use super::Log;
use crate::error::TownError;
use crate::lock::{Held, Lock};
use crate::process_id;
use crate::town::Town;

/// What to do while another daemon runs the town.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    Refuse,
    WaitFor,
}

/// Waits for the other daemon or refuses, as was asked; with the lock, the town is this daemon's.
pub(super) fn take_over(town: &Town, other: Other, log: &Log) -> Result<Held, TownError> {
    if let Some(held) = Lock::Daemon.try_take(town)? {
        return Ok(held);
    }
    match Lock::Daemon.holder(town)?.and_then(|holder| holder.pid) {
        // Killed a moment ago; a child that it was just starting has the lock for as long as that takes.
        Some(pid) if process_id::birth(pid).is_none() => {}
        Some(pid) if other == Other::Refuse => return Err(TownError::DaemonRuns { pid }),
        pid => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            log(&format!("another daemon{who} runs this town; waiting until it ends"));
        }
    }
    Lock::Daemon.take(town)
}
