//! Planted defects of guards and of the budget.

use super::{Defect, Towns};

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(
        Towns::Guards,
        "guard-deadline-forgotten",
        "The daemon does not look again at a machine that was short of something.",
    ),
    Defect::new(
        Towns::Guards,
        "guard-seen-once",
        "A machine that has recovered during a pass counts as well, though that pass has started nothing.",
    ),
    Defect::new(Towns::Guards, "guards-measured-once", "The machine is measured once, and never again."),
    Defect::new(Towns::Guards, "disk-guard-ignored", "A full disk holds nothing up."),
    Defect::new(Towns::Guards, "guard-agents-ignored", "`guards.max_agents` does not limit how many agents run."),
    Defect::new(
        Towns::Guards,
        "direct-sling-skips-guards",
        "A direct sling starts work whatever the machine is short of.",
    ),
    Defect::new(
        Towns::Guards,
        "budget-day-is-utc",
        "A day of the budget ends at midnight in UTC, not where the machine is.",
    ),
    Defect::new(
        Towns::Guards,
        "budget-deadline-forgotten",
        "The daemon does not wake up for a new day with a new budget.",
    ),
    Defect::new(Towns::Guards, "budget-counts-what-has-ended", "What a run has cost counts only when it has ended."),
    Defect::new(
        Towns::Guards,
        "reported-cost-lowers",
        "An agent that says that it has cost less than it has printed is believed.",
    ),
    Defect::new(
        Towns::Everything,
        "spent-budget-starts-turns",
        "Turns of sessions and jobs start though the budget is spent.",
    ),
    Defect::new(Towns::Guards, "last-cost-unheard", "What a run prints last of its cost is not counted."),
];
