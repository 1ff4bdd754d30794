//! The store's schema: numbered migrations, each applied once, the number kept in the file itself.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Result, StoreError};

/// Marks the file as ours, so that a stranger's database is never migrated.
const APPLICATION_ID: i64 = 0x4761_7331; // "Gas1"

const MIGRATIONS: [&str; 19] = [
    include_str!("migrations/0001_beads.sql"),
    include_str!("migrations/0002_dispatch.sql"),
    include_str!("migrations/0003_agents.sql"),
    include_str!("migrations/0004_formulas.sql"),
    include_str!("migrations/0005_queue.sql"),
    include_str!("migrations/0006_convoys.sql"),
    include_str!("migrations/0007_merging.sql"),
    include_str!("migrations/0008_handoffs.sql"),
    include_str!("migrations/0009_sessions.sql"),
    include_str!("migrations/0010_jobs.sql"),
    include_str!("migrations/0011_alerts.sql"),
    include_str!("migrations/0012_attempts.sql"),
    include_str!("migrations/0013_config.sql"),
    include_str!("migrations/0014_defaults.sql"),
    include_str!("migrations/0015_agent_commits.sql"),
    include_str!("migrations/0016_replaces.sql"),
    include_str!("migrations/0017_troubles.sql"),
    include_str!("migrations/0018_told.sql"),
    include_str!("migrations/0019_set_back.sql"),
];

/// Brings the store to the newest schema; a newer one than ours is left alone.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<()> {
    let known = MIGRATIONS.len() as i64;
    if version(conn)? == known {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&tx)?; // again, under the lock: another process may have been first
    if found > known {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known });
    }
    let done = usize::try_from(found).map_err(|_| StoreError::NotAStore { path: path.to_owned() })?;
    for migration in &MIGRATIONS[done..] {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "user_version", known)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.commit()?;
    Ok(())
}

/// Refuses a database that is not ours, before anything about it is changed.
pub(crate) fn refuse_stranger(conn: &Connection, path: &Path) -> Result<()> {
    // One view for both questions: another process may be making the store right now.
    let view = conn.unchecked_transaction()?;
    if application_id(&view)? == APPLICATION_ID || is_empty(&view)? {
        return Ok(());
    }
    Err(StoreError::NotAStore { path: path.to_owned() })
}

pub(crate) fn version(conn: &Connection) -> Result<i64> {
    Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn application_id(conn: &Connection) -> Result<i64> {
    Ok(conn.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

fn is_empty(conn: &Connection) -> Result<bool> {
    Ok(conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?)
}
