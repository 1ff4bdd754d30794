//! The event log: every change, numbered, in the transaction that makes it. // SPEC B7

use gt_core::event::{Event, EventType};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// Writes one event.
pub(crate) fn append(tx: &Connection, stamp: &Stamp, kind: EventType, bead: Option<&str>, data: &Value) -> Result<()> {
    Log::new(tx)?.append(stamp, kind, bead, &data.to_string())
}

/// Writes one event of a run; a name that is empty is none.
pub(crate) fn append_of_run(
    tx: &Connection,
    stamp: &Stamp,
    kind: EventType,
    bead: &str,
    run: &str,
    data: &Value,
) -> Result<()> {
    tx.prepare_cached("INSERT INTO event (ts, type, actor, bead, run, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            micros(stamp.now),
            kind.as_str(),
            stamp.actor,
            (!bead.is_empty()).then_some(bead),
            (!run.is_empty()).then_some(run),
            data.to_string()
        ])?;
    Ok(())
}

/// The log, held open for many events.
pub(crate) struct Log<'tx>(CachedStatement<'tx>);

impl<'tx> Log<'tx> {
    pub(crate) fn new(tx: &'tx Connection) -> Result<Log<'tx>> {
        Ok(Log(tx.prepare_cached("INSERT INTO event (ts, type, actor, bead, data) VALUES (?1, ?2, ?3, ?4, ?5)")?))
    }

    /// Writes one event; `data` is a JSON object.
    pub(crate) fn append(&mut self, stamp: &Stamp, kind: EventType, bead: Option<&str>, data: &str) -> Result<()> {
        self.0.execute(params![micros(stamp.now), kind.as_str(), stamp.actor, bead, data])?;
        Ok(())
    }
}

impl Store {
    /// Records something that happened outside the beads.
    pub fn record(&mut self, kind: EventType, data: &Value, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| append(tx, stamp, kind, None, data))
    }

    /// Events after `since`, oldest first, at most `limit`.
    pub fn events(&mut self, since: i64, limit: usize) -> std::result::Result<Vec<Event>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT seq, ts, type, actor, bead, run, data FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            )?;
            let mut rows = query.query(params![since, limit as i64])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let data: String = row.get(6)?;
                events.push(Event {
                    seq: row.get(0)?,
                    ts: timestamp(row.get(1)?),
                    kind: row.get(2)?,
                    actor: row.get(3)?,
                    bead: row.get(4)?,
                    run: row.get(5)?,
                    data: serde_json::from_str(&data)
                        .map_err(|source| StoreError::Unreadable { place: "an event", source })?,
                });
            }
            Ok(events)
        })
    }

    /// The number of the newest event; 0 in an empty log.
    pub fn last_event(&mut self) -> std::result::Result<i64, StoreError> {
        self.read(|tx| Ok(tx.query_row("SELECT coalesce(max(seq), 0) FROM event", [], |row| row.get(0))?))
    }

    /// Remembers how far a durable reader has come.
    pub fn mark_read(&mut self, reader: &str, seq: i64, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            tx.execute(
                "INSERT INTO event_reader (name, seq) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET seq = max(seq, excluded.seq)",
                params![reader, seq],
            )?;
            Ok(())
        })
    }

    /// How many events are older than `before` and read by every durable reader.
    pub fn prunable_events(&mut self, before: Timestamp) -> std::result::Result<usize, StoreError> {
        self.read(|tx| {
            let sql = format!("SELECT count(*) FROM event WHERE {PRUNABLE}");
            Ok(tx.query_row(&sql, params![micros(before)], |row| row.get::<_, i64>(0))? as usize)
        })
    }

    /// Deletes them, and says how many went.
    pub fn prune_events(&mut self, before: Timestamp, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        self.write(stamp, |tx| Ok(tx.execute(&format!("DELETE FROM event WHERE {PRUNABLE}"), params![micros(before)])?))
    }
}

// Times rise with the sequence, so the old ones are a range at its start. The newest stays: the next number comes from it.
const PRUNABLE: &str = "seq < (SELECT max(seq) FROM event)
    AND seq < coalesce((SELECT min(seq) FROM event WHERE ts >= ?1), 9223372036854775807)
    AND seq <= coalesce((SELECT min(seq) FROM event_reader), 9223372036854775807)";
