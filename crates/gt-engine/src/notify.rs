//! Telling the world outside what has landed, or needs a person: commands, web hooks, the desktop. // SPEC C4, R3, P5
//!
//! What is to be told is in the store until everybody knows it, so a crash loses nothing; who was told is noted at once, so
//! nobody hears it twice because somebody else could not be reached. Each target has a thread and tries of its own, so nobody
//! waits for another, nor the daemon's loop for any of them. A command that runs when the daemon stops ends with it.

mod leash;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use gt_core::event::EventType;
use gt_core::notice::is_news;
use gt_store::{Notice, Stamp, Store, Tries};
use jiff::Timestamp;
use serde_json::json;

use self::leash::Leash;
use self::target::{Target, Untold};
use crate::error::TownError;
use crate::town::Town;

/// Notices that are looked at together, besides those that somebody is being told.
const LOOK_MAX: usize = 1000;
/// How long to wait before what failed here, and not at a target, is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// The daemon's end of it.
#[derive(Debug)]
pub struct Notifier {
    words: Sender<Word>,
    /// Whether a nudge is on its way.
    is_nudged: Arc<AtomicBool>,
    leash: Arc<Leash>,
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
        let leash = Leash::new().map_err(|source| TownError::io("tell others from", town.root(), source))?;
        let leash = Arc::new(leash);
        let is_nudged = Arc::new(AtomicBool::new(false));
        let mut teller = Teller {
            town: town.clone(),
            actor: actor.to_owned(),
            // A plain store: telling wakes nobody up.
            store: Store::open(&town.store_path())?,
            words: words.clone(),
            is_nudged: Arc::clone(&is_nudged),
            leash: Arc::clone(&leash),
            lines: BTreeMap::new(),
            under_way: BTreeSet::new(),
            has_missed_desktop: false,
        };
        thread::spawn(move || teller.serve(&heard));
        let notifier = Notifier { words, is_nudged, leash };
        notifier.nudge();
        Ok(notifier)
    }

    /// Something may be there to be told.
    pub fn nudge(&self) {
        if !self.is_nudged.swap(true, Ordering::AcqRel) {
            self.words.send(Word::Look).unwrap_or_default();
        }
    }

    /// Ends the commands that run, with all that they started. Whom they were to tell is told by the next daemon.
    pub fn end(&self) {
        self.leash.end();
    }
}

/// Whoever reads notices and hands them to the targets.
struct Teller {
    town: Town,
    actor: String,
    store: Store,
    words: Sender<Word>,
    is_nudged: Arc<AtomicBool>,
    leash: Arc<Leash>,
    /// A way to each target that has been needed.
    lines: BTreeMap<String, Sender<Notice>>,
    /// Notices, and whom somebody is telling them right now.
    under_way: BTreeSet<(i64, String)>,
    has_missed_desktop: bool,
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
        let due = self.store.due_notices(now, LOOK_MAX + self.under_way.len())?;
        let mut next = None;
        if !due.is_empty() {
            // Read anew: whoever was added is told, and whoever was taken out is left in peace.
            let config = self.town.config_file().load()?;
            let targets: Vec<Target> = config.texts("convoy.notify").iter().map(|text| Target::parse(text)).collect();
            for notice in &due {
                next = [next, self.tell(notice, &targets)?].into_iter().flatten().min();
            }
        }
        let next = [next, self.store.next_notice_at(now)?].into_iter().flatten().min();
        Ok(next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default()))
    }

    /// Tells a notice to everybody who does not know it and whose turn it is; returns when it is somebody's turn next.
    fn tell(&mut self, notice: &Notice, targets: &[Target]) -> Result<Option<Timestamp>, TownError> {
        let stamp = self.stamp();
        let mut next: Option<Timestamp> = None;
        let mut is_under_way = false;
        for target in targets {
            let waits_until = match notice.targets.get(&target.key) {
                Some(Tries { next_at: None, .. }) => continue,
                Some(Tries { next_at: Some(at), .. }) => *at,
                None => notice.at,
            };
            let telling = (notice.id, target.key.clone());
            if self.under_way.contains(&telling) {
                is_under_way = true;
            } else if !is_news(notice.at, stamp.now) {
                self.store.give_up_notice(notice.id, "it was too old to be told", &stamp)?;
                return Ok(None);
            } else if waits_until > stamp.now {
                next = Some(next.map_or(waits_until, |next| next.min(waits_until)));
            } else {
                is_under_way = true;
                self.under_way.insert(telling);
                self.line_to(target).send(notice.clone()).unwrap_or_default();
            }
        }
        if !is_under_way {
            self.store.settle_notice(notice.id, next, &stamp)?;
        }
        Ok(next)
    }

    /// The thread of a target, which tells it one thing after the other.
    fn line_to(&mut self, target: &Target) -> &Sender<Notice> {
        self.lines.entry(target.key.clone()).or_insert_with(|| {
            let (sender, notices) = mpsc::channel::<Notice>();
            let (target, town, words) = (target.clone(), self.town.root().to_owned(), self.words.clone());
            let leash = Arc::clone(&self.leash);
            thread::spawn(move || {
                for notice in notices {
                    let outcome = target.tell(&notice, &town, &leash);
                    let tried = Word::Tried { notice: notice.id, target: target.key.clone(), outcome };
                    words.send(tried).unwrap_or_default();
                }
            });
            sender
        })
    }

    /// Takes in how it went with one target.
    fn note(&mut self, notice: i64, target: &str, outcome: Result<(), Untold>) -> Result<(), TownError> {
        let stamp = self.stamp();
        // Who was cut short stays under way for this daemon, which is stopping; the next one tells him.
        if outcome != Err(Untold::CutShort) {
            self.under_way.remove(&(notice, target.to_owned()));
        }
        match outcome {
            Err(Untold::CutShort) => {}
            Ok(()) => self.store.note_told(notice, target, &stamp)?,
            Err(Untold::Never(why)) => {
                self.store.note_told(notice, target, &stamp)?;
                self.miss(&why)?;
            }
            Err(Untold::Failed(why)) => drop(self.store.note_untold(notice, target, &why, &stamp)?),
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
