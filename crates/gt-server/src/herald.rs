//! Tells those who wait what happens in their sessions: what is being said, and that a turn has ended.
//!
//! One thread reads the log of events and what agents print, once for all who wait, when something was written; where nobody
//! waits it reads nothing. Whoever does not listen fast enough is let go, and may ask again from where he was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use gt_core::agent::REPLY_BYTES_MAX;
use gt_core::event::{Event, EventType};
use gt_engine::news::News;
use gt_engine::talk::LiveReply;
use gt_engine::{Town, TownError};
use gt_store::{Store, StoreError, TurnView};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::current::Current;

/// Words that may wait for one listener.
const WORDS_MAX: usize = 256;
/// Events that are read together.
const PAGE: usize = 1000;

/// What a listener hears.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Said(Arc<Said>),
    /// A turn has ended; with the number of the event.
    Ended(i64, Arc<TurnView>),
}

/// A piece of an answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) turn: i64,
    pub(crate) run: String,
    /// Characters of the same run that were said before.
    pub(crate) offset: usize,
    pub(crate) text: String,
}

pub(crate) struct Herald {
    town: Town,
    current: Arc<Current>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last event that was told.
    told: i64,
    listeners: Vec<Listener>,
    /// Runs that somebody listens to.
    voices: BTreeMap<String, Voice>,
}

struct Listener {
    session: String,
    /// Whether it wants to hear what is being said, not only how it ends.
    wants_words: bool,
    sender: Sender<Word>,
}

/// A run that answers.
struct Voice {
    session: String,
    turn: i64,
    live: LiveReply,
    said: String,
    n_chars: usize,
}

impl Herald {
    /// Hears of every write from now on, on a thread that ends with the process.
    pub(crate) fn start(town: &Town, current: Arc<Current>) -> Result<Arc<Herald>, TownError> {
        let herald = Arc::new(Herald { town: town.clone(), current, state: Mutex::default() });
        let (mut news, mut store) = (News::with_logs(town)?, Store::open(&town.store_path())?);
        let watcher = Arc::downgrade(&herald);
        thread::spawn(move || {
            while news.wait(None) {
                let Some(herald) = watcher.upgrade() else { return };
                // What could not be read is read the next time; it is looked again soon after every write.
                herald.look(&mut store).unwrap_or_default();
            }
        });
        Ok(herald)
    }

