//! Where polecats work: which place and which branch a run gets. Making them is `gt_runtime::worktree`'s.

use std::path::{Path, PathBuf};

use gt_runtime::worktree::WorktreeError;
use gt_store::{Assignment, Fault};

use crate::agents;
use crate::surroundings::{Surroundings, Worktrees};
use crate::town::Town;

/// Where commits are kept at which work was handed on.
pub(crate) const HANDOFFS: &str = "refs/gt/handoffs/";

/// A full disk, a missing git or a broken repository is not the bead's fault. // SPEC D5
pub(crate) fn fault_of(error: &WorktreeError) -> Fault {
    const NO_ROOM: &str = "No space left on device";
    match error {
        WorktreeError::NoGit { .. } => Fault::Town,
        WorktreeError::Git { said, .. } if said.contains(NO_ROOM) => Fault::Town,
        WorktreeError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => Fault::Town,
        // What is wrong with the repository is wrong for every bead of the rig.
        WorktreeError::NoCommits { .. } | WorktreeError::Git { .. } | WorktreeError::Io { .. } => Fault::Rig,
        _ => Fault::Bead,
    }
}

/// The polecat's own worktree, on a new branch; where somebody's changes lie in it, one beside it.
pub(crate) fn make(
    around: &dyn Surroundings,
    town: &Town,
    assignment: &Assignment,
) -> Result<(PathBuf, String), WorktreeError> {
    let repository = Path::new(&assignment.rig.path);
    let base = found_start(around, repository, assignment)?;
    let branch = branch_name(assignment);
    let mut last = None;
    for path in places(town, assignment) {
        match around.worktrees().prepare(repository, &path, &branch, base) {
            Ok(()) => return Ok((path, branch)),
            // Somebody's work, or what was left of another repository: it stays, and the polecat goes beside it.
            Err(error @ (WorktreeError::Dirty { .. } | WorktreeError::NotAWorktree { .. })) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    let own = || town.worktree(&assignment.rig.name, &assignment.polecat.name);
    Err(last.unwrap_or_else(|| WorktreeError::Dirty { path: own() }))
}

/// Where an agent finds its assignment, in its worktree.
const ASSIGNMENT_DIR: &str = ".gasworks";
const ASSIGNMENT_FILE: &str = "ASSIGNMENT.md";

/// Leaves the assignment where an agent that has lost sight of it finds it, and git does not. // SPEC P7
pub(crate) fn leave_assignment(worktrees: &dyn Worktrees, assignment: &Assignment, tree: &Path, text: &str) {
    worktrees.leave(Path::new(&assignment.rig.path), tree, ASSIGNMENT_DIR, ASSIGNMENT_FILE, text);
}

/// Where a run begins: where the one that left its work to it has ended, or the step before it; else at the base branch.
pub(crate) fn start_branch(assignment: &Assignment) -> &str {
    let left = assignment.left_branch.as_deref().filter(|_| assignment.handoff.is_some());
    let left = left.or_else(|| assignment.step.as_ref().and_then(|step| step.from_branch()));
    left.unwrap_or_else(|| agents::base_branch(assignment))
}

/// The ref that keeps the commit at which a run handed its work on.
pub(crate) fn handoff_ref(run: &str) -> String {
    format!("{HANDOFFS}{run}")
}

/// Where a run begins, made again from what was kept if somebody has deleted it; else the base branch.
fn found_start<'a>(
    around: &dyn Surroundings,
    repository: &Path,
    assignment: &'a Assignment,
) -> Result<&'a str, WorktreeError> {
    let git = around.git();
    let (start, base) = (start_branch(assignment), agents::base_branch(assignment));
    // What git cannot answer here, it says again when the worktree is made.
    let is_there = || !matches!(git.branch_tip(repository, start), Ok(None));
    if start == base || !around.worktrees().has_git() || is_there() {
        return Ok(start);
    }
    let is_its = |name: &str| start.rsplit_once('@').is_some_and(|(_, run)| name.rsplit('-').next() == Some(run));
    let kept = git.kept(repository, HANDOFFS).unwrap_or_default();
    let Some((_, commit)) = kept.into_iter().find(|(name, _)| is_its(name)) else { return Ok(base) };
    git.restore_branch(repository, start, &commit)?;
    Ok(start)
}

/// Where a polecat may work: where it did last, in its own place, or beside it.
pub(crate) fn places(town: &Town, assignment: &Assignment) -> impl Iterator<Item = PathBuf> {
    let polecat = &assignment.polecat;
    let own = town.worktree(&assignment.rig.name, &polecat.name);
    let beside = {
        let (own, name) = (own.clone(), polecat.name.clone());
        (2..100).map(move |n| own.with_file_name(format!("{name}-{n}")))
    };
    polecat.worktree.as_ref().map(PathBuf::from).into_iter().chain([own]).chain(beside)
}

/// The worktree that was made for a run, and the branch that is in it.
pub(crate) fn of_run(
    worktrees: &dyn Worktrees,
    town: &Town,
    assignment: &Assignment,
) -> Option<(PathBuf, Option<String>)> {
    let there = places(town, assignment).filter(|path| worktrees.is_there(path));
    let mut there = there.map(|path| {
        let branch = worktrees.branch(&path);
        (path, branch)
    });
    let own_branch = branch_name(assignment);
    let first = there.next();
    let is_its = |(_, branch): &(PathBuf, Option<String>)| branch.as_ref() == Some(&own_branch);
    first.clone().into_iter().chain(there).find(is_its).or(first)
}

/// The branch of a run: its own, for it has the run's id in it.
pub(crate) fn branch_name(assignment: &Assignment) -> String {
    let short_run = assignment.run.rsplit('-').next().unwrap_or(&assignment.run);
    format!("polecat/{}/{}@{short_run}", assignment.polecat.name, assignment.bead)
}
