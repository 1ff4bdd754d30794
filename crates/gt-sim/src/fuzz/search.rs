//! The search: the stored inputs first, then one new input for each seed, until one breaks the promise.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::corpus::{self, Entry};
use super::minimise::minimise;
use super::run::{Breach, run};
use super::{Target, Verdict, mutate};

/// What a search did that found nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    pub n_stored: usize,
    pub n_accepted: u64,
    pub n_refused: u64,
}

impl Summary {
    pub fn n_inputs(&self) -> u64 {
        self.n_accepted + self.n_refused
    }
}

/// Where a failing input came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Stored(String),
    Seed(u64),
}

/// An input that breaks a target's promise. It shows as what to type to see it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub target: &'static str,
    pub origin: Origin,
    pub message: String,
    /// Where the promise is checked.
    pub place: String,
    pub smallest: Vec<u8>,
    pub file: PathBuf,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: broken at {}: {}", self.target, self.place, self.message)?;
        writeln!(f, "  again: {}", self.again())?;
        write!(f, "  smallest input, {} bytes: {}", self.smallest.len(), self.file.display())
    }
}

impl Found {
    /// The line that makes the same input again.
    pub fn again(&self) -> String {
        match &self.origin {
            Origin::Seed(seed) => format!("cargo xtask fuzz --target {} --seed {seed}", self.target),
            // Stored inputs come first whatever the seed, so the shortest search is enough.
            Origin::Stored(name) => {
                format!("cargo xtask fuzz --target {} --seeds 0 (the stored input `{name}`)", self.target)
            }
        }
    }
}

/// Tries the stored inputs, then those of the seeds; `before` hears each seed before its input is tried.
///
/// What is found is also written, in its smallest form, into `folder`.
pub fn search(
    target: &Target,
    corpus: &[Entry],
    seeds: Range<u64>,
    folder: &Path,
    mut before: impl FnMut(u64),
) -> io::Result<Result<Summary, Box<Found>>> {
    let mut summary = Summary { n_stored: corpus.len(), ..Summary::default() };
    for entry in corpus {
        match run(target, &entry.bytes) {
            Ok(verdict) => summary.count(verdict),
            Err(breach) => return report(target, Origin::Stored(entry.name.clone()), &entry.bytes, breach, folder),
        }
    }
    for seed in seeds {
        before(seed);
        let bytes = mutate::input(target, corpus, seed);
        match run(target, &bytes) {
            Ok(verdict) => summary.count(verdict),
            Err(breach) => return report(target, Origin::Seed(seed), &bytes, breach, folder),
        }
    }
    Ok(Ok(summary))
}

/// As [`search`], with the target's own stored inputs.
pub fn search_stored(
    target: &Target,
    seeds: Range<u64>,
    folder: &Path,
    before: impl FnMut(u64),
) -> io::Result<Result<Summary, Box<Found>>> {
    search(target, &corpus::load(target.name)?, seeds, folder, before)
}

impl Summary {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => self.n_accepted += 1,
            Verdict::Refused => self.n_refused += 1,
        }
    }
}

fn report<T>(
    target: &Target,
    origin: Origin,
    bytes: &[u8],
    breach: Breach,
    folder: &Path,
) -> io::Result<Result<T, Box<Found>>> {
    let smallest = minimise(target, bytes, &breach);
    let name = match &origin {
        Origin::Stored(name) => format!("{}-{name}", target.name),
        Origin::Seed(seed) => format!("{}-{seed}", target.name),
    };
    let file = folder.join(name);
    fs::create_dir_all(folder)?;
    fs::write(&file, &smallest)?;
    // What it says of the smallest input is easier to follow than what it said of the whole.
    let breach = run(target, &smallest).err().unwrap_or(breach);
    let Breach { message, place } = breach;
    Ok(Err(Box::new(Found { target: target.name, origin, message, place, smallest, file })))
}
