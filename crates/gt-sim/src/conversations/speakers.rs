//! People who talk to sessions: they send, say the same again, stop what runs, and change how a session works. After each of
//! these what has become of the queue is compared with what must have become of it.

use std::collections::BTreeSet;

use gt_core::session::{Mode, Overflow, Rules, TurnOutcome};
use gt_engine::talk::{self, Taken};
use gt_engine::{TownError, chain};
use gt_store::{Address, NewMessage, SendOutcome, Sent, Stopped, StoreError, TurnView};
use jiff::{SignedDuration, Timestamp};

use super::book::{Book, Shared};
use super::config::{AGENTS, Talk};
use super::queue::{Fate, Queue, Stops};
use super::{CHANNEL, SESSIONS};
use crate::knobs::Knobs;
use crate::part::Part;
use crate::people::command;
use crate::processes::Errand;
use crate::stage::Stage;

const SENDERS: [&str; 3] = ["ann", "ben", "cy"];
/// The way by which people write here.
const CHAT: &str = "chat";

/// What became of a message, as whoever sent it sees it.
pub(super) enum Sending {
    Taken(Sent),
    Obeyed,
    Refused,
}

pub(super) struct Speakers {
    book: Shared,
    n_messages: u32,
    /// What was sent with a name of its own, so that it can come again.
    named: Vec<NewMessage>,
}

impl Speakers {
    pub(super) fn new(book: Shared) -> Speakers {
        Speakers { book, n_messages: 0, named: Vec::new() }
    }

    fn message(&mut self, stage: &Stage) -> NewMessage {
        self.n_messages += 1;
        let mut world = stage.world().lock();
        let session = SESSIONS[world.rng.usize(0..SESSIONS.len())].to_owned();
        let sender = SENDERS[world.rng.usize(0..SENDERS.len())].to_owned();
        let text = match world.rng.u32(0..12) {
            0 => "/stop".to_owned(),
            1 if world.rng.bool() => "/stopall".to_owned(),
            _ => format!("message {}", self.n_messages),
        };
        let source = world.rng.bool().then(|| format!("source {}", self.n_messages));
        let deliver = world.chance(2).then(|| Address { channel: CHANNEL.to_owned(), recipient: None, reply_to: None });
        let is_whole = world.chance(6);
        NewMessage {
            session,
            text,
            sender,
            channel: CHAT.to_owned(),
            source,
            deliver,
            is_whole,
            ..NewMessage::default()
        }
    }

    fn say(&mut self, stage: &mut Stage) {
        let is_again = stage.world().lock().chance(8);
        let again = if is_again { stage.world().lock().pick(&self.named) } else { None };
        let message = again.unwrap_or_else(|| self.message(stage));
        if message.source.is_some() {
            self.named.push(message.clone());
        }
        let sending = send(stage, &self.book, &message);
        let waits = stage.world().lock().chance(6);
        if let Sending::Taken(Sent { turn: Some(turn), .. }) = sending
            && waits
        {
            command(stage, Errand::Await(turn));
        }
    }

    /// `gt session set`.
    fn set(stage: &mut Stage) {
        let stamp = stage.stamp("ann");
        let (session, what, mode, cap, overflow, debounce, agent) = {
            let mut world = stage.world().lock();
            (
                SESSIONS[world.rng.usize(0..SESSIONS.len())],
                world.rng.u32(0..7),
                world.pick(&Mode::ALL),
                world.rng.usize(1..5),
                world.pick(&Overflow::ALL),
                SignedDuration::from_millis(world.rng.i64(0..4) * 700),
                AGENTS[world.rng.usize(0..AGENTS.len())],
            )
        };
        if what == 6 {
            stage.world().tell(|| format!("{session} begins a new conversation"));
            stage.store.forget_conversation(session, &stamp).map(drop).unwrap_or_default();
            return;
        }
        let answer = stage.store.set_session(
            session,
            |wishes| match what {
                0 => wishes.mode = mode,
                1 => wishes.cap = Some(cap),
                2 => wishes.overflow = overflow,
                3 => wishes.debounce = Some(debounce),
                4 => wishes.agent = Some(agent.to_owned()),
                _ => *wishes = gt_store::Wishes::default(),
            },
            &stamp,
        );
        stage.world().tell(|| format!("{session} is set: {:?}", answer.map(|session| session.wishes)));
    }

