//! The run log of jobs: what became of each slot. // SPEC K4

use gt_core::agent::Usage;
use gt_core::heartbeat::REPEATED_WITHIN;
use gt_core::job::FireStatus;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::error::{Result, StoreError};
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// What became of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Fire {
    pub id: i64,
    /// The name of its job, which may be gone.
    pub job: String,
    pub slot: Timestamp,
    /// It stands for all slots up to this one.
    pub until: Option<Timestamp>,
    /// Whether somebody asked for it, instead of the clock.
    pub is_manual: bool,
    pub status: FireStatus,
    /// Which attempt this is, or was; 0: there was none.
    pub attempt: i64,
    pub made_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// When it is tried again.
    pub retry_at: Option<Timestamp>,
    pub error: Option<String>,
    pub turn: Option<i64>,
    /// Whether an attempt is being made; else one that is not over waits to be started, or to be tried again.
    pub is_live: bool,
    pub run: Option<String>,
    pub usage: Usage,
    /// `none`, `waiting`, `delivered`, `failed`, `suppressed`, `repeated` or `mailed`; `None`: it is not over.
    pub delivery: Option<String>,
    /// Why it is not delivered, or not yet.
    pub delivery_error: Option<String>,
    /// The attempts before its last one, the first first; where somebody asked for the log.
    pub earlier: Vec<Attempt>,
    pub(crate) job_id: i64,
    pub(crate) retries: i64,
    pub(crate) failures_max: i64,
}

/// An attempt at a fire that failed, after which there was another.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Which it was, from 1.
    pub number: i64,
    /// The last run of it; `None`: none was even claimed.
    pub run: Option<String>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub error: Option<String>,
    pub usage: Usage,
}

impl Fire {
    /// The id of its job, which may be gone.
    pub fn job_id(&self) -> String {
        format!("job-{}", self.job_id)
    }
}

const SELECT: &str =
    "SELECT id, name, slot, until, is_manual, status, attempt, made_at, started_at, ended_at, retry_at, error, turn,
    run, tokens_in, tokens_out, tokens_cached, cost, delivery, delivery_error, job, retries, failures_max,
    CASE delivery WHEN 'waiting' THEN (SELECT error FROM outbox WHERE key = 'turn-' || turn) END,
    CASE delivery WHEN 'waiting' THEN (SELECT next_at FROM outbox WHERE key = 'turn-' || turn AND next_at > made_at) END,
    status = 'running' AND EXISTS (SELECT 1 FROM turn WHERE turn.id = fire.turn AND turn.state = 'live')
    FROM fire";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Fire> {
    let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
    Ok(Fire {
        id: row.get(0)?,
        job: row.get(1)?,
        slot: timestamp(row.get(2)?),
        until: time(3)?,
        is_manual: row.get(4)?,
        status: FireStatus::parse(row.get_ref(5)?.as_str()?).unwrap_or(FireStatus::Failed),
        attempt: row.get(6)?,
        made_at: timestamp(row.get(7)?),
        started_at: time(8)?,
        ended_at: time(9)?,
        retry_at: time(10)?,
        error: row.get(11)?,
        turn: row.get(12)?,
        is_live: row.get(25)?,
        run: row.get(13)?,
        usage: usage(row, 14)?,
        delivery: row.get(18)?,
        delivery_error: row.get::<_, Option<String>>(19)?.or(why_it_waits(row.get(23)?, time(24)?)),
        earlier: Vec::new(),
        job_id: row.get(20)?,
        retries: row.get(21)?,
        failures_max: row.get(22)?,
    })
}

/// Why something is not delivered yet, and when somebody tries again, where that is known.
fn why_it_waits(error: Option<String>, again_at: Option<Timestamp>) -> Option<String> {
    match (error, again_at) {
        (Some(error), Some(at)) => Some(format!("{error}; it is tried again at {at:.0}")),
        (error, _) => error,
    }
}

fn usage(row: &Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64);
    let dollars: Option<f64> = row.get(first + 3)?;
    Ok(Usage {
        tokens_in: count(first)?,
        tokens_out: count(first + 1)?,
        tokens_cached: count(first + 2)?,
        cost_micros: dollars.map_or(0, |dollars| (dollars * 1e6).round().max(0.0) as u64),
    })
}

/// Whose fires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FiresOf {
    /// Of all jobs but heartbeats.
    #[default]
    Jobs,
    /// Of all heartbeats.
    Beats,
    /// Of this one, by its name or its id; by a name also of those that had it and are gone.
    One(String),
}

/// Which fires somebody wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FireFilter {
    pub of: FiresOf,
    pub status: Option<FireStatus>,
    pub limit: Option<usize>,
}

/// Why nobody tries to deliver something.
const NO_CHANNEL: &str = "'there is no channel `' || channel || '` that runs'";

/// What waits for a channel that does not run, where that is not noted yet.
fn stranded() -> String {
    format!("state = 'waiting' AND channel NOT IN (SELECT value FROM json_each(?1)) AND error IS NOT {NO_CHANNEL}")
}

