//! What merging and salvage leave in repositories and beside the town, and nobody needs any more. // SPEC M2, P8
//!
//! Only what is part of its target goes, what was salvaged for a bead that has been closed for long, and locks that nobody can
//! have any more. Everything that cannot be looked at stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gt_core::rig::Rig;
use gt_core::status::Status;
use gt_runtime::merge;
use gt_store::{Merge, Store};
use jiff::{SignedDuration, Timestamp};

use crate::error::TownError;
use crate::settings::Settings;
use crate::town::Town;
use crate::worktrees::HANDOFFS;

const MERGES: &str = "refs/gt/merges/";
const SALVAGE: &str = "refs/gt/salvage/";
/// The branches that are made for runs.
pub(crate) const POLECATS: &str = "polecat/";

/// Clears all of it, rig by rig, and says what somebody may wonder about. A repository that cannot be read does not keep the
/// others from it.
pub fn tidy(town: &Town, now: Timestamp, say: &dyn Fn(&str)) -> Result<(), TownError> {
    let mut store = town.open_store()?;
    let keep_for = Settings::load(town)?.config.duration("retention.logs");
    let keep_for = SignedDuration::try_from(keep_for).unwrap_or(SignedDuration::MAX);
    let merges: BTreeMap<String, Merge> =
        store.merges(true)?.into_iter().map(|merge| (merge.id.clone(), merge)).collect();
    let mut work = Tidy { store, merges, closed_before: now.checked_sub(keep_for).unwrap_or(Timestamp::MIN) };
    let mut done = Ok(());
    for rig in work.store.rigs()? {
        done = done.and(clear_locks(&rig, say)).and(work.rig(&rig));
    }
    done.and(work.salvage_dir(&town.salvage_dir()))
}

/// What is told of a lock that was cleared away.
pub fn cleared_words(lock: &Path) -> String {
    format!("removed {}: a git that was killed had left it", lock.display())
}

fn clear_locks(rig: &Rig, say: &dyn Fn(&str)) -> Result<(), TownError> {
    let repository = Path::new(&rig.path);
    let polecats = merge::branches(repository, POLECATS)?;
    let branches = polecats.iter().chain([&rig.branch]).map(String::as_str);
    let cleared = merge::clear_dead_locks(repository, branches)?;
    for lock in &cleared {
        say(&cleared_words(lock));
    }
    Ok(())
}

struct Tidy {
    store: Store,
    merges: BTreeMap<String, Merge>,
    /// What was salvaged for beads that are closed since then is let go.
    closed_before: Timestamp,
}

impl Tidy {
    fn rig(&mut self, rig: &Rig) -> Result<(), TownError> {
        let repository = Path::new(&rig.path);
        for (name, commit) in merge::kept(repository, MERGES)? {
            let known = self.merges.get(name.trim_start_matches(MERGES));
            let target = known.map_or(&rig.branch, |merge| &merge.target);
            let is_live = known.is_some_and(|merge| merge.state.is_live());
            if !is_live && merge::is_merged(repository, &commit, target)? {
                merge::forget_at(repository, &name, &commit)?;
            }
        }
        for branch in merge::branches(repository, POLECATS)? {
            // The next run of an open bead may start from it.
            if bead_of(&branch).is_some_and(|bead| self.closed_at(bead).is_some()) {
                merge::delete_idle_branch(repository, &branch, &rig.branch)?;
            }
        }
        for folder in [SALVAGE, HANDOFFS] {
            for (name, commit) in merge::kept(repository, folder)? {
                if self.is_over(name.trim_start_matches(folder)) {
                    merge::forget_at(repository, &name, &commit)?;
                }
            }
        }
        Ok(())
    }

    /// Patches, and what was moved away as a whole, are called as the run or the merge that they are of.
    fn salvage_dir(&mut self, dir: &Path) -> Result<(), TownError> {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if !self.is_over(name) {
                continue;
            }
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|source| TownError::io("remove", &path, source))?;
        }
        Ok(())
    }

    /// Whether the bead of a run or a merge has been closed for long.
    fn is_over(&mut self, name: &str) -> bool {
        let bead = match self.merges.get(name) {
            Some(merge) => Some(merge.bead.clone()),
            None => self.store.run(name).ok().flatten().map(|run| run.bead),
        };
        bead.and_then(|bead| self.closed_at(&bead)).is_some_and(|at| at < self.closed_before)
    }

    /// Since when a bead is closed; what is not known is not closed.
    fn closed_at(&mut self, bead: &str) -> Option<Timestamp> {
        let bead = self.store.bead(bead).ok()?.bead;
        bead.closed_at.filter(|_| bead.status == Status::Closed)
    }
}

/// The bead that a branch was made for.
fn bead_of(branch: &str) -> Option<&str> {
    branch.strip_prefix(POLECATS)?.split_once('/')?.1.rsplit_once('@').map(|(bead, _)| bead)
}
