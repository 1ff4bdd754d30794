//! A clock that was set back: what was done stays done, what waits for a time waits as long as it was to, and jobs go on by the
//! clock that there is. // SPEC K2
//!
//! Whether a clock that is far behind is right now, or was right before, nobody knows. So nothing that is known is taken back:
//! once the clock is past the latest time at which a job's slots were seen to, it is seen to those after that time only.

use std::collections::BTreeSet;

use gt_core::job::{SET_BACK_MAX, Schedule};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Job, SELECT, from_row};
use crate::error::{Result, StoreError};
use crate::rows::{micros, timestamp};
use crate::sessions::refresh;
use crate::store::{Stamp, Store};

impl Store {
    /// After the clock was set back by so much, or at a start, when nobody knows. By a clock that is far behind what has fired
    /// already, jobs go on from now; says how many.
    pub fn heed_clock(&mut self, set_back: SignedDuration, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        let Ok(ahead) = stamp.now.checked_add(SET_BACK_MAX) else { return Ok(0) };
        let from = if set_back.is_zero() { ahead } else { stamp.now };
        let (mut stray, is_any_waiting) = self.read(|tx| Ok((stray(tx, ahead)?, is_any_waiting(tx, from)?)))?;
        if gt_core::defect!("jobs-wait-for-the-clock") {
            stray.clear();
        }
        if stray.is_empty() && !is_any_waiting {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            if !gt_core::defect!("retry-waits-for-the-clock") {
                bring_forward(tx, set_back, stamp.now, ahead)?;
            }
            stray.into_iter().try_fold(0, |n, job| go_on(tx, job, stamp.now).map(|()| n + 1))
        })
    }
}

/// Jobs that were seen to, or made, by a clock far ahead. One that runs once keeps its time.
fn stray(tx: &Connection, ahead: Timestamp) -> Result<Vec<Job>> {
    let sql = format!("{SELECT} WHERE kind <> 'at' AND seen_at > ?1");
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

/// Finds the next slot of a job anew, in the same rhythm.
fn go_on(tx: &Connection, mut job: Job, now: Timestamp) -> Result<()> {
    if let Schedule::Every { span, anchor } = &mut job.plan.schedule {
        *anchor = before(*anchor, *span, now); // or it would be waited for
        tx.prepare_cached("UPDATE job SET anchor = ?2 WHERE id = ?1")?.execute(params![job.id, micros(*anchor)])?;
    }
    // Whoever has no next slot is due now: then it is seen why.
    let next = job.plan.next(now).unwrap_or(now);
    tx.prepare_cached("UPDATE job SET next_at = iif(next_at IS NULL, NULL, ?2), seen_at = ?3 WHERE id = ?1")?
        .execute(params![job.id, micros(next), micros(now)])?;
    Ok(())
}

/// By what clock its next slot was found: if that was far ahead, it is found anew.
pub(super) fn note_seen(tx: &Connection, job: i64, now: Timestamp) -> Result<()> {
    tx.prepare_cached("UPDATE job SET seen_at = ?2 WHERE id = ?1")?.execute([job, micros(now)])?;
    Ok(())
}

/// The last time that lies in whole spans before or after the anchor, and not after now.
fn before(anchor: Timestamp, span: SignedDuration, now: Timestamp) -> Timestamp {
    let (anchor, span, now) = (micros(anchor), span.as_micros().max(1), micros(now));
    let passed = (i128::from(now) - i128::from(anchor)).div_euclid(span);
    timestamp(i64::try_from(i128::from(anchor) + passed.min(0) * span).unwrap_or(now))
}

/// What a clock that was ahead has left out of a slot that comes only now is not over; of a record that stands for many, that
/// slot is taken out. `next` is the one after it.
pub(super) fn not_over(
    tx: &Connection,
    job: i64,
    slot: Timestamp,
    next: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    let (at, now) = (micros(slot), micros(now));
    let sql = "SELECT until FROM fire WHERE job = ?1 AND slot <= ?2 AND until >= ?2 AND made_at > ?3";
    let until: Option<i64> = tx.prepare_cached(sql)?.query_row([job, at, now], |row| row.get(0)).optional()?;
    if let Some(next) = next.map(micros).filter(|next| until.is_some_and(|until| *next <= until)) {
        let sql = "INSERT INTO fire (job, name, slot, until, status, made_at, ended_at, error)
                   SELECT job, name, ?4, until, status, made_at, ended_at, error FROM fire
                   WHERE job = ?1 AND slot <= ?2 AND until >= ?2 AND made_at > ?3 ON CONFLICT DO NOTHING";
        tx.prepare_cached(sql)?.execute([job, at, now, next])?;
    }
    let sql = "UPDATE fire SET until = ?2 - 1 WHERE job = ?1 AND slot < ?2 AND until >= ?2 AND made_at > ?3";
    tx.prepare_cached(sql)?.execute([job, at, now])?;
    let sql = "DELETE FROM fire WHERE job = ?1 AND slot = ?2 AND made_at > ?3 AND status IN ('missed', 'skipped')";
    tx.prepare_cached(sql)?.execute([job, at, now])?;
    Ok(())
}
