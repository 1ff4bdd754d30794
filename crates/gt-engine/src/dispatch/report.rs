//! What a pass came to: what was started, what was not, and of what nobody knows.

use gt_store::{Assignment, Claimed, Turn};

/// What a pass came to.
#[derive(Debug, Default)]
pub struct PassReport {
    pub started: Vec<Assignment>,
    pub failed: Vec<(Assignment, String)>,
    /// Nobody knows yet; the next pass looks.
    pub unknown: Vec<Assignment>,
    pub turns: TurnReport,
}

/// The same of turns.
#[derive(Debug, Default)]
pub struct TurnReport {
    pub started: Vec<Turn>,
    pub failed: Vec<(Turn, String)>,
    pub n_unknown: usize,
}

impl PassReport {
    pub fn extend(&mut self, other: PassReport) {
        self.started.extend(other.started);
        self.failed.extend(other.failed);
        self.unknown.extend(other.unknown);
        self.turns.started.extend(other.turns.started);
        self.turns.failed.extend(other.turns.failed);
        self.turns.n_unknown += other.turns.n_unknown;
    }

    /// Whether something could not be started, so that its slot is free again.
    pub fn has_failures(&self) -> bool {
        !self.failed.is_empty() || !self.turns.failed.is_empty()
    }

    pub fn has_unknown(&self) -> bool {
        !self.unknown.is_empty() || self.turns.n_unknown > 0
    }

    pub(super) fn note_started(&mut self, claimed: Claimed) {
        match claimed {
            Claimed::Work(assignment) => self.started.push(*assignment),
            Claimed::Turn(turn) => self.turns.started.push(*turn),
        }
    }

    pub(super) fn note_failed(&mut self, claimed: Claimed, why: String) {
        match claimed {
            Claimed::Work(assignment) => self.failed.push((*assignment, why)),
            Claimed::Turn(turn) => self.turns.failed.push((*turn, why)),
        }
    }

    pub(super) fn note_unknown(&mut self, claimed: Claimed) {
        match claimed {
            Claimed::Work(assignment) => self.unknown.push(*assignment),
            Claimed::Turn(_) => self.turns.n_unknown += 1,
        }
    }
}
