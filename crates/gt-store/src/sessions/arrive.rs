//! Taking messages: each becomes a turn, a part of one, or is refused, in one transaction with what gives way to it.
//! // SPEC L2, L3

use gt_core::defect;
use gt_core::event::EventType;
use gt_core::lane::{Lanes, MAIN, SUBAGENT};
use gt_core::refusal::Refusal;
use gt_core::session::{Arrival, Rules, TEXT_BYTES_MAX, TurnOutcome, Waiting, flaw_of_key};
use jiff::SignedDuration;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::{Session, get_or_make, refresh, stop, touch, turns};
use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// So deep may runs ask others who ask others: beyond that somebody goes in circles.
const DEPTH_MAX: usize = 16;

/// Why all that ran or waited gave way.
pub(super) const INTERRUPTED: &str = "a newer message took its place";

/// A message as it comes in.
#[derive(Debug, Clone, Default)]
pub struct NewMessage {
    pub session: String,
    pub text: String,
    pub sender: String,
    /// The channel that it comes by.
    pub channel: String,
    /// Its name there: what comes twice is taken once.
    pub source: Option<String>,
    /// `None`: the session's, else the default agent.
    pub agent: Option<String>,
    /// `None`: the session's, else `main`; what an agent asks for goes to `subagent`.
    pub lane: Option<String>,
    /// Where its answer goes; `None`: where the session's do, or nowhere: whoever asked comes for it.
    pub deliver: Option<Address>,
    /// The run that waits for its answer.
    pub parent: Option<String>,
    /// Whether it is complete: then it is a turn of its own, and does not wait for more.
    pub is_whole: bool,
}

/// Where an answer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub channel: String,
    /// Who, in the channel's own words.
    pub recipient: Option<String>,
    /// The message that it answers.
    pub reply_to: Option<String>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub message: i64,
    /// The turn that it is part of; `None`: there was no room for it, or it was a command.
    pub turn: Option<i64>,
    pub outcome: SendOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    Queued,
    /// Part of a turn that waited for more.
    Collapsed,
    /// The session takes no more.
    Full,
    /// It has come before.
    Repeated,
}

impl Store {
    /// Takes messages, in order, in one transaction; what is wrong with one does not hold up the others.
    pub fn send(
        &mut self,
        messages: &[NewMessage],
        rules: &Rules,
        lanes: &Lanes,
        stamp: &Stamp,
    ) -> std::result::Result<Vec<std::result::Result<Sent, Refusal>>, StoreError> {
        let flaws: Vec<Option<Refusal>> = messages.iter().map(flaw).collect();
        self.write(stamp, |tx| {
            let mut answers = Vec::with_capacity(messages.len());
            for (message, flaw) in messages.iter().zip(flaws) {
                answers.push(match flaw {
                    Some(flaw) => Err(flaw),
                    None => take(tx, message, rules, lanes, stamp)?,
                });
            }
            Ok(answers)
        })
    }

    /// Whether a message of this name has come by a channel, and what it became.
    pub fn message_of(&mut self, channel: &str, source: &str) -> std::result::Result<Option<Sent>, StoreError> {
        self.read(|tx| repeated(tx, channel, Some(source)))
    }
}

/// What is wrong with a message, whatever the session.
fn flaw(message: &NewMessage) -> Option<Refusal> {
    let why = flaw_of_key(&message.session);
    if let Some(why) = why {
        return Some(Refusal::SessionKey { key: gt_core::text::one_line(&message.session), why });
    }
    match message.text.len() {
        _ if message.text.trim().is_empty() => Some(Refusal::EmptyMessage),
        n if n > TEXT_BYTES_MAX => Some(Refusal::LongMessage { most: TEXT_BYTES_MAX }),
        _ => None,
    }
}

