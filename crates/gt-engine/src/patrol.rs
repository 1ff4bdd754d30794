//! What the daemon's patrol cleans away: stale hooks, old events, letters, notices, turns, fires, logs and
//! texts of configs. // SPEC B7, D8, R2

use gt_store::{StaleHook, Stamp, Store};
use jiff::SignedDuration;

use crate::error::TownError;
use crate::in_force;
use crate::logs::Logs;
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
pub fn clean(
    town: &Town,
    store: &mut Store,
    settings: &Settings,
    logs: &mut Logs,
    stamp: &Stamp,
) -> Result<(), TownError> {
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
    in_force::clear_texts(town, store)?;
    logs.prune(town, store, settings, stamp)
}

#[cfg(test)]
mod tests;
