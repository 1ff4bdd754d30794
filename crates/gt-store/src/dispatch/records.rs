//! What is remembered of a bead's earlier runs: attempts, and what holds it. // SPEC D5
//!
//! Counts live on the work, not on the worker. Only `retry` takes them back; an explicit sling lifts a hold.

use gt_core::explain::Reason;
use gt_core::text::one_line;
use gt_core::time;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Result, StoreError};
use crate::rows::{Key, micros, timestamp};
use crate::store::Store;

/// Why no automatic path takes a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Cleared,
    /// Its context could not be read.
    Invalid,
    CircuitBroken,
    OutOfAttempts,
    /// Its work came back, and the bead that was made of that was closed without being merged.
    ReworkClosed,
    /// Its work came back, and the bead that was made of that was merged without it.
    LeftOut,
    Stopped,
}

impl Hold {
    const ALL: [Hold; 7] = [
        Hold::Cleared,
        Hold::Invalid,
        Hold::CircuitBroken,
        Hold::OutOfAttempts,
        Hold::ReworkClosed,
        Hold::LeftOut,
        Hold::Stopped,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Hold::Cleared => "cleared",
            Hold::Invalid => "invalid-context",
            Hold::CircuitBroken => "circuit-broken",
            Hold::OutOfAttempts => "out-of-attempts",
            Hold::ReworkClosed => "rework-closed",
            Hold::LeftOut => "left-out",
            Hold::Stopped => "stopped",
        }
    }

    fn parse(word: &str) -> Option<Hold> {
        Hold::ALL.into_iter().find(|hold| hold.as_str() == word)
    }
}

/// A bead's dispatch history in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    pub attempts: i64,
    pub last_failure: Option<String>,
    /// Where the last unfinished run left its work.
    pub branch: Option<String>,
    /// The file with what it had not committed.
    pub patch: Option<String>,
    /// Its word to the next run, which goes on from its branch.
    pub handoff: Option<String>,
    pub hold: Option<Hold>,
    pub hold_until: Option<Timestamp>,
    pub context: Option<String>,
}

impl Record {
    /// Why no automatic path takes the bead, and the way on.
    pub fn reason(&self, bead: &str) -> Option<Reason> {
        let last = self.last_failure.as_deref().map(|last| format!(" ({})", one_line(last))).unwrap_or_default();
        let retry = format!("`gt scheduler retry {bead}`");
        let message = match self.hold? {
            Hold::Cleared => format!("it was taken off the queue; `gt sling {bead}` puts it back"),
            Hold::Invalid => format!("its context was invalid{last} and was closed; `gt sling {bead}` makes a new one"),
            Hold::CircuitBroken => {
                let until = self.hold_until.map(time::format).unwrap_or_default();
                format!("its circuit is broken{last}; one more try at {until}, or now with {retry}")
            }
            Hold::OutOfAttempts => {
                format!("{} attempts ended unfinished{last}; a person has to look: then {retry}", self.attempts)
            }
            Hold::ReworkClosed => format!(
                "its work could not be merged, and nobody works on it again{last}; a person has to look: then {retry}, \
                 `gt sling {bead}` or `gt close {bead}`"
            ),
            Hold::LeftOut => format!(
                "it is not merged{last}; a person has to look: then `gt close {bead}` if nothing is missing, or {retry}"
            ),
            Hold::Stopped => format!("its run was stopped{last}; {retry} starts it again"),
        };
        Some(Reason { code: self.hold?.as_str(), message })
    }
}

pub(crate) fn load(tx: &Connection, bead: Key) -> Result<Record> {
    let sql = "SELECT attempts, last_failure, branch, hold, hold_until, context, patch, handoff FROM dispatch_record
               WHERE bead = ?1";
    let record = tx.prepare_cached(sql)?.query_row([bead], |row| {
        let hold: Option<String> = row.get(3)?;
        Ok(Record {
            attempts: row.get(0)?,
            last_failure: row.get(1)?,
            branch: row.get(2)?,
            hold: hold.as_deref().and_then(Hold::parse),
            hold_until: row.get::<_, Option<i64>>(4)?.map(timestamp),
            context: row.get(5)?,
            patch: row.get(6)?,
            handoff: row.get(7)?,
        })
    });
    Ok(record.optional()?.unwrap_or_default())
}

