//! The witness: what is to be done about a run that gives no sign of life. // SPEC R1
//!
//! Reported, then interrupted, then stopped, each after the same span of silence; a sign of life starts over.

use jiff::{SignedDuration, Timestamp};

use crate::explain::Reason;
use crate::time;

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
    match silence.next(span, now) {
        (at, due) if (now >= at && at < Timestamp::MAX) || crate::defect!("silence-answered-too-early") => due,
        (at, _) => Step::Wait(at),
    }
}

/// What is said of a run that has been silent for too long; `None`: it has not. // SPEC B6
pub fn explain(who: &str, silence: Silence, span: SignedDuration, now: Timestamp) -> Option<Reason> {
    let (at, next) = silence.next(span, now);
    let time = time::format;
    let comes = match next {
        Step::Report if now < at => return None,
        Step::Report => "the next pass reports it".to_owned(),
        Step::Interrupt => {
            let stopped = time(after(at, span));
            format!("if it stays silent it is interrupted at {}, and stopped at {stopped}", time(at))
        }
        Step::Stop | Step::Wait(_) => {
            let interrupted = silence.interrupted_at.map(time).unwrap_or_default();
            format!("it was interrupted at {interrupted}, and is stopped at {} if it stays silent", time(at))
        }
    };
    let message = format!("{who} has given no sign of life since {}; {comes}", time(silence.since));
    Some(Reason { code: "stalled", message })
}

fn after(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

impl Silence {
    /// The next answer to it, and when that is due.
    fn next(self, span: SignedDuration, now: Timestamp) -> (Timestamp, Step) {
        match self.heard_of(span, now) {
            (Some(_), Some(interrupted_at)) => (after(interrupted_at, span), Step::Stop),
            (Some(stalled_at), None) if crate::defect!("stopped-without-interrupt") => {
                (after(stalled_at, span), Step::Stop)
            }
            (Some(stalled_at), None) => (after(stalled_at, span), Step::Interrupt),
            (None, _) => (after(self.since, span), Step::Report),
        }
    }

    /// How far this silence has been answered: when it was reported, and when the run was interrupted for it.
    /// What lies ahead was written down before the clock was set back, and does not count.
    fn heard_of(self, span: SignedDuration, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        if self.interrupted_at.max(self.stalled_at).is_some_and(|at| at > now) {
            return (None, None);
        }
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
