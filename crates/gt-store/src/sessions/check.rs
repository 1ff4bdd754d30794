//! The judge of sessions: what must hold between sessions, turns and runs. // DESIGN, invariants

use gt_core::session::limit;
use rusqlite::Connection;

use crate::error::Result;

/// What must never be, each with a query that finds it.
const NEVER: [(&str, &str); 4] = [
    (
        "a live turn has no live run",
        "SELECT id FROM turn WHERE state = 'live'
           AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = turn.run AND run.turn = turn.id AND run.state <> 'ended')",
    ),
    (
        "a live run answers a turn that is not its own",
        "SELECT id FROM run WHERE state <> 'ended' AND turn IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.id = run.turn AND turn.run = run.id AND turn.state = 'live')",
    ),
    (
        "a turn ended without a word",
        "SELECT id FROM turn WHERE state = 'ended' AND (outcome IS NULL OR (outcome <> 'done' AND error IS NULL))",
    ),
    (
        "a session does not say which turn is next",
        "SELECT key FROM session WHERE next_turn IS NOT NULL AND next_turn IS NOT
           (SELECT min(id) FROM turn WHERE turn.session = session.id AND turn.state = 'waiting')",
    ),
];

/// What is wrong with the sessions, in words.
pub(crate) fn faults(tx: &Connection) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (what, sql) in NEVER {
        let mut query = tx.prepare(sql)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let who = match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(id) => id.to_string(),
                other => other.as_str_or_null().ok().flatten().unwrap_or_default().to_owned(),
            };
            faults.push(format!("{what}: {who}"));
        }
    }
    let mut query = tx.prepare(
        "SELECT key, is_crowded, n_waiting, n_live, next_turn,
           (SELECT count(*) FROM turn WHERE turn.session = session.id AND turn.state = 'waiting'),
           (SELECT count(*) FROM turn WHERE turn.session = session.id AND turn.state = 'live'),
           (SELECT min(turn.id) FROM turn WHERE turn.session = session.id AND turn.state = 'waiting')
         FROM session",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        let known: (i64, i64, Option<i64>) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let (n_waiting, n_live): (i64, i64) = (row.get(5)?, row.get(6)?);
        let most = limit(&key, row.get(1)?) as i64;
        let next: Option<i64> = row.get(7)?;
        let wanted = (n_waiting, n_live, next.filter(|_| n_live < most));
        if known != wanted {
            faults.push(format!("session {key} says {known:?} (waiting, live, next), and it is {wanted:?}"));
        }
    }
    Ok(faults)
}
