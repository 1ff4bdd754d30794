//! Worktrees that ended workers left with changes in them: which of them are salvaged, and when they go. // SPEC P8
//!
//! One goes when its bead is closed, everything in it but ignored files is seen to be under `refs/gt/salvage/RUN`, and
//! `retention.worktrees` has passed since the last of that came to be. What was changed since it was salvaged is salvaged first.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gt_core::status::Status;
use gt_runtime::merge::{self, Dated, Salvage};
use gt_runtime::worktree::{Fingerprint, WorktreeError};
use gt_store::{Polecat, Stamp, Store};
use jiff::{SignedDuration, Timestamp};

use crate::config::Config;
use crate::error::TownError;
use crate::surroundings::Git;
use crate::town::Town;

/// Where changes are kept that runs left uncommitted.
pub(crate) const SALVAGE: &str = "refs/gt/salvage/";
/// How the reason begins for which one stays that would go otherwise.
const STUCK: &str = "it cannot be cleared away: ";
/// The reason for which one is kept that goes in time.
const CHANGED: &str = "it has uncommitted changes";

/// A worktree whose changes are salvaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// The ref that keeps them.
    pub name: String,
    pub commit: String,
    /// From then on the patrol removes it.
    pub clears_at: Timestamp,
}

/// An idle worker that is kept for its worktree, and whose bead is closed.
struct Left {
    polecat: Polecat,
    run: String,
    path: String,
    /// Since when both holds.
    since: Timestamp,
    repository: String,
}

impl Left {
    fn salvage_ref(&self) -> String {
        format!("{SALVAGE}{}", self.run)
    }

    fn is_stuck(&self) -> bool {
        self.polecat.kept.as_ref().is_some_and(|why| why.starts_with(STUCK))
    }
}

/// What becomes of the worktrees of these workers, by rig and name; nothing is said of those that a person has to look at.
pub fn outlook(
    store: &mut Store,
    config: &Config,
    polecats: &[Polecat],
) -> Result<BTreeMap<(String, String), Salvaged>, TownError> {
    let mut outlook = BTreeMap::new();
    let mut kept: BTreeMap<String, Vec<Dated>> = BTreeMap::new();
    for left in left(store, polecats)? {
        // Of a repository that cannot be read nothing can be said; others tell of that.
        let look = || merge::kept_since(Path::new(&left.repository), SALVAGE).unwrap_or_default();
        let kept = kept.entry(left.repository.clone()).or_insert_with(look);
        if let Some(salvaged) = salvaged(&left, kept, config).filter(|_| !left.is_stuck()) {
            outlook.insert((left.polecat.rig, left.polecat.name), salvaged);
        }
    }
    Ok(outlook)
}

/// Removes those that may go, and says so. One that cannot be looked at does not keep the others from it.
pub(crate) fn clear(
    git: &dyn Git,
    town: &Town,
    store: &mut Store,
    config: &Config,
    stamp: &Stamp,
    say: &dyn Fn(&str),
) -> Result<(), TownError> {
    let polecats = store.polecats()?;
    let mut done = Ok(());
    for left in left(store, &polecats)? {
        done = done.and(clear_one(git, town, store, config, stamp, &left, say));
    }
    done
}

/// The workers whose worktrees may be salvaged.
fn left(store: &mut Store, polecats: &[Polecat]) -> Result<Vec<Left>, TownError> {
    let mut all = Vec::new();
    for polecat in polecats.iter().filter(|polecat| polecat.run.is_none() && polecat.kept.is_some()) {
        let (Some(run), Some(path)) = (polecat.last_run.clone(), polecat.worktree.clone()) else { continue };
        let Some(bead) = store.run(&run)?.map(|run| run.bead) else { continue };
        let (Some(closed_at), Ok(rig)) = (closed_at(store, &bead), store.rig(&polecat.rig)) else { continue };
        let since = polecat.since.max(closed_at);
        all.push(Left { polecat: polecat.clone(), run, path, since, repository: rig.path });
    }
    Ok(all)
}

/// Since when a bead is closed; what is not known is not closed.
pub(crate) fn closed_at(store: &mut Store, bead: &str) -> Option<Timestamp> {
    let bead = store.bead(bead).ok()?.bead;
    bead.closed_at.filter(|_| bead.status == Status::Closed)
}

