//! Signs of life that a run gives: when it printed something, and what it printed last.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gt_core::output::{TAIL_BYTES_MAX, last_lines};
use gt_runtime::terminal;
use jiff::Timestamp;

use crate::town::Town;

/// Opening does not wait for anybody.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// What a run printed last, as far as its log is here.
pub(crate) fn last_output(town: &Town, run: &str) -> Option<String> {
    last_lines(&tail(&town.log_path(run)).ok()?)
}

/// The end of a file, however long that is.
fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let data = file.metadata()?;
    let mut bytes = Vec::new();
    if data.is_file() {
        file.seek(SeekFrom::Start(data.len().saturating_sub(TAIL_BYTES_MAX)))?;
        file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// When it last wrote to its log, or a hook of it was called; `None`: neither is here, and nobody can tell.
fn last_written(town: &Town, run: &str) -> Option<Timestamp> {
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let last = [town.log_path(run), town.events_path(run)].iter().filter_map(|path| written(path)).max()?;
    Timestamp::try_from(last).ok()
}

/// When these runs last gave a sign of life, as far as anybody can tell. The log of a run in a terminal is written at its
/// end, so whoever seems to be silent since then is also asked for on its screen.
pub fn last_signs(town: &Town, runs: &[&str], silent_before: Timestamp) -> BTreeMap<String, Timestamp> {
    let written = |run: &&str| Some(((*run).to_owned(), last_written(town, run)?));
    let mut signs: BTreeMap<String, Timestamp> = runs.iter().filter_map(written).collect();
    if signs.values().all(|at| *at >= silent_before) {
        return signs;
    }
    let screens = terminal::last_output(&town.keeper_dir()).unwrap_or_default();
    for (run, at) in &mut signs {
        let drawn = screens.get(run).and_then(|drawn| Timestamp::try_from(*drawn).ok());
        *at = drawn.map_or(*at, |drawn| drawn.max(*at));
    }
    signs
}
