//! Ending a run: what it says about its work, and the way of that work to the refinery. // SPEC M1, P7
//!
//! Git is looked at first, and a refusal changes nothing. Then the commit is kept, then one transaction tells the store. Whoever dies
//! in between is called again, with the same result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_core::merge::{MergeState, Strategy};
use gt_core::run::Outcome;
use gt_runtime::merge::{Look, MergeError};
use gt_runtime::worktree::WorktreeError;
use gt_store::{Assignment, HandOver, Merge, Report, Run, Stamp, Store, StoreError};
use thiserror::Error;

use crate::agents;
use crate::crash::{self, CrashPoint};
use crate::error::TownError;
use crate::refinery::{self, Worked};
use crate::settings::{Isolation, Settings};
use crate::surroundings::{Git, Surroundings};
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
    /// Why a rework takes the place of the commits that came back.
    pub replaces: Option<String>,
    /// Nothing stays of it: neither refs nor merges.
    pub is_rehearsal: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Done {
    /// It was said before, and nothing is left to do.
    Before,
    /// The bead is closed, or what was said is recorded; these became ready.
    Reported { became_ready: Vec<String>, kept_on: Option<String> },
    /// Somebody has closed the bead meanwhile; its commits, if there are any, stay on this branch.
    Closed { kept_on: Option<String> },
    /// The work waits to be merged. It is the rework of these beads, and has not their commits.
    Queued { merge: Merge, left_out: Vec<String> },
    /// The refinery was asked to merge it now.
    Tried { merge: Merge, worked: Worked, left_out: Vec<String> },
}

/// Why work that is said to be done is not taken.
#[derive(Debug, Error)]
pub enum NotDone {
    #[error("{} cannot be taken as done: {why}", path.display())]
    Unsaved { path: PathBuf, why: &'static str },
    #[error("there is nothing to merge: no commit on `{branch}` that `{target}` does not have")]
    NoChanges { branch: String, target: String },
    #[error(
        "{n} {} came after it was handed over and {} not part of it",
        if *n == 1 { "commit" } else { "commits" },
        if *n == 1 { "is" } else { "are" }
    )]
    TooLate { n: u32, branch: String },
    #[error("{bead} replaces nothing: it was not made because other work could not be merged")]
    NoRework { bead: String },
    #[error("{merge} waits no more, so it cannot be said any more what it replaces")]
    TooLateToReplace { merge: String, of: Vec<String> },
    #[error("the submodule {submodule} is at a commit that none of its remotes has")]
    LoneSubmodule { submodule: String },
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

impl From<WorktreeError> for NotDone {
    fn from(error: WorktreeError) -> NotDone {
        NotDone::Town(error.into())
    }
}

