//! Taking in what a hook of an agent was called with: one more line in the events of its run. // SPEC P5
//!
//! Called by agents, in the middle of their work, so it takes no time, opens no store and never complains.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gt_core::agent::{Vendor, read_hook};
use jiff::Timestamp;

use crate::town::Town;
use crate::wake::Bell;

/// From this size on only what decides something is kept.
const EVENTS_BYTES_MANY: u64 = 4 * 1024 * 1024;
/// No events of a run grow beyond this.
const EVENTS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Keeps what a hook was given, and wakes the daemon if that decides something. Whose run it is not, and what is no call of
/// a hook, is passed over.
pub fn take(town: &Path, run: &str, vendor: Vendor, given: &str, now: Timestamp) {
    let Some((town, hook)) = Town::at(town).ok().zip(read_hook(vendor, given, now)) else { return };
    let is_name = !run.is_empty() && run.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let events = town.events_path(run);
    // A run that never began here tells nothing here.
    if !is_name || !(events.exists() || town.log_path(run).exists()) {
        return;
    }
    let is_kept = append(&events, &format!("{}\n", hook.to_line()), hook.decides());
    if is_kept.unwrap_or(false) && hook.decides() {
        Bell::new(&town).ring();
    }
}

/// One write, so that lines of several hooks do not mix.
fn append(path: &Path, line: &str, is_decisive: bool) -> io::Result<bool> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let most = if is_decisive { EVENTS_BYTES_MAX } else { EVENTS_BYTES_MANY };
    if file.metadata()?.len() > most {
        return Ok(false);
    }
    file.write_all(line.as_bytes())?;
    Ok(true)
}
