//! Ending a run: what it says about its work, and the way of that work to the refinery. // SPEC M1, P7
//!
//! Git is looked at first, and a refusal changes nothing. Then the commit is kept, then one transaction tells the store. Whoever dies
//! in between is called again, with the same result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_core::merge::Strategy;
use gt_core::run::Outcome;
use gt_runtime::merge::{self, Look};
use gt_store::{Assignment, HandOver, Merge, Report, Run, Stamp, Store, StoreError};
use thiserror::Error;

use crate::agents;
use crate::crash::{self, CrashPoint};
use crate::error::TownError;
use crate::refinery::{self, Worked};
use crate::settings::{Isolation, Settings};
use crate::surroundings::Surroundings;
use crate::town::Town;
use crate::worktrees;

/// What an agent says about its run.
#[derive(Debug, Clone)]
pub struct Word {
    pub run: String,
    pub outcome: Outcome,
    pub note: Option<String>,
    /// US dollars.
    pub cost: Option<f64>,
    /// That there was nothing to change, and that this is all right.
    pub no_changes: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Done {
    /// It was said before, and nothing is left to do.
    Before,
    /// The bead is closed, or what was said is recorded; these became ready.
    Reported { became_ready: Vec<String>, kept_on: Option<String> },
    /// The work waits to be merged.
    Queued { merge: Merge },
    /// The refinery was asked to merge it now.
    Tried { merge: Merge, worked: Worked },
}

/// Why work that is said to be done is not taken.
#[derive(Debug, Error)]
pub enum NotDone {
    #[error("{} cannot be taken as done: {why}", path.display())]
    Unsaved { path: PathBuf, why: &'static str },
    #[error("there is nothing to merge: no commit on `{branch}` that `{target}` does not have")]
    NoChanges { branch: String, target: String },
    #[error("no branch is checked out in {}", path.display())]
    NoBranch { path: PathBuf, own: String },
    #[error("the worktree of this run is not there{}", path.as_deref().map(|path| format!(": {}", path.display())).unwrap_or_default())]
    NoWorktree { path: Option<PathBuf> },
    #[error(transparent)]
    Town(#[from] TownError),
}

impl From<StoreError> for NotDone {
    fn from(error: StoreError) -> NotDone {
        NotDone::Town(error.into())
    }
}

impl From<merge::MergeError> for NotDone {
    fn from(error: merge::MergeError) -> NotDone {
        NotDone::Town(error.into())
    }
}

/// Takes what an agent says about its run.
pub fn done(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    settings: &Settings,
    store: &mut Store,
    word: &Word,
    stamp: &Stamp,
) -> Result<Done, NotDone> {
    let run = store.run(&word.run)?;
    if let Some(done) =
        run.as_ref().filter(|run| run.said == Some(word.outcome)).map(|run| go_on(around, town, store, run, stamp))
    {
        return done;
    }
    let mut report =
        Report { run: word.run.clone(), outcome: word.outcome, note: word.note.clone(), cost: word.cost, merge: None };
    let mut kept_on = None;
    // Whose word does not count is told so by the store.
    let is_heard = |run: &Run| run.is_live() && run.stop.is_none() && !run.is_bead_done;
    if let Some(run) = run.filter(|run| word.outcome == Outcome::Completed && is_heard(run))
        && let Some(assignment) = store.assignment(&run.id)?
        && let Some(work) = find_work(around, town, settings, &run, &assignment, word.no_changes)?
    {
        kept_on = Some(work.branch.clone());
        let is_last = assignment.step.as_ref().is_none_or(gt_store::CurrentStep::is_last);
        let strategy = strategy(settings, &assignment);
        if is_last && let Some(strategy) = strategy.filter(|strategy| *strategy != Strategy::Local) {
            let id = store.new_merge_id(&assignment.bead, &assignment.rig.prefix, stamp)?;
            merge::keep(Path::new(&assignment.rig.path), &refinery::ref_of(&id), &work.commit)?;
            crash::point(CrashPoint::KeptCommit);
            let target = agents::base_branch(&assignment).to_owned();
            report.merge = Some(HandOver { id, target, branch: work.branch, tip: work.commit, strategy });
        }
    }
    let Some(became_ready) = store.report(&report, stamp)? else { return Ok(Done::Before) };
    crash::point(CrashPoint::HandedOver);
    match store.merge_of_run(&word.run)?.filter(|merge| merge.state.is_live()) {
        Some(merge) => try_now(around, town, merge, stamp),
        None => Ok(Done::Reported { became_ready, kept_on }),
    }
}

/// Said again: whoever died half-way is called a second time.
fn go_on(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    store: &mut Store,
    run: &Run,
    stamp: &Stamp,
) -> Result<Done, NotDone> {
    match store.merge_of_run(&run.id)?.filter(|merge| merge.state.is_live()) {
        Some(merge) => try_now(around, town, merge, stamp),
        None => Ok(Done::Before),
    }
}

/// What is to be merged directly is merged by whoever says that it is done.
fn try_now(around: &Arc<dyn Surroundings>, town: &Town, merge: Merge, stamp: &Stamp) -> Result<Done, NotDone> {
    if merge.strategy != Strategy::Direct {
        return Ok(Done::Queued { merge });
    }
    let worked = refinery::work_one(around, town, &stamp.actor, &merge)?;
    Ok(Done::Tried { merge, worked })
}

/// What a sling asked for, else its rig's; `None`: nobody merges it.
fn strategy(settings: &Settings, assignment: &Assignment) -> Option<Strategy> {
    let fields = &assignment.fields;
    let asked = fields.merge.as_deref().and_then(Strategy::parse);
    (!fields.no_merge).then(|| asked.unwrap_or_else(|| settings.merge(&assignment.rig.name)))
}

/// The branch and the commit that a run has made.
struct Work {
    branch: String,
    commit: String,
}

/// What there is of the work; `None`: it did not work on a branch of its own, or had nothing to change.
fn find_work(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    settings: &Settings,
    run: &Run,
    assignment: &Assignment,
    no_changes: bool,
) -> Result<Option<Work>, NotDone> {
    let place = match (&run.worktree, settings.isolation(&run.rig)) {
        (Some(path), _) => Some(PathBuf::from(path)),
        (None, Isolation::None) => return Ok(None),
        // Its start may not be recorded yet.
        (None, Isolation::Worktree) => worktrees::of_run(around.worktrees(), town, assignment).map(|(path, _)| path),
    };
    let Some(path) = place.clone().filter(|path| path.is_dir()) else {
        return Err(NotDone::NoWorktree { path: place });
    };
    let target = agents::base_branch(assignment);
    let Look { branch, commit, n_ahead, unsaved } = merge::look(&path, target)?;
    if let Some(why) = unsaved {
        return Err(NotDone::Unsaved { path, why });
    }
    let own = worktrees::branch_name(assignment);
    if n_ahead == 0 && no_changes {
        return Ok(None);
    }
    if n_ahead == 0 {
        return Err(NotDone::NoChanges { branch: branch.unwrap_or(own), target: target.to_owned() });
    }
    match branch {
        Some(branch) => Ok(Some(Work { branch, commit })),
        None => Err(NotDone::NoBranch { path, own }),
    }
}
