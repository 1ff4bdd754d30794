//! Bead ids: `prefix-hash`, and `parent.n` for children. // SPEC B2, facts of the beads form
//!
//! Whether an id is free is the store's to say; this file proposes.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::text::misleads;

pub const ID_CHARS_MAX: usize = 200;
const HASH_CHARS_MAX: usize = 8;
const NONCES_PER_LENGTH: u32 = 10;
/// Children of children of children get a hashed id.
const CHILD_DEPTH_MAX: usize = 3;

/// What makes an id.
#[derive(Debug, Clone, Copy)]
pub struct IdSeed<'a> {
    pub prefix: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub creator: &'a str,
    pub at: Timestamp,
}

impl IdSeed<'_> {
    /// Ids to try, in order: ten at the length that fits the town's size, then longer ones.
    pub fn proposals(&self, n_beads: u64) -> impl Iterator<Item = String> {
        (hash_chars(n_beads)..=HASH_CHARS_MAX)
            .flat_map(|chars| (0..NONCES_PER_LENGTH).map(move |nonce| (chars, nonce)))
            .map(|(chars, nonce)| self.id(chars, nonce))
    }

    fn id(&self, chars: usize, nonce: u32) -> String {
        let nanos = self.at.as_nanosecond();
        let seed = format!("{}|{}|{}|{nanos}|{nonce}", self.title, self.description, self.creator);
        format!("{}-{}", self.prefix, base36(&Sha256::digest(seed.as_bytes()), chars))
    }
}

fn hash_chars(n_beads: u64) -> usize {
    match n_beads {
        0..=500 => 4,
        501..=1500 => 5,
        _ => 6,
    }
}

fn base36(digest: &[u8], chars: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = digest.iter().take(16).fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    let mut text = String::with_capacity(chars);
    for _ in 0..chars {
        text.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    text
}

/// Ids to try for a child of `parent`, from the `first` number on; `None` when it lies too deep for one.
pub fn child_ids(parent: &str, first: u64) -> Option<impl Iterator<Item = String>> {
    let depth = parent.split('.').skip(1).filter(|part| part.parse::<u64>().is_ok()).count();
    (depth < CHILD_DEPTH_MAX).then(|| (first..).map(move |n| format!("{parent}.{n}")))
}

/// Whether a stranger's id can be taken: one word, of a sane length, that shows as what it is.
pub fn is_sane(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= ID_CHARS_MAX && !id.chars().any(|c| misleads(c) || c.is_whitespace())
}

/// The part of an id before its hash: up to the last dash.
pub fn stem(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
