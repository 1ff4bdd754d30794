//! The witness: what is to be done about a run that gives no sign of life. // SPEC R1
//!
//! Reported, then interrupted, then stopped, each after the same span of silence; a sign of life starts over.

use jiff::{SignedDuration, Timestamp};

/// What a run prints so soon after an interrupt is its echo, not a sign of life.
const ECHO_MAX: SignedDuration = SignedDuration::from_secs(2);

/// What is known of a run's silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// The last sign of life.
    pub since: Timestamp,
    pub stalled_at: Option<Timestamp>,
    pub interrupted_at: Option<Timestamp>,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing before then.
    Wait(Timestamp),
    Report,
    Interrupt,
    Stop,
}

/// What is to be done about a run that is silent, when `span` is too long.
pub fn step(silence: Silence, span: SignedDuration, now: Timestamp) -> Step {
    let (from, due) = match silence.heard_of(span) {
        (Some(_), Some(interrupted_at)) => (interrupted_at, Step::Stop),
        (Some(stalled_at), None) => (stalled_at, Step::Interrupt),
        (None, _) => (silence.since, Step::Report),
    };
    match from.checked_add(span) {
        Ok(at) if now >= at => due,
        Ok(at) => Step::Wait(at),
        Err(_) => Step::Wait(Timestamp::MAX),
    }
}

impl Silence {
    /// How far this silence has been answered: when it was reported, and when the run was interrupted for it.
    fn heard_of(self, span: SignedDuration) -> (Option<Timestamp>, Option<Timestamp>) {
        let echo = ECHO_MAX.min(span / 2);
        let is_echo = |interrupted_at: Timestamp| self.since <= interrupted_at + echo;
        match (self.stalled_at, self.interrupted_at) {
            (Some(stalled_at), Some(at)) if is_echo(at) => (Some(stalled_at), Some(at)),
            (Some(stalled_at), None) if self.since <= stalled_at => (Some(stalled_at), None),
            _ => (None, None),
        }
    }
}

#[cfg(test)]
mod tests;
