//! The outbox: answers that are to be delivered, each under a key that stays the same. // SPEC L6
//!
//! What is here was decided; that it does not arrive never runs an agent again. Delivering is the engine's.

use gt_core::defect;
use gt_core::event::EventType;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::arrive::Address;
use crate::error::{Result, StoreError};
use crate::events;
use crate::jobs::beats;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// Something to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    pub id: i64,
    /// The same, however often it is tried.
    pub key: String,
    pub to: Address,
    pub session: String,
    pub run: Option<String>,
    /// How the turn ended.
    pub outcome: String,
    /// Empty: only that it is over.
    pub text: String,
    /// How many parts of it have arrived, where it is delivered in parts.
    pub n_sent: usize,
    pub made_at: Timestamp,
    pub tries: i64,
}

/// A channel whose deliveries fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingChannel {
    pub channel: String,
    pub n_waiting: i64,
    /// Of the one that was tried most.
    pub error: String,
}

/// Of each recipient of a channel the oldest that waits: the others wait for it. Where none is named, each session is one, so
/// that what a receiver cannot take holds up nobody else's.
const OLDEST: &str = "id IN (SELECT min(id) FROM outbox WHERE state = 'waiting' AND channel = ?1
    GROUP BY recipient, CASE WHEN recipient IS NULL THEN session END)";

const SELECT: &str =
    "SELECT id, key, channel, recipient, reply_to, session, run, outcome, text, sent_parts, made_at, tries,
    next_at FROM outbox";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Parcel> {
    Ok(Parcel {
        id: row.get(0)?,
        key: row.get(1)?,
        to: Address { channel: row.get(2)?, recipient: row.get(3)?, reply_to: row.get(4)? },
        session: row.get(5)?,
        run: row.get(6)?,
        outcome: row.get(7)?,
        text: row.get(8)?,
        n_sent: row.get::<_, i64>(9)?.max(0) as usize,
        made_at: timestamp(row.get(10)?),
        tries: row.get(11)?,
    })
}

/// Puts something there, once.
#[expect(clippy::too_many_arguments, reason = "each is a column")]
pub(super) fn put(
    tx: &Connection,
    key: &str,
    to: &Address,
    session: &str,
    run: Option<&str>,
    outcome: &str,
    text: &str,
    stamp: &Stamp,
) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO outbox (key, channel, recipient, reply_to, session, run, outcome, text, made_at, state, next_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting', ?9) ON CONFLICT (key) DO NOTHING",
    )?
    .execute(params![
        key,
        to.channel,
        to.recipient,
        to.reply_to,
        session,
        run,
        outcome,
        text,
        micros(stamp.now)
    ])?;
    Ok(())
}

fn find_due(tx: &Connection, channel: &str, now: Timestamp, most: usize) -> Result<Vec<Parcel>> {
    let oldest = if defect!("answers-overtake") { OLDEST.replace("min(id)", "max(id)") } else { OLDEST.to_owned() };
    let sql = format!("{SELECT} WHERE {oldest} AND next_at <= ?2 ORDER BY id LIMIT ?3");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_map(params![channel, micros(now), most as i64], from_row)?.collect::<rusqlite::Result<_>>()?)
}

/// What was put there or tried last at a time that lies ahead: the clock was set back since.
const AHEAD: &str = "state = 'waiting' AND channel = ?1 AND coalesce(tried_at, made_at) > ?2";

fn is_any_ahead(tx: &Connection, channel: &str, now: Timestamp) -> Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM outbox WHERE {AHEAD})");
    let is_any: bool = tx.prepare_cached(&sql)?.query_row(params![channel, micros(now)], |row| row.get(0))?;
    Ok(is_any && !defect!("delivery-waits-for-the-clock"))
}

/// After the clock was set back, what waits for a channel waits as long as it was to, from now on. What was tried since keeps
/// its time, so that a receiver that wants a pause has it.
fn bring_back(tx: &Connection, channel: &str, now: Timestamp) -> Result<()> {
    let sql = format!(
        "UPDATE outbox SET next_at = ?2 + max(next_at - coalesce(tried_at, made_at), 0), tried_at = ?2 WHERE {AHEAD}"
    );
    tx.prepare_cached(&sql)?.execute(params![channel, micros(now)])?;
    Ok(())
}

/// The session under which notices are delivered.
const NOTICES: &str = "notices";

