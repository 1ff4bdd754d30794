//! What it means for merging that somebody has closed or deleted a bead: its work is not merged any more, and what it was
//! the rework of waits for a person. Beads that are closed because they were merged are not this file's.

use gt_core::event::EventType;
use gt_core::text::one_line;
use rusqlite::Connection;
use serde_json::json;

use super::{Merge, drop_live, live_of, select};
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
    let is_latest =
        "NOT EXISTS (SELECT 1 FROM merge AS newer WHERE newer.bead = merge.bead AND newer.place > merge.place)";
    let rest = format!("merge.rework = ?1 AND merge.state = 'returned' AND {is_latest}");
    for first in select(tx, &rest, [bead])? {
        hold(tx, &first, &format!("{id} was {how} and is not merged"), stamp)?;
    }
    Ok(())
}

/// What came back and is not worked on again by anybody is held, unless somebody has decided about it since.
fn hold(tx: &Connection, first: &Merge, why: &str, stamp: &Stamp) -> Result<()> {
    let mut record = records::load(tx, first.key)?;
    let is_decided = record.hold.is_some()
        || !rows::load(tx, first.key)?.status.is_active()
        || contexts::live_of(tx, first.key)?.is_some()
        || runs::live_of(tx, first.key)?.is_some();
    if is_decided {
        return Ok(());
    }
    record.hold = Some(Hold::ReworkClosed);
    record.last_failure = Some(why.to_owned());
    record.context = runs::by_id(tx, &first.run)?.map(|run| run.context).or(record.context);
    records::save(tx, first.key, &record)?;
    let data = json!({ "reason": why, "branch": first.branch });
    events::append_of_run(tx, stamp, EventType::BeadEscalated, &first.bead, &first.run, &data)?;
    alarms::not_merged(tx, first, why, stamp)
}
