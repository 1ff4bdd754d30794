//! Planted defects of work that is done by formulas, step by step.

use super::{Defect, Towns};

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(
        Towns::Formulas,
        "needs-ignored",
        "Steps are done in the order in which they are written, whatever they need.",
    ),
    Defect::new(Towns::Formulas, "step-done-forgotten", "That a step is done is not remembered."),
    Defect::new(Towns::Formulas, "step-counts-as-all", "An agent that is done with its step closes the bead."),
    Defect::new(
        Towns::Formulas,
        "last-step-leaves-its-bead-open",
        "A last step that was done without a word does not close its bead.",
    ),
    Defect::new(Towns::Formulas, "next-step-forgotten", "After a step its bead is not put into line again."),
    Defect::new(Towns::Formulas, "step-loses-its-plan", "After a step its bead comes last, and its plan is lost."),
    Defect::new(Towns::Formulas, "failed-step-begins-anew", "A step that failed has those before it done again."),
    Defect::new(
        Towns::Formulas,
        "unclean-step-counts-as-done",
        "A step counts as done though its agent has left uncommitted work and has said nothing.",
    ),
    Defect::new(Towns::Formulas, "vanished-step-starts", "A step that the formula does not have any more is started."),
    Defect::new(
        Towns::Formulas,
        "attempts-of-all-steps",
        "A worker is told the attempts at all steps as those at its own.",
    ),
];
