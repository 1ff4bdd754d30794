//! Heartbeats: an agent is woken every now and then to look at a list of its own, `HEARTBEAT.md`, and mostly says that
//! all is well. (seed 003 §5, SPEC §10)
//!
//! Here is what can be said without waking anybody: the hours in which it may be (`hours`), whether the list holds
//! anything (`checklist`), what the agent is told, and what its answer comes to (`verdict`). When a heartbeat is due, who
//! runs it and where the answer goes is decided elsewhere.

mod checklist;
mod hours;
mod verdict;

use jiff::{SignedDuration, Timestamp};

pub use checklist::is_empty;
pub use hours::Hours;
pub use verdict::{Verdict, judge};

/// An alert is not told twice within this time.
pub const REPEATED_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// With this word an agent asks for its answer not to be delivered.
const SILENCE: &str = "NO_REPLY";

/// What an agent is told at a heartbeat: how to answer, and the list itself, so that it need not look for it.
pub fn prompt(file: &str) -> String {
    format!(
        "This is a heartbeat: you were woken by the clock, nobody wrote to you. Follow the list below, HEARTBEAT.md, \
         strictly, and do nothing else. Do not infer or repeat tasks from earlier conversations.\n\n\
         If nothing needs attention, reply HEARTBEAT_OK and nothing else. That there is no news is not worth telling. \
         If something does need attention, reply with what is to be told, without HEARTBEAT_OK.\n\n\
         --- HEARTBEAT.md ---\n{}\n",
        file.trim()
    )
}

/// Whether a text was said already: the same but for space around it, less than 24 hours ago.
pub fn is_repeated(text: &str, last: Option<(&str, Timestamp)>, now: Timestamp) -> bool {
    // Also when the clock went back since then; but what was said in a far future is not remembered until then.
    last.is_some_and(|(said, at)| said.trim() == text.trim() && now.duration_since(at).abs() < REPEATED_WITHIN)
}

/// Whether an agent asked for its answer not to be delivered: the word `NO_REPLY` anywhere in it, in any case.
pub fn wants_silence(reply: &str) -> bool {
    let windows = reply.as_bytes().windows(SILENCE.len()).enumerate();
    let mut found = windows.filter(|(_, window)| window.eq_ignore_ascii_case(SILENCE.as_bytes()));
    // What was found is ASCII, so the text can be cut on both sides of it.
    found.any(|(at, _)| is_apart(&reply[..at], &reply[at + SILENCE.len()..]))
}

/// Whether nothing before and after makes a word longer.
fn is_apart(before: &str, after: &str) -> bool {
    !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests;
