//! `gt refinery retry`: a merge that came back or was dropped goes into line again, as its branch is now.

use std::path::{Path, PathBuf};

use gt_store::{Merge, Stamp, StoreError};
use thiserror::Error;

use super::ref_of;
use crate::error::TownError;
use crate::surroundings::{Git, Surroundings};
use crate::town::Town;

/// How much of a commit's id is part of the name that keeps it.
const SHORT: usize = 10;

/// Why a merge is not tried again.
#[derive(Debug, Error)]
pub enum NotRetried {
    #[error("the branch `{}` of {} is gone", merge.branch, merge.id)]
    BranchGone { merge: Box<Merge>, repository: PathBuf },
    #[error(transparent)]
    Town(#[from] TownError),
}

impl From<StoreError> for NotRetried {
    fn from(error: StoreError) -> NotRetried {
        NotRetried::Town(error.into())
    }
}

/// Puts it into line again, and returns it as it was with the commit that is to be merged now. With `is_rehearsal` nothing stays.
pub fn retry(
    around: &dyn Surroundings,
    town: &Town,
    id: &str,
    is_rehearsal: bool,
    stamp: &Stamp,
) -> Result<(Merge, String), NotRetried> {
    // First whether it can be at all, so that a refusal leaves the kept commit alone.
    let (merge, repository) = rehearse(around, town, id, stamp)?;
    let tip = around.git().branch_tip(&repository, &merge.branch).map_err(TownError::from)?;
    let Some(tip) = tip else { return Err(NotRetried::BranchGone { merge: Box::new(merge), repository }) };
    if !is_rehearsal {
        keep(around.git(), &repository, &merge, &tip)?;
        around.open_store(town)?.retry_merge(&merge.id, &tip, stamp)?;
    }
    Ok((merge, tip))
}

/// The merge and the repository it is in, if it may be put into line again. Nothing of it stays.
fn rehearse(around: &dyn Surroundings, town: &Town, id: &str, stamp: &Stamp) -> Result<(Merge, PathBuf), TownError> {
    let mut store = around.open_store(town)?.rehearse()?;
    let merge = store.merge(id)?;
    let rig = store.rig(&merge.rig)?;
    store.retry_merge(&merge.id, &merge.tip, stamp)?;
    Ok((merge, PathBuf::from(rig.path)))
}

/// Keeps the commit that is to be merged, and the one that was if the branch does not have it any more.
fn keep(git: &dyn Git, repository: &Path, merge: &Merge, tip: &str) -> Result<(), TownError> {
    let name = ref_of(&merge.id);
    let is_there = git.find_commit(repository, &merge.tip)?.is_some();
    if is_there && !git.is_part_of(repository, &merge.tip, tip)? {
        let short = merge.tip.get(..SHORT).unwrap_or(&merge.tip);
        git.keep(repository, &format!("{name}-{short}"), &merge.tip)?;
    }
    Ok(git.keep(repository, &name, tip)?)
}
