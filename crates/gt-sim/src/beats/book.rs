//! What is known of hearts from outside: the lists and the config as people have left them, what agents have answered, who was
//! told of what, and how often each heart has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::AGENTS;
use super::config::Pulse;
use super::history::{Clock, History};
use super::lists::List;

/// Nobody is told the same twice within this time.
const REPEATED_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// The book, as all who write into it hold it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Book>>);

impl Shared {
    pub(super) fn new(pulse: Pulse) -> Shared {
        Shared(Arc::new(Mutex::new(Book {
            pulses: History::new(pulse),
            clock: Clock::default(),
            lists: AGENTS.iter().map(|agent| ((*agent).to_owned(), History::new(List::Missing))).collect(),
            replies: BTreeMap::new(),
            conversations: BTreeMap::new(),
            said: BTreeSet::new(),
            last_used: None,
            told: Vec::new(),
            failures: BTreeMap::new(),
            stopped: BTreeSet::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an answer to a heartbeat comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// There is nothing to tell.
    Nothing,
    Alert(String),
}

/// What an agent has printed.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) meaning: Meaning,
    /// Whether that is all of it.
    pub(super) is_whole: bool,
}

/// An alert that was told.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) agent: String,
    pub(super) text: String,
    pub(super) at: Timestamp,
    /// The turn that it answers.
    pub(super) turn: i64,
    /// The channel and recipient that it goes to; `None`: the mayor gets a letter.
    pub(super) to: Option<(String, Option<String>)>,
}

pub(super) struct Book {
    pub(super) pulses: History<Pulse>,
    pub(super) clock: Clock,
    pub(super) lists: BTreeMap<String, History<List>>,
    pub(super) replies: BTreeMap<String, Reply>,
    /// The conversations that agents have begun or gone on with, each with its session.
    pub(super) conversations: BTreeMap<String, String>,
    /// What people have said, and was acknowledged.
    pub(super) said: BTreeSet<String>,
    /// The turn and the address by which people have talked last.
    pub(super) last_used: Option<(i64, String, Option<String>)>,
    pub(super) told: Vec<Told>,
    /// How often in a row each heart has failed.
    pub(super) failures: BTreeMap<String, i64>,
    /// Hearts that a person has stopped by name.
    pub(super) stopped: BTreeSet<String>,
}

impl Book {
    pub(super) fn list(&mut self, agent: &str) -> &mut History<List> {
        self.lists.get_mut(agent).expect("every agent has one")
    }

    /// Whether the same was told of late, or what a clock that was ahead calls late.
    pub(super) fn was_told(&self, agent: &str, text: &str, now: Timestamp) -> bool {
        let is_same = |told: &&Told| told.agent == agent && told.text == text;
        self.told.iter().filter(is_same).any(|told| now.duration_since(told.at).abs() < REPEATED_WITHIN)
    }
}
