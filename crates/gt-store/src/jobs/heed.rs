//! A clock that was set back: what was done stays done, what waits for a time waits as long as it was to, and what a clock far
//! ahead has done to jobs is mended. // SPEC K2

use std::collections::BTreeSet;

use gt_core::job::{SET_BACK_MAX, Schedule};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};

use super::{Job, SELECT, from_row};
use crate::error::{Result, StoreError};
use crate::rows::micros;
use crate::sessions::refresh;
use crate::store::{Stamp, Store};

impl Store {
    /// After the clock was set back by so much, or at a start, when nobody knows. A clock that is far behind what has fired
    /// already was wrong before, and jobs go on from now; says how many.
    pub fn heed_clock(&mut self, set_back: SignedDuration, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        let Ok(ahead) = stamp.now.checked_add(SET_BACK_MAX) else { return Ok(0) };
        let from = if set_back.is_zero() { ahead } else { stamp.now };
        let (stray, is_any_waiting) = self.read(|tx| Ok((stray(tx, ahead)?, is_any_waiting(tx, from)?)))?;
        if stray.is_empty() && !is_any_waiting {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            bring_forward(tx, set_back, stamp.now, ahead)?;
            stray.into_iter().try_fold(0, |n, job| go_on(tx, job, stamp.now).map(|()| n + 1))
        })
    }
}

/// Jobs that a clock far ahead has fired or made. One that runs once keeps its time.
fn stray(tx: &Connection, ahead: Timestamp) -> Result<Vec<Job>> {
    let sql = format!("{SELECT} WHERE kind <> 'at' AND (fired_at > ?1 OR made_at > ?1)");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_map([micros(ahead)], from_row)?.collect::<rusqlite::Result<_>>()?)
}

fn is_any_waiting(tx: &Connection, from: Timestamp) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM fire WHERE retry_at > ?1 AND retry_at IS NOT NULL)
                 OR EXISTS (SELECT 1 FROM session WHERE next_at > ?1 AND next_turn IS NOT NULL)";
    Ok(tx.prepare_cached(sql)?.query_row([micros(from)], |row| row.get(0))?)
}

/// Retries and turns wait no longer than they were to; what would wait for hours only a wrong clock has put off.
fn bring_forward(tx: &Connection, by: SignedDuration, now: Timestamp, ahead: Timestamp) -> Result<()> {
    let times = [i64::try_from(by.as_micros()).unwrap_or(i64::MAX), micros(now), micros(ahead)];
    let sql = "UPDATE fire SET retry_at = iif(retry_at - ?1 > ?3, ?2, max(retry_at - ?1, ?2)) WHERE retry_at > ?2";
    tx.prepare_cached(sql)?.execute(times)?;
    let sql = "UPDATE turn SET due_at = iif(due_at - ?1 > ?3, ?2, max(due_at - ?1, ?2))
               WHERE state = 'waiting' AND due_at > ?2 RETURNING session";
    let mut query = tx.prepare_cached(sql)?;
    let moved: BTreeSet<i64> = query.query_map(times, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    moved.into_iter().try_for_each(|session| refresh(tx, session))
}

/// Finds the next slot of a job anew. What was left out is not over: it comes only now.
fn go_on(tx: &Connection, mut job: Job, now: Timestamp) -> Result<()> {
    let sql = "DELETE FROM fire WHERE job = ?1 AND slot > ?2 AND status IN ('missed', 'skipped')";
    tx.prepare_cached(sql)?.execute(params![job.id, micros(now)])?;
    tx.prepare_cached("UPDATE fire SET until = ?2 WHERE job = ?1 AND until > ?2")?
        .execute(params![job.id, micros(now)])?;
    if let Schedule::Every { anchor, .. } = &mut job.plan.schedule {
        *anchor = now.min(*anchor); // or it would be waited for
    }
    // Whoever has no next slot is due now: then it is seen why.
    let next = job.plan.next(now).unwrap_or(now);
    tx.prepare_cached(
        "UPDATE job SET next_at = iif(next_at IS NULL, NULL, ?2), fired_at = ?3, made_at = min(made_at, ?3),
           anchor = min(anchor, ?3) WHERE id = ?1",
    )?
    .execute(params![job.id, micros(next), micros(now)])?;
    Ok(())
}
