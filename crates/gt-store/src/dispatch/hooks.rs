//! What a run does to the bead on its hook: begin it, and close it when the work is done.

use gt_core::event::EventType;
use gt_core::status::Status;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::dispatch::merges;
use crate::dispatch::runs::Run;
use crate::error::Result;
use crate::events;
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros};
use crate::store::Stamp;

/// Hooked becomes in progress; a bead that its agent has already moved on stays where it is.
pub(crate) fn begin_work(tx: &Connection, bead: Key, stamp: &Stamp) -> Result<()> {
    let moved = tx
        .prepare_cached("UPDATE bead SET status = 'in_progress', updated_at = ?2 WHERE key = ?1 AND status = 'hooked'")?
        .execute(params![bead, micros(stamp.now)])?;
    if moved == 0 {
        return Ok(());
    }
    let body: String =
        tx.prepare_cached("SELECT body FROM bead_body WHERE bead = ?1")?.query_row([bead], |row| row.get(0))?;
    let mut fields = rows::fields(&body, "a bead's body")?;
    if fields.get("started_at").is_none() {
        fields.put("started_at", &gt_core::time::format(stamp.now));
        tx.prepare_cached("UPDATE bead_body SET body = ?2 WHERE bead = ?1")?
            .execute(params![bead, fields.to_json()])?;
    }
    Ok(())
}

/// Closes the bead of a run that has done its work; returns what became ready.
pub(crate) fn close_bead(tx: &Connection, run: &Run, note: Option<&str>, stamp: &Stamp) -> Result<Vec<String>> {
    let mut bead = rows::load(tx, run.key)?;
    bead.set_status(Status::Closed, stamp.now);
    bead.updated_at = Some(stamp.now);
    bead.body.put("close_reason", note.unwrap_or("done"));
    bead.body.put("closed_by_session", &run.id);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(run.key, &bead)?;
    let data = json!({ "title": bead.title, "to": "closed", "reason": note });
    events::append_of_run(tx, stamp, EventType::BeadClosed, &bead.id, &run.id, &data)?;
    merges::follow(tx, run.key, &bead.id, EventType::BeadClosed, stamp)?;
    ledger.flush()
}
