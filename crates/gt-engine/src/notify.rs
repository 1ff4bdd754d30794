//! Telling the world outside what has landed, or needs a person: commands, web hooks, the desktop. // SPEC C4, R3, P5
//!
//! What is to be told is in the store until everybody knows it, so a crash loses nothing; who was told is noted at once, so
//! nobody hears it twice because somebody else could not be reached; as long as the store cannot note it, this process
//! remembers it. Each target has a thread and tries of its own, so nobody
//! waits for another, nor the daemon's loop for any of them. A command that runs when the daemon stops ends with it.

mod leash;
mod target;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use gt_core::event::EventType;
use gt_core::notice::is_news;
use gt_store::{Notice, Stamp, Store, Tries};
use jiff::Timestamp;
use serde_json::json;

use self::leash::Leash;
pub(crate) use self::target::{Mistyped, channel_of, mistyped};
use self::target::{Target, Untold};
use crate::backoff::Backoff;
use crate::channels::Say;
use crate::error::{TownError, chain};
use crate::in_force;
use crate::surroundings::Machine;
use crate::town::Town;

/// Notices that are looked at together, besides those that somebody is being told.
const LOOK_MAX: usize = 1000;
/// How long to wait before what failed here, and not at a target, is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
    Tried(Tried),
}

/// A target was told a notice, or could not be.
#[derive(Debug, Clone)]
struct Tried {
    notice: i64,
    target: String,
    outcome: Result<(), Untold>,
}

impl Notifier {
    /// Begins to tell, on threads that end with the process.
    pub fn start(town: &Town, actor: &str, say: Say) -> Result<Notifier, TownError> {
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
            tried: VecDeque::new(),
            pause: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            say,
            said: None,
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
    /// Notices, and whom somebody is telling them right now; or has told, and that is not noted yet.
    under_way: BTreeSet<(i64, String)>,
    /// What is to be noted.
    tried: VecDeque<Tried>,
    /// How long the store is left alone after it has failed.
    pause: Backoff,
    say: Say,
    /// The trouble that was said.
    said: Option<String>,
    has_missed_desktop: bool,
}

impl Teller {
    fn serve(&mut self, heard: &Receiver<Word>) {
        let mut rests_until: Option<Instant> = None;
        loop {
            let now = Instant::now();
            let rest = rests_until.and_then(|until| until.checked_duration_since(now)).filter(|rest| !rest.is_zero());
            let span = match rest {
                // Whatever is heard meanwhile: a store that cannot note anything lets nothing be told either.
                Some(rest) => Some(rest),
                None => match self.look() {
                    Ok(span) => {
                        self.pause.reset();
                        self.said = None;
                        span
                    }
                    Err(error) => {
                        self.complain(&error);
                        let pause = self.pause.grow();
                        rests_until = Some(now + pause);
                        Some(pause)
                    }
                },
            };
            let word = match span {
                None => heard.recv().map_err(RecvTimeoutError::from),
                Some(span) => heard.recv_timeout(span),
            };
            match word {
                Ok(Word::Look) => self.is_nudged.store(false, Ordering::Release),
                // Who was cut short stays under way for this daemon, which is stopping; the next one tells him.
                Ok(Word::Tried(tried)) if tried.outcome == Err(Untold::CutShort) => {}
                Ok(Word::Tried(tried)) => self.tried.push_back(tried),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Says what is wrong here, once until it works again.
    fn complain(&mut self, error: &TownError) {
        let words = format!("notifications wait: {}", chain(error));
        if self.said.as_ref() != Some(&words) {
            (self.say)(&words);
            self.said = Some(words);
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(Timestamp::now(), &self.actor)
    }

    /// Notes what was told and hands on what is due; says how long there is nothing to do.
    fn look(&mut self) -> Result<Option<Duration>, TownError> {
        while let Some(tried) = self.tried.front().cloned() {
            if let Err(error) = self.note(&tried)
                && !gt_core::defect!("unnoted-notice-sent-again")
            {
                return Err(error);
            }
            self.tried.pop_front();
            self.under_way.remove(&(tried.notice, tried.target));
        }
        let now = Timestamp::now();
        let due = self.store.due_notices(now, LOOK_MAX + self.under_way.len())?;
        let mut next = None;
        if !due.is_empty() {
            // Read anew: whoever was added is told, and whoever was taken out is left in peace.
            let config = in_force::load(&self.town, &mut self.store, &*Machine::here())?.config;
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
                    let tried = Tried { notice: notice.id, target: target.key.clone(), outcome };
                    words.send(Word::Tried(tried)).unwrap_or_default();
                }
            });
            sender
        })
    }

    /// Notes how it went with one target; what could not be noted may be noted again.
    fn note(&mut self, tried: &Tried) -> Result<(), TownError> {
        let (Tried { notice, target, outcome }, stamp) = (tried, self.stamp());
        match outcome {
            Err(Untold::CutShort) => {}
            Ok(()) => self.store.note_told(*notice, target, &stamp)?,
            Err(Untold::Never(why)) => {
                self.miss(why)?;
                self.store.note_told(*notice, target, &stamp)?;
            }
            Err(Untold::Failed(why)) => drop(self.store.note_untold(*notice, target, why, &stamp)?),
        }
        Ok(())
    }

    /// Says once that something is missing here.
    fn miss(&mut self, why: &str) -> Result<(), TownError> {
        if !self.has_missed_desktop {
            self.store.record(EventType::NoticeFailed, &json!({ "error": why }), &self.stamp())?;
            self.has_missed_desktop = true;
        }
        Ok(())
    }
}
