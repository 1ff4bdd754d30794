//! A session's queue as it is, and what must become of a message or a `/stop` in it: the promises of `docs/sessions.md`,
//! said once more and apart from the code that keeps them.

use gt_core::session::{Mode, Overflow, Rules};
use gt_store::{NewMessage, Session, Store, StoreError, TurnState, TurnView};
use jiff::Timestamp;

use super::book::Book;

/// So many turns of a session are looked at; no session has more.
pub(super) const TURNS_MAX: usize = 2_000;

/// A session with all that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) session: Option<Session>,
    pub(super) turns: Vec<TurnView>,
}

/// What must become of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Full,
    Joins(i64),
    Waits { dropped: Vec<i64> },
    Interrupts,
}

impl Queue {
    pub(super) fn look(store: &mut Store, key: &str) -> Result<Queue, StoreError> {
        let mut turns = store.turns(key, TURNS_MAX)?;
        turns.retain(|turn| turn.state != TurnState::Ended);
        Ok(Queue { session: store.session(key)?, turns })
    }

    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = &TurnView> {
        self.turns.iter().filter(|turn| turn.state == TurnState::Waiting)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &TurnView> {
        self.turns.iter().filter(|turn| turn.state == TurnState::Live)
    }

    /// By what rules it takes a message.
    pub(super) fn rules(&self, general: &Rules, message: &NewMessage) -> Rules {
        let mut rules = self.session.as_ref().map_or(*general, |session| session.wishes.rules(general));
        if message.is_whole || message.parent.is_some() {
            rules.debounce = jiff::SignedDuration::ZERO;
        }
        rules
    }

    /// What only messages have in common that become one turn.
    pub(super) fn origin(&self, message: &NewMessage) -> String {
        let agent = self.session.as_ref().and_then(|session| session.wishes.agent.clone());
        format!(
            "{} {} {agent:?} {:?} {} {:?}",
            message.sender, message.channel, message.parent, message.is_whole, message.deliver
        )
    }

    /// What must become of a message that comes now.
    pub(super) fn fate(&self, rules: &Rules, message: &NewMessage, book: &Book, now: Timestamp) -> Fate {
        let origin = self.origin(message);
        let joins = |turn: &&TurnView| {
            let is_of_sender = book.origins.get(&turn.id) == Some(&origin);
            is_of_sender && rules.debounce.is_positive()
        };
        // The last of its sender, if that still waits for more.
        if let Some(turn) = self.waiting().rev().find(joins).filter(|turn| turn.run.is_none() && now < turn.due_at) {
            return Fate::Joins(turn.id);
        }
        let n_waiting = self.waiting().count();
        match (rules.mode, rules.overflow) {
            (Mode::Interrupt, _) => Fate::Interrupts,
            (_, Overflow::New) if n_waiting >= rules.cap => Fate::Full,
            (_, Overflow::New) => Fate::Waits { dropped: Vec::new() },
            (_, Overflow::Old) => {
                // After it at most as many wait as may; itself it waits in any case.
                let n_kept = rules.cap.saturating_sub(1).min(n_waiting);
                Fate::Waits { dropped: self.waiting().take(n_waiting - n_kept).map(|turn| turn.id).collect() }
            }
        }
    }
}

/// What a `/stop` must do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stops {
    pub(super) runs: Vec<String>,
    pub(super) cancelled: Vec<i64>,
    /// How many go on, or wait all the same; who was told to stop before does not.
    pub(super) n_left: usize,
}

impl Stops {
    /// The oldest that runs and was not told to stop, else the oldest that waits; or all of both.
    pub(super) fn of(store: &mut Store, queue: &Queue, is_all: bool) -> Result<Stops, StoreError> {
        let mut stops = Stops::default();
        let waiting: Vec<i64> = queue.waiting().map(|turn| turn.id).collect();
        let mut running = Vec::new();
        for run in queue.live().filter_map(|turn| turn.run.clone()) {
            if store.run(&run)?.is_some_and(|run| run.stop.is_none()) {
                running.push(run);
            }
        }
        let n_all = waiting.len() + running.len();
        if is_all {
            stops.cancelled = waiting;
        } else if running.is_empty() {
            stops.cancelled.extend(waiting.first());
        } else {
            running.truncate(1);
        }
        stops.n_left = n_all - stops.cancelled.len() - running.len();
        for run in &running {
            stops.add(store, run)?;
        }
        Ok(stops)
    }

    /// A run, with all that it has asked for.
    fn add(&mut self, store: &mut Store, run: &str) -> Result<(), StoreError> {
        if self.runs.iter().any(|known| known == run) {
            return Ok(());
        }
        self.runs.push(run.to_owned());
        for session in super::NESTED {
            for turn in
                Queue::look(store, session)?.turns.into_iter().filter(|turn| turn.parent.as_deref() == Some(run))
            {
                match (turn.state, turn.run) {
                    (TurnState::Waiting, _) if !self.cancelled.contains(&turn.id) => self.cancelled.push(turn.id),
                    (TurnState::Waiting, _) => {}
                    (_, Some(asked)) if store.run(&asked)?.is_some_and(|run| run.is_live() && run.stop.is_none()) => {
                        self.add(store, &asked)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
