//! The records of slots: what is written down of one, and that none which has come is passed over. // SPEC K3

use gt_core::event::EventType;
use gt_core::job::{Backlog, FireStatus, Schedule};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Connection, params};
use serde_json::json;

use super::{Job, heed, settle};
use crate::error::Result;
use crate::events;
use crate::rows::micros;
use crate::store::Stamp;

/// What becomes of a slot.
pub(super) struct Record<'a> {
    pub(super) job: &'a Job,
    pub(super) slot: Timestamp,
    pub(super) status: FireStatus,
    pub(super) why: Option<&'a str>,
    pub(super) is_manual: bool,
    /// How often it may be tried again.
    pub(super) retries: u32,
    /// Fires in a row that may fail before the job is disabled; 0: any number.
    pub(super) failures_max: u32,
}

impl<'a> Record<'a> {
    /// Nothing is done about a slot.
    pub(super) fn left_out(job: &'a Job, slot: Timestamp, status: FireStatus, why: &'a str) -> Record<'a> {
        Record { job, slot, status, why: Some(why), is_manual: false, retries: 0, failures_max: 0 }
    }

    /// Writes it down, unless something is known of the slot.
    pub(super) fn write(&self, tx: &Connection, stamp: &Stamp) -> Result<Option<i64>> {
        let is_over = self.status != FireStatus::Running;
        let n = tx
            .prepare_cached(
                "INSERT INTO fire (job, name, slot, is_manual, status, attempt, retries, failures_max, made_at, ended_at, error)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
                 WHERE ?5 <> 'missed' OR NOT EXISTS (SELECT 1 FROM fire WHERE job = ?1 AND slot = ?3 AND status <> 'missed')
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                self.job.id,
                self.job.name(),
                micros(self.slot),
                self.is_manual,
                self.status.as_str(),
                i64::from(!is_over),
                self.retries,
                self.failures_max,
                micros(stamp.now),
                is_over.then(|| micros(stamp.now)),
                self.why,
            ])?;
        Ok((n > 0).then(|| tx.last_insert_rowid()))
    }
}

/// Tells that a slot was left out.
pub(super) fn tell_left_out(
    tx: &Connection,
    job: &Job,
    slot: Timestamp,
    status: FireStatus,
    why: &str,
    stamp: &Stamp,
) -> Result<()> {
    settle::note_last(tx, job.id, slot, status)?;
    let kind = if status == FireStatus::Skipped { EventType::JobSkipped } else { EventType::JobMissed };
    events::append(tx, stamp, kind, None, &json!({ "job": job.name(), "slot": slot, "reason": why }))
}

/// One record stands for all slots up to the last of them.
pub(super) fn extend(tx: &Connection, job: &Job, first: Timestamp, last: Timestamp) -> Result<()> {
    let sql = "UPDATE fire SET until = ?3 WHERE job = ?1 AND slot = ?2 AND status = 'missed'";
    tx.prepare_cached(sql)?.execute(params![job.id, micros(first), micros(last)])?;
    Ok(())
}

/// The first slot that nobody has seen to, if it has come. What a clock that was ahead for a while
/// would bring once more is not seen to again.
pub(super) fn first_unseen(job: &Job, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let first = job.next_at?;
    let is_once = matches!(job.plan.schedule, Schedule::At(_));
    if is_once || gt_core::defect!("peak-forgotten") || first > job.peak_at || now < job.peak_at {
        return Some(first);
    }
    job.plan.schedule.next(job.peak_at, zone).filter(|first| *first <= now)
}

/// A job is about to lose its next slot: those that have come and were not seen to were missed.
pub(super) fn miss_overdue(tx: &Connection, job: &Job, why: &str, stamp: &Stamp) -> Result<()> {
    let Ok(zone) = job.plan.zone() else { return Ok(()) };
    let Some(first) = first_unseen(job, stamp.now, &zone).filter(|first| *first <= stamp.now) else { return Ok(()) };
    let backlog = Backlog::of(&job.plan.schedule, first, stamp.now, &zone);
    for slot in backlog.earlier.iter().map(|(first, _)| first).chain(&backlog.slots) {
        if job.peak_at > stamp.now {
            heed::not_over(tx, job.id, *slot, job.plan.schedule.next(*slot, &zone), stamp.now)?;
        }
        if Record::left_out(job, *slot, FireStatus::Missed, why).write(tx, stamp)?.is_some() {
            tell_left_out(tx, job, *slot, FireStatus::Missed, why, stamp)?;
        }
    }
    if let Some((first, last)) = backlog.earlier {
        extend(tx, job, first, last)?;
    }
    tx.prepare_cached("UPDATE job SET seen_at = ?2, peak_at = max(peak_at, ?2) WHERE id = ?1")?
        .execute([job.id, micros(stamp.now)])?;
    Ok(())
}
