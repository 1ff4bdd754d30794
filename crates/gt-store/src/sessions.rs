//! Sessions as the store remembers them: messages, the turns they become, and who runs. (docs/decisions/0010)
//!
//! A session's row says at any time which of its turns may start next, so that claiming is a read of an index. How messages
//! are taken is `gt_core::session`; that a turn's run is one like any other, `dispatch::runs`.

pub(crate) mod arrive;
pub(crate) mod check;
pub(crate) mod claim;
pub(crate) mod outbox;
pub(crate) mod reason;
pub(crate) mod stop;
pub(crate) mod turns;

use gt_core::session::{Mode, Overflow, Rules, limit};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, StoreError};
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub key: String,
    pub made_at: Timestamp,
    pub last_at: Timestamp,
    pub wishes: Wishes,
    /// The agent's own name for the conversation, and the agent.
    pub conversation: Option<String>,
    pub talks_to: Option<String>,
    /// How much of its context window the conversation fills.
    pub tokens: Option<u64>,
    pub is_crowded: bool,
    pub n_waiting: usize,
    pub n_live: usize,
    pub(crate) id: i64,
}

/// What somebody has set for one session; `None`: as the config says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    pub agent: Option<String>,
    pub lane: Option<String>,
    pub mode: Option<Mode>,
    pub cap: Option<usize>,
    pub overflow: Option<Overflow>,
    pub debounce: Option<SignedDuration>,
    /// Where answers go.
    pub channel: Option<String>,
    pub recipient: Option<String>,
}

impl Wishes {
    /// The rules that hold, given those of the config.
    pub fn rules(&self, otherwise: &Rules) -> Rules {
        Rules {
            mode: self.mode.unwrap_or(otherwise.mode),
            cap: self.cap.unwrap_or(otherwise.cap),
            overflow: self.overflow.unwrap_or(otherwise.overflow),
            debounce: self.debounce.unwrap_or(otherwise.debounce),
        }
    }
}

impl Session {
    /// How many of its turns run at once.
    pub fn limit(&self) -> usize {
        limit(&self.key, self.is_crowded)
    }
}

const SELECT: &str = "SELECT id, key, made_at, last_at, agent, lane, mode, cap, overflow, debounce, channel, recipient,
    conversation, talks_to, tokens, is_crowded, n_waiting, n_live FROM session";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Session> {
    let word = |column: usize| row.get::<_, Option<String>>(column);
    let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.max(0) as usize);
    Ok(Session {
        id: row.get(0)?,
        key: row.get(1)?,
        made_at: timestamp(row.get(2)?),
        last_at: timestamp(row.get(3)?),
        wishes: Wishes {
            agent: row.get(4)?,
            lane: row.get(5)?,
            mode: word(6)?.as_deref().and_then(Mode::parse),
            cap: row.get::<_, Option<i64>>(7)?.and_then(|cap| usize::try_from(cap).ok()),
            overflow: word(8)?.as_deref().and_then(Overflow::parse),
            debounce: row.get::<_, Option<i64>>(9)?.map(SignedDuration::from_micros),
            channel: row.get(10)?,
            recipient: row.get(11)?,
        },
        conversation: row.get(12)?,
        talks_to: row.get(13)?,
        tokens: row.get::<_, Option<i64>>(14)?.and_then(|tokens| u64::try_from(tokens).ok()),
        is_crowded: row.get(15)?,
        n_waiting: count(16)?,
        n_live: count(17)?,
    })
}

impl Store {
    pub fn session(&mut self, key: &str) -> std::result::Result<Option<Session>, StoreError> {
        self.read(|tx| by_key(tx, key))
    }

