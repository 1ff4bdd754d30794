//! Convoys: what status one can have, and which changes of it are allowed. // SPEC C2, C3
//!
//! What a graph of members comes to (waves, findings) is `convoy::plan`.

use std::fmt;

pub mod findings;
pub mod graph;
pub mod plan;
pub mod refusal;

/// Where a convoy is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvoyStatus {
    Open,
    Closed,
    StagedReady,
    StagedWarnings,
}

impl ConvoyStatus {
    pub const ALL: [ConvoyStatus; 4] =
        [ConvoyStatus::Open, ConvoyStatus::Closed, ConvoyStatus::StagedReady, ConvoyStatus::StagedWarnings];

    pub fn as_str(self) -> &'static str {
        match self {
            ConvoyStatus::Open => "open",
            ConvoyStatus::Closed => "closed",
            ConvoyStatus::StagedReady => "staged:ready",
            ConvoyStatus::StagedWarnings => "staged:warnings",
        }
    }

    /// Reads a status as people and other tools write it; `None`: no convoy has it.
    pub fn parse(word: &str) -> Option<ConvoyStatus> {
        match word.trim().to_lowercase().replace('_', ":").as_str() {
            "open" => Some(ConvoyStatus::Open),
            "closed" | "tombstone" => Some(ConvoyStatus::Closed),
            "staged:ready" => Some(ConvoyStatus::StagedReady),
            "staged:warnings" => Some(ConvoyStatus::StagedWarnings),
            _ => None,
        }
    }

    /// Staged convoys are inert: nothing automatic touches them or their members for their sake.
    pub fn is_staged(self) -> bool {
        matches!(self, ConvoyStatus::StagedReady | ConvoyStatus::StagedWarnings)
    }

    /// Whether one may become the other. What was launched or closed is never staged again.
    pub fn may_become(self, next: ConvoyStatus) -> bool {
        self == next || !next.is_staged() || self.is_staged()
    }
}

impl fmt::Display for ConvoyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
