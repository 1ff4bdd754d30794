//! What merging and salvage leave in repositories and beside the town, and nobody needs any more. // SPEC M2, P8
//!
//! Only what is part of its target goes, what was salvaged for a bead that has been closed for long, worktrees that
//! `salvaged.rs` says may go, and locks that nobody can have any more. Everything that cannot be looked at stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gt_core::rig::Rig;
use gt_runtime::merge::Dated;
use gt_runtime::worktree;
use gt_store::{Merge, Stamp, Store};
use jiff::{SignedDuration, Timestamp};

use crate::error::TownError;
use crate::salvaged::{self, SALVAGE, closed_at};
use crate::settings::Settings;
use crate::surroundings::{Git, Surroundings};
use crate::town::Town;
use crate::worktrees::HANDOFFS;

const MERGES: &str = "refs/gt/merges/";
const HEADS: &str = "refs/heads/";
/// The branches that are made for runs.
pub(crate) const POLECATS: &str = "polecat/";

/// Clears all of it, rig by rig, and says what somebody may wonder about. A repository that cannot be read does not keep the
/// others from it.
pub fn tidy(around: &dyn Surroundings, town: &Town, stamp: &Stamp, say: &dyn Fn(&str)) -> Result<(), TownError> {
    let git = around.git();
    let mut store = around.open_store(town)?;
    let settings = Settings::load(town, &mut store, around)?;
    let keep_for = SignedDuration::try_from(settings.config.duration("retention.logs")).unwrap_or(SignedDuration::MAX);
    let merges: BTreeMap<String, Merge> =
        store.merges(true)?.into_iter().map(|merge| (merge.id.clone(), merge)).collect();
    let mut done = if gt_core::defect!("salvaged-worktrees-stay") {
        Ok(())
    } else {
        salvaged::clear(git, town, &mut store, &settings.config, stamp, say)
    };
    let left = store.polecats()?.into_iter().filter(|polecat| polecat.kept.is_some());
    let left = left.filter_map(|polecat| polecat.last_run).collect();
    let before = stamp.now.checked_sub(keep_for).unwrap_or(Timestamp::MIN);
    let mut work = Tidy { git, store, merges, left, before };
    for rig in work.store.rigs()? {
        done = done.and(clear_locks(git, &rig, say)).and(work.rig(&rig));
    }
    done.and(work.salvage_dir(&town.salvage_dir()))
}

/// What is told of a lock that was cleared away.
pub fn cleared_words(lock: &Path) -> String {
    format!("removed {}: a git that was killed had left it", lock.display())
}

fn clear_locks(git: &dyn Git, rig: &Rig, say: &dyn Fn(&str)) -> Result<(), TownError> {
    let repository = Path::new(&rig.path);
    let polecats = git.branches(repository, POLECATS)?;
    let branches = polecats.iter().chain([&rig.branch]).map(String::as_str).collect::<Vec<_>>();
    let cleared = git.clear_dead_locks(repository, &branches)?;
    for lock in &cleared {
        say(&cleared_words(lock));
    }
    Ok(())
}

struct Tidy<'a> {
    git: &'a dyn Git,
    store: Store,
    merges: BTreeMap<String, Merge>,
    /// Runs whose worktrees are still there.
    left: BTreeSet<String>,
    /// What was salvaged before then, for beads that were closed before then, is let go.
    before: Timestamp,
}

impl Tidy<'_> {
    fn rig(&mut self, rig: &Rig) -> Result<(), TownError> {
        let git = self.git;
        let repository = Path::new(&rig.path);
        let kept = git.kept(repository, MERGES)?;
        let targets: BTreeSet<&str> = kept.iter().map(|(name, _)| self.target_of(name, rig)).collect();
        for target in targets {
            let is_cleared = gt_core::defect!("unmerged-refs-cleared");
            let merged = if is_cleared { kept.clone() } else { git.kept_and_merged(repository, MERGES, target)? };
            for (name, commit) in merged {
                let is_live = self.merge_of(&name).is_some_and(|merge| merge.state.is_live());
                if !is_live && self.target_of(&name, rig) == target {
                    git.forget_at(repository, &name, &commit)?;
                }
            }
        }
        for (name, _) in git.kept_and_merged(repository, &format!("{HEADS}{POLECATS}"), &rig.branch)? {
            let branch = name.trim_start_matches(HEADS);
            // The next run of an open bead may start from it.
            if bead_of(branch).is_some_and(|bead| closed_at(&mut self.store, bead).is_some()) {
                git.delete_idle_branch(repository, branch, &rig.branch)?;
            }
        }
        for folder in [SALVAGE, HANDOFFS] {
            for Dated { name, commit, made_at } in git.kept_since(repository, folder)? {
                let is_old = Timestamp::from_second(made_at).is_ok_and(|at| at < self.before);
                if is_old && self.is_over(name.trim_start_matches(folder)) {
                    git.forget_at(repository, &name, &commit)?;
                }
            }
        }
        Ok(())
    }

    fn merge_of(&self, name: &str) -> Option<&Merge> {
        self.merges.get(name.trim_start_matches(MERGES))
    }

    fn target_of<'a>(&'a self, name: &str, rig: &'a Rig) -> &'a str {
        self.merge_of(name).map_or(&rig.branch, |merge| &merge.target)
    }

    /// Patches, and what was moved away as a whole, are called as the run or the merge that they are of.
    fn salvage_dir(&mut self, dir: &Path) -> Result<(), TownError> {
        let mut done = Ok(());
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let is_old = written.is_ok_and(|at| Timestamp::try_from(at).is_ok_and(|at| at < self.before));
            if !is_old || !self.is_over(name) {
                continue;
            }
            let removed = if path.is_dir() { worktree::delete(&path) } else { fs::remove_file(&path) };
            done = done.and(removed.map_err(|source| TownError::io("remove", &path, source)));
        }
        done
    }

    /// Whether the bead of a run or a merge has been closed for long, and nothing lies around any more that is compared with it.
    fn is_over(&mut self, name: &str) -> bool {
        let bead = match self.merges.get(name) {
            Some(merge) => Some(merge.bead.clone()),
            None => self.store.run(name).ok().flatten().map(|run| run.bead),
        };
        let closed_at = bead.and_then(|bead| closed_at(&mut self.store, &bead));
        !self.left.contains(name) && closed_at.is_some_and(|at| at < self.before)
    }
}

/// The bead that a branch was made for.
fn bead_of(branch: &str) -> Option<&str> {
    branch.strip_prefix(POLECATS)?.split_once('/')?.1.rsplit_once('@').map(|(bead, _)| bead)
}
