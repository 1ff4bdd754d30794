//! Auto-convoys: every sling is tracked; and how far open ones have come. // SPEC C1
//!
//! A convoy is a bead of type `convoy` that tracks others. Staging, feeding and landing are not here.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::rig::TOWN_PREFIX;
use gt_core::text::TITLE_CHARS_MAX;
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use crate::beads::{self, NewBead};
use crate::error::{Result, StoreError};
use crate::events;
use crate::store::{Stamp, Store};

/// An open convoy that tracks the bead.
pub(crate) fn tracking(tx: &Connection, bead: &str) -> Result<Option<String>> {
    let mut query = tx.prepare_cached(
        "SELECT convoy.id FROM edge JOIN bead AS convoy ON convoy.key = edge.source
         WHERE edge.target = ?1 AND edge.type = 'tracks' AND convoy.issue_type = 'convoy'
           AND convoy.standing IS NOT NULL ORDER BY convoy.key LIMIT 1",
    )?;
    Ok(query.query_row([bead], |row| row.get(0)).optional()?)
}

/// Makes a convoy that tracks these beads.
pub(crate) fn create(
    tx: &Connection,
    title: &str,
    members: &[String],
    is_owned: bool,
    stamp: &Stamp,
) -> Result<String> {
    let title: String = format!("Work: {title}").chars().take(TITLE_CHARS_MAX).collect();
    let mut convoy = Bead::new("", title);
    convoy.issue_type = Some("convoy".to_owned());
    convoy.edges = members.iter().map(|id| Edge::new(id, EdgeType::parse("tracks"))).collect();
    if is_owned {
        convoy.body.put("owned", &true);
    }
    let new = NewBead { prefix: format!("{TOWN_PREFIX}-cv"), parent: None, bead: convoy };
    let id = beads::create(tx, &new, stamp)?;
    let data = json!({ "members": members, "owned": is_owned });
    events::append(tx, stamp, EventType::ConvoyCreated, Some(&id), &data)?;
    Ok(id)
}

/// An open convoy and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvoyProgress {
    pub id: String,
    pub title: String,
    pub n_done: i64,
    pub n_total: i64,
}

impl Store {
    /// Open convoys, the latest first, at most so many; and how many there are.
    pub fn open_convoys(&mut self, limit: usize) -> std::result::Result<(Vec<ConvoyProgress>, i64), StoreError> {
        self.read(|tx| {
            let n_open = tx.query_row(
                "SELECT count(*) FROM bead WHERE standing IS NOT NULL AND issue_type = 'convoy'",
                [],
                |row| row.get(0),
            )?;
            let mut query = tx.prepare_cached(
                "SELECT convoy.id, convoy.title,
                   (SELECT count(*) FROM edge JOIN bead AS member ON member.id = edge.target
                      WHERE edge.source = convoy.key AND edge.type = 'tracks' AND member.standing IS NULL),
                   (SELECT count(*) FROM edge WHERE edge.source = convoy.key AND edge.type = 'tracks')
                 FROM bead AS convoy WHERE convoy.standing IS NOT NULL AND convoy.issue_type = 'convoy'
                 ORDER BY convoy.key DESC LIMIT ?1",
            )?;
            let found = query.query_map([limit as i64], |row| {
                Ok(ConvoyProgress { id: row.get(0)?, title: row.get(1)?, n_done: row.get(2)?, n_total: row.get(3)? })
            })?;
            Ok((found.collect::<rusqlite::Result<_>>()?, n_open))
        })
    }
}
