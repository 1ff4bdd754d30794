//! Mail: short letters that stay until somebody has read them. // SPEC R3

use std::collections::BTreeSet;

use gt_core::event::EventType;
use gt_core::text;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::dispatch::convoys;
use crate::error::{Result, StoreError};
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};
use crate::{events, query};

/// Who gets what only a person can settle.
pub const MAYOR: &str = "mayor";
/// Who gets what was recovered. It acts by itself, so nobody has to read its letters.
pub const DEACON: &str = "deacon";

/// A letter that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLetter {
    pub to: String,
    pub subject: String,
    pub body: String,
    /// What it is about.
    pub bead: Option<String>,
    pub run: Option<String>,
}

/// A letter that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub id: i64,
    pub to: String,
    pub from: String,
    pub subject: String,
    pub body: String,
    pub bead: Option<String>,
    pub run: Option<String>,
    pub sent_at: Timestamp,
    pub read_at: Option<Timestamp>,
}

/// The newest letters of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// The newest last.
    pub letters: Vec<Letter>,
    /// Whether there are older ones.
    pub more: bool,
}

const SELECT: &str = "SELECT id, recipient, sender, subject, body, bead, run, sent_at, read_at FROM mail";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Letter> {
    Ok(Letter {
        id: row.get(0)?,
        to: row.get(1)?,
        from: row.get(2)?,
        subject: row.get(3)?,
        body: row.get(4)?,
        bead: row.get(5)?,
        run: row.get(6)?,
        sent_at: timestamp(row.get(7)?),
        read_at: row.get::<_, Option<i64>>(8)?.map(timestamp),
    })
}

/// The name of somebody's box, however it was typed.
pub fn box_of(who: &str) -> String {
    who.trim().trim_end_matches('/').to_lowercase()
}

impl Store {
    /// Sends a letter to somebody who has a box; returns its number.
    pub fn send_mail(&mut self, new: &NewLetter, stamp: &Stamp) -> std::result::Result<i64, StoreError> {
        check(new)?;
        self.write(stamp, |tx| {
            require_box(tx, &box_of(&new.to))?;
            if let Some(bead) = &new.bead {
                query::require(tx, bead)?;
            }
            put(tx, new, stamp)
        })
    }

    /// The newest letters of somebody: those that were not read, or all.
    pub fn inbox(&mut self, who: &str, with_read: bool, limit: usize) -> std::result::Result<Inbox, StoreError> {
        self.read(|tx| {
            let unread = if with_read { "" } else { "AND read_at IS NULL" };
            let sql = format!("{SELECT} WHERE recipient = ?1 {unread} ORDER BY id DESC LIMIT ?2");
            let n_wanted = i64::try_from(limit).unwrap_or(i64::MAX - 1).saturating_add(1);
            let mut query = tx.prepare_cached(&sql)?;
            let mut letters: Vec<Letter> =
                query.query_map(params![box_of(who), n_wanted], from_row)?.collect::<rusqlite::Result<_>>()?;
            let more = letters.len() > limit;
            letters.truncate(limit);
            letters.reverse();
            Ok(Inbox { letters, more })
        })
    }

    /// How many letters somebody has not read.
    pub fn n_unread(&mut self, who: &str) -> std::result::Result<usize, StoreError> {
        self.read(|tx| {
            let sql = "SELECT count(*) FROM mail WHERE recipient = ?1 AND read_at IS NULL";
            Ok(tx.prepare_cached(sql)?.query_row([who], |row| row.get::<_, i64>(0))? as usize)
        })
    }

    /// A letter, which is read from now on.
    pub fn read_mail(&mut self, id: i64, stamp: &Stamp) -> std::result::Result<Letter, StoreError> {
        self.write(stamp, |tx| {
            tx.execute(
                "UPDATE mail SET read_at = ?2 WHERE id = ?1 AND read_at IS NULL",
                params![id, micros(stamp.now)],
            )?;
            let found = tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()?;
            found.ok_or(StoreError::NoLetter { id })
        })
    }

    /// Deletes letters that were sent before then and have served; says how many went. What a person has not read stays.
    pub fn prune_mail(&mut self, before: Timestamp, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        self.write(stamp, |tx| {
            let sql = "DELETE FROM mail WHERE sent_at < ?1 AND (read_at IS NOT NULL OR recipient = ?2)";
            Ok(tx.execute(sql, params![micros(before), DEACON])?)
        })
    }
}

fn check(new: &NewLetter) -> Result<()> {
    text::check_word("recipient", &new.to)
        .and_then(|()| text::check_word("recipient", &box_of(&new.to)))
        .and_then(|()| text::check_subject(&new.subject))
        .and_then(|()| text::check_body("letter", &new.body))
        .map_err(|bad| StoreError::Refused(bad.into()))
}

/// Who is nobody's correspondent has no box, and would never read what lies in it.
fn require_box(tx: &Connection, who: &str) -> Result<()> {
    if [MAYOR, DEACON].contains(&who) {
        return Ok(());
    }
    let mut boxes: BTreeSet<String> = convoys::all_watchers(tx)?.iter().map(|who| box_of(who)).collect();
    let mut query = tx.prepare_cached("SELECT DISTINCT recipient FROM mail")?;
    boxes.extend(query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?);
    if boxes.contains(who) {
        return Ok(());
    }
    boxes.extend([MAYOR, DEACON].map(str::to_owned));
    Err(StoreError::NoBox { who: text::one_line(who), boxes: boxes.into_iter().collect() })
}

/// Sends a letter as a part of what it tells of.
pub(crate) fn put(tx: &Connection, new: &NewLetter, stamp: &Stamp) -> Result<i64> {
    let to = box_of(&new.to);
    tx.prepare_cached(
        "INSERT INTO mail (recipient, sender, subject, body, bead, run, sent_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![to, stamp.actor, new.subject, new.body, new.bead, new.run, micros(stamp.now)])?;
    let id = tx.last_insert_rowid();
    let data = json!({ "mail": id, "to": to, "subject": new.subject });
    events::append(tx, stamp, EventType::MailSent, new.bead.as_deref(), &data)?;
    Ok(id)
}
