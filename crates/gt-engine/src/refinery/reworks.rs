//! Whether a rework has the work that it was made for. // SPEC M2b

use std::path::Path;

use gt_runtime::merge::MergeError;
use gt_store::Merge;

use super::Worker;
use crate::error::TownError;
use crate::surroundings::Git;

impl Worker<'_> {
    /// Of what these merges are the reworks of, the merges whose commits the target has now, or that a pull request has brought.
    pub(super) fn carried(
        &mut self,
        repository: &Path,
        merges: &[Merge],
        commit: &str,
    ) -> Result<Vec<String>, TownError> {
        let git = self.around.git();
        let mut carried = Vec::new();
        for merge in merges {
            for older in self.store.returned_for(&merge.bead)? {
                let has_it = |commit: &str| has_work(git, repository, &older, commit);
                if has_it(&merge.tip)? || has_it(commit)? {
                    carried.push(older.id);
                }
            }
        }
        Ok(carried)
    }
}

/// Whether a commit has the work of a merge. What is gone from the repository is not in it.
pub(crate) fn has_work(git: &dyn Git, repository: &Path, merge: &Merge, commit: &str) -> Result<bool, MergeError> {
    match git.has_work_of(repository, &merge.tip, commit) {
        Err(MergeError::NoCommit { .. }) => Ok(false),
        answer => answer,
    }
}