impl From<MergeError> for NotDone {
    fn from(error: MergeError) -> NotDone {
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
    if let Some(run) = run.as_ref().filter(|run| run.said == Some(word.outcome)) {
        let assignment = store.assignment(&run.id)?;
        let place = assignment.and_then(|assignment| place_of(around, town, settings, run, &assignment));
        return go_on(around, town, store, run, place.as_deref(), word, stamp);
    }
    let mut report = Report {
        run: word.run.clone(),
        outcome: word.outcome,
        note: word.note.clone(),
        cost: word.cost,
        merge: None,
        tip: None,
    };
    let mut kept_on = None;
    // Whose word does not count is told so by the store.
    let run = run.filter(|run| run.is_live() && run.stop.is_none());
    if let Some(run) = &run
        && let Some(assignment) = store.assignment(&run.id)?
    {
        let place = || place_of(around, town, settings, run, &assignment);
        match word.outcome {
            Outcome::Completed if run.is_bead_done => {
                return closed_before(around.git(), store, run, &assignment, place().as_deref(), &report, stamp);
            }
            Outcome::HandedOff => report.tip = hand_on(around.git(), &assignment, place().as_deref(), word)?,
            _ => {}
        }
    }
    if let Some(run) = run.as_ref().filter(|_| word.replaces.is_some())
        && store.returned_for(&run.bead)?.is_empty()
    {
        return Err(NotDone::NoRework { bead: run.bead.clone() });
    }
    if let Some(run) = run.filter(|_| word.outcome == Outcome::Completed)
        && let Some(assignment) = store.assignment(&run.id)?
        && let Some(work) = find_work(around, town, settings, &run, &assignment, word.no_changes)?
    {
        kept_on = Some(work.branch.clone());
        let is_last = assignment.step.as_ref().is_none_or(gt_store::CurrentStep::is_last);
        let strategy = strategy(settings, &assignment);
        if is_last && let Some(strategy) = strategy.filter(|strategy| *strategy != Strategy::Local) {
            let id = store.new_merge_id(&assignment.bead, &assignment.rig.prefix, stamp)?;
            if !gt_core::defect!("commit-not-kept") {
                keep(around.git(), word, Path::new(&assignment.rig.path), &refinery::ref_of(&id), &work.commit)?;
            }
            crash::point(CrashPoint::KeptCommit);
            let target = agents::base_branch(&assignment).to_owned();
            let replaces = word.replaces.clone();
            report.merge = Some(HandOver { id, target, branch: work.branch, tip: work.commit, strategy, replaces });
        }
    }
    let Some(became_ready) = store.report(&report, stamp)? else { return Ok(Done::Before) };
    crash::point(CrashPoint::HandedOver);
    match store.merge_of_run(&word.run)?.filter(|merge| merge.state.is_live()) {
        Some(merge) => try_now(around, town, store, merge, word, stamp),
        None => Ok(Done::Reported { became_ready, kept_on }),
    }
}

/// Keeps a commit by a ref of ours.
fn keep(git: &dyn Git, word: &Word, repository: &Path, name: &str, commit: &str) -> Result<(), NotDone> {
    if !word.is_rehearsal {
        git.keep(repository, name, commit)?;
    }
    Ok(())
}

/// Somebody has closed the bead: what a run has made for it stays where it is, and the bead says where.
fn closed_before(
    git: &dyn Git,
    store: &mut Store,
    run: &Run,
    assignment: &Assignment,
    place: Option<&Path>,
    report: &Report,
    stamp: &Stamp,
) -> Result<Done, NotDone> {
    let look = place.and_then(|path| git.look(path, agents::base_branch(assignment)).ok());
    let kept_on = look.filter(|look| look.n_ahead > 0).and_then(|look| look.branch);
    if store.report(report, stamp)?.is_none() {
        return Ok(Done::Before);
    }
    if let Some(branch) = &kept_on {
        let words =
            format!("Closed while {} worked on it: its commits stay on {branch}, and nobody merges them.", run.id);
        store.comment(&run.bead, &words, stamp)?;
    }
    Ok(Done::Closed { kept_on })
}

/// Keeps the commit at which a run hands its work on, and says which it is.
fn hand_on(
    git: &dyn Git,
    assignment: &Assignment,
    place: Option<&Path>,
    word: &Word,
) -> Result<Option<String>, NotDone> {
    let repository = Path::new(&assignment.rig.path);
    // Where git cannot answer there is nothing to keep, and an agent must be able to end.
    let tip = git.find_commit(place.unwrap_or(repository), "HEAD").ok().flatten();
    if let Some(tip) = tip.as_deref().filter(|_| place.is_some()) {
        keep(git, word, repository, &worktrees::handoff_ref(&assignment.run), tip)?;
    }
    Ok(tip)
}

/// Said again: whoever died half-way is called a second time.
fn go_on(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    store: &mut Store,
    run: &Run,
    place: Option<&Path>,
    word: &Word,
    stamp: &Stamp,
) -> Result<Done, NotDone> {
    let Some(merge) = store.merge_of_run(&run.id)? else { return Ok(Done::Before) };
    let later = later_work(around.git(), run, place, &merge)?;
    let replaces = word.replaces.clone().or_else(|| merge.replaces.clone());
    if later.is_none() && replaces == merge.replaces {
        return if merge.state.is_live() { try_now(around, town, store, merge, word, stamp) } else { Ok(Done::Before) };
    }
    let of: Vec<String> = store.returned_for(&run.bead)?.into_iter().map(|merge| merge.bead).collect();
    let too_late = || match &later {
        Some((_, n)) => NotDone::TooLate { n: *n, branch: merge.branch.clone() },
        None => NotDone::TooLateToReplace { merge: merge.id.clone(), of: of.clone() },
    };
    if merge.state != MergeState::Waiting {
        return Err(too_late());
    }
    if replaces.is_some() && of.is_empty() {
        return Err(NotDone::NoRework { bead: run.bead.clone() });
    }
    let tip = later.as_ref().map_or_else(|| merge.tip.clone(), |(later, _)| later.clone());
    let rig = store.rig(&merge.rig)?;
    let id = store.new_merge_id(&merge.bead, &rig.prefix, stamp)?;
    if !gt_core::defect!("later-commit-not-kept") {
        keep(around.git(), word, Path::new(&rig.path), &refinery::ref_of(&id), &tip)?;
    }
    let (target, branch, strategy) = (merge.target.clone(), merge.branch.clone(), merge.strategy);
    let handed = HandOver { id: id.clone(), target, branch, tip, strategy, replaces };
    if !store.hand_over_again(&run.id, &handed, stamp)? {
        return Err(too_late());
    }
    let merge = store.merge(&id)?;
    try_now(around, town, store, merge, word, stamp)
}

/// The commit that a run has come to since it handed its work over, and how many lie between.
fn later_work(git: &dyn Git, run: &Run, place: Option<&Path>, merge: &Merge) -> Result<Option<(String, u32)>, NotDone> {
    let is_its = |path: &&Path| run.is_live() && run.stop.is_none() && path.is_dir();
    let Some(path) = place.filter(is_its) else { return Ok(None) };
    let Look { branch, commit, n_ahead, unsaved, .. } = git.look(path, &merge.target)?;
    if branch.as_ref() != Some(&merge.branch) || commit == merge.tip || n_ahead == 0 {
        return Ok(None);
    }
    let mut known = vec![merge.tip.clone()];
    known.extend(git.branch_tip(path, &merge.target)?);
    let n = git.n_beyond(path, &known.iter().map(String::as_str).collect::<Vec<_>>())?;
    match unsaved {
        _ if n == 0 => Ok(None),
        Some(why) => Err(NotDone::Unsaved { path: path.to_owned(), why }),
        None => Ok(Some((commit, n))),
    }
}

/// What is to be merged directly is merged by whoever says that it is done.
fn try_now(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    store: &mut Store,
    merge: Merge,
    word: &Word,
    stamp: &Stamp,
) -> Result<Done, NotDone> {
    let left_out = left_out(around.git(), store, &merge)?;
    if merge.strategy != Strategy::Direct || word.is_rehearsal {
        return Ok(Done::Queued { merge, left_out });
    }
    let worked = refinery::work_one(around, town, &stamp.actor, &merge)?;
    Ok(Done::Tried { merge, worked, left_out })
}

/// The beads that a merge is the rework of and whose commits it neither has nor replaces. The refinery looks again when it has landed.
fn left_out(git: &dyn Git, store: &mut Store, merge: &Merge) -> Result<Vec<String>, NotDone> {
    if merge.replaces.is_some() {
        return Ok(Vec::new());
    }
    let repository = PathBuf::from(store.rig(&merge.rig)?.path);
    let mut left_out = Vec::new();
    for older in store.returned_for(&merge.bead)? {
        if !refinery::has_work(git, &repository, &older, &merge.tip)? {
            left_out.push(older.bead);
        }
    }
    Ok(left_out)
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

/// The worktree of a run; `None`: it has none of its own.
fn place_of(
    around: &Arc<dyn Surroundings>,
    town: &Town,
    settings: &Settings,
    run: &Run,
    assignment: &Assignment,
) -> Option<PathBuf> {
    match (&run.worktree, settings.isolation(&run.rig)) {
        (Some(path), _) => Some(PathBuf::from(path)),
        (None, Isolation::None) => None,
        // Its start may not be recorded yet.
        (None, Isolation::Worktree) => worktrees::of_run(around.worktrees(), town, assignment).map(|(path, _)| path),
    }
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
    if run.worktree.is_none() && settings.isolation(&run.rig) == Isolation::None {
        return Ok(None);
    }
    let place = place_of(around, town, settings, run, assignment);
    let Some(path) = place.clone().filter(|path| path.is_dir()) else {
        return Err(NotDone::NoWorktree { path: place });
    };
    let target = agents::base_branch(assignment);
    let Look { branch, commit, n_ahead, unsaved, lone_submodule } = around.git().look(&path, target)?;
    if let Some(why) = unsaved {
        return Err(NotDone::Unsaved { path, why });
    }
    if let Some(submodule) = lone_submodule {
        return Err(NotDone::LoneSubmodule { submodule });
    }
    let own = worktrees::branch_name(assignment);
    let is_in_target = n_ahead == 0 && has_made(around.git(), &path, branch.as_deref())?;
    if n_ahead == 0 && no_changes && !is_in_target {
        return Ok(None);
    }
    if n_ahead == 0 && !is_in_target {
        return Err(NotDone::NoChanges { branch: branch.unwrap_or(own), target: target.to_owned() });
    }
    match branch {
        Some(branch) => Ok(Some(Work { branch, commit })),
        None => Err(NotDone::NoBranch { path, own }),
    }
}

/// Whether commits were made on a branch that are part of it still. An agent that has merged or pushed by itself has no others,
/// and the refinery finds them in the target.
fn has_made(git: &dyn Git, path: &Path, branch: Option<&str>) -> Result<bool, NotDone> {
    let Some(branch) = branch else { return Ok(false) };
    let made = git.last_made(path, branch)?;
    Ok(made.map_or(Ok(false), |made| git.is_part_of(path, &made, "HEAD"))?)
}
