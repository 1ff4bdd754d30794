//! Talking to sessions: taking what comes in, and waiting for answers. // SPEC L2, L4, L5
//!
//! One way in for every channel: a command is obeyed, anything else becomes a turn. Starting turns is a pass like any other;
//! where no daemon makes it, whoever waits for an answer does.

mod live;
pub mod shape;

use std::time::{Duration, Instant};

use gt_core::plan::PerSide;
use gt_core::refusal::Refusal;
use gt_core::session::Command;
use gt_store::{NewMessage, Sent, Stamp, Store, TurnState, TurnView};
use jiff::Timestamp;

pub use self::live::LiveReply;
use crate::dispatch::Dispatcher;
use crate::error::TownError;
use crate::news::News;
use crate::once;
use crate::settings::{Limits, Settings};
use crate::surroundings::Machine;
use crate::town::Town;

/// Without news the store is looked at again after so long: what waits for its time writes nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Who waits for longer wants to know why.
const SOON: Duration = Duration::from_secs(3);

/// What became of something that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    Sent(Sent),
    /// It was a command, and this is said to whoever gave it.
    Obeyed(String),
}

/// What a sender calls a message, as the store knows it: the same name means the same message only within a session.
pub fn source(id: &str, session: &str) -> String {
    format!("{id} {session}")
}

/// Takes what came in by a channel; `bot` is our name there.
pub fn take(
    store: &mut Store,
    settings: &Settings,
    message: &NewMessage,
    bot: Option<&str>,
    stamp: &Stamp,
) -> Result<Taken, TownError> {
    let mut taken = take_all(store, settings, std::slice::from_ref(message), bot, stamp)?;
    let taken = taken.pop().expect("one answer for one message");
    Ok(taken.map_err(gt_store::StoreError::from)?)
}

/// The same for all that came in together, in order: what is not interrupted by a command is one transaction.
pub fn take_all(
    store: &mut Store,
    settings: &Settings,
    messages: &[NewMessage],
    bot: Option<&str>,
    stamp: &Stamp,
) -> Result<Vec<Result<Taken, Refusal>>, TownError> {
    let command = |message: &NewMessage| Command::parse(&message.text, bot);
    let mut taken = Vec::with_capacity(messages.len());
    for part in messages.chunk_by(|one, next| command(one).is_none() && command(next).is_none()) {
        if let Some(command) = command(&part[0]) {
            taken.push(Ok(Taken::Obeyed(store.obey(&part[0], command == Command::StopAll, stamp)?)));
            continue;
        }
        let sent = store.send(part, &settings.session_rules(), settings.lanes(), stamp)?;
        taken.extend(sent.into_iter().map(|sent| sent.map(Taken::Sent)));
    }
    Ok(taken)
}

/// Records what has ended and starts every turn that may, and no work on beads.
pub fn see_to_turns(dispatcher: &mut Dispatcher, store: &mut Store) -> Result<(), TownError> {
    let turn = once::Turn::take(dispatcher.around(), dispatcher.town(), store, Limits::default())?;
    let claimed = dispatcher.claim(store, &turn.settings, PerSide::both(Some(0)), 0)?;
    once::start(dispatcher, store, &turn.settings, claimed)?;
    dispatcher.acknowledge();
    Ok(())
}

/// Waits beside the store for what becomes of turns, and where no daemon runs the town sees to them.
#[derive(Debug)]
pub struct Attendant {
    town: Town,
    actor: String,
    news: News,
}

impl Attendant {
    /// Hears of everything from now on.
    pub fn new(town: &Town, actor: &str) -> Result<Attendant, TownError> {
        Ok(Attendant { town: town.clone(), actor: actor.to_owned(), news: News::with_logs(town)? })
    }

    /// Records what has ended and starts every turn that may, unless a daemon does.
    pub fn see_to_turns(&self, store: &mut Store) -> Result<(), TownError> {
        if Machine::here().has_daemon(&self.town) {
            return Ok(());
        }
        see_to_turns(&mut once::dispatcher(&self.town, store, &self.actor), store)
    }

    /// Waits until something was written, or it is worth looking all the same.
    pub fn wait(&mut self) {
        self.news.wait(Some(LOOK_AGAIN));
    }

    /// Waits for the end of a turn; `None`: there is no such turn. What keeps it from starting for a while is told, once for
    /// each reason.
    pub fn await_end(
        &mut self,
        store: &mut Store,
        turn: i64,
        mut tell: impl FnMut(&str),
    ) -> Result<Option<TurnView>, TownError> {
        let begin = Instant::now();
        let mut told = None;
        loop {
            self.see_to_turns(store)?;
            match store.turn(turn)? {
                Some(view) if view.state != TurnState::Ended => {
                    let why = if begin.elapsed() < SOON { None } else { self.why_waiting(store, turn)? };
                    if let Some(why) = why.filter(|why| told.as_ref() != Some(why)) {
                        tell(&why);
                        told = Some(why);
                    }
                    self.wait();
                }
                view => return Ok(view),
            }
        }
    }

    fn why_waiting(&self, store: &mut Store, turn: i64) -> Result<Option<String>, TownError> {
        let policy = Settings::load(&self.town, store, &*Machine::here())?.policy(self.town.root());
        Ok(store.why_waiting(turn, &policy, Timestamp::now())?)
    }
}
