//! What lies around in a repository after a merge, or because somebody was killed: branches and refs of what the target has,
//! and locks that nobody has any more. That nothing of it is cleared away costs room and time, never work.

use std::path::Path;

use gt_core::merge::MergeState;
use gt_runtime::merge::{Base, MergeError};
use gt_store::{Merge, StoreError};

use super::{KEPT, Stop, Worker, ref_of};
use crate::error::TownError;
use crate::tidy::POLECATS;

impl Worker<'_> {
    /// Before anything else: while they are there, each change of a ref takes a second or fails.
    pub(super) fn clear_dead_locks(&mut self, repository: &Path) -> Result<(), Stop> {
        let cleared = self.git().clear_dead_locks(repository, &[self.target.branch.as_str()])?;
        self.worked.unlocked.extend(cleared);
        Ok(())
    }

    /// The target has these now. What cannot be cleared away is left for the next round, and so are those after it: what
    /// is in the way of one is in the way of all.
    pub(super) fn clear_all(&self, repository: &Path, merges: &[Merge]) {
        merges.iter().try_for_each(|merge| self.clear(repository, merge)).unwrap_or_default();
    }

    /// A branch that somebody has checked out is the patrol's to delete; one that was not made for a run is nobody's.
    fn clear(&self, repository: &Path, merge: &Merge) -> Result<(), MergeError> {
        if merge.branch.starts_with(POLECATS) {
            self.git().delete_branch(repository, &merge.branch, &self.target.branch)?;
        }
        // In line again, it has another commit there.
        self.git().forget_at(repository, &ref_of(&merge.id), &merge.tip).map(drop)
    }

    /// A worker may have died before it cleared away what it merged, and a `gt done` before it told of what it kept.
    pub(super) fn clear_leftovers(&mut self, repository: &Path, base: &Base) -> Result<(), Stop> {
        let mut merged = Vec::new();
        for (name, commit) in self.git().kept(repository, KEPT)? {
            match self.store.merge(name.trim_start_matches(KEPT)) {
                Ok(merge) if merge.state == MergeState::Merged && merge.target == self.target.branch => {
                    merged.push(merge);
                }
                // Its row may be about to come, so only what the target has anyway is let go.
                Err(StoreError::NoMerge { .. }) if self.git().is_part_of(repository, &commit, &base.commit)? => {
                    self.git().forget(repository, &name)?;
                }
                Ok(merge) if merge.state.is_live() && gt_core::defect!("waiting-refs-cleared") => {
                    self.git().forget(repository, &name)?;
                }
                Err(StoreError::NoMerge { .. }) if gt_core::defect!("unknown-refs-cleared") => {
                    self.git().forget(repository, &name)?;
                }
                Ok(_) | Err(StoreError::NoMerge { .. }) => {}
                Err(error) => return Err(Stop::Failed(TownError::from(error))),
            }
        }
        self.clear_all(repository, &merged);
        Ok(())
    }
}
