//! Fuzzing: hostile bytes for everything that reads what strangers wrote.
//!
//! Owns: what a target is, and the way from a seed to a report. One seed makes one input (`mutate`), out of the stored
//! ones (`corpus`); a target judges it; what breaks its promise is made small (`minimise`) and told with the line that
//! makes it again (`search`). What is promised for which bytes is in `targets`, one file each. See `docs/fuzzing.md`.

pub mod corpus;
mod minimise;
mod mutate;
mod run;
pub mod search;
pub mod targets;

pub use mutate::{INPUT_BYTES_MAX, input};
pub use search::{Found, Summary, search};

/// Something that reads bytes it did not write.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Panics when the promise is broken, whatever the bytes are.
    pub check: fn(&[u8]) -> Verdict,
    /// Words that mean something to the reader; chance alone would not find them.
    pub tokens: &'static [&'static str],
}

/// What the reader made of an input. Only told, so that one sees whether inputs get past the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Refused,
}

impl Verdict {
    /// Accepted if this is so.
    pub fn accepted_if(is_accepted: bool) -> Verdict {
        if is_accepted { Verdict::Accepted } else { Verdict::Refused }
    }
}
