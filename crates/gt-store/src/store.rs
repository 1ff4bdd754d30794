//! The open store: connection, transactions, and who did something when.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::dispatch::runs::{self, Run};
use crate::dispatch::{feed, landing};
use crate::error::{Result, StoreError};
use crate::{ledger, schema};

/// How long a writer waits for another one before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// When and by whom a change is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub now: Timestamp,
    pub actor: String,
}

impl Stamp {
    pub fn new(now: Timestamp, actor: impl Into<String>) -> Stamp {
        Stamp { now: gt_core::time::truncate(now), actor: actor.into() }
    }
}

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// About to read.
    Reading,
    /// About to begin a change.
    Writing,
    /// The change is made; nobody else can see it.
    Committing,
    /// The change is there for everybody.
    Committed,
}

/// Stands between the store and its file: the simulation fails, delays and interrupts transactions by it.
pub type Gate = Box<dyn FnMut(Moment) -> std::result::Result<(), StoreError> + Send>;

/// A town's memory.
pub struct Store {
    conn: Connection,
    path: PathBuf,
    gate: Option<Gate>,
    /// Called after each commit, so that nobody who writes can forget to wake whoever waits for it.
    on_commit: Option<Box<dyn Fn() + Send>>,
    /// Everything happens inside one transaction that is never committed.
    is_rehearsal: bool,
    /// The live runs, as they were at a version: many passes find nothing changed.
    living: Option<(Version, Arc<[Run]>)>,
}

/// What differs whenever the store may hold something else than before: commits of others, and our own changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    outside: i64,
    own: u64,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Makes the store if there is none, and opens it.
    pub fn create(path: &Path) -> std::result::Result<Store, StoreError> {
        Store::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store that must be there.
    pub fn open(path: &Path) -> std::result::Result<Store, StoreError> {
        Store::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// A store that lives as long as the value.
    pub fn in_memory() -> std::result::Result<Store, StoreError> {
        Store::set_up(Connection::open_in_memory()?, Path::new(":memory:"))
    }

    /// A store in memory that everybody in this process who knows its name shares, as long as one of them has it open.
    pub fn shared_in_memory(name: &str) -> std::result::Result<Store, StoreError> {
        let path = PathBuf::from(format!("file:/{name}?vfs=memdb"));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
        Store::open_with(&path, flags)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn schema_version(&self) -> std::result::Result<i64, StoreError> {
        schema::version(&self.conn).map_err(|error| error.located(&self.path))
    }

    fn open_with(path: &Path, flags: OpenFlags) -> std::result::Result<Store, StoreError> {
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(StoreError::from)
            .and_then(|conn| Store::set_up(conn, path))
            .map_err(|error| error.located(path))
    }

    fn set_up(mut conn: Connection, path: &Path) -> Result<Store> {
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(256);
        // Otherwise SQLite plans a statement anew for each bound value, because one might fit a partial index.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        schema::refuse_stranger(&conn, path)?;
        use_wal(&conn)?;
        // An acknowledged write survives a power cut; the larger cache is only a limit, for imports.
        conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;")?;
        schema::migrate(&mut conn, path)?;
        Ok(Store { conn, path: path.to_owned(), gate: None, on_commit: None, is_rehearsal: false, living: None })
    }

    /// From now on every transaction passes this gate.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    /// From now on calls this after each commit.
    pub fn on_commit(&mut self, hook: impl Fn() + Send + 'static) {
        self.on_commit = Some(Box::new(hook));
    }

    /// A number that changes when another connection has committed something.
    pub fn outside_commits(&mut self) -> std::result::Result<i64, StoreError> {
        let version = self.conn.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|error| StoreError::from(error).located(&self.path))
    }

    /// Every run that lives as far as is recorded, the oldest first. Read anew only when something has changed.
    pub fn live_runs(&mut self) -> std::result::Result<Arc<[Run]>, StoreError> {
        // Taken before the rows: what is committed in between makes them newer than their version, never older.
        let version = Version { outside: self.outside_commits()?, own: self.conn.total_changes() };
        if let Some((_, runs)) = self.living.as_ref().filter(|(known, _)| *known == version) {
            return Ok(Arc::clone(runs));
        }
        let runs: Arc<[Run]> = self.read(runs::living)?.into();
        self.living = Some((version, Arc::clone(&runs)));
        Ok(runs)
    }

    /// From now on every verb does its work and shows its effect, but nothing stays.
    pub fn rehearse(mut self) -> std::result::Result<Store, StoreError> {
        let begun = self.conn.execute_batch("BEGIN IMMEDIATE").map_err(StoreError::from);
        begun.map_err(|error| error.located(&self.path))?;
        self.is_rehearsal = true;
        Ok(self)
    }

    /// One writing transaction. It takes the write lock at once, so what it reads cannot change under it.
    pub(crate) fn write<T>(
        &mut self,
        stamp: &Stamp,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> std::result::Result<T, StoreError> {
        let work = |tx: &Connection| {
            ledger::wake_due(tx, stamp.now)?;
            let value = work(tx)?;
            landing::settle(tx, stamp)?;
            if !gt_core::defect!("feeding-left-to-sweep") {
                feed::settle(tx, stamp)?;
            }
            Ok(value)
        };
        pass(&mut self.gate, Moment::Writing)?;
        let done = if self.is_rehearsal {
            rehearse_in(&mut self.conn, work)
        } else {
            let work = |tx: &Connection| {
                let value = work(tx)?;
                pass(&mut self.gate, Moment::Committing)?;
                Ok(value)
            };
            write_in(&mut self.conn, work)
        };
        let done = done.map_err(|error| error.located(&self.path))?;
        pass(&mut self.gate, Moment::Committed)?;
        if let Some(hook) = self.on_commit.as_ref().filter(|_| !self.is_rehearsal) {
            hook();
        }
        Ok(done)
    }

    /// One reading transaction: every query in it sees the same state.
    pub(crate) fn read<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> std::result::Result<T, StoreError> {
        pass(&mut self.gate, Moment::Reading)?;
        let done = if self.is_rehearsal { work(&self.conn) } else { read_in(&mut self.conn, work) };
        done.map_err(|error| error.located(&self.path))
    }
}

fn pass(gate: &mut Option<Gate>, moment: Moment) -> Result<()> {
    gate.as_mut().map_or(Ok(()), |gate| gate(moment))
}

/// Switches the file to a write-ahead log. While others do the same SQLite says "busy" without waiting, so we wait.
fn use_wal(conn: &Connection) -> Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::yield_now(),
            done => return Ok(done?),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn write_in<T>(conn: &mut Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = work(&tx)?;
    tx.commit()?;
    Ok(value)
}

fn read_in<T>(conn: &mut Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Deferred)?;
    work(&tx)
}

/// A part of the rehearsal that, when it fails, leaves no trace for the parts after it.
fn rehearse_in<T>(conn: &mut Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let part = conn.savepoint()?;
    let value = work(&part)?;
    part.commit()?;
    Ok(value)
}

#[cfg(test)]
mod tests;