pub(crate) fn take(
    tx: &Connection,
    message: &NewMessage,
    rules: &Rules,
    lanes: &Lanes,
    stamp: &Stamp,
) -> Result<std::result::Result<Sent, Refusal>> {
    if let Some(sent) = repeated(tx, &message.channel, message.source.as_deref())? {
        return Ok(Ok(sent));
    }
    if let Some(parent) = &message.parent
        && is_too_deep(tx, parent)?
    {
        return Ok(Err(Refusal::TooDeep { most: DEPTH_MAX }));
    }
    let session = get_or_make(tx, &message.session, stamp)?;
    if let Some(parent) = &message.parent
        && waits_for(tx, session.id, parent)?
    {
        return Ok(Err(Refusal::WaitsForItself { key: session.key }));
    }
    let mut rules = session.wishes.rules(rules);
    if message.is_whole || message.parent.is_some() {
        rules.debounce = SignedDuration::ZERO;
    }
    let turn = Draft::of(message, &session, lanes);
    let sent = match rules.admit(&waiting(tx, session.id)?, &turn.origin, message.text.len(), stamp.now) {
        Arrival::Full => {
            // It was not taken, so its name is free: it may come again.
            let id = remember(tx, &NewMessage { source: None, ..message.clone() }, None, stamp)?;
            Sent { message: id, turn: None, outcome: SendOutcome::Full }
        }
        Arrival::Collapses { turn, due_at } => {
            tx.prepare_cached(
                "UPDATE turn SET text = text || char(10) || ?2, n_messages = n_messages + 1, due_at = ?3,
                   reply_to = coalesce(?4, reply_to) WHERE id = ?1",
            )?
            .execute(params![
                turn,
                message.text,
                micros(due_at),
                message.deliver.as_ref().map(|to| &to.reply_to)
            ])?;
            let id = remember(tx, message, Some(turn), stamp)?;
            Sent { message: id, turn: Some(turn), outcome: SendOutcome::Collapsed }
        }
        Arrival::Waits { due_at, dropped } => {
            for old in dropped {
                let why = format!("{} messages wait in `{}`, and newer ones came", rules.cap, session.key);
                turns::end(tx, old, TurnOutcome::Dropped, None, Some(&why), stamp)?;
            }
            turn.write(tx, message, &session, due_at, stamp)?
        }
        Arrival::Interrupts { due_at } => {
            stop::everything(tx, session.id, INTERRUPTED, stamp)?;
            turn.write(tx, message, &session, due_at, stamp)?
        }
    };
    touch(tx, session.id, stamp)?;
    refresh(tx, session.id)?;
    let data = json!({ "session": session.key, "message": sent.message, "turn": sent.turn, "sender": message.sender,
                       "channel": message.channel, "outcome": sent.outcome.as_str() });
    events::append(tx, stamp, EventType::MessageReceived, None, &data)?;
    Ok(Ok(sent))
}

impl SendOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            SendOutcome::Queued => "queued",
            SendOutcome::Collapsed => "collapsed",
            SendOutcome::Full => "full",
            SendOutcome::Repeated => "repeated",
        }
    }
}

/// A turn that is about to be.
struct Draft {
    origin: String,
    agent: Option<String>,
    lane: String,
    deliver: Option<Address>,
}

impl Draft {
    fn of(message: &NewMessage, session: &Session, lanes: &Lanes) -> Draft {
        let agent = message.agent.clone().or_else(|| session.wishes.agent.clone());
        let usual = if message.parent.is_some() { SUBAGENT } else { MAIN };
        let lane = message.lane.as_deref().or(session.wishes.lane.as_deref()).unwrap_or(usual);
        let lane = lanes.resolve(lane).to_owned();
        let usual = || {
            let wishes = &session.wishes;
            let address = |channel: &String| Address {
                channel: channel.clone(),
                recipient: wishes.recipient.clone(),
                reply_to: None,
            };
            wishes.channel.as_ref().map(address)
        };
        let deliver = message.deliver.clone().or_else(usual);
        let origin = json!([
            message.sender,
            message.channel,
            agent,
            lane,
            message.parent,
            message.is_whole,
            deliver.as_ref().map(|to| (&to.channel, &to.recipient))
        ]);
        Draft { origin: origin.to_string(), agent, lane, deliver }
    }

