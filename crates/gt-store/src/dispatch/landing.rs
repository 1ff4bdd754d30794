//! Landing: a convoy whose beads are all closed is closed, once, in the transaction that closed the last. // SPEC C4
//!
//! Triggers note in `to_land` which convoys a change has touched. Owned ones are landed by their owner.

use gt_core::bead::Bead;
use gt_core::event::EventType;
use gt_core::status::Status;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::dispatch::convoys;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::mail::{self, NewLetter};
use crate::rows::{self, Key};
use crate::store::Stamp;
use crate::{events, notices};

/// Could land by itself: open, and not its owner's business.
const MAY_LAND: &str = "convoy.issue_type = 'convoy' AND convoy.standing IS NOT NULL AND convoy.status = 'open'
   AND coalesce((SELECT json_extract(body, '$.owned') FROM bead_body WHERE bead_body.bead = convoy.key), 0) = 0
   AND EXISTS (SELECT 1 FROM edge WHERE edge.source = convoy.key AND edge.type = 'tracks')";

/// A member that is not there, or not closed. Pinned is not closed.
const LAGGARD: &str = "SELECT edge.target FROM edge LEFT JOIN bead AS member ON member.id = edge.target
   WHERE edge.source = ?1 AND edge.type = 'tracks'
     AND (member.key IS NULL OR member.status NOT IN ('closed', 'tombstone'))";

/// Lands whatever a transaction has completed; returns which.
pub(crate) fn settle(tx: &Connection, stamp: &Stamp) -> Result<Vec<String>> {
    let mut landed = Vec::new();
    while let Some(key) = next(tx)? {
        tx.prepare_cached("DELETE FROM to_land WHERE convoy = ?1")?.execute([key])?;
        if is_complete(tx, key)? {
            let convoy = rows::load(tx, key)?;
            landed.push(convoy.id.clone());
            land(tx, key, convoy, "all its beads are closed", stamp)?;
        }
    }
    Ok(landed)
}

/// Leaves what was touched to the next sweep.
pub(crate) fn forget(tx: &Connection) -> Result<()> {
    tx.execute("DELETE FROM to_land", [])?;
    Ok(())
}

fn next(tx: &Connection) -> Result<Option<Key>> {
    Ok(tx.prepare_cached("SELECT convoy FROM to_land LIMIT 1")?.query_row([], |row| row.get(0)).optional()?)
}

fn is_complete(tx: &Connection, convoy: Key) -> Result<bool> {
    let mut sql = format!("SELECT EXISTS (SELECT 1 FROM bead AS convoy WHERE convoy.key = ?1 AND {MAY_LAND})");
    if gt_core::defect!("owned-lands-by-itself") {
        sql = sql.replace("), 0) = 0", "), 0) >= 0");
    }
    if gt_core::defect!("lands-twice") {
        sql = sql.replace("AND convoy.standing IS NOT NULL AND convoy.status = 'open'", "");
    }
    if !tx.prepare_cached(&sql)?.query_row([convoy], |row| row.get(0))? {
        return Ok(false);
    }
    let laggard = find_laggard(tx, convoy)?;
    match &laggard {
        Some(member) => tx
            .prepare_cached("INSERT OR REPLACE INTO laggard (convoy, member) VALUES (?1, ?2)")?
            .execute(params![convoy, member])?,
        None => tx.prepare_cached("DELETE FROM laggard WHERE convoy = ?1")?.execute([convoy])?,
    };
    Ok(laggard.is_none() || gt_core::defect!("lands-with-open-beads"))
}

/// Looks on from the one that was found last, so that a convoy is walked through once while its members close one by one.
fn find_laggard(tx: &Connection, convoy: Key) -> Result<Option<String>> {
    let known: Option<String> = tx
        .prepare_cached("SELECT member FROM laggard WHERE convoy = ?1")?
        .query_row([convoy], |row| row.get(0))
        .optional()?;
    if gt_core::defect!("laggard-never-looked-at-again") && known.is_some() {
        return Ok(known);
    }
    let known = known.unwrap_or_default();
    for part in ["AND edge.target >= ?2", "AND edge.target < ?2"] {
        let mut query = tx.prepare_cached(&format!("{LAGGARD} {part} ORDER BY edge.target LIMIT 1"))?;
        if let Some(found) = query.query_row(params![convoy, known], |row| row.get(0)).optional()? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a sweep would land anything.
pub(crate) fn is_any_complete(tx: &Connection) -> Result<bool> {
    let laggard = LAGGARD.replace("?1", "convoy.key");
    let sql = format!("SELECT EXISTS (SELECT 1 FROM bead AS convoy WHERE {MAY_LAND} AND NOT EXISTS ({laggard}))");
    Ok(tx.prepare_cached(&sql)?.query_row([], |row| row.get(0))?)
}

/// Closes a convoy as landed, and tells whoever wants to know.
pub(crate) fn land(tx: &Connection, key: Key, mut convoy: Bead, reason: &str, stamp: &Stamp) -> Result<()> {
    let n_members = convoys::n_members(tx, key)?;
    close(tx, key, &mut convoy, reason, stamp)?;
    let data = json!({ "title": convoy.title, "members": n_members, "reason": reason });
    events::append(tx, stamp, EventType::ConvoyLanded, Some(&convoy.id), &data)?;
    if gt_core::defect!("landing-untold") {
        return Ok(());
    }
    let text = format!("convoy {} has landed: {}", convoy.id, convoy.title);
    for watcher in convoys::watchers(&convoy) {
        let letter = NewLetter {
            to: watcher,
            subject: format!("Convoy landed: {}", convoy.title),
            body: format!("{text}\n{n_members} beads, all closed."),
            bead: Some(convoy.id.clone()),
            run: None,
        };
        mail::put(tx, &letter, stamp)?;
    }
    if gt_core::defect!("landing-told-twice") {
        notices::put(tx, EventType::ConvoyLanded, Some(&convoy.id), &text, &data, stamp)?;
    }
    notices::put(tx, EventType::ConvoyLanded, Some(&convoy.id), &text, &data, stamp)
}

/// Closes the bead that a convoy is.
pub(crate) fn close(tx: &Connection, key: Key, convoy: &mut Bead, reason: &str, stamp: &Stamp) -> Result<()> {
    let from = convoy.status.as_str().to_owned();
    convoy.set_status(Status::Closed, stamp.now);
    convoy.body.put("close_reason", reason);
    convoy.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(key, convoy)?;
    ledger.flush()?;
    let data = json!({ "title": convoy.title, "from": from, "to": "closed", "reason": reason });
    events::append(tx, stamp, EventType::BeadClosed, Some(&convoy.id), &data)
}