/// What is salvaged of one, as far as is known without looking into it.
fn salvaged(left: &Left, kept: &[Dated], config: &Config) -> Option<Salvaged> {
    let name = left.salvage_ref();
    if gt_core::defect!("salvage-is-for-people") {
        return None;
    }
    let Dated { commit, made_at, .. } = kept.iter().find(|kept| kept.name == name)?;
    let keep_for = SignedDuration::try_from(config.duration("retention.worktrees")).unwrap_or(SignedDuration::MAX);
    let since = left.since.max(Timestamp::from_second(*made_at).unwrap_or(left.since));
    let clears_at = since.saturating_add(keep_for).unwrap_or(Timestamp::MAX);
    Some(Salvaged { name, commit: commit.clone(), clears_at })
}

/// What a worktree turns out to be when it is looked into.
enum Looked {
    /// It is not there.
    Gone,
    /// Somebody has put it in order.
    Clean,
    /// All of it is kept by this commit now.
    Kept(String),
    /// It holds something that git cannot keep.
    Stuck(String),
}

fn clear_one(
    git: &dyn Git,
    town: &Town,
    store: &mut Store,
    config: &Config,
    stamp: &Stamp,
    left: &Left,
    say: &dyn Fn(&str),
) -> Result<(), TownError> {
    let kept = git.kept_since(Path::new(&left.repository), &left.salvage_ref())?;
    let known = salvaged(left, &kept, config);
    if known.as_ref().is_some_and(|known| known.clears_at > stamp.now) {
        return Ok(());
    }
    let Polecat { rig, name, .. } = &left.polecat;
    // What is written after this is not deleted unseen.
    let seen = Fingerprint::of(Path::new(&left.path));
    let what = match look_into(git, town, left)? {
        Looked::Clean => return Ok(store.keep_polecat(rig, name, None, stamp).map(drop)?),
        Looked::Stuck(why) => return keep(store, stamp, left, &format!("{STUCK}{why}")),
        // What was salvaged only now is kept for as long as anything else.
        Looked::Kept(commit) if known.is_none_or(|known| known.commit != commit) => {
            return if left.is_stuck() { keep(store, stamp, left, CHANGED) } else { Ok(()) };
        }
        Looked::Kept(_) => format!("its changes are in {}", left.salvage_ref()),
        Looked::Gone => "its worktree is gone".to_owned(),
    };
    match git.remove_saved(Path::new(&left.repository), Path::new(&left.path), &seen) {
        Err(error @ (WorktreeError::LoneSubmodule { .. } | WorktreeError::Changed { .. })) => {
            keep(store, stamp, left, &format!("{STUCK}{error}"))
        }
        Err(error) => Err(error.into()),
        Ok(undeleted) => {
            // Only now: one that is kept is not given work meanwhile.
            store.forget_polecat(rig, name, stamp)?;
            let but = undeleted.map(|path| format!("; {} cannot be deleted", path.display())).unwrap_or_default();
            say(&format!("{rig}/{name} is cleared away: {what}{but}"));
            Ok(())
        }
    }
}

/// Salvages what is not salvaged yet.
fn look_into(git: &dyn Git, town: &Town, left: &Left) -> Result<Looked, TownError> {
    let (tree, dir) = (Path::new(&left.path), town.salvage_dir());
    if !tree.exists() {
        return Ok(Looked::Gone);
    }
    if !tree.join(".git").exists() {
        // Git would take it for a part of whatever repository lies around it.
        return Ok(Looked::Stuck("it is no worktree any more".to_owned()));
    }
    fs::create_dir_all(&dir).map_err(|source| TownError::io("make", &dir, source))?;
    Ok(match git.salvage(tree, &left.salvage_ref(), &dir.join(format!("{}.patch", left.run)))? {
        None => Looked::Clean,
        Some(Salvage { commit, left_out }) if left_out.is_empty() => Looked::Kept(commit),
        Some(Salvage { left_out, .. }) => Looked::Stuck(format!("git cannot save {} in it", left_out.join(", "))),
    })
}

/// Notes why a worktree is kept.
fn keep(store: &mut Store, stamp: &Stamp, left: &Left, why: &str) -> Result<(), TownError> {
    if left.polecat.kept.as_deref() != Some(why) {
        store.keep_polecat(&left.polecat.rig, &left.polecat.name, Some(why), stamp)?;
    }
    Ok(())
}
