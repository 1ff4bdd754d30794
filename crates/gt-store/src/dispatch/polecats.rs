//! Polecats: names in a rig, whose worktrees outlive their runs. // SPEC P4, P8

use gt_core::names;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Result, StoreError};
use crate::rows::{Key, micros, timestamp};
use crate::store::{Stamp, Store};

/// A worker's name with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polecat {
    pub rig: String,
    pub name: String,
    /// The live run; `None`: idle.
    pub run: Option<String>,
    pub last_run: Option<String>,
    /// The last work.
    pub bead: Option<String>,
    pub worktree: Option<String>,
    pub branch: Option<String>,
    /// Why it gets no new work.
    pub kept: Option<String>,
    pub since: Timestamp,
}

const SELECT: &str = "SELECT rig, name, run, last_run, bead, worktree, branch, kept, since FROM polecat";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Polecat> {
    Ok(Polecat {
        rig: row.get(0)?,
        name: row.get(1)?,
        run: row.get(2)?,
        last_run: row.get(3)?,
        bead: row.get(4)?,
        worktree: row.get(5)?,
        branch: row.get(6)?,
        kept: row.get(7)?,
        since: timestamp(row.get(8)?),
    })
}

impl Store {
    /// Every polecat, by rig and name.
    pub fn polecats(&mut self) -> std::result::Result<Vec<Polecat>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(&format!("{SELECT} ORDER BY rig, name"))?;
            Ok(query.query_map([], from_row)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Keeps an idle polecat from being given work, or gives it back to it; says whether it was idle.
    pub fn keep_polecat(
        &mut self,
        rig: &str,
        name: &str,
        why: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE polecat SET kept = ?3 WHERE rig = ?1 AND name = ?2 AND run IS NULL";
            Ok(tx.execute(sql, params![rig, name, why])? > 0)
        })
    }

    /// Forgets a polecat that has no live run; says whether it was there and idle.
    pub fn forget_polecat(&mut self, rig: &str, name: &str, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "DELETE FROM polecat WHERE rig = ?1 AND name = ?2 AND run IS NULL";
            let is_gone = tx.execute(sql, params![rig, name])? > 0;
            if is_gone {
                let data = serde_json::json!({ "rig": rig, "polecat": name });
                crate::events::append(tx, stamp, gt_core::event::EventType::PolecatNuked, None, &data)?;
            }
            Ok(is_gone)
        })
    }
}

/// Finds polecats for the runs of one claim. Names are read only when a new polecat has to be made.
#[derive(Default)]
pub(crate) struct Stable {
    names: FxHashMap<String, NewNames>,
}

/// The names of a rig that are still free, in order.
struct NewNames {
    taken: FxHashSet<String>,
    proposals: Box<dyn Iterator<Item = String>>,
}

impl Stable {
    /// A polecat for this work: the one that finished what it waited for, else the last to become idle, else a new one.
    pub(crate) fn find(&mut self, tx: &Connection, rig: &str, work: Key, now: Timestamp) -> Result<Polecat> {
        match idle(tx, rig, work)? {
            Some(polecat) => Ok(polecat),
            None => Ok(new(rig, self.new_name(tx, rig)?, now)),
        }
    }

    fn new_name(&mut self, tx: &Connection, rig: &str) -> Result<String> {
        if !self.names.contains_key(rig) {
            let mut query = tx.prepare_cached("SELECT name FROM polecat WHERE rig = ?1")?;
            let taken = query.query_map([rig], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            self.names.insert(rig.to_owned(), NewNames { taken, proposals: Box::new(names::proposals()) });
        }
        let names = self.names.get_mut(rig).expect("it was just put in");
        let is_free = |name: &String| !names.taken.contains(name);
        Ok(names.proposals.by_ref().find(is_free).expect("numbers do not run out"))
    }
}

fn idle(tx: &Connection, rig: &str, work: Key) -> Result<Option<Polecat>> {
    let finished_its_blocker = "AND bead IN (SELECT target FROM edge WHERE source = ?2)";
    for condition in [finished_its_blocker, "AND ?2 IS NOT NULL"] {
        let mut query = tx.prepare_cached(&format!(
            "{SELECT} INDEXED BY polecat_idle WHERE rig = ?1 AND run IS NULL AND kept IS NULL {condition}
             ORDER BY since DESC, name LIMIT 1"
        ))?;
        let found = query.query_row(params![rig, work], from_row).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn new(rig: &str, name: String, now: Timestamp) -> Polecat {
    Polecat {
        rig: rig.to_owned(),
        name,
        run: None,
        last_run: None,
        bead: None,
        worktree: None,
        branch: None,
        kept: None,
        since: now,
    }
}

/// The polecat that a live run has.
pub(crate) fn of_run(tx: &Connection, run: &str) -> Result<Option<Polecat>> {
    let mut query = tx.prepare_cached(&format!("{SELECT} WHERE run = ?1"))?;
    Ok(query.query_row([run], from_row).optional()?)
}

/// Gives a polecat to a run.
pub(crate) fn occupy(tx: &Connection, polecat: &Polecat, run: &str, bead: &str, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO polecat (rig, name, run, last_run, bead, since) VALUES (?1, ?2, ?3, ?3, ?4, ?5)
         ON CONFLICT (rig, name) DO UPDATE SET run = ?3, last_run = ?3, bead = ?4, since = ?5",
    )?
    .execute(params![polecat.rig, polecat.name, run, bead, micros(stamp.now)])?;
    Ok(())
}

/// Remembers where a polecat works.
pub(crate) fn settle(tx: &Connection, run: &str, worktree: Option<&str>, branch: Option<&str>) -> Result<()> {
    tx.prepare_cached("UPDATE polecat SET worktree = coalesce(?2, worktree), branch = ?3 WHERE run = ?1")?
        .execute(params![run, worktree, branch])?;
    Ok(())
}

/// Frees the polecat of a run that has ended.
pub(crate) fn free(tx: &Connection, run: &str, kept: Option<&str>, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE polecat SET run = NULL, kept = ?2, since = ?3 WHERE run = ?1")?.execute(params![
        run,
        kept,
        micros(stamp.now)
    ])?;
    Ok(())
}