    /// From now on hears of a session, beginning with what its live runs have said so far.
    pub(crate) fn listen(
        &self,
        store: &mut Store,
        session: &str,
        wants_words: bool,
    ) -> Result<Receiver<Word>, StoreError> {
        let (sender, ear) = channel(WORDS_MAX);
        let mut state = self.state();
        state.forget_the_gone();
        if state.listeners.is_empty() {
            state.told = store.last_event()?;
        }
        if wants_words {
            for turn in store.live_turns(session)? {
                let Some(run) = store.runs_of_turn(turn.id)?.pop().filter(|run| Some(&run.id) == turn.run.as_ref())
                else {
                    continue;
                };
                if !state.voices.contains_key(&run.id) {
                    state.voices.insert(run.id.clone(), self.voice(session, turn.id, &run.id, &run.agent));
                    // Nobody has heard of it yet, whoever was here before.
                    state.tell_all_of(&run.id);
                }
                let Some(voice) = state.voices.get(&run.id) else { continue };
                // The rest comes when the run says more, or ends.
                let so_far = voice.so_far(&run.id);
                if !so_far.is_empty() {
                    sender.try_send(so_far).unwrap_or_default();
                }
            }
        }
        state.listeners.push(Listener { session: session.to_owned(), wants_words, sender });
        Ok(ear)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn voice(&self, session: &str, turn: i64, run: &str, agent: &str) -> Voice {
        let live = LiveReply::of(&self.town, &self.current.settings().config, run, agent);
        let mut voice = Voice { session: session.to_owned(), turn, live, said: String::new(), n_chars: 0 };
        voice.listen(run);
        voice
    }

    /// Tells what has happened since the last look.
    fn look(&self, store: &mut Store) -> Result<(), StoreError> {
        let mut state = self.state();
        state.forget_the_gone();
        if state.listeners.is_empty() {
            return Ok(());
        }
        loop {
            let events = store.events(state.told, PAGE)?;
            for event in &events {
                self.heed(&mut state, store, event)?;
                state.told = event.seq;
            }
            if events.len() < PAGE {
                break;
            }
        }
        state.pass_on();
        Ok(())
    }

    fn heed(&self, state: &mut State, store: &mut Store, event: &Event) -> Result<(), StoreError> {
        let Some(session) = event.data["session"].as_str() else { return Ok(()) };
        let run = event.run.as_deref().unwrap_or_default();
        let turn = event.data["turn"].as_i64();
        if event.kind == EventType::RunStarted.as_str() {
            let agent = event.data["agent"].as_str().unwrap_or_default();
            // One that was found by looking is known already.
            let is_news = state.has_listener(session, true) && !state.voices.contains_key(run);
            if let Some(turn) = turn.filter(|_| is_news) {
                state.voices.insert(run.to_owned(), self.voice(session, turn, run, agent));
                state.tell_all_of(run);
            }
        } else if event.kind == EventType::RunEnded.as_str() {
            state.pass_on_one(run);
            state.voices.remove(run);
        } else if event.kind == EventType::TurnEnded.as_str() && state.has_listener(session, false) {
            let turn = turn.map(|turn| store.turn(turn)).transpose()?.flatten();
            if let Some(mut turn) = turn {
                turn.text = String::new(); // who listens knows what was asked, and much of it may wait here
                state.tell(session, false, &Word::Ended(event.seq, Arc::new(turn)));
            }
        }
        Ok(())
    }
}

impl State {
    fn forget_the_gone(&mut self) {
        self.listeners.retain(|listener| !listener.sender.is_closed());
        let sessions: Vec<&str> =
            self.listeners.iter().filter(|one| one.wants_words).map(|one| &*one.session).collect();
        self.voices.retain(|_, voice| sessions.contains(&&*voice.session));
    }

    fn has_listener(&self, session: &str, wants_words: bool) -> bool {
        self.listeners.iter().any(|one| one.session == session && (one.wants_words || !wants_words))
    }

    /// Tells all listeners of a session, or those who want words.
    fn tell(&mut self, session: &str, only_words: bool, word: &Word) {
        self.listeners.retain(|listener| {
            let is_meant = listener.session == session && (listener.wants_words || !only_words);
            !is_meant || listener.sender.try_send(word.clone()).is_ok()
        });
    }

    /// Passes on what runs have said since the last time.
    fn pass_on(&mut self) {
        let runs: Vec<String> = self.voices.keys().cloned().collect();
        for run in runs {
            self.pass_on_one(&run);
        }
    }

    fn pass_on_one(&mut self, run: &str) {
        let heard = self.voices.get_mut(run).and_then(|voice| Some((voice.session.clone(), voice.listen(run)?)));
        if let Some((session, word)) = heard {
            self.tell(&session, true, &word);
        }
    }

    /// Tells what a run that was just found has said so far.
    fn tell_all_of(&mut self, run: &str) {
        let found = self.voices.get(run).map(|voice| (voice.session.clone(), voice.so_far(run)));
        if let Some((session, word)) = found.filter(|(_, word)| !word.is_empty()) {
            self.tell(&session, true, &word);
        }
    }
}

impl Voice {
    /// What it has said since the last time, if anything; no more in all than an answer holds.
    fn listen(&mut self, run: &str) -> Option<Word> {
        let mut text = String::new();
        while self.said.len() + text.len() < REPLY_BYTES_MAX {
            match self.live.more() {
                Ok(more) if !more.is_empty() => text.push_str(&more),
                _ => break, // a log that cannot be read says nothing; the answer itself is told at the end
            }
        }
        let offset = self.n_chars;
        self.n_chars += text.chars().count();
        self.said.push_str(&text);
        let word = Word::said(self.turn, run, offset, text);
        (!word.is_empty()).then_some(word)
    }