    /// The scheduler is paused, or goes on.
    fn pause(stage: &mut Stage) {
        let stamp = stage.stamp("ann");
        let is_pause = stage.world().lock().chance(3);
        stage.world().tell(|| format!("the scheduler is paused: {is_pause}"));
        if is_pause {
            stage.store.pause(None, &stamp).map(drop).unwrap_or_default();
        } else {
            stage.store.resume(&stamp).map(drop).unwrap_or_default();
        }
    }

    /// Other lanes and queues, for all.
    fn configure(&self, stage: &mut Stage, talk: &Talk, knobs: Knobs) {
        configure(stage, &self.book, talk, knobs);
    }
}

/// Sets what holds for all sessions.
pub(super) fn configure(stage: &mut Stage, book: &Shared, talk: &Talk, knobs: Knobs) {
    let step = stage.world().lock().step;
    // Whoever reads it at once may go by it before it is known to be in force.
    book.lock().lanes.push((step, talk.lanes));
    let knobs = talk.with(knobs);
    stage.world().lock().config_besides.clone_from(&knobs.more);
    stage.configure(knobs);
}

impl Part for Speakers {
    fn weight(&self, _stage: &Stage) -> u32 {
        18
    }

    fn act(&mut self, stage: &mut Stage) {
        let deed = stage.world().lock().rng.u32(0..40);
        match deed {
            0..3 => Speakers::set(stage),
            3 => Speakers::pause(stage),
            4 => {
                let (talk, knobs) = {
                    let mut world = stage.world().lock();
                    (Talk::draw(&mut world.rng), world.draw_knobs())
                };
                self.configure(stage, &talk, knobs);
            }
            _ => self.say(stage),
        }
    }

    /// From now on the queues have room, and nobody changes them.
    fn heal(&mut self, stage: &mut Stage) {
        let (talk, knobs) = {
            let mut world = stage.world().lock();
            (Talk::draw(&mut world.rng).roomy(), world.draw_peaceful_knobs())
        };
        self.configure(stage, &talk, knobs);
        let stamp = stage.stamp("ann");
        stage.store.resume(&stamp).map(drop).unwrap_or_default();
    }

    /// Each session is asked once more.
    fn tidy(&mut self, stage: &mut Stage) {
        let stamp = stage.stamp("ann");
        for session in SESSIONS {
            let answer = stage.store.set_session(session, |wishes| *wishes = gt_store::Wishes::default(), &stamp);
            answer.map(drop).expect("nothing is wrong any more");
            self.n_messages += 1;
            let text = format!("message {}", self.n_messages);
            let message = NewMessage {
                session: session.to_owned(),
                text,
                sender: "ann".to_owned(),
                channel: CHAT.to_owned(),
                ..NewMessage::default()
            };
            if let Sending::Taken(Sent { turn: Some(turn), .. }) = send(stage, &self.book, &message) {
                self.book.lock().must_be_done.insert(turn);
            } else {
                stage.world().violation(format!("in peace {session} did not take a message"));
            }
        }
    }
}

/// Sends a message, and sees that what must becomes of it.
pub(super) fn send(stage: &mut Stage, book: &Shared, message: &NewMessage) -> Sending {
    match try_send(stage, book, message) {
        Ok(sending) => sending,
        Err(what) => {
            stage.world().violation(format!("`{}` to {}: {what}", message.text, message.session));
            Sending::Refused
        }
    }
}

