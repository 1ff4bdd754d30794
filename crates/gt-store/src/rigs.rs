//! The registry of rigs. // SPEC T3, T4

use gt_core::event::EventType;
use gt_core::near;
use gt_core::refusal::Refusal;
use gt_core::rig::{self, Home, Rig, RigState};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::dispatch::merges;
use crate::error::{Result, StoreError};
use crate::events;
use crate::store::{Stamp, Store};

impl Store {
    /// Every rig, by name.
    pub fn rigs(&mut self) -> std::result::Result<Vec<Rig>, StoreError> {
        self.read(all)
    }

    pub fn rig(&mut self, name: &str) -> std::result::Result<Rig, StoreError> {
        self.read(|tx| require(tx, name))
    }

    /// Registers a rig; name and prefix must be free.
    pub fn add_rig(&mut self, rig: &Rig, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        rig::check_name(&rig.name).map_err(Refusal::from)?;
        self.write(stamp, |tx| {
            let rigs = all(tx)?;
            if rigs.iter().any(|known| known.name == rig.name) {
                return Err(Refusal::RigExists { name: rig.name.clone() }.into());
            }
            rig::check_prefix(&rig.prefix, &rigs).map_err(Refusal::from)?;
            tx.execute(
                "INSERT INTO rig (name, prefix, path, url, branch, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![rig.name, rig.prefix, rig.path, rig.url, rig.branch, rig.state.as_str()],
            )?;
            let data = json!({ "rig": rig.name, "prefix": rig.prefix, "path": rig.path });
            events::append(tx, stamp, EventType::RigAdded, None, &data)
        })
    }

    /// Takes a rig off the registry; with active beads or merges that wait only when forced. Beads and repository stay.
    pub fn remove_rig(&mut self, name: &str, force: bool, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            require(tx, name)?;
            let n_active = active_beads(tx, name)?;
            let waiting = merges::of_rig(tx, name)?;
            let n_merges = waiting.len();
            if (n_active > 0 || n_merges > 0) && !force {
                return Err(Refusal::RigInUse { name: name.to_owned(), n_active, n_merges }.into());
            }
            for merge in &waiting {
                merges::drop_and_give_back(tx, merge, &format!("the rig {name} was removed"), stamp)?;
            }
            tx.execute("DELETE FROM rig WHERE name = ?1", [name])?;
            events::append(tx, stamp, EventType::RigRemoved, None, &json!({ "rig": name }))
        })
    }

    /// Parks, docks or frees a rig; says whether that changed anything.
    pub fn set_rig_state(
        &mut self,
        name: &str,
        state: RigState,
        event: EventType,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let rig = require(tx, name)?;
            let undocks = event == EventType::RigUndocked;
            match (rig.state, state) {
                (from, to) if from == to => return Ok(false),
                // Parking is the lighter of the two: it neither hides nor lifts a dock.
                (RigState::Docked, _) if !undocks => {
                    return Err(Refusal::RigDocked { name: name.to_owned() }.into());
                }
                (RigState::Parked, RigState::Active) if undocks => return Ok(false),
                _ => {}
            }
            tx.execute("UPDATE rig SET state = ?2 WHERE name = ?1", params![name, state.as_str()])?;
            events::append(tx, stamp, event, None, &json!({ "rig": name }))?;
            Ok(true)
        })
    }
}

pub(crate) fn all(tx: &Connection) -> Result<Vec<Rig>> {
    let mut query = tx.prepare_cached("SELECT name, prefix, path, url, branch, state FROM rig ORDER BY name")?;
    let rigs = query.query_map([], |row| {
        let state: String = row.get(5)?;
        Ok(Rig {
            name: row.get(0)?,
            prefix: row.get(1)?,
            path: row.get(2)?,
            url: row.get(3)?,
            branch: row.get(4)?,
            state: RigState::parse(&state).unwrap_or(RigState::Docked),
        })
    })?;
    Ok(rigs.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn require(tx: &Connection, name: &str) -> Result<Rig> {
    let rigs = all(tx)?;
    let near = near::closest(name, rigs.iter().map(|rig| rig.name.as_str()));
    rigs.into_iter()
        .find(|rig| rig.name == name)
        .ok_or_else(|| StoreError::NoRig { name: gt_core::text::one_line(name), near })
}

fn active_beads(tx: &Connection, name: &str) -> Result<usize> {
    let rigs = all(tx)?;
    let mut query = tx.prepare("SELECT id, rig FROM bead WHERE standing IS NOT NULL")?;
    let mut rows = query.query([])?;
    let mut n_active = 0;
    while let Some(row) = rows.next()? {
        let (id, binding): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        n_active +=
            usize::from(matches!(rig::home(&id, binding.as_deref(), &rigs), Home::Rig(rig) if rig.name == name));
    }
    Ok(n_active)
}
