//! A town on disk: where it is, how it is made, and how it is opened. // SPEC T1, T2
//!
//! A town is a directory with `town.toml` (people edit it) and `.gt/` (ours). What the store does is `gt-store`'s.

use std::fs;
use std::path::{Component, Path, PathBuf};

use gt_core::event::EventType;
use gt_store::{Stamp, Store};
use serde_json::json;

use crate::config::{self, ConfigFile};
use crate::crash::{self, CrashPoint};
use crate::error::TownError;
use crate::in_force;
use crate::wake::Bell;

pub const CONFIG_FILE: &str = "town.toml";
const STATE_DIR: &str = ".gt";
pub(crate) const STORE_FILE: &str = "town.db";

/// An existing town.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Town {
    root: PathBuf,
}

/// What there is to do for `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    Created,
    /// Parts were missing and have been put back.
    Restored,
    AlreadyThere,
}

impl Town {
    /// Says what `init` would do in `dir`, and does nothing.
    pub fn survey(dir: &Path) -> Result<(Town, Init), TownError> {
        let root = resolve(dir)?;
        if let Some(outer) = root.ancestors().skip(1).find(|above| is_town(above))
            && !is_town(&root)
        {
            return Err(TownError::Nested { dir: root.clone(), outer: outer.to_owned() });
        }
        let town = Town { root };
        let plan = match (town.config_path().exists(), town.store_path().exists()) {
            (true, true) => {
                town.open_store()?; // what cannot be opened is no town yet
                Init::AlreadyThere
            }
            (false, false) => Init::Created,
            _ => Init::Restored,
        };
        Ok((town, plan))
    }

    /// Makes a town in `dir`; one that is whole is left alone.
    pub fn init(dir: &Path, stamp: &Stamp) -> Result<(Town, Init), TownError> {
        let (town, plan) = Town::survey(dir)?;
        if plan == Init::AlreadyThere {
            return Ok((town, plan));
        }
        let has_store = town.store_path().exists();
        let state = town.state_dir();
        fs::create_dir_all(&state).map_err(|source| TownError::io("make", &state, source))?;
        // A town may lie inside a repository; its state is never part of it.
        write_new(&state.join(".gitignore"), "*\n")?;
        let mut store = Store::create(&town.store_path())?;
        if !has_store {
            store.record(EventType::TownCreated, &json!({}), stamp)?;
        }
        town.put_back_config(&mut store, stamp)?;
        Ok((town, plan))
    }

    /// Writes a config where there is none: the last good one, or a fresh one.
    fn put_back_config(&self, store: &mut Store, stamp: &Stamp) -> Result<(), TownError> {
        if self.config_path().exists() {
            return Ok(());
        }
        let (_, kept) = in_force::last_good(self, store)?;
        let text = kept.as_ref().map_or_else(config::template, |kept| kept.text.clone());
        write_new(&self.config_path(), &text)?;
        if kept.is_none() {
            in_force::keep_at_once(self, store, &text, stamp)?;
        }
        Ok(())
    }

    /// The town named by hand.
    pub fn at(named: &Path) -> Result<Town, TownError> {
        let root = resolve(named)?;
        if is_town(&root) { Ok(Town { root }) } else { Err(TownError::NoTownThere { dir: root }) }
    }

    /// The nearest town at or above `start`.
    pub fn find(start: &Path) -> Result<Town, TownError> {
        match start.ancestors().find(|dir| is_town(dir)) {
            Some(root) => Ok(Town { root: root.to_owned() }),
            None => Err(TownError::NotInATown { start: start.to_owned() }),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn state_dir(&self) -> PathBuf {
        self.root.join(STATE_DIR)
    }

    pub fn store_path(&self) -> PathBuf {
        self.state_dir().join(STORE_FILE)
    }

    /// What a run has printed.
    pub fn log_path(&self, run: &str) -> PathBuf {
        self.logs_dir().join(format!("{run}.log"))
    }

    /// What a turn complains of, apart from its answer.
    pub fn errors_path(&self, run: &str) -> PathBuf {
        self.logs_dir().join(format!("{run}.err"))
    }

    /// What its hooks have told.
    pub fn events_path(&self, run: &str) -> PathBuf {
        self.logs_dir().join(format!("{run}.events"))
    }

    /// The settings that its agent is given.
    pub fn agent_settings_path(&self, run: &str) -> PathBuf {
        self.logs_dir().join(format!("{run}.json"))
    }

    pub fn logs_dir(&self) -> PathBuf {
        self.state_dir().join("logs")
    }

    /// Where the texts of good configs lie.
    pub fn configs_dir(&self) -> PathBuf {
        self.state_dir().join("config")
    }

    /// Where the keeper of the town's agents lives.
    pub fn keeper_dir(&self) -> PathBuf {
        self.state_dir().join("keeper")
    }

    /// Where a polecat works.
    pub fn worktree(&self, rig: &str, polecat: &str) -> PathBuf {
        self.polecats_dir().join(rig).join(polecat)
    }

    /// Where polecats work, rig by rig.
    pub fn polecats_dir(&self) -> PathBuf {
        self.state_dir().join("polecats")
    }

    /// Where work is merged.
    pub fn refinery_dir(&self) -> PathBuf {
        self.state_dir().join("refinery")
    }

    /// Where patches of work lie that nobody has finished.
    pub fn salvage_dir(&self) -> PathBuf {
        self.state_dir().join("salvage")
    }

    pub fn config_path(&self) -> PathBuf {
        self.root.join(CONFIG_FILE)
    }

    pub fn config_file(&self) -> ConfigFile {
        ConfigFile::new(self.config_path())
    }

    /// Opens the store so that each commit wakes the daemon, if one waits.
    pub fn open_store(&self) -> Result<Store, TownError> {
        if !self.store_path().exists() {
            return Err(TownError::NoStore { root: self.root.clone() });
        }
        let mut store = Store::open(&self.store_path())?;
        let bell = Bell::new(self);
        store.on_commit(move || {
            crash::point(CrashPoint::Committed);
            bell.ring();
        });
        Ok(store)
    }
}

/// The path without links and `..`, as far as it exists.
fn resolve(path: &Path) -> Result<PathBuf, TownError> {
    let failed = |source| TownError::io("look at", path, source);
    let whole = std::path::absolute(path).map_err(failed)?;
    let mut missing = Vec::new();
    let mut there = whole.as_path();
    while let Some(above) = there.parent()
        && !there.exists()
    {
        missing.extend(there.components().next_back());
        there = above;
    }
    let mut resolved = there.canonicalize().map_err(failed)?;
    for part in missing.into_iter().rev() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
    }
    Ok(resolved)
}

fn is_town(dir: &Path) -> bool {
    dir.join(CONFIG_FILE).is_file() || dir.join(STATE_DIR).join(STORE_FILE).is_file()
}

fn write_new(path: &Path, text: &str) -> Result<(), TownError> {
    if path.exists() {
        return Ok(());
    }
    fs::write(path, text).map_err(|source| TownError::io("write", path, source))
}
