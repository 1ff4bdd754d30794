//! The judge of jobs: what must hold between jobs, fires and turns. // DESIGN, invariants

use rusqlite::Connection;

use crate::error::Result;

/// What must never be, each with a query that finds it.
const NEVER: [(&str, &str); 4] = [
    (
        "a fire is under way and nobody is at it",
        "SELECT name || ' ' || slot FROM fire WHERE status = 'running' AND retry_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.id = fire.turn AND turn.state <> 'ended')",
    ),
    (
        "a turn of a fire that is over goes on",
        "SELECT fire.name || ' ' || slot FROM turn JOIN fire ON fire.id = turn.fire
         WHERE turn.state <> 'ended' AND fire.status <> 'running'",
    ),
    (
        "an active job waits for nothing",
        "SELECT name FROM job WHERE state = 'active' AND next_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM fire WHERE fire.job = job.id AND status = 'running')",
    ),
    (
        "a fire is over without a word",
        "SELECT name || ' ' || slot FROM fire WHERE status NOT IN ('running', 'ok') AND error IS NULL",
    ),
];

/// What is wrong with the jobs, in words.
pub(crate) fn faults(tx: &Connection) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (what, sql) in NEVER {
        let mut query = tx.prepare(sql)?;
        let found: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        faults.extend(found.into_iter().map(|who| format!("{what}: {who}")));
    }
    Ok(faults)
}