    fn write(
        self,
        tx: &Connection,
        message: &NewMessage,
        session: &Session,
        due_at: jiff::Timestamp,
        stamp: &Stamp,
    ) -> Result<Sent> {
        let (channel, recipient, reply_to) =
            self.deliver.map_or((None, None, None), |to| (Some(to.channel), to.recipient, to.reply_to));
        tx.prepare_cached(
            "INSERT INTO turn (session, origin, text, agent, lane, channel, recipient, reply_to, parent, state, made_at, due_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting', ?10, ?11)",
        )?
        .execute(params![
            session.id,
            self.origin,
            message.text,
            self.agent,
            self.lane,
            channel,
            recipient,
            reply_to,
            message.parent,
            micros(stamp.now),
            micros(due_at),
        ])?;
        let turn = tx.last_insert_rowid();
        let id = remember(tx, message, Some(turn), stamp)?;
        Ok(Sent { message: id, turn: Some(turn), outcome: SendOutcome::Queued })
    }
}

/// A message that has come before.
pub(super) fn repeated(tx: &Connection, channel: &str, source: Option<&str>) -> Result<Option<Sent>> {
    let Some(source) = source.filter(|_| !defect!("repeated-message-taken-again")) else { return Ok(None) };
    let mut query = tx.prepare_cached("SELECT id, turn FROM message WHERE channel = ?1 AND source = ?2")?;
    let sent = query.query_row(params![channel, source], |row| {
        Ok(Sent { message: row.get(0)?, turn: row.get(1)?, outcome: SendOutcome::Repeated })
    });
    Ok(sent.optional()?)
}

pub(super) fn remember(tx: &Connection, message: &NewMessage, turn: Option<i64>, stamp: &Stamp) -> Result<i64> {
    tx.prepare_cached("INSERT INTO message (turn, sender, channel, source, text, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            turn,
            message.sender,
            message.channel,
            message.source.as_ref().filter(|_| !defect!("repeated-message-taken-again")),
            message.text,
            micros(stamp.now)
        ])?;
    Ok(tx.last_insert_rowid())
}

fn waiting(tx: &Connection, session: i64) -> Result<Vec<Waiting>> {
    let mut query = tx.prepare_cached(
        "SELECT id, origin, made_at, due_at, length(CAST(text AS BLOB)), run IS NULL FROM turn
         WHERE session = ?1 AND state = 'waiting' ORDER BY id",
    )?;
    let rows = query.query_map([session], |row| {
        Ok(Waiting {
            id: row.get(0)?,
            origin: row.get(1)?,
            first_at: timestamp(row.get(2)?),
            due_at: timestamp(row.get(3)?),
            bytes: row.get::<_, i64>(4)?.max(0) as usize,
            is_fresh: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether a run is as deep in nested work as work may be nested.
fn is_too_deep(tx: &Connection, run: &str) -> Result<bool> {
    let mut query = tx.prepare_cached(
        "WITH RECURSIVE above (run, depth) AS (
           SELECT ?1, 0
           UNION ALL
           SELECT turn.parent, depth + 1 FROM above JOIN run ON run.id = above.run JOIN turn ON turn.id = run.turn
             WHERE turn.parent IS NOT NULL AND depth < ?2
         )
         SELECT max(depth) >= ?2 FROM above",
    )?;
    Ok(query.query_row(params![run, DEPTH_MAX as i64 - 1], |row| row.get(0))?)
}

/// Whether a session cannot answer a run before that run has ended: it is the run's own, or what runs or waits in it waits,
/// however indirectly, for an answer of the session that the run belongs to.
fn waits_for(tx: &Connection, session: i64, run: &str) -> Result<bool> {
    let sql = "SELECT turn.session FROM run JOIN turn ON turn.id = run.turn WHERE run.id = ?1";
    let own: Option<i64> = tx.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?;
    let Some(own) = own else { return Ok(false) };
    let mut query = tx.prepare_cached(
        "WITH RECURSIVE ahead (session) AS (
           SELECT ?1
           UNION
           SELECT asked.session FROM ahead
             JOIN turn AS asking ON asking.session = ahead.session AND asking.state = 'live'
             JOIN turn AS asked ON asked.parent = asking.run AND asked.parent IS NOT NULL AND asked.state <> 'ended'
         )
         SELECT EXISTS (SELECT 1 FROM ahead WHERE session = ?2)",
    )?;
    Ok(query.query_row([session, own], |row| row.get(0))?)
}