    fn so_far(&self, run: &str) -> Word {
        Word::said(self.turn, run, 0, self.said.clone())
    }
}

impl Word {
    fn said(turn: i64, run: &str, offset: usize, text: String) -> Word {
        Word::Said(Arc::new(Said { turn, run: run.to_owned(), offset, text }))
    }

    fn is_empty(&self) -> bool {
        matches!(self, Word::Said(said) if said.text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use gt_core::lane::Lanes;
    use gt_core::plan::{PerSide, Policy};
    use gt_core::session::Rules;
    use gt_store::{Claimant, Findings, NewMessage, Stamp};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn who_was_there_first_hears_what_is_found_for_the_next_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let stamp = Stamp::new(Timestamp::UNIX_EPOCH, "me");
        let (town, _) = Town::init(dir.path(), &stamp).expect("it can be made");
        let mut store = town.open_store().expect("it is there");
        let current = Arc::new(Current::of(&town));
        let herald = Herald { town: town.clone(), current, state: Mutex::default() };
        let first = herald.listen(&mut store, "dm:a", true).expect("it can be heard");
        // A run that speaks before it is told that it has started.
        let message = NewMessage {
            session: "dm:a".into(),
            text: "x".into(),
            agent: Some("plain".into()),
            is_whole: true,
            ..NewMessage::default()
        };
        store.send(&[message], &Rules::default(), &Lanes::default(), &stamp).expect("it is taken");
        let (policy, mut new_run) = (Policy::default(), || "r".to_owned());
        let limits = PerSide::both(None);
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me",
            new_run: &mut new_run,
            limits,
            n_before: 0,
            probe: &|_, _| None,
        };
        store.advance(&Findings::default(), &policy, Some(&mut claimant), &stamp).expect("it is claimed");
        std::fs::create_dir_all(town.logs_dir()).expect("it can be made");
        std::fs::write(town.log_path("r"), "Hello").expect("it can be written");
        let second = herald.listen(&mut store, "dm:a", true).expect("it can be heard");
        for mut ear in [first, second] {
            let heard = ear.try_recv();
            assert!(matches!(&heard, Ok(Word::Said(said)) if said.text == "Hello"), "{heard:?}");
            assert!(ear.try_recv().is_err(), "once");
        }
    }

    #[test]
    fn who_does_not_listen_is_let_go_and_who_listens_hears_everything() {
        let mut state = State::default();
        let mut join = |wants_words| {
            let (sender, ear) = channel(WORDS_MAX);
            state.listeners.push(Listener { session: "dm:a".to_owned(), wants_words, sender });
            ear
        };
        let (mut slow, mut quick, mut patient) = (join(true), join(true), join(false));
        for n in 0..=WORDS_MAX {
            state.tell("dm:a", true, &Word::said(1, "r", n, "word".to_owned()));
            state.tell("dm:b", false, &Word::said(2, "r", n, "nobody's".to_owned()));
            assert!(matches!(quick.try_recv(), Ok(Word::Said(said)) if said.turn == 1 && said.offset == n));
        }
        let n_heard = std::iter::from_fn(|| slow.try_recv().ok()).count();
        assert_eq!((n_heard, slow.is_closed()), (WORDS_MAX, true), "it heard all until it was let go");
        assert!(!quick.is_closed() && !patient.is_closed());
        assert!(patient.try_recv().is_err(), "it wants only to know how it ends");
        drop((quick, patient));
        state.forget_the_gone();
        assert_eq!(state.listeners.len(), 0);
    }
}
