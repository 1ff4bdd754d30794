//! The scheduler's own state: paused or not, what troubles it, and its last dispatch. // SPEC D5, D6

use gt_core::event::EventType;
use gt_core::plan::{Pause, Trouble, TroubleOf};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
use std::collections::BTreeMap;

use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// What the scheduler remembers about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerState {
    pub pause: Option<Pause>,
    pub last_dispatch_at: Option<Timestamp>,
    pub last_dispatch_count: Option<i64>,
    /// When something queued was started last.
    pub last_queued_at: Option<Timestamp>,
    /// What has passed is left out.
    pub troubles: BTreeMap<TroubleOf, Trouble>,
}

impl Store {
    pub fn scheduler_state(&mut self, now: Timestamp) -> std::result::Result<SchedulerState, StoreError> {
        self.read(|tx| state(tx, now))
    }

    /// Stops every path that starts something; says whether it was running.
    pub fn pause(&mut self, reason: Option<&str>, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE scheduler SET paused_at = ?1, paused_by = ?2, paused_reason = ?3 WHERE paused_at IS NULL";
            let changed = tx.execute(sql, params![micros(stamp.now), stamp.actor, reason])? > 0;
            if changed {
                events::append(tx, stamp, EventType::SchedulerPaused, None, &json!({ "reason": reason }))?;
            }
            Ok(changed)
        })
    }

    /// Goes on, and forgets what troubled it; says whether it was paused, and how much was held up.
    pub fn resume(&mut self, stamp: &Stamp) -> std::result::Result<(bool, usize), StoreError> {
        self.write(stamp, |tx| {
            let n_troubles = state(tx, stamp.now)?.troubles.len();
            tx.execute("DELETE FROM trouble", [])?;
            let sql = "UPDATE scheduler SET paused_at = NULL, paused_by = NULL, paused_reason = NULL
                       WHERE paused_at IS NOT NULL";
            let was_paused = tx.execute(sql, [])? > 0;
            if was_paused || n_troubles > 0 {
                events::append(tx, stamp, EventType::SchedulerResumed, None, &json!({}))?;
            }
            Ok((was_paused, n_troubles))
        })
    }

    /// Starts nothing for a while, for a reason that is nobody's fault. Said twice, it is remembered once.
    pub fn hold_up(&mut self, trouble: &Trouble, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let now = state(tx, stamp.now)?.troubles.remove(&TroubleOf::Town);
            if now.is_none_or(|now| now.reason != trouble.reason) {
                note_trouble(tx, &TroubleOf::Town, trouble, stamp)?;
            }
            Ok(())
        })
    }

    /// Forgets what troubled agents, because their settings have changed.
    pub fn forget_troubles(&mut self, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            if tx.execute("DELETE FROM trouble", [])? > 0 {
                events::append(tx, stamp, EventType::SchedulerFreed, None, &json!({}))?;
            }
            Ok(())
        })
    }

    /// Forgets what was missing on this machine, so that it is looked for at once. The limits of agents stay: a new process
    /// does not lift them.
    pub fn look_again_for_missing(&mut self, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            if tx.execute("DELETE FROM trouble WHERE scope NOT LIKE 'agent %'", [])? > 0 {
                events::append(tx, stamp, EventType::SchedulerFreed, None, &json!({}))?;
            }
            Ok(())
        })
    }
}

pub(crate) fn state(tx: &Connection, now: Timestamp) -> Result<SchedulerState> {
    let sql = "SELECT paused_at, paused_by, paused_reason, last_dispatch_at, last_dispatch_count,
                 last_queued_at FROM scheduler";
    let mut state = tx.prepare_cached(sql)?.query_row([], |row| {
        let paused_at: Option<i64> = row.get(0)?;
        let by: Option<String> = row.get(1)?;
        let reason = row.get(2)?;
        Ok(SchedulerState {
            pause: paused_at.map(|at| Pause { by: by.unwrap_or_default(), at: timestamp(at), reason }),
            last_dispatch_at: row.get::<_, Option<i64>>(3)?.map(timestamp),
            last_dispatch_count: row.get(4)?,
            last_queued_at: row.get::<_, Option<i64>>(5)?.map(timestamp),
            troubles: BTreeMap::new(),
        })
    })?;
    let mut query = tx.prepare_cached("SELECT scope, until, reason FROM trouble WHERE until > ?1")?;
    let mut rows = query.query([micros(now)])?;
    while let Some(row) = rows.next()? {
        let of = TroubleOf::parse(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        state.troubles.insert(of, Trouble { until: timestamp(row.get(1)?), reason: row.get(2)? });
    }
    Ok(state)
}

/// Remembers trouble, unless what is known already lasts longer.
pub(crate) fn note_trouble(tx: &Connection, of: &TroubleOf, trouble: &Trouble, stamp: &Stamp) -> Result<()> {
    let known: Option<i64> = tx
        .prepare_cached("SELECT until FROM trouble WHERE scope = ?1")?
        .query_row([of.key()], |row| row.get(0))
        .optional()?;
    if known.is_some_and(|until| until > micros(trouble.until)) {
        return Ok(());
    }
    tx.execute(
        "INSERT INTO trouble (scope, until, reason) VALUES (?1, ?2, ?3)
         ON CONFLICT (scope) DO UPDATE SET until = excluded.until, reason = excluded.reason, tries = 0",
        params![of.key(), micros(trouble.until), trouble.reason],
    )?;
    let data = json!({ "what": of.to_string(), "reason": trouble.reason,
                       "until": gt_core::time::format(trouble.until) });
    events::append(tx, stamp, EventType::SchedulerHeldUp, None, &data)
}

pub(crate) fn note_dispatch(tx: &Connection, n_started: usize, is_any_queued: bool, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "UPDATE scheduler SET last_dispatch_at = ?1, last_dispatch_count = ?2,
           last_queued_at = iif(?3, ?1, last_queued_at)",
    )?
    .execute(params![micros(stamp.now), n_started as i64, is_any_queued])?;
    Ok(())
}
