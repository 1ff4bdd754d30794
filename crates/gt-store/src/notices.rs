//! Notices: what somebody outside is to be told, kept until it was. Telling is the engine's. // SPEC C4, R3

use gt_core::event::EventType;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::error::Result;
use crate::rows::micros;
use crate::store::Stamp;

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
