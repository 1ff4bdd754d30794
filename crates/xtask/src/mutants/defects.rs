//! The list of planted defects, each of which the simulation or chaos has to find.
//!
//! Owns: their names, what is wrong with each, and where it is looked for. Does not own: the code that is wrong then, which
//! stands behind `defect!("name")` in the product's crates. A defect that breaks no promise by design is not on the list;
//! `docs/simulation.md` says which those are.

mod beats;
mod convoys;
mod dispatch;
mod formulas;
mod guards;
mod jobs;
mod merging;
mod real;
mod recovery;
mod sessions;
mod telegram;

use std::fmt;

/// One way to break the town.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Defect {
    pub(super) towns: Towns,
    /// As in `defect!("name")`.
    pub(super) name: &'static str,
    /// What is wrong then, in a sentence.
    pub(super) what: &'static str,
}

/// Where a defect is looked for: the kinds of simulated towns, and the town of the real binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Towns {
    Beads,
    Guards,
    Formulas,
    Jobs,
    Sessions,
    Beats,
    Telegram,
    Merging,
    /// Beads, formulas, sessions and jobs in one town.
    Everything,
    /// Only `cargo xtask chaos --defect NAME` looks for it.
    Chaos,
}

impl Defect {
    const fn new(towns: Towns, name: &'static str, what: &'static str) -> Defect {
        Defect { towns, name, what }
    }
}

impl Towns {
    pub(super) const SIMULATED: [Towns; 9] = [
        Towns::Beads,
        Towns::Guards,
        Towns::Formulas,
        Towns::Jobs,
        Towns::Sessions,
        Towns::Beats,
        Towns::Telegram,
        Towns::Merging,
        Towns::Everything,
    ];

    /// What the simulation is told so that it builds towns of this kind. Without an option it builds towns of beads.
    pub(super) fn option(self) -> Option<&'static str> {
        match self {
            Towns::Beads | Towns::Chaos => None,
            Towns::Guards => Some("--guards"),
            Towns::Formulas => Some("--formulas"),
            Towns::Jobs => Some("--jobs"),
            Towns::Sessions => Some("--sessions"),
            Towns::Beats => Some("--beats"),
            Towns::Telegram => Some("--telegram"),
            Towns::Merging => Some("--merging"),
            Towns::Everything => Some("--everything"),
        }
    }
}

impl fmt::Display for Towns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Towns::Beads => "beads",
            Towns::Guards => "guards",
            Towns::Formulas => "formulas",
            Towns::Jobs => "jobs",
            Towns::Sessions => "sessions",
            Towns::Beats => "beats",
            Towns::Telegram => "telegram",
            Towns::Merging => "merging",
            Towns::Everything => "everything",
            Towns::Chaos => "chaos",
        })
    }
}

/// Every defect, by area.
pub(super) fn all() -> impl Iterator<Item = &'static Defect> {
    let areas = [
        dispatch::DEFECTS,
        formulas::DEFECTS,
        guards::DEFECTS,
        convoys::DEFECTS,
        recovery::DEFECTS,
        jobs::DEFECTS,
        sessions::DEFECTS,
        beats::DEFECTS,
        telegram::DEFECTS,
        merging::DEFECTS,
        real::DEFECTS,
    ];
    areas.into_iter().flatten()
}

/// Those that the simulation has to find.
pub(super) fn simulated() -> impl Iterator<Item = &'static Defect> {
    all().filter(|defect| defect.towns != Towns::Chaos)
}