impl Store {
    /// Fires, the newest first.
    pub fn fires(&mut self, filter: &FireFilter) -> std::result::Result<Vec<Fire>, StoreError> {
        let beats = || Value::from(format!("{}%", super::beats::PREFIX));
        self.read(|tx| {
            let mut fires = match &filter.of {
                FiresOf::One(name) => of_one(tx, name, filter),
                FiresOf::Jobs => select(tx, "name NOT LIKE ?1", &beats(), filter, filter.limit),
                FiresOf::Beats => select(tx, "name LIKE ?1", &beats(), filter, filter.limit),
            }?;
            fires.iter_mut().try_for_each(|fire| tell_earlier(tx, fire))?;
            Ok(fires)
        })
    }

    /// One of them.
    pub fn fire(&mut self, id: i64) -> std::result::Result<Option<Fire>, StoreError> {
        self.read(|tx| {
            let mut fire = by_id(tx, id)?;
            fire.iter_mut().try_for_each(|fire| tell_earlier(tx, fire))?;
            Ok(fire)
        })
    }

    /// Notes why something waits that is for any channel but these, which are all that run; says whether that is new. Once
    /// its channel runs it is due.
    pub fn note_stranded(&mut self, channels: &[&str], stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        let channels = json!(channels).to_string();
        let sql = format!("SELECT 1 FROM outbox WHERE {}", stranded());
        if !self.read(|tx| Ok(tx.prepare_cached(&sql)?.exists([&channels])?))? {
            return Ok(false); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            let sql = format!("UPDATE outbox SET error = {NO_CHANNEL}, next_at = made_at WHERE {}", stranded());
            Ok(tx.execute(&sql, [&channels])? > 0)
        })
    }

    /// Forgets what became of slots before a time, and says of how many.
    pub fn prune_fires(&mut self, before: Timestamp, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        let times = [micros(before), micros(stamp.now - REPEATED_WITHIN)];
        let sql = format!("SELECT 1 FROM fire WHERE {PRUNABLE}");
        let is_any = self.read(|tx| Ok(tx.prepare_cached(&sql)?.exists(times)?))?;
        if !is_any {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| Ok(tx.execute(&format!("DELETE FROM fire WHERE {PRUNABLE}"), times)?))
    }
}

/// Fires that ended before a time and are no longer needed. What was told since another time is: it is not told again. So is what
/// waits to be delivered: an alert that is given up becomes a letter.
const PRUNABLE: &str = "ended_at < ?1 AND ended_at IS NOT NULL AND (told IS NULL OR ended_at < ?2)
    AND delivery IS NOT 'waiting'";

/// Adds the attempts before the last one.
fn tell_earlier(tx: &Connection, fire: &mut Fire) -> Result<()> {
    if fire.attempt < 2 {
        return Ok(());
    }
    let mut query = tx.prepare_cached(
        "SELECT turn.run, run.started_at, turn.ended_at, turn.error, run.tokens_in, run.tokens_out, run.tokens_cached, run.cost,
           coalesce(turn.attempt, row_number() OVER (ORDER BY turn.id))
         FROM turn LEFT JOIN run ON run.id = turn.run WHERE turn.fire = ?1 AND turn.id IS NOT ?2 ORDER BY turn.id",
    )?;
    let attempts = query.query_map(params![fire.id, fire.turn], |row| {
        let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
        let (started_at, ended_at) = (time(1)?, time(2)?);
        let (number, usage) = (row.get(8)?, usage(row, 4)?);
        Ok(Attempt { number, run: row.get(0)?, started_at, ended_at, error: row.get(3)?, usage })
    })?;
    fire.earlier = attempts.collect::<rusqlite::Result<_>>()?;
    Ok(())
}

/// Those of the job that has this name or id; and if it is a name, of those that had it and are gone.
fn of_one(tx: &Connection, name: &str, filter: &FireFilter) -> Result<Vec<Fire>> {
    // By number where that is known: it may have had another name.
    let Some(id) = super::find(tx, name)?.map(|job| job.id).or_else(|| super::number(name)) else {
        return select(tx, "name = ?1", &name.to_owned().into(), filter, filter.limit);
    };
    let mut fires = select(tx, "job = ?1", &id.into(), filter, filter.limit)?;
    let left = filter.limit.map(|limit| limit.saturating_sub(fires.len()));
    if super::number(name).is_none() && left != Some(0) {
        let gone = "name = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = fire.job)";
        fires.extend(select(tx, gone, &name.to_owned().into(), filter, left)?);
        fires.sort_unstable_by_key(|fire| std::cmp::Reverse(fire.id));
    }
    Ok(fires)
}

fn select(tx: &Connection, of: &str, key: &Value, filter: &FireFilter, limit: Option<usize>) -> Result<Vec<Fire>> {
    let status = filter.status.map(FireStatus::as_str);
    let limit = limit.map_or(-1, |limit| limit as i64);
    let sql = format!("{SELECT} WHERE {of} AND (?2 IS NULL OR status = ?2) ORDER BY id DESC LIMIT ?3");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_map(params![key, status, limit], from_row)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn by_id(tx: &Connection, id: i64) -> Result<Option<Fire>> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()?)
}
