//! What people ask of the refinery's queue; nothing here changes it.

use std::collections::BTreeSet;

use gt_core::near;
use rusqlite::Connection;

use super::{Merge, Target, TargetHold, landed, select};
use crate::error::{Result, StoreError};
use crate::rows::{self, timestamp};
use crate::store::Store;

impl Store {
    /// Of these commits, those that the refinery brought to a branch.
    pub fn agent_commits(&mut self, commits: &[String]) -> std::result::Result<BTreeSet<String>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT 1 FROM agent_commit WHERE id = ?1")?;
            let mut known = BTreeSet::new();
            for commit in commits {
                if query.exists([commit])? {
                    known.insert(commit.clone());
                }
            }
            Ok(known)
        })
    }

    /// Every target that is held, with the reason.
    pub fn target_holds(&mut self) -> std::result::Result<Vec<(Target, TargetHold)>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT rig, target, since, until, tries, reason FROM merge_hold ORDER BY rig, target",
            )?;
            let rows = query.query_map([], |row| {
                let (since, until) = (timestamp(row.get(2)?), timestamp(row.get(3)?));
                let hold = TargetHold { since, until, tries: row.get(4)?, reason: row.get(5)? };
                Ok((Target { rig: row.get(0)?, branch: row.get(1)? }, hold))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The merges of a bead's work, the oldest first; none of what is no bead.
    pub fn merges_of(&mut self, bead: &str) -> std::result::Result<Vec<Merge>, StoreError> {
        self.read(|tx| {
            let key = rows::key_of(tx, bead)?;
            key.map_or(Ok(Vec::new()), |key| select(tx, "merge.bead = ?1 ORDER BY merge.place", [key]))
        })
    }

    /// The merges that came back and that a bead was made to work on again; none of what is no bead.
    pub fn returned_for(&mut self, rework: &str) -> std::result::Result<Vec<Merge>, StoreError> {
        self.read(|tx| rows::key_of(tx, rework)?.map_or(Ok(Vec::new()), |key| landed::returned_for(tx, key)))
    }

    /// Work that came back and is not merged since.
    pub fn returned_merges(&mut self) -> std::result::Result<Vec<Merge>, StoreError> {
        let rest = "merge.state = 'returned' AND bead.status NOT IN ('closed', 'tombstone')
            AND NOT EXISTS (SELECT 1 FROM merge AS newer WHERE newer.bead = merge.bead AND newer.place > merge.place)
            ORDER BY merge.place";
        self.read(|tx| select(tx, rest, []))
    }
}

/// The ids that are closest to one that is not there.
pub(super) fn near_ids(tx: &Connection, id: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached("SELECT id FROM merge ORDER BY id")?;
    let all: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(near::closest(id, all.iter().map(String::as_str)))
}
