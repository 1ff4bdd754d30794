//! Telling the world outside what has landed, or needs a person: commands, web hooks, the desktop. // SPEC C4, R3, P5
//!
//! What is to be told is in the store until everybody knows it, so a crash loses nothing; who was told is noted at once, so
//! nobody hears it twice because somebody else could not be reached. Each target has a thread of its own, and the daemon's
//! loop waits for none of them.

mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use gt_core::event::EventType;
use gt_core::notice::is_news;
use gt_store::{Notice, Stamp, Store};
use jiff::Timestamp;
use serde_json::json;

use self::target::{Target, Untold};
use crate::error::TownError;
use crate::town::Town;

/// Notices that are looked at together.
const LOOK_MAX: usize = 1000;
/// How long to wait before what failed here, and not at a target, is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// The daemon's end of it.
#[derive(Debug)]
pub struct Notifier {
    words: Sender<Word>,
    /// Whether a nudge is on its way.
    is_nudged: Arc<AtomicBool>,
}

/// What the teller hears.
#[derive(Debug)]
enum Word {
    Look,
    /// A target was tried.
    Tried {
        notice: i64,
        target: String,
        outcome: Result<(), Untold>,
    },
}

impl Notifier {
    /// Begins to tell, on threads that end with the process.
    pub fn start(town: &Town, actor: &str) -> Result<Notifier, TownError> {
        let (words, heard) = mpsc::channel();
        let is_nudged = Arc::new(AtomicBool::new(false));
        let mut teller = Teller {
            town: town.clone(),
            actor: actor.to_owned(),
            // A plain store: telling wakes nobody up.
            store: Store::open(&town.store_path())?,
            words: words.clone(),
            is_nudged: Arc::clone(&is_nudged),
            lines: BTreeMap::new(),
            rounds: BTreeMap::new(),
            has_missed_desktop: false,
        };
        thread::spawn(move || teller.serve(&heard));
        let notifier = Notifier { words, is_nudged };
        notifier.nudge();
        Ok(notifier)
    }

    /// Something may be there to be told.
    pub fn nudge(&self) {
        if !self.is_nudged.swap(true, Ordering::AcqRel) {
            self.words.send(Word::Look).unwrap_or_default();
        }
    }
}

/// Whoever reads notices and hands them to the targets.
struct Teller {
    town: Town,
    actor: String,
    store: Store,
    words: Sender<Word>,
    is_nudged: Arc<AtomicBool>,
    /// A way to each target that has been needed.
    lines: BTreeMap<String, Sender<Notice>>,
    /// Notices that targets are being told right now.
    rounds: BTreeMap<i64, Round>,
    has_missed_desktop: bool,
}

#[derive(Debug, Default)]
struct Round {
    /// Who has not answered yet.
    left: BTreeSet<String>,
    errors: Vec<String>,
}

impl Teller {
    fn serve(&mut self, heard: &Receiver<Word>) {
        loop {
            let span = self.look().unwrap_or(Some(RETRY));
            let word = match span {
                None => heard.recv().map_err(RecvTimeoutError::from),
                Some(span) => heard.recv_timeout(span),
            };
            match word {
                Ok(Word::Look) => self.is_nudged.store(false, Ordering::Release),
                Ok(Word::Tried { notice, target, outcome }) => {
                    // What cannot be noted is told once more.
                    self.note(notice, &target, outcome).unwrap_or_default();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(Timestamp::now(), &self.actor)
    }

    /// Hands on what is due; says how long there is nothing to do.
    fn look(&mut self) -> Result<Option<Duration>, TownError> {
        let now = Timestamp::now();
        let due = self.store.due_notices(now, LOOK_MAX)?;
        let new: Vec<Notice> = due.into_iter().filter(|notice| !self.rounds.contains_key(&notice.id)).collect();
        if !new.is_empty() {
            // Read anew: whoever was added is told, and whoever was taken out is left in peace.
            let config = self.town.config_file().load()?;
            let targets: Vec<Target> = config.texts("convoy.notify").iter().map(|text| Target::parse(text)).collect();
            new.iter().try_for_each(|notice| self.begin(notice, &targets))?;
        }
        let next = self.store.next_notice_at(now)?;
        Ok(next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default()))
    }

    /// Begins to tell a notice to everybody who does not know it.
    fn begin(&mut self, notice: &Notice, targets: &[Target]) -> Result<(), TownError> {
        let stamp = self.stamp();
        let deaf: Vec<&Target> = targets.iter().filter(|target| !notice.told.contains(&target.key)).collect();
        if deaf.is_empty() {
            self.store.settle_notice(notice.id, None, &stamp)?;
            return Ok(());
        }
        if !is_news(notice.at, stamp.now) {
            self.store.settle_notice(notice.id, Some("it was too old to be told"), &stamp)?;
            return Ok(());
        }
        let left = deaf.iter().map(|target| target.key.clone()).collect();
        self.rounds.insert(notice.id, Round { left, errors: Vec::new() });
        for target in deaf {
            self.line_to(target).send(notice.clone()).unwrap_or_default();
        }
        Ok(())
    }

    /// The thread of a target, which tells it one thing after the other.
    fn line_to(&mut self, target: &Target) -> &Sender<Notice> {
        self.lines.entry(target.key.clone()).or_insert_with(|| {
            let (sender, notices) = mpsc::channel::<Notice>();
            let (target, town, words) = (target.clone(), self.town.root().to_owned(), self.words.clone());
            thread::spawn(move || {
                for notice in notices {
                    let outcome = target.tell(&notice, &town);
                    let tried = Word::Tried { notice: notice.id, target: target.key.clone(), outcome };
                    words.send(tried).unwrap_or_default();
                }
            });
            sender
        })
    }

    /// Takes in how it went with one target, and ends the round with the last.
    fn note(&mut self, notice: i64, target: &str, outcome: Result<(), Untold>) -> Result<(), TownError> {
        let Some(mut round) = self.rounds.remove(&notice) else { return Ok(()) };
        round.left.remove(target);
        match outcome {
            Ok(()) => self.store.note_told(notice, target, &self.stamp())?,
            Err(Untold::Never(why)) => {
                self.store.note_told(notice, target, &self.stamp())?;
                self.miss(&why)?;
            }
            Err(Untold::Failed(why)) => round.errors.push(why),
        }
        if round.left.is_empty() {
            let error = (!round.errors.is_empty()).then(|| round.errors.join("; "));
            self.store.settle_notice(notice, error.as_deref(), &self.stamp())?;
        } else {
            self.rounds.insert(notice, round);
        }
        Ok(())
    }

    /// Says once that something is missing here.
    fn miss(&mut self, why: &str) -> Result<(), TownError> {
        if !std::mem::replace(&mut self.has_missed_desktop, true) {
            self.store.record(EventType::NoticeFailed, &json!({ "error": why }), &self.stamp())?;
        }
        Ok(())
    }
}
