//! What can be wrong with merging: handed-over commits, batches, gates, conflicts and targets.

use super::Defect;
use super::Towns::Merging;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(
        Merging,
        "direct-takes-others-along",
        "A merge that goes without gates takes others along, which land without theirs.",
    ),
    Defect::new(
        Merging,
        "gates-skipped-for-batches",
        "Several merges that are tried together land without their gates.",
    ),
    Defect::new(Merging, "batch-blamed-as-a-whole", "When several merges fail together, the first of them comes back."),
    Defect::new(Merging, "target-never-blamed", "A merge comes back though the target does not pass its own gates."),
    Defect::new(
        Merging,
        "conflict-blamed-behind-others",
        "A merge comes back for a conflict with another one that has not landed.",
    ),
    Defect::new(Merging, "push-left-out", "Where pushing is on, the target moves here only."),
    Defect::new(Merging, "persons-commits-published", "A person's commits on the target are pushed with agents' work."),
    Defect::new(
        Merging,
        "taken-back-published",
        "Commits that a person has taken off the target are pushed with a branch that has them.",
    ),
    Defect::new(Merging, "waiting-refs-cleared", "The ref of a merge that waits is cleared away."),
    Defect::new(Merging, "unknown-refs-cleared", "The ref of a commit that is just being handed over is cleared away."),
    Defect::new(Merging, "unmerged-refs-cleared", "The patrol clears away the refs of merges that came back."),
    Defect::new(
        Merging,
        "killed-gate-blames",
        "A merge comes back when its gate was killed from outside for the first time.",
    ),
    Defect::new(
        Merging,
        "failed-gates-count-as-passed",
        "A tree that has failed its gates is remembered as one that passed them.",
    ),
    Defect::new(Merging, "tracked-files-not-put-back", "A gate finds the files as the gate before it has left them."),
    Defect::new(
        Merging,
        "worker-never-over",
        "The daemon takes a worker that has ended for one that is still at its target.",
    ),
    Defect::new(
        Merging,
        "busy-target-forgotten",
        "The daemon does not look again at a target at which another process was.",
    ),
    Defect::new(Merging, "commit-not-kept", "A commit that is handed over is kept by its branch alone."),
    Defect::new(
        Merging,
        "later-commit-not-kept",
        "A commit that takes the place of one that waits is kept by its branch alone.",
    ),
    Defect::new(
        Merging,
        "other-commit-judged",
        "A merge that is in line again with another commit is judged by the one before.",
    ),
    Defect::new(Merging, "decided-against-lands", "A merge that was dropped while its gates ran lands all the same."),
    Defect::new(
        Merging,
        "hold-never-tried-again",
        "The daemon does not wake up for a target that was held for a while.",
    ),
    Defect::new(Merging, "older-hand-over-stays", "What a run hands over later does not take the place of what waits."),
    Defect::new(Merging, "left-out-counts-as-merged", "Work that its rework has left out counts as merged."),
    Defect::new(Merging, "replaced-counts-as-merged", "Work that was replaced counts as merged."),
    Defect::new(Merging, "rework-not-in-line", "The bead for work that came back is not put in line."),
];
