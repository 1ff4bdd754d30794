//! How far the silence of a run has been answered. // SPEC R1
//!
//! When it has lasted too long is decided by `gt_core::witness`; it is written down here before anything is done, so that
//! the next daemon goes on where this one was.

use gt_core::event::EventType;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::dispatch::alarms;
use crate::dispatch::runs::Run;
use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::micros;
use crate::store::{Stamp, Store};

impl Store {
    /// Reports that a run has given no sign of life since then; says whether nobody else was first.
    pub fn report_stall(
        &mut self,
        run: &Run,
        silent_since: Timestamp,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let is_first = climb(tx, run, "stalled_at = ?2, interrupted_at = NULL", stamp)?;
            if is_first {
                let data = data(run, silent_since);
                events::append_of_run(tx, stamp, EventType::RunStalled, &run.bead, &run.id, &data)?;
                if !gt_core::defect!("stall-untold") {
                    alarms::stalled(tx, run, &data, stamp)?;
                }
            }
            Ok(is_first)
        })
    }

    /// Remembers that a silent run is interrupted; says whether nobody else was first.
    pub fn note_interrupt(
        &mut self,
        run: &Run,
        silent_since: Timestamp,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let is_first = climb(tx, run, "interrupted_at = ?2", stamp)?;
            if is_first {
                let data = data(run, silent_since);
                events::append_of_run(tx, stamp, EventType::RunInterrupted, &run.bead, &run.id, &data)?;
            }
            Ok(is_first)
        })
    }
}

/// One rung up, from where the run was seen. Who has spoken since, or waits by now, or is done, is silent with reason.
fn climb(tx: &Connection, run: &Run, change: &str, stamp: &Stamp) -> Result<bool> {
    let mut sql = format!(
        "UPDATE run SET {change} WHERE id = ?1 AND state = 'working' AND stop_at IS NULL AND stalled_at IS ?3
           AND interrupted_at IS ?4 AND said IS NULL AND waiting_for IS NULL
           AND EXISTS (SELECT 1 FROM bead WHERE bead.key = run.bead AND bead.standing IS NOT NULL)"
    );
    if gt_core::defect!("spoken-taken-for-stalled") {
        sql = sql.replace("AND said IS NULL AND waiting_for IS NULL", "");
    }
    let seen = [run.stalled_at, run.interrupted_at].map(|at| at.map(micros));
    Ok(tx.prepare_cached(&sql)?.execute(params![run.id, micros(stamp.now), seen[0], seen[1]])? > 0)
}

fn data(run: &Run, silent_since: Timestamp) -> Value {
    json!({ "since": gt_core::time::format(silent_since), "polecat": run.polecat, "rig": run.rig })
}