pub(crate) fn save(tx: &Connection, bead: Key, record: &Record) -> Result<()> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO dispatch_record
           (bead, attempts, last_failure, branch, hold, hold_until, context, patch, handoff)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        bead,
        record.attempts,
        record.last_failure,
        record.branch,
        record.hold.map(Hold::as_str),
        record.hold_until.map(micros),
        record.context,
        record.patch,
        record.handoff
    ])?;
    Ok(())
}

/// An explicit sling lifts what holds a bead; its counts stay.
pub(crate) fn lift(tx: &Connection, bead: Key) -> Result<()> {
    tx.prepare_cached(
        "UPDATE dispatch_record SET hold = NULL, hold_until = NULL WHERE bead = ?1 AND hold IS NOT NULL",
    )?
    .execute([bead])?;
    Ok(())
}

pub(crate) fn hold(tx: &Connection, bead: Key, hold: Hold, until: Option<Timestamp>) -> Result<()> {
    let mut record = load(tx, bead)?;
    record.hold = Some(hold);
    record.hold_until = until;
    save(tx, bead, &record)
}

/// Beads whose broken circuit lets one try through now.
pub(crate) fn due(tx: &Connection, now: Timestamp) -> Result<Vec<(Key, String)>> {
    let mut query = tx.prepare_cached(
        "SELECT bead, context FROM dispatch_record
         WHERE hold_until <= ?1 AND hold = 'circuit-broken' AND context IS NOT NULL",
    )?;
    Ok(query.query_map([micros(now)], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
}

/// A bead that waits for a person, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plea {
    pub bead: String,
    pub title: String,
    pub reason: String,
}

impl Store {
    /// Beads whose circuit is broken or whose attempts are used up, and why.
    pub fn held(&mut self) -> std::result::Result<Vec<Plea>, StoreError> {
        self.read(held_for_a_person)
    }

    /// Beads that no rule will start again, and those about which somebody asked for help.
    pub fn pleas(&mut self) -> std::result::Result<Vec<Plea>, StoreError> {
        self.read(|tx| {
            let mut pleas = held_for_a_person(tx)?;
            let mut query = tx.prepare_cached(
                "SELECT bead.id, bead.title,
                   (SELECT body ->> '$.text' FROM comment WHERE comment.bead = bead.key ORDER BY comment.key DESC LIMIT 1)
                 FROM label JOIN bead ON bead.key = label.bead
                 WHERE label.label = ?1 AND bead.standing IS NOT NULL ORDER BY bead.key",
            )?;
            let asked = query.query_map([super::reports::ESCALATED], |row| {
                let words: Option<String> = row.get(2)?;
                let reason = words.unwrap_or_else(|| "somebody asked for a person".to_owned());
                Ok(Plea { bead: row.get(0)?, title: row.get(1)?, reason })
            })?;
            pleas.extend(asked.collect::<rusqlite::Result<Vec<_>>>()?);
            Ok(pleas)
        })
    }
}

fn held_for_a_person(tx: &Connection) -> Result<Vec<Plea>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.key, bead.id, bead.title FROM dispatch_record JOIN bead ON bead.key = dispatch_record.bead
         WHERE hold IN ('circuit-broken', 'out-of-attempts', 'rework-closed', 'left-out', 'invalid-context') AND bead.standing IS NOT NULL ORDER BY bead.key",
    )?;
    let held: Vec<(Key, String, String)> =
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut pleas = Vec::new();
    for (key, bead, title) in held {
        let reason = load(tx, key)?.reason(&bead).map(|reason| reason.message).unwrap_or_default();
        pleas.push(Plea { bead, title, reason });
    }
    Ok(pleas)
}
