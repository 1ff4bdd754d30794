//! What can be wrong with the witness, mail and notices, imports, and staging and launching.

use super::Defect;
use super::Towns::Beads;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Beads, "silence-ignored", "Nobody looks at runs that give no sign of life."),
    Defect::new(
        Beads,
        "silence-answered-too-early",
        "A run is reported, interrupted and stopped however short its silence is.",
    ),
    Defect::new(
        Beads,
        "stopped-without-interrupt",
        "A silent run that was reported is stopped and not interrupted before.",
    ),
    Defect::new(Beads, "interrupt-not-noted", "A silent run is interrupted, and nobody writes that down."),
    Defect::new(
        Beads,
        "waiting-taken-for-stalled",
        "A run that has said that it waits, while nobody listened, counts as stalled.",
    ),
    Defect::new(
        Beads,
        "spoken-taken-for-stalled",
        "A run that speaks between the look at it and the report is reported as stalled.",
    ),
    Defect::new(
        Beads,
        "silence-waits-for-the-clock",
        "A clock that was set back hides a silence until it has caught up.",
    ),
    Defect::new(Beads, "stall-untold", "A stalled run is in the log, and no notice tells of it."),
    Defect::new(Beads, "recovery-untold", "The deacon is not written to when a run has ended without a word."),
    Defect::new(Beads, "mayor-not-asked", "The mayor is not written to when a bead is out of attempts."),
    Defect::new(Beads, "circuit-breaks-silently", "Nobody is written to when a circuit breaks."),
    Defect::new(Beads, "landing-told-twice", "Two notices tell of one landing."),
    Defect::new(Beads, "imported-links-stay", "An edge that a file no longer has stays when it is imported."),
    Defect::new(Beads, "imported-end-unnoticed", "A convoy that an import has completed is not found by the sweep."),
    Defect::new(Beads, "imported-work-unnoticed", "Work that an import has freed is not found by the sweep."),
    Defect::new(Beads, "launch-forgets-one", "Whoever launches a convoy slings all but one of its first wave."),
    Defect::new(Beads, "staged-without-its-first", "Staging does not track the first of what it says it does."),
];
