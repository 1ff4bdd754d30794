//! Notices: what somebody outside is to be told, kept until it was, with how far each target has come. Telling is the
//! engine's. // SPEC C4, R3

use std::collections::BTreeMap;

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
    /// Whom somebody has tried to tell it.
    pub targets: BTreeMap<String, Tries>,
}

/// How far one target has come with a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tries {
    pub n: i64,
    /// When it is tried again; `None`: it knows, or never will.
    pub next_at: Option<Timestamp>,
}

const SELECT: &str = "SELECT id, kind, bead, text, data, at, told FROM notice";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Notice> {
    let (data, told): (String, String) = (row.get(4)?, row.get(6)?);
    Ok(Notice {
        id: row.get(0)?,
        kind: row.get(1)?,
        bead: row.get(2)?,
        text: row.get(3)?,
        data: serde_json::from_str(&data).unwrap_or(Value::Null),
        at: timestamp(row.get(5)?),
        targets: parse_targets(&told),
    })
}

/// Reads the column `told`: by target the number of tries, and the time of the next in microseconds. An older store has a
/// list of those who know it.
fn parse_targets(told: &str) -> BTreeMap<String, Tries> {
    match serde_json::from_str(told) {
        Ok(Value::Object(targets)) => targets.into_iter().map(|(who, tries)| (who, Tries::parse(&tries))).collect(),
        Ok(Value::Array(list)) => {
            let known = list.iter().filter_map(Value::as_str);
            known.map(|who| (who.to_owned(), Tries { n: 1, next_at: None })).collect()
        }
        _ => BTreeMap::new(),
    }
}

impl Tries {
    fn parse(value: &Value) -> Tries {
        Tries { n: value["n"].as_i64().unwrap_or(0), next_at: value["next_at"].as_i64().map(timestamp) }
    }

    fn to_json(self) -> Value {
        json!({ "n": self.n, "next_at": self.next_at.map(micros) })
    }
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
            let tries = notice.targets.entry(who.to_owned()).or_insert(Tries { n: 0, next_at: Some(notice.at) });
            if tries.next_at.is_some() {
                *tries = Tries { n: tries.n + 1, next_at: None };
                save_targets(tx, &notice, None)?;
            }
            Ok(())
        })
    }

    /// Remembers that somebody could not be told; returns when he is tried again. When it is no news any more that is never,
    /// and an event.
    pub fn note_untold(
        &mut self,
        id: i64,
        who: &str,
        error: &str,
        stamp: &Stamp,
    ) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.write(stamp, |tx| {
            let Some(mut notice) = by_id(tx, id)? else { return Ok(None) };
            let n = notice.targets.get(who).map_or(0, |tries| tries.n) + 1;
            let next_at = notice::next_try(notice.at, u32::try_from(n).unwrap_or(u32::MAX), stamp.now);
            notice.targets.insert(who.to_owned(), Tries { n, next_at });
            save_targets(tx, &notice, Some(error))?;
            if next_at.is_none() {
                tell_failure(tx, &notice, n, error, stamp)?;
            }
            Ok(next_at)
        })
    }

    /// Says when a notice is looked at next; `None`: there is nobody left to tell.
    pub fn settle_notice(
        &mut self,
        id: i64,
        next_at: Option<Timestamp>,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| settle(tx, id, next_at))
    }

    /// Tells nobody any more: that is an event.
    pub fn give_up_notice(&mut self, id: i64, why: &str, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let Some(notice) = by_id(tx, id)? else { return Ok(()) };
            let n_tries = notice.targets.values().map(|tries| tries.n).max().unwrap_or(0);
            tell_failure(tx, &notice, n_tries, why, stamp)?;
            settle(tx, id, None)
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

fn save_targets(tx: &Connection, notice: &Notice, error: Option<&str>) -> Result<()> {
    let n_tries = notice.targets.values().map(|tries| tries.n).max().unwrap_or(0);
    let told: serde_json::Map<String, Value> =
        notice.targets.iter().map(|(who, tries)| (who.clone(), tries.to_json())).collect();
    tx.prepare_cached("UPDATE notice SET told = ?2, tries = ?3, error = coalesce(?4, error) WHERE id = ?1")?
        .execute(params![notice.id, Value::Object(told).to_string(), n_tries, error])?;
    Ok(())
}

fn settle(tx: &Connection, id: i64, next_at: Option<Timestamp>) -> Result<()> {
    tx.prepare_cached("UPDATE notice SET next_at = ?2 WHERE id = ?1")?.execute(params![id, next_at.map(micros)])?;
    Ok(())
}

fn tell_failure(tx: &Connection, notice: &Notice, n_tries: i64, error: &str, stamp: &Stamp) -> Result<()> {
    let data = json!({ "event": notice.kind, "text": notice.text, "tries": n_tries, "error": error });
    events::append(tx, stamp, EventType::NoticeFailed, notice.bead.as_deref(), &data)
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
