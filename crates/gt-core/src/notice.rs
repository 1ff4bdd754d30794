//! Notices: when somebody outside, who could not be told something, is tried again.

use jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);
/// What is older than this is no news any more.
const GIVE_UP: SignedDuration = SignedDuration::from_hours(24);

/// Whether it is still worth telling.
pub fn is_news(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < GIVE_UP
}

/// When to try again after so many tries that failed; `None`: never.
pub fn next_try(at: Timestamp, n_tries: u32, now: Timestamp) -> Option<Timestamp> {
    let pause = FIRST.checked_mul(4_i32.checked_pow(n_tries.saturating_sub(1)).unwrap_or(i32::MAX));
    let next = now + pause.unwrap_or(LONGEST).min(LONGEST);
    is_news(at, next).then_some(next)
}

#[cfg(test)]
mod tests;
