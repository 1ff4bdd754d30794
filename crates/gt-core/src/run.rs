//! Runs: one execution of an agent, from the claim to its end. // SPEC P6
//!
//! The words in which a run's state and end are stored and shown. What moves a run along is the store's.

use jiff::Timestamp;

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Claimed; whether anything runs yet, only looking can tell.
    Starting,
    /// Its process was seen.
    Working,
    Ended,
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Starting => "starting",
            RunState::Working => "working",
            RunState::Ended => "ended",
        }
    }

    pub fn parse(word: &str) -> Option<RunState> {
        [RunState::Starting, RunState::Working, RunState::Ended].into_iter().find(|state| state.as_str() == word)
    }
}

/// How a run ended, as far as its bead is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its bead is closed.
    Completed,
    /// It did its step of the work; others are left.
    StepDone,
    /// It left the work to a fresh run.
    HandedOff,
    /// It said that it cannot do the work.
    Failed,
    /// It put the work off.
    Deferred,
    /// It ended without a word.
    Died,
    /// It was never started.
    NotStarted,
    /// Somebody stopped it.
    Stopped,
    /// It ran for too long.
    TimedOut,
    /// The place it ran in is gone and took it along: nothing that it did.
    Lost,
    /// Its agent's account has reached its limit.
    RateLimited,
    /// Its agent cannot work at all: no login, no credit, nobody answers it.
    AgentUnable,
}

impl Outcome {
    pub const ALL: [Outcome; 12] = [
        Outcome::Completed,
        Outcome::StepDone,
        Outcome::HandedOff,
        Outcome::Failed,
        Outcome::Deferred,
        Outcome::Died,
        Outcome::NotStarted,
        Outcome::Stopped,
        Outcome::TimedOut,
        Outcome::Lost,
        Outcome::RateLimited,
        Outcome::AgentUnable,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::StepDone => "step-done",
            Outcome::HandedOff => "handed-off",
            Outcome::Failed => "failed",
            Outcome::Deferred => "deferred",
            Outcome::Died => "died",
            Outcome::NotStarted => "not-started",
            Outcome::Stopped => "stopped",
            Outcome::TimedOut => "timed-out",
            Outcome::Lost => "lost",
            Outcome::RateLimited => "rate-limited",
            Outcome::AgentUnable => "agent-unable",
        }
    }

    pub fn parse(word: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// Whether it costs the bead one of its attempts. // SPEC D5, R1
    pub fn costs_an_attempt(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::Died | Outcome::TimedOut)
    }

    /// Whether work was done: all of it, a step, or as much as one run could.
    pub fn is_progress(self) -> bool {
        matches!(self, Outcome::Completed | Outcome::StepDone | Outcome::HandedOff)
    }

    /// Whether its bead is queued again by itself.
    pub fn is_tried_again(self) -> bool {
        self.costs_an_attempt() || self.is_the_agents() || self == Outcome::Lost
    }

    /// Whether its agent, not the bead or the run, was the reason; then the bead is queued again as if nothing had been.
    pub fn is_the_agents(self) -> bool {
        matches!(self, Outcome::RateLimited | Outcome::AgentUnable)
    }
}

/// Why a run was asked to stop before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOrder {
    pub at: Timestamp,
    pub by: String,
    pub outcome: Outcome,
    pub reason: String,
}

/// How a process ended, in words: `exit code 3`, `killed by signal 9`.
pub fn exit_words(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "nobody saw how it ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