fn try_send(stage: &mut Stage, book: &Shared, message: &NewMessage) -> Result<Sending, String> {
    let settings = stage.settings_in_force();
    let words = |error: StoreError| error.to_string();
    let before = Queue::look(stage.look(), &message.session).map_err(words)?;
    let is_stop = message.text.starts_with("/stop");
    let stops = Stops::of(stage.look(), &before, message.text != "/stop").map_err(words)?;
    let stamp = stage.stamp(&message.sender);
    let answer = talk::take(&mut stage.store, &settings, message, None, &stamp);
    stage.world().tell(|| format!("{} to {}: `{}`: {answer:?}", message.sender, message.session, message.text));
    let after = Queue::look(stage.look(), &message.session).map_err(words)?;
    match answer {
        Err(TownError::Store(error)) if Stage::is_outage(&error) => {
            same(&before.turns, &after.turns, "a message that was not taken changed the queue")?;
            Ok(Sending::Refused)
        }
        Err(TownError::Store(StoreError::Refused(_))) if message.parent.is_some() => Ok(Sending::Refused),
        Err(error) => Err(chain(&error)),
        Ok(Taken::Obeyed(said)) if is_stop => {
            obeyed(stage, book, message, &stops, &said)?;
            Ok(Sending::Obeyed)
        }
        Ok(Taken::Obeyed(_)) => Err("it was taken for a command".to_owned()),
        Ok(Taken::Sent(_)) if is_stop => Err("it was not taken for a command".to_owned()),
        Ok(Taken::Sent(sent)) => {
            let rules = before.rules(&settings.session_rules(), message);
            let arrived = Arrived { message, sent, before: &before, after: &after, all: &stops };
            arrived.check(stage, book, &rules, stamp.now)
        }
    }
}

/// A message that was acknowledged, with the queue before and after it.
struct Arrived<'a> {
    message: &'a NewMessage,
    sent: Sent,
    before: &'a Queue,
    after: &'a Queue,
    /// What there was to be stopped.
    all: &'a Stops,
}

