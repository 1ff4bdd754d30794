//! Notices: what somebody outside is to be told, kept until it was. Telling is the engine's. // SPEC C4, R3

use gt_core::event::EventType;
use gt_core::notice;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};

use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// Something that is to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub id: i64,
    /// An event's word.
    pub kind: String,
    pub bead: Option<String>,
    pub text: String,
    pub data: Value,
    pub at: Timestamp,
    /// Who knows it already.
    pub told: Vec<String>,
    pub tries: i64,
}

const SELECT: &str = "SELECT id, kind, bead, text, data, at, told, tries FROM notice";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Notice> {
    let (data, told): (String, String) = (row.get(4)?, row.get(6)?);
    Ok(Notice {
        id: row.get(0)?,
        kind: row.get(1)?,
        bead: row.get(2)?,
        text: row.get(3)?,
        data: serde_json::from_str(&data).unwrap_or(Value::Null),
        at: timestamp(row.get(5)?),
        told: serde_json::from_str(&told).unwrap_or_default(),
        tries: row.get(7)?,
    })
}

impl Store {
    /// What is to be told now, the oldest first.
    pub fn due_notices(&mut self, now: Timestamp, limit: usize) -> std::result::Result<Vec<Notice>, StoreError> {
        self.read(|tx| {
            let sql = format!("{SELECT} WHERE next_at <= ?1 ORDER BY next_at, id LIMIT ?2");
            let mut query = tx.prepare_cached(&sql)?;
            let due = query.query_map(params![micros(now), limit as i64], from_row)?;
            Ok(due.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// When the next one after now is to be told.
    pub fn next_notice_at(&mut self, now: Timestamp) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.read(|tx| {
            let sql = "SELECT min(next_at) FROM notice WHERE next_at > ?1";
            let at: Option<i64> = tx.prepare_cached(sql)?.query_row([micros(now)], |row| row.get(0))?;
            Ok(at.map(timestamp))
        })
    }

    /// Remembers that somebody knows it; he is never told again.
    pub fn note_told(&mut self, id: i64, who: &str, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let Some(mut notice) = by_id(tx, id)? else { return Ok(()) };
            if !notice.told.iter().any(|told| told == who) {
                notice.told.push(who.to_owned());
                tx.prepare_cached("UPDATE notice SET told = ?2 WHERE id = ?1")?
                    .execute(params![id, json!(notice.told).to_string()])?;
            }
            Ok(())
        })
    }

    /// Ends a round of telling. Without an error everybody knows it; otherwise those who do not are told again later, or,
    /// when it is no news any more, never: that is an event.
    pub fn settle_notice(
        &mut self,
        id: i64,
        error: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.write(stamp, |tx| {
            let Some(notice) = by_id(tx, id)? else { return Ok(None) };
            let n_tries = notice.tries + 1;
            let next_at =
                error.and_then(|_| notice::next_try(notice.at, u32::try_from(n_tries).unwrap_or(u32::MAX), stamp.now));
            tx.prepare_cached("UPDATE notice SET tries = ?2, next_at = ?3, error = ?4 WHERE id = ?1")?
                .execute(params![id, n_tries, next_at.map(micros), error])?;
            if let (Some(error), None) = (error, next_at) {
                let data = json!({ "event": notice.kind, "text": notice.text, "tries": n_tries, "error": error });
                events::append(tx, stamp, EventType::NoticeFailed, notice.bead.as_deref(), &data)?;
            }
            Ok(next_at)
        })
    }

    /// Deletes notices that are settled and older than this; says how many went.
    pub fn prune_notices(&mut self, before: Timestamp, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        self.write(
            stamp,
            |tx| Ok(tx.execute("DELETE FROM notice WHERE next_at IS NULL AND at < ?1", [micros(before)])?),
        )
    }
}

fn by_id(tx: &Connection, id: i64) -> Result<Option<Notice>> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()?)
}

/// Has something told, as a part of what it tells of.
pub(crate) fn put(
    tx: &Connection,
    kind: EventType,
    bead: Option<&str>,
    text: &str,
    data: &Value,
    stamp: &Stamp,
) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO notice (kind, bead, text, data, at, told, tries, next_at)
         VALUES (?1, ?2, ?3, ?4, ?5, '[]', 0, ?5)",
    )?
    .execute(params![kind.as_str(), bead, text, data.to_string(), micros(stamp.now)])?;
    Ok(())
}
