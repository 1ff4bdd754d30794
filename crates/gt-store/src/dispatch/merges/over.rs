//! What it means for merging that somebody has closed or deleted a bead: its work is not merged any more, and what it was
//! the rework of waits for a person. Beads that are closed because they were merged are `landed.rs`'s.

use gt_core::event::EventType;
use gt_core::text::one_line;
use rusqlite::{Connection, params};
use serde_json::json;

use super::landed::returned_for;
use super::{Merge, drop_live, live_of};
use crate::dispatch::records::{self, Hold};
use crate::dispatch::{alarms, contexts, runs};
use crate::error::Result;
use crate::events;
use crate::rows::{self, Key};
use crate::store::Stamp;

/// Follows a bead that was closed or deleted, whoever did that; other events mean nothing here. What is landing refuses it.
pub(crate) fn follow(tx: &Connection, bead: Key, id: &str, event: EventType, stamp: &Stamp) -> Result<()> {
    let how = match event {
        EventType::BeadClosed => "closed",
        EventType::BeadDeleted => "deleted",
        _ => return Ok(()),
    };
    if let Some(merge) = live_of(tx, bead)? {
        drop_live(tx, &merge, &format!("{} {how} {id}", one_line(&stamp.actor)), stamp)?;
    }
    for first in returned_for(tx, bead)? {
        hold(tx, &first, Hold::ReworkClosed, &format!("{id} was {how} and is not merged"), stamp)?;
    }
    Ok(())
}

/// What came back and is not worked on again by anybody is held, unless somebody has decided about it since.
pub(super) fn hold(tx: &Connection, first: &Merge, how: Hold, why: &str, stamp: &Stamp) -> Result<()> {
    let mut record = records::load(tx, first.key)?;
    let newer = "SELECT 1 FROM merge WHERE bead = ?1 AND place > (SELECT place FROM merge WHERE id = ?2)";
    let is_decided = record.hold.is_some()
        || tx.prepare_cached(newer)?.exists(params![first.key, first.id])?
        || !rows::load(tx, first.key)?.status.is_active()
        || contexts::live_of(tx, first.key)?.is_some()
        || runs::live_of(tx, first.key)?.is_some();
    if is_decided {
        return Ok(());
    }
    record.hold = Some(how);
    record.last_failure = Some(why.to_owned());
    record.context = runs::by_id(tx, &first.run)?.map(|run| run.context).or(record.context);
    records::save(tx, first.key, &record)?;
    let data = json!({ "reason": why, "branch": first.branch });
    events::append_of_run(tx, stamp, EventType::BeadEscalated, &first.bead, &first.run, &data)?;
    alarms::not_merged(tx, first, why, stamp)
}
