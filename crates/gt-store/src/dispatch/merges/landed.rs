//! What follows for beads when a merge has landed: its own is closed, and what it is the rework of if that has come along or was
//! replaced. // SPEC M2, M2b

use gt_core::event::EventType;
use gt_core::names;
use gt_core::status::Status;
use rusqlite::{Connection, params};
use serde_json::json;

use super::{Merge, append, over, select};
use crate::dispatch::records::Hold;
use crate::error::Result;
use crate::events;
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros};
use crate::store::Stamp;

/// How much of a commit's id is shown.
const SHORT: usize = 10;

/// The merges that came back and that a bead was made to work on again.
pub(super) fn returned_for(tx: &Connection, rework: Key) -> Result<Vec<Merge>> {
    select(tx, "merge.rework = ?1 AND merge.state = 'returned' ORDER BY merge.place", [rework])
}

/// Records a merge as part of its target, with what it is the rework of.
pub(super) fn record(tx: &Connection, merge: &Merge, commit: &str, carried: &[String], stamp: &Stamp) -> Result<()> {
    mark_merged(tx, merge, commit, stamp)?;
    append(tx, EventType::MergeLanded, merge, &json!({ "commit": commit }), stamp)?;
    let short = commit.get(..SHORT).unwrap_or(commit);
    let in_commit = format!("merged in {short}");
    // Before the rework is closed, so that nothing becomes ready or starts in between.
    for older in returned_for(tx, merge.key)? {
        if carried.contains(&older.id) || gt_core::defect!("left-out-counts-as-merged") {
            mark_merged(tx, &older, commit, stamp)?;
            close(tx, older.key, merge, &in_commit, None, stamp)?;
        } else if let Some(why) = &merge.replaces {
            let by = format!("replaced by {}", merge.bead);
            mark_replaced(tx, &older, &format!("{by}: {why}"), stamp)?;
            close(tx, older.key, merge, &format!("{by}, {in_commit}: {why}"), None, stamp)?;
        } else {
            let why = format!(
                "{} was merged without its commits; merge them with `gt refinery retry {}`",
                merge.bead, older.id
            );
            over::hold(tx, &older, Hold::LeftOut, &why, stamp)?;
        }
    }
    let note: Option<String> =
        tx.prepare_cached("SELECT note FROM run WHERE id = ?1")?.query_row([&merge.run], |row| row.get(0))?;
    close(tx, merge.key, merge, &in_commit, note.as_deref(), stamp)
}

fn mark_merged(tx: &Connection, merge: &Merge, commit: &str, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE merge SET state = 'merged', ended_at = ?2, merged = ?3 WHERE id = ?1")?
        .execute(params![merge.id, micros(stamp.now), commit])?;
    Ok(())
}

/// Its commits are not part of the target, and the rework says that they need not be.
fn mark_replaced(tx: &Connection, merge: &Merge, reason: &str, stamp: &Stamp) -> Result<()> {
    if gt_core::defect!("replaced-counts-as-merged") {
        return mark_merged(tx, merge, reason, stamp);
    }
    tx.prepare_cached("UPDATE merge SET state = 'dropped', ended_at = ?2, reason = ?3 WHERE id = ?1")?
        .execute(params![merge.id, micros(stamp.now), reason])?;
    append(tx, EventType::MergeDropped, merge, &json!({ "reason": reason }), stamp)
}

/// Closes a bead because a merge has landed; one that is closed already is merged from now on.
fn close(tx: &Connection, key: Key, merge: &Merge, reason: &str, note: Option<&str>, stamp: &Stamp) -> Result<()> {
    let mut bead = rows::load(tx, key)?;
    let was_open = bead.status.is_active();
    if !was_open && bead.status != Status::Closed {
        return Ok(()); // somebody has deleted it
    }
    let (rig, polecat): (String, String) = tx
        .prepare_cached("SELECT rig, polecat FROM run WHERE id = ?1")?
        .query_row([&merge.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if was_open {
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        bead.set_status(Status::Closed, stamp.now);
        bead.assignee = Some(names::assignee(&rig, &polecat));
        bead.body.put("close_reason", &format!("{}{note}", capitalised(reason)));
        bead.body.put("closed_by_session", &merge.run);
    }
    bead.body.put("merged_at", &gt_core::time::format(stamp.now));
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(key, &bead)?;
    if was_open {
        let data = json!({ "title": bead.title, "to": "closed", "reason": reason, "merge": merge.id });
        events::append_of_run(tx, stamp, EventType::BeadClosed, &bead.id, &merge.run, &data)?;
    }
    ledger.flush()?;
    Ok(())
}

fn capitalised(reason: &str) -> String {
    let mut chars = reason.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