    /// Sessions, the last used first; those with work first of all.
    pub fn sessions(&mut self, limit: Option<usize>) -> std::result::Result<Vec<Session>, StoreError> {
        self.read(|tx| {
            let sql = format!("{SELECT} ORDER BY n_live + n_waiting > 0 DESC, last_at DESC, id LIMIT ?1");
            let limit = limit.map_or(-1, |limit| limit as i64);
            let mut query = tx.prepare_cached(&sql)?;
            Ok(query.query_map([limit], from_row)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Sets what holds for one session, which is made if it is not there; says what holds now.
    pub fn set_session(
        &mut self,
        key: &str,
        change: impl FnOnce(&mut Wishes),
        stamp: &Stamp,
    ) -> std::result::Result<Session, StoreError> {
        self.write(stamp, |tx| {
            let mut session = get_or_make(tx, key, stamp)?;
            change(&mut session.wishes);
            let wishes = &session.wishes;
            tx.prepare_cached(
                "UPDATE session SET agent = ?2, lane = ?3, mode = ?4, cap = ?5, overflow = ?6, debounce = ?7, channel = ?8,
                   recipient = ?9 WHERE id = ?1",
            )?
            .execute(params![
                session.id,
                wishes.agent,
                wishes.lane,
                wishes.mode.map(Mode::as_str),
                wishes.cap.map(|cap| cap as i64),
                wishes.overflow.map(Overflow::as_str),
                wishes.debounce.map(|span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX)),
                wishes.channel,
                wishes.recipient,
            ])?;
            Ok(session)
        })
    }

    /// Has the next turn of a session begin a conversation of its own, whatever runs now; says whether there was one.
    pub fn forget_conversation(&mut self, key: &str, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE session SET conversation = NULL, talks_to = NULL, tokens = NULL, is_crowded = 0
                       WHERE key = ?1 AND conversation IS NOT NULL";
            let is_changed = tx.execute(sql, [key])? > 0;
            if let Some(session) = by_key(tx, key)? {
                // Nobody goes on with what is being said either.
                let sql = "UPDATE run SET is_aside = 1 WHERE state <> 'ended'
                             AND id IN (SELECT run FROM turn WHERE session = ?1 AND state = 'live')";
                tx.execute(sql, [session.id])?;
                refresh(tx, session.id)?;
            }
            Ok(is_changed)
        })
    }
}

pub(crate) fn by_key(tx: &Connection, key: &str) -> Result<Option<Session>> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE key = ?1"))?.query_row([key], from_row).optional()?)
}

pub(crate) fn get_or_make(tx: &Connection, key: &str, stamp: &Stamp) -> Result<Session> {
    if let Some(session) = by_key(tx, key)? {
        return Ok(session);
    }
    tx.prepare_cached("INSERT INTO session (key, made_at, last_at) VALUES (?1, ?2, ?2)")?
        .execute(params![key, micros(stamp.now)])?;
    by_key(tx, key)?.ok_or(StoreError::Sqlite(rusqlite::Error::QueryReturnedNoRows))
}

/// Brings the row of a session up to date with its turns: what waits, what runs, and what may start next.
pub(crate) fn refresh(tx: &Connection, id: i64) -> Result<()> {
    let (key, is_crowded): (String, bool) = tx
        .prepare_cached("SELECT key, is_crowded FROM session WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let count = |sql: &str| -> Result<i64> { Ok(tx.prepare_cached(sql)?.query_row([id], |row| row.get(0))?) };
    let n_waiting = count("SELECT count(*) FROM turn WHERE session = ?1 AND state = 'waiting'")?;
    let n_live = count("SELECT count(*) FROM turn WHERE session = ?1 AND state = 'live'")?;
    let has_room = (n_live as usize) < limit(&key, is_crowded);
    let next: Option<(i64, String, i64)> = tx
        .prepare_cached(
            "SELECT id, lane, due_at FROM turn WHERE session = ?1 AND state = 'waiting' ORDER BY id LIMIT 1",
        )?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let next = next.filter(|_| has_room);
    tx.prepare_cached(
        "UPDATE session SET n_waiting = ?2, n_live = ?3, next_turn = ?4, next_lane = ?5, next_at = ?6 WHERE id = ?1",
    )?
    .execute(params![
        id,
        n_waiting,
        n_live,
        next.as_ref().map(|next| next.0),
        next.as_ref().map(|next| &next.1),
        next.as_ref().map(|next| next.2),
    ])?;
    Ok(())
}

pub(crate) fn touch(tx: &Connection, id: i64, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE session SET last_at = max(last_at, ?2) WHERE id = ?1")?
        .execute(params![id, micros(stamp.now)])?;
    Ok(())
}