impl Store {
    /// Puts something into the outbox that answers nobody, once under each key.
    pub fn post(
        &mut self,
        key: &str,
        to: &Address,
        kind: &str,
        text: &str,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| put(tx, key, to, NOTICES, None, kind, text, stamp))
    }

    /// What may be delivered now by a channel: of each recipient only the oldest, so that the order is kept.
    pub fn due_parcels(
        &mut self,
        channel: &str,
        now: Timestamp,
        most: usize,
    ) -> std::result::Result<Vec<Parcel>, StoreError> {
        let due = self.read(|tx| {
            if is_any_ahead(tx, channel, now)? { Ok(None) } else { find_due(tx, channel, now, most).map(Some) }
        })?;
        match due {
            Some(due) => Ok(due),
            None => self.write(&Stamp::new(now, channel), |tx| {
                bring_back(tx, channel, now)?;
                find_due(tx, channel, now, most)
            }),
        }
    }

    /// What may be delivered now to the same recipient, after what has just arrived there.
    pub fn due_parcel_after(
        &mut self,
        parcel: &Parcel,
        now: Timestamp,
    ) -> std::result::Result<Option<Parcel>, StoreError> {
        self.read(|tx| {
            let sql = format!(
                "{SELECT} WHERE state = 'waiting' AND channel = ?1 AND recipient IS ?2 AND id > ?3
                   AND (recipient IS NOT NULL OR session = ?4) ORDER BY id LIMIT 1"
            );
            let arguments = params![parcel.to.channel, parcel.to.recipient, parcel.id, parcel.session];
            let next =
                tx.prepare_cached(&sql)?.query_row(arguments, |row| Ok((from_row(row)?, timestamp(row.get(12)?))));
            Ok(next.optional()?.filter(|(_, at)| *at <= now).map(|(next, _)| next))
        })
    }

    /// When the next of a channel's is due: of each recipient the oldest, as the others wait for it.
    pub fn next_parcel_of(&mut self, channel: &str) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.read(|tx| {
            let sql = format!("SELECT min(next_at) FROM outbox WHERE {OLDEST}");
            let at: Option<i64> = tx.prepare_cached(&sql)?.query_row([channel], |row| row.get(0))?;
            Ok(at.map(timestamp))
        })
    }

    /// What has waited since before a time for any channel but these.
    pub fn parcels_of_others(
        &mut self,
        channels: &[&str],
        before: Timestamp,
    ) -> std::result::Result<Vec<Parcel>, StoreError> {
        self.read(|tx| {
            let sql = format!(
                "{SELECT} WHERE state = 'waiting' AND made_at < ?1
                   AND channel NOT IN (SELECT value FROM json_each(?2)) ORDER BY id"
            );
            let mut query = tx.prepare_cached(&sql)?;
            let rows = query.query_map(params![micros(before), json!(channels).to_string()], from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Recipients who wait for an answer by a channel.
    pub fn awaiting(&mut self, channel: &str) -> std::result::Result<Vec<String>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT recipient FROM turn WHERE state = 'live' AND channel = ?1 AND recipient IS NOT NULL
                 UNION SELECT recipient FROM turn WHERE state = 'waiting' AND channel = ?1 AND recipient IS NOT NULL",
            )?;
            Ok(query.query_map([channel], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// That a part of it has arrived.
    pub fn part_arrived(&mut self, parcel: i64, n_sent: usize, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE outbox SET sent_parts = max(sent_parts, ?2) WHERE id = ?1";
            tx.prepare_cached(sql)?.execute(params![parcel, n_sent as i64])?;
            Ok(())
        })
    }

    /// That it has arrived.
    pub fn delivered(&mut self, parcel: i64, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE outbox SET state = 'delivered', done_at = ?2, tries = tries + 1, error = NULL
                       WHERE id = ?1 AND state = 'waiting'";
            tx.prepare_cached(sql)?.execute(params![parcel, micros(stamp.now)])?;
            Ok(())
        })
    }

    /// That it has not arrived: it is tried again then, or given up.
    pub fn not_delivered(
        &mut self,
        parcel: &Parcel,
        error: &str,
        again_at: Option<Timestamp>,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            if again_at.is_none() {
                beats::not_delivered(tx, parcel.id, error, stamp)?;
            }
            let sql = "UPDATE outbox SET tries = tries + 1, error = ?2, next_at = coalesce(?3, next_at), tried_at = ?4,
                         state = CASE WHEN ?3 IS NULL THEN 'failed' ELSE 'waiting' END,
                         done_at = CASE WHEN ?3 IS NULL THEN ?4 END WHERE id = ?1 AND state = 'waiting'";
            let arguments = params![parcel.id, error, again_at.map(micros), micros(stamp.now)];
            let is_known = tx.prepare_cached(sql)?.execute(arguments)? > 0;
            if again_at.is_none() && is_known {
                let data = json!({ "key": parcel.key, "channel": parcel.to.channel, "session": parcel.session, "error": error });
                let run = parcel.run.as_deref().unwrap_or_default();
                events::append_of_run(tx, stamp, EventType::DeliveryFailed, "", run, &data)?;
            }
            Ok(())
        })
    }

    /// How the delivery of a turn's answer stands: `waiting`, `delivered` or `failed`, and the last error; `None`: it is not
    /// delivered to anybody.
    pub fn delivery_of(&mut self, turn: i64) -> std::result::Result<Option<(String, Option<String>)>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT state, error FROM outbox WHERE key = ?1")?;
            Ok(query.query_row([format!("turn-{turn}")], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
        })
    }

    /// Channels of which something waits that was tried in vain.
    pub fn failing_channels(&mut self) -> std::result::Result<Vec<FailingChannel>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT channel, count(*), error, max(tries) FROM outbox
                 WHERE state = 'waiting' AND tries > 0 AND error IS NOT NULL GROUP BY channel ORDER BY channel",
            )?;
            let found = query.query_map([], |row| {
                Ok(FailingChannel { channel: row.get(0)?, n_waiting: row.get(1)?, error: row.get(2)? })
            })?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// How far a channel has read what it is given.
    pub fn channel_mark(&mut self, channel: &str) -> std::result::Result<Option<i64>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT mark FROM channel_mark WHERE channel = ?1")?;
            Ok(query.query_row([channel], |row| row.get(0)).optional()?)
        })
    }

    /// Remembers it; it never goes back.
    pub fn mark_channel(&mut self, channel: &str, mark: i64, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let sql = "INSERT INTO channel_mark (channel, mark) VALUES (?1, ?2)
                       ON CONFLICT (channel) DO UPDATE SET mark = max(mark, excluded.mark)";
            tx.prepare_cached(sql)?.execute(params![channel, mark])?;
            Ok(())
        })
    }
}
