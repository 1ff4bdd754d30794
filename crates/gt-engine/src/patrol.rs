//! What the daemon's patrol cleans away: stale hooks, old events, letters, notices, turns, fires and logs. // SPEC B7, D8, R2

use std::fs;
use std::time::{Duration, SystemTime};

use gt_store::{StaleHook, Stamp, Store};
use jiff::SignedDuration;

use crate::error::TownError;
use crate::settings::Settings;
use crate::town::Town;

/// Releases hooks that nobody works on. // SPEC R2
pub fn release_stale(store: &mut Store, settings: &Settings, stamp: &Stamp) -> Result<Vec<StaleHook>, TownError> {
    let age = SignedDuration::try_from(settings.config.duration("deacon.stale_after")).unwrap_or(SignedDuration::MAX);
    match stamp.now.checked_sub(age) {
        // Only who has something to write writes.
        Ok(before) if store.has_stale_hooks(before)? => Ok(store.release_stale_hooks(before, stamp)?),
        _ => Ok(Vec::new()),
    }
}

/// Prunes what is older than the settings keep, never what somebody has not read or still writes.
pub fn clean(town: &Town, store: &mut Store, settings: &Settings, stamp: &Stamp) -> Result<(), TownError> {
    let age = |key: &str| settings.config.duration(key);
    let events_age = SignedDuration::try_from(age("retention.events")).unwrap_or(SignedDuration::MAX);
    if let Ok(before) = stamp.now.checked_sub(events_age)
        && store.prunable_events(before)? > 0
    {
        store.prune_events(before, stamp)?;
    }
    if let Ok(before) = stamp.now.checked_sub(events_age) {
        store.prune_mail(before, stamp)?;
        store.prune_notices(before, stamp)?;
    }
    let messages_age = SignedDuration::try_from(age("retention.messages")).unwrap_or(SignedDuration::MAX);
    if let Ok(before) = stamp.now.checked_sub(messages_age) {
        store.prune_turns(before, stamp)?;
        store.prune_fires(before, stamp)?;
    }
    let live: Vec<String> = store.live_runs()?.iter().map(|run| run.id.clone()).collect();
    prune_logs(town, age("retention.logs"), &live)
}

fn prune_logs(town: &Town, age: Duration, live: &[String]) -> Result<(), TownError> {
    let dir = town.logs_dir();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(TownError::io("read", &dir, source)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_live = path.file_stem().is_some_and(|stem| live.iter().any(|run| stem == run.as_str()));
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|old| old > age));
        if is_old && !is_live {
            fs::remove_file(&path).map_err(|source| TownError::io("remove", &path, source))?;
        }
    }
    Ok(())
}