impl Arrived<'_> {
    fn check(self, stage: &mut Stage, book: &Shared, rules: &Rules, now: Timestamp) -> Result<Sending, String> {
        let mut book = book.lock();
        if let Some(known) = self.message.source.as_ref().and_then(|source| book.sources.get(source)) {
            same(&self.before.turns, &self.after.turns, "a message that came again changed the queue")?;
            let again = Sent { outcome: SendOutcome::Repeated, ..known.clone() };
            let is_so = self.sent == again;
            return if is_so {
                Ok(Sending::Refused)
            } else {
                Err(format!("it came again, and became {:?}", self.sent))
            };
        }
        let fate = self.before.fate(rules, self.message, &book, now);
        match (&fate, self.sent.outcome, self.sent.turn) {
            (Fate::Full, SendOutcome::Full, None) => {
                same(&self.before.turns, &self.after.turns, "a full session changed")?;
                return Ok(Sending::Refused);
            }
            (Fate::Joins(turn), SendOutcome::Collapsed, Some(joined)) if *turn == joined => {}
            (Fate::Waits { .. } | Fate::Interrupts, SendOutcome::Queued, Some(_)) => {}
            _ => return Err(format!("it was to be {fate:?}, and became {:?}", self.sent)),
        }
        if let (Some(source), Some(_)) = (&self.message.source, self.sent.turn) {
            book.sources.insert(source.clone(), self.sent.clone());
        }
        let Some(own) = self.sent.turn else { return Err("it is part of no turn".to_owned()) };
        book.texts.entry(own).or_default().push(self.message.text.clone());
        book.origins.entry(own).or_insert_with(|| self.before.origin(self.message));
        if self.message.deliver.is_some() {
            book.delivered.insert(own);
        }
        self.check_others(stage, &mut book, &fate, own)?;
        Ok(Sending::Taken(self.sent))
    }

    /// What gave way is what was to, and everything else is as it was.
    fn check_others(&self, stage: &mut Stage, book: &mut Book, fate: &Fate, own: i64) -> Result<(), String> {
        let gone = |turn: &&TurnView| !self.after.turns.iter().any(|other| other.id == turn.id);
        let gone: BTreeSet<i64> = self.before.turns.iter().filter(gone).map(|turn| turn.id).collect();
        let (wanted, outcome): (BTreeSet<i64>, TurnOutcome) = match fate {
            Fate::Waits { dropped } => (dropped.iter().copied().collect(), TurnOutcome::Dropped),
            Fate::Interrupts => (self.before.waiting().map(|turn| turn.id).collect(), TurnOutcome::Cancelled),
            _ => (BTreeSet::new(), TurnOutcome::Dropped),
        };
        if gone != wanted {
            return Err(format!("{gone:?} gave way to it, and that was to be {wanted:?}"));
        }
        for id in wanted {
            let view = stage.look().turn(id).map_err(|error| error.to_string())?;
            if view.as_ref().and_then(|view| view.outcome) != Some(outcome) {
                return Err(format!("turn {id} gave way to it, and is {view:?}"));
            }
            let _ = if outcome == TurnOutcome::Dropped { book.dropped.insert(id) } else { book.cancelled.insert(id) };
        }
        if *fate == Fate::Interrupts {
            // Who was told to stop before ends for another reason, and holds up nobody.
            book.interrupted.extend(self.all.runs.iter().cloned());
            book.stopped.extend(self.all.runs.iter().cloned());
            book.cancelled.extend(&self.all.cancelled);
            for run in self.before.live().filter_map(|turn| turn.run.clone()) {
                let view = stage.look().run(&run).map_err(|error| error.to_string())?;
                if view.is_none_or(|view| view.stop.is_none()) {
                    return Err(format!("{run} goes on, and a newer message was to take its place"));
                }
            }
        }
        let others = |queue: &Queue| -> Vec<TurnView> {
            queue.turns.iter().filter(|turn| turn.id != own && !gone.contains(&turn.id)).cloned().collect()
        };
        same(&others(self.before), &others(self.after), "a message changed others")
    }
}

/// Who was to be stopped is stopped, and it is said how many, and how many are left; said again it stops no more.
fn obeyed(stage: &mut Stage, book: &Shared, message: &NewMessage, stops: &Stops, said: &str) -> Result<(), String> {
    let mut book = book.lock();
    if let Some(known) = message.source.as_ref().and_then(|source| book.obeyed.get(source)) {
        return if known == said { Ok(()) } else { Err(format!("it came again, and was answered `{said}`")) };
    }
    if let Some(source) = &message.source {
        book.obeyed.insert(source.clone(), said.to_owned());
    }
    for run in &stops.runs {
        if stage.look().run(run).map_err(|error| error.to_string())?.is_none_or(|run| run.stop.is_none()) {
            return Err(format!("{run} was to be stopped, and was not"));
        }
        book.stopped.insert(run.clone());
    }
    for turn in &stops.cancelled {
        let view = stage.look().turn(*turn).map_err(|error| error.to_string())?;
        if view.as_ref().and_then(|view| view.outcome) != Some(TurnOutcome::Cancelled) {
            return Err(format!("turn {turn} was to be cancelled, and is {view:?}"));
        }
        book.cancelled.insert(*turn);
    }
    let wanted = Stopped { runs: stops.runs.clone(), n_cancelled: stops.cancelled.len(), n_left: stops.n_left }.words();
    if said == wanted { Ok(()) } else { Err(format!("it said `{said}` instead of `{wanted}`")) }
}

fn same(before: &[TurnView], after: &[TurnView], what: &str) -> Result<(), String> {
    if before == after { Ok(()) } else { Err(format!("{what}: {before:?} became {after:?}")) }
}
