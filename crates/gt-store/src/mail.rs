//! Mail: short letters that stay until somebody has read them. // SPEC R3

use gt_core::event::EventType;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::error::Result;
use crate::events;
use crate::rows::micros;
use crate::store::Stamp;

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

/// Sends a letter as a part of what it tells of.
pub(crate) fn put(tx: &Connection, new: &NewLetter, stamp: &Stamp) -> Result<i64> {
    tx.prepare_cached(
        "INSERT INTO mail (recipient, sender, subject, body, bead, run, sent_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![new.to, stamp.actor, new.subject, new.body, new.bead, new.run, micros(stamp.now)])?;
    let id = tx.last_insert_rowid();
    let data = json!({ "mail": id, "to": new.to, "subject": new.subject });
    events::append(tx, stamp, EventType::MailSent, new.bead.as_deref(), &data)?;
    Ok(id)
}
