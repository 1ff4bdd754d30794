//! The checkout in which a person has the target: what a killed git left half-way there is settled, and a merge that would
//! overwrite uncommitted work waits while others go on. // SPEC M2a

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gt_runtime::merge::{MergeError, Resumed, Titled};
use gt_store::Merge;

use super::publishing::words_of_branch;
use super::{Stop, Tried, Worker};
use crate::error::TownError;

/// A merge that waits for a person while others go on.
pub(super) struct Blocked {
    merge: String,
    bead: String,
    by: Obstacle,
}

/// What a person has to see to.
enum Obstacle {
    /// Uncommitted work in files that the merge changes.
    Files { checkout: PathBuf, files: Vec<String> },
    /// Why it cannot be pushed.
    Commits(String),
}

impl Blocked {
    pub(super) fn by_files(merge: &Merge, checkout: PathBuf, files: Vec<String>) -> Blocked {
        Blocked { merge: merge.id.clone(), bead: merge.bead.clone(), by: Obstacle::Files { checkout, files } }
    }

    pub(super) fn by_commits(merge: &Merge, commits: &[Titled]) -> Blocked {
        let why = words_of_branch(&merge.id, commits);
        Blocked { merge: merge.id.clone(), bead: merge.bead.clone(), by: Obstacle::Commits(why) }
    }
}

impl Worker<'_> {
    /// Before anybody can decide again about what was landing: until then it may be finished.
    pub(super) fn resume_landing(&mut self, repository: &Path) -> Result<(), Stop> {
        let target = &self.target.branch;
        if gt_core::defect!("half-moved-checkout-left") {
            return Ok(());
        }
        let is_wanted = self.store.is_landing(self.target).map_err(TownError::from)?;
        let words = match self.git().resume(repository, target, is_wanted)? {
            None => return Ok(()),
            Some(Resumed::Finished) => format!("finished what a killed git had begun in the checkout of {target}"),
            Some(Resumed::Undone) => format!("undid what a killed git had begun in the checkout of {target}"),
        };
        self.worked.resumed.push(words);
        Ok(())
    }

    /// Whether a person's files are in the way of a commit.
    pub(super) fn in_the_way(&self, repository: &Path, commit: &str) -> Result<Option<Tried>, Stop> {
        match self.git().can_land(repository, &self.target.branch, commit) {
            Err(MergeError::InTheWay { path, files }) => Ok(Some(Tried::InTheWay { checkout: path, files })),
            can_land => Ok(can_land.map(|()| None)?),
        }
    }

    /// What is left of those that wait when those are taken out that wait for a person. When there is nothing else, the target
    /// is held.
    pub(super) fn without_blocked(&self, mut waiting: Vec<Merge>) -> Result<Vec<Merge>, Stop> {
        waiting.retain(|merge| self.blocked.iter().all(|blocked| blocked.merge != merge.id));
        if waiting.is_empty() { Err(Stop::Hold(words(&self.blocked))) } else { Ok(waiting) }
    }
}

/// Who waits for what.
fn words(blocked: &[Blocked]) -> String {
    let (mut beads, mut checkout, mut files) = (Vec::new(), PathBuf::new(), BTreeSet::new());
    let mut reasons = Vec::new();
    for Blocked { bead, by, .. } in blocked {
        match by {
            // All of them wait for the same checkout.
            Obstacle::Files { checkout: path, files: own } => {
                beads.push(bead.as_str());
                checkout.clone_from(path);
                files.extend(own.iter().cloned());
            }
            Obstacle::Commits(why) => reasons.push(format!("{bead} waits: {why}")),
        }
    }
    if !beads.is_empty() {
        let why = MergeError::InTheWay { path: checkout, files: files.into_iter().collect() };
        let wait = if beads.len() == 1 { "waits" } else { "wait" };
        reasons.insert(0, format!("{} {wait}: {why}", beads.join(", ")));
    }
    reasons.join("; ")
}
