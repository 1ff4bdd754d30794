//! Turns: what is asked of a session, and what becomes of the runs that answer it. // SPEC L4, L5
//!
//! A run that was interrupted through no fault of its own is tried once more; one that failed is reported, because what it
//! did until then may not bear being done twice.

use std::borrow::Cow;

use gt_core::agent::{Activity, Failure, Told};
use gt_core::defect;
use gt_core::event::EventType;
use gt_core::plan::{Policy, TroubleOf, backoff};
use gt_core::run::{Outcome, exit_words};
use gt_core::session::{TurnOutcome, is_crowded};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::arrive::Address;
use super::stop::{Stopped, abandon};
use super::{claim, outbox, refresh, touch};
use crate::dispatch::runs::{Ended, Fault, NotStarted, Run, Started};
use crate::dispatch::{runs, tellings, troubles};
use crate::error::{Result, StoreError};
use crate::jobs::settle::Attempt;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};
use crate::{events, jobs};

/// Runs of one turn that may be interrupted before it is given up.
const INTERRUPTIONS_MAX: i64 = 2;

/// What is said of an answer in plain text if the keeper died before the run ended.
const UNSEEN_END: &str = "the end of this run was not seen, so the answer may be incomplete";

/// Where a turn is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    Waiting,
    Live,
    Ended,
}

/// What is asked of a session, with its answer once there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnView {
    pub id: i64,
    pub session: String,
    pub text: String,
    pub n_messages: i64,
    pub agent: Option<String>,
    pub lane: String,
    pub state: TurnState,
    pub made_at: Timestamp,
    pub due_at: Timestamp,
    /// Its last run.
    pub run: Option<String>,
    pub parent: Option<String>,
    pub ended_at: Option<Timestamp>,
    pub outcome: Option<TurnOutcome>,
    pub reply: Option<String>,
    pub error: Option<String>,
    session_id: i64,
    attempts: i64,
    failures: i64,
    deliver: Option<Address>,
    /// The slot of a job that it is of.
    fire: Option<i64>,
    /// Whether a command is run instead of an agent asked.
    is_command: bool,
}

const SELECT: &str = "SELECT turn.id, session.key, turn.text, n_messages, turn.agent, turn.lane, state, turn.made_at, due_at,
    run, parent, ended_at, outcome, reply, error, turn.session, attempts, failures, turn.channel, turn.recipient, reply_to,
    turn.fire, turn.command IS NOT NULL
  FROM turn JOIN session ON session.id = turn.session";

fn from_row(row: &Row<'_>) -> rusqlite::Result<TurnView> {
    let channel: Option<String> = row.get(18)?;
    let (recipient, reply_to) = (row.get(19)?, row.get(20)?);
    Ok(TurnView {
        id: row.get(0)?,
        session: row.get(1)?,
        text: row.get(2)?,
        n_messages: row.get(3)?,
        agent: row.get(4)?,
        lane: row.get(5)?,
        state: match row.get_ref(6)?.as_str()? {
            "waiting" => TurnState::Waiting,
            "live" => TurnState::Live,
            _ => TurnState::Ended,
        },
        made_at: timestamp(row.get(7)?),
        due_at: timestamp(row.get(8)?),
        run: row.get(9)?,
        parent: row.get(10)?,
        ended_at: row.get::<_, Option<i64>>(11)?.map(timestamp),
        outcome: row.get::<_, Option<String>>(12)?.as_deref().and_then(TurnOutcome::parse),
        reply: row.get(13)?,
        error: row.get(14)?,
        session_id: row.get(15)?,
        attempts: row.get(16)?,
        failures: row.get(17)?,
        deliver: channel.map(|channel| Address { channel, recipient, reply_to }),
        fire: row.get(21)?,
        is_command: row.get(22)?,
    })
}

impl Store {
    pub fn turn(&mut self, id: i64) -> std::result::Result<Option<TurnView>, StoreError> {
        self.read(|tx| by_id(tx, id))
    }

    /// The turns of a session that came last, the oldest of them first.
    pub fn turns(&mut self, key: &str, most: usize) -> std::result::Result<Vec<TurnView>, StoreError> {
        self.read(|tx| {
            let sql = format!("{SELECT} WHERE session.key = ?1 ORDER BY turn.id DESC LIMIT ?2");
            let mut query = tx.prepare_cached(&sql)?;
            let rows = query.query_map(params![key, i64::try_from(most).unwrap_or(i64::MAX)], from_row)?;
            let mut turns: Vec<TurnView> = rows.collect::<rusqlite::Result<_>>()?;
            turns.reverse();
            Ok(turns)
        })
    }

    /// The turns of a session that run, the oldest first.
    pub fn live_turns(&mut self, key: &str) -> std::result::Result<Vec<TurnView>, StoreError> {
        self.read(|tx| {
            let sql = format!("{SELECT} WHERE session.key = ?1 AND state = 'live' ORDER BY turn.id");
            let mut query = tx.prepare_cached(&sql)?;
            Ok(query.query_map([key], from_row)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Turns of a session whose end is an event after `since`, each with the number of that, in order.
    pub fn turn_ends(
        &mut self,
        key: &str,
        since: i64,
        most: usize,
    ) -> std::result::Result<Vec<(i64, TurnView)>, StoreError> {
        self.read(|tx| {
            // In this order, whatever the planner thinks: the log may be long, and what is new of it is little.
            let mut query = tx.prepare_cached(
                "SELECT seq, turn.id FROM event CROSS JOIN turn ON turn.id = json_extract(data, '$.turn')
                 WHERE seq > ?1 AND type = ?2 AND json_extract(data, '$.session') = ?3 ORDER BY seq LIMIT ?4",
            )?;
            let ended = EventType::TurnEnded.as_str();
            let rows =
                query.query_map(params![since, ended, key, most as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let ends: Vec<(i64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
            let mut found = Vec::with_capacity(ends.len());
            for (seq, turn) in ends {
                found.extend(by_id(tx, turn)?.map(|turn| (seq, turn)));
            }
            Ok(found)
        })
    }

    /// All runs that a turn has had, the first of them first.
    pub fn runs_of_turn(&mut self, turn: i64) -> std::result::Result<Vec<Run>, StoreError> {
        self.read(|tx| runs::of_turn(tx, turn))
    }

    /// Forgets what was said and answered before a time, and says how many turns went.
    pub fn prune_turns(&mut self, before: Timestamp, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        let before = micros(before);
        let is_any: bool = self.read(|tx| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM turn WHERE {PRUNABLE}) OR EXISTS (SELECT 1 FROM message WHERE at < ?1)"
            );
            Ok(tx.prepare_cached(&sql)?.query_row([before], |row| row.get(0))?)
        })?;
        if !is_any {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            tx.execute("DELETE FROM outbox WHERE done_at < ?1", [before])?;
            let n = tx.execute(&format!("DELETE FROM turn WHERE {PRUNABLE}"), [before])?;
            let sql =
                "DELETE FROM message WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.id = message.turn)";
            tx.execute(sql, [before])?;
            tx.execute(FORGET_SESSIONS, [before])?;
            Ok(n)
        })
    }
}

/// Turns that ended before a time. As long as a fire is not over, a retry may need what its attempts were asked.
const PRUNABLE: &str = "ended_at < ?1
    AND NOT EXISTS (SELECT 1 FROM fire WHERE fire.id = turn.fire AND fire.status = 'running')";

/// Sessions that nobody has used since, about which nothing is left to know.
const FORGET_SESSIONS: &str = "DELETE FROM session WHERE last_at < ?1
    AND coalesce(agent, lane, mode, cap, overflow, debounce, channel, recipient) IS NULL
    AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session = session.id)";

pub(super) fn by_id(tx: &Connection, id: i64) -> Result<Option<TurnView>> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE turn.id = ?1"))?.query_row([id], from_row).optional()?)
}

/// Ends a turn, and puts its answer, or that it has none, where it is to be delivered.
pub(crate) fn end(
    tx: &Connection,
    id: i64,
    outcome: TurnOutcome,
    reply: Option<&str>,
    error: Option<&str>,
    stamp: &Stamp,
) -> Result<()> {
    let Some(turn) = by_id(tx, id)?.filter(|turn| turn.state != TurnState::Ended) else { return Ok(()) };
    let doubt = error.filter(|_| outcome == TurnOutcome::Done);
    let answer = reply.map(|reply| with_doubt(reply, doubt));
    tx.prepare_cached(
        "UPDATE turn SET state = 'ended', ended_at = ?2, outcome = ?3, reply = ?4, error = ?5 WHERE id = ?1",
    )?
    .execute(params![id, micros(stamp.now), outcome.as_str(), answer, error])?;
    touch(tx, turn.session_id, stamp)?;
    let data = json!({ "session": turn.session, "turn": id, "outcome": outcome.as_str(), "error": error });
    let run = turn.run.as_deref().unwrap_or_default();
    events::append_of_run(tx, stamp, EventType::TurnEnded, "", run, &data)?;
    if let Some(fire) = turn.fire {
        let run = turn.run.as_deref();
        let attempt = Attempt { fire, run, outcome, reply, error, to: turn.deliver.as_ref() };
        if let Some(answer) = jobs::settle::ended(tx, &attempt, stamp)? {
            let (key, text) = (format!("turn-{id}"), with_doubt(&answer.text, doubt));
            return outbox::put(tx, &key, &answer.to, &turn.session, run, outcome.as_str(), &text, stamp);
        }
        if outcome != TurnOutcome::Cancelled {
            return Ok(());
        }
    }
    let Some(to) = turn.deliver.as_ref().filter(|_| outcome != TurnOutcome::Dropped || !defect!("drop-not-told"))
    else {
        return Ok(());
    };
    let text = match outcome {
        TurnOutcome::Done => answer.unwrap_or_default().into_owned(),
        // Whoever asked knows it; what shows that somebody is at it is cleared.
        TurnOutcome::Cancelled => String::new(),
        TurnOutcome::Dropped => "Your message was dropped: too many newer ones wait here.".to_owned(),
        TurnOutcome::Failed => format!("This could not be answered: {}.", error.unwrap_or("nobody knows why")),
    };
    outbox::put(tx, &format!("turn-{id}"), to, &turn.session, turn.run.as_deref(), outcome.as_str(), &text, stamp)
}

/// An answer as it is delivered: with why it may not be all of it.
fn with_doubt<'a>(text: &'a str, doubt: Option<&str>) -> Cow<'a, str> {
    doubt.map_or(Cow::Borrowed(text), |doubt| Cow::Owned(format!("{text}\n\n[{doubt}]")))
}

/// Puts a turn back to where it waited, to be tried again.
fn wait_again(tx: &Connection, turn: &TurnView, at: Timestamp, why: &str, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE turn SET state = 'waiting', due_at = ?2, error = ?3 WHERE id = ?1")?.execute(params![
        turn.id,
        micros(at.max(stamp.now)),
        why
    ])?;
    Ok(())
}

/// That a run of a turn was started; returns it if that is not wanted any more.
pub(crate) fn started(tx: &Connection, run: Run, start: &Started, stamp: &Stamp) -> Result<Option<Run>> {
    runs::note_started(tx, &run, start, stamp)?;
    if let Some(turn) = run.turn_id() {
        jobs::settle::started(tx, turn, &run.id, start.at.unwrap_or(stamp.now))?;
    }
    let pid = Some(start.pid).filter(|pid| *pid != 0);
    let data = json!({ "session": run.session_key(), "turn": run.turn_id(), "lane": run.lane, "agent": run.agent, "pid": pid });
    events::append_of_run(tx, stamp, EventType::RunStarted, "", &run.id, &data)?;
    Ok(Some(run).filter(|run| run.stop.is_some()))
}

/// That a run of a turn could not be started.
pub(crate) fn not_started(
    tx: &Connection,
    run: &Run,
    failure: &NotStarted,
    policy: &Policy,
    stamp: &Stamp,
) -> Result<()> {
    runs::end_run(tx, run, Outcome::NotStarted, &failure.error, stamp)?;
    claim::hand_on(tx, &run.id)?;
    tell_end(tx, run, Outcome::NotStarted, &failure.error, stamp)?;
    if let Fault::Rig | Fault::Town = failure.fault {
        troubles::note(tx, &TroubleOf::Town, &failure.error, stamp)?;
    }
    let Some(turn) = turn_of(tx, run)? else { return Ok(()) };
    if let Some(stop) = &run.stop {
        let outcome = if stop.outcome == Outcome::Stopped { TurnOutcome::Cancelled } else { TurnOutcome::Failed };
        end(tx, turn.id, outcome, None, Some(&stop.reason), stamp)?;
        return refresh(tx, turn.session_id);
    }
    let is_unfit = failure.fault == Fault::Agent;
    if let Some(fire) = turn.fire.filter(|_| is_unfit) {
        jobs::settle::is_hopeless(tx, fire)?;
    }
    // An agent that cannot be started is told at once: somebody waits for the answer. What the clock brought has retries of
    // its own.
    if is_unfit || turn.fire.is_some() && failure.fault == Fault::Bead {
        end(tx, turn.id, TurnOutcome::Failed, None, Some(&failure.error), stamp)?;
        return refresh(tx, turn.session_id);
    }
    let failures = turn.failures + i64::from(failure.fault == Fault::Bead);
    tx.prepare_cached("UPDATE turn SET failures = ?2 WHERE id = ?1")?.execute(params![turn.id, failures])?;
    if failures >= policy.max_failures {
        end(tx, turn.id, TurnOutcome::Failed, None, Some(&failure.error), stamp)?;
    } else {
        let at = if failure.fault == Fault::Bead { stamp.now + backoff(failures) } else { stamp.now };
        wait_again(tx, &turn, at, &failure.error, stamp)?;
    }
    refresh(tx, turn.session_id)
}

/// That a run of a turn has ended: its turn is answered, tried again or given up.
pub(crate) fn ended(tx: &Connection, run: &Run, end: &Ended, policy: &Policy, stamp: &Stamp) -> Result<()> {
    let failure = end.told.as_ref().and_then(|telling| telling.told.failure());
    let turn = turn_of(tx, run)?;
    let answered = Answered::by(end, failure, turn.as_ref().is_some_and(|turn| turn.is_command));
    let outcome = outcome(run, end, failure, answered);
    let reason = reason(run, end, outcome, failure);
    if let Some(telling) = &end.told {
        tellings::count(tx, run, telling, stamp)?;
    }
    runs::end_run(tx, run, outcome, &reason, stamp)?;
    claim::hand_on(tx, &run.id)?;
    tx.prepare_cached("UPDATE run SET exit_code = ?2, exit_signal = ?3, failure = ?4, last_output = ?5 WHERE id = ?1")?
        .execute(params![
            run.id,
            end.code,
            end.signal,
            failure.map(|failure| failure.class.as_str()),
            end.last_output.as_deref().filter(|_| outcome != Outcome::Completed),
        ])?;
    if let (Some(telling), Some(failure), true) = (&end.told, failure, outcome.is_the_agents()) {
        tellings::hold_up(tx, run, failure, telling.vendor, stamp)?;
    }
    tell_end(tx, run, outcome, &reason, stamp)?;
    // Nobody is left who would wait for what it asked for.
    abandon(tx, &run.id, "whoever asked for it has ended", stamp, &mut Stopped::default())?;
    let Some(turn) = turn else { return Ok(()) };
    match (outcome, answered) {
        (Outcome::Completed, Answered::Unseen) => {
            self::end(tx, turn.id, TurnOutcome::Done, end.reply.as_deref(), Some(UNSEEN_END), stamp)?;
        }
        _ => settle(tx, &turn, end, outcome, &reason, stamp)?,
    }
    remember_conversation(tx, run, &turn, end, outcome, policy)?;
    refresh(tx, turn.session_id)
}

fn settle(
    tx: &Connection,
    turn: &TurnView,
    ended: &Ended,
    outcome: Outcome,
    reason: &str,
    stamp: &Stamp,
) -> Result<()> {
    match outcome {
        Outcome::Completed => end(tx, turn.id, TurnOutcome::Done, ended.reply.as_deref(), None, stamp),
        Outcome::Stopped => end(tx, turn.id, TurnOutcome::Cancelled, None, Some(reason), stamp),
        // What the clock brought has rules of its own for trying again.
        _ if turn.fire.is_some() && !ended.is_conversation_lost => {
            end(tx, turn.id, TurnOutcome::Failed, None, Some(reason), stamp)
        }
        // Its agent is held up until then; the turn costs nothing and waits.
        Outcome::RateLimited | Outcome::AgentUnable if !defect!("rate-limited-turn-fails") => {
            wait_again(tx, turn, stamp.now, reason, stamp)
        }
        Outcome::Lost | Outcome::Died => {
            let attempts = turn.attempts + 1;
            tx.prepare_cached("UPDATE turn SET attempts = ?2 WHERE id = ?1")?.execute(params![turn.id, attempts])?;
            if attempts < INTERRUPTIONS_MAX || defect!("killed-turn-tried-for-ever") {
                return wait_again(tx, turn, stamp.now, reason, stamp);
            }
            let why = format!("it was interrupted {attempts} times, the last time so: {reason}");
            end(tx, turn.id, TurnOutcome::Failed, None, Some(&why), stamp)
        }
        Outcome::Failed if defect!("failed-turn-tried-again") && turn.attempts == 0 => {
            tx.prepare_cached("UPDATE turn SET attempts = 1 WHERE id = ?1")?.execute([turn.id])?;
            wait_again(tx, turn, stamp.now, reason, stamp)
        }
        // The next run begins a conversation of its own.
        Outcome::Failed if turn.attempts == 0 && ended.is_conversation_lost => {
            tx.prepare_cached("UPDATE turn SET attempts = 1 WHERE id = ?1")?.execute([turn.id])?;
            let sql = "UPDATE session SET conversation = NULL, talks_to = NULL WHERE id = ?1";
            tx.prepare_cached(sql)?.execute([turn.session_id])?;
            wait_again(tx, turn, stamp.now, reason, stamp)
        }
        _ => end(tx, turn.id, TurnOutcome::Failed, None, Some(reason), stamp),
    }
}

/// Whether a run has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    No,
    /// It printed plain text, and how it ended is not known: all of it may be there, and its work done.
    Unseen,
    Whole,
}

impl Answered {
    fn by(end: &Ended, failure: Option<&Failure>, is_command: bool) -> Answered {
        let Some(reply) = end.reply.as_ref().filter(|_| failure.is_none()) else { return Answered::No };
        // What a command printed is no answer: its exit code is.
        let may_be_all = !is_command && !reply.trim().is_empty() && is_plain(end);
        if end.code == Some(0) || is_over_by_its_word(end) && !defect!("last-word-not-believed") {
            Answered::Whole
        } else if !gt_core::defect!("unseen-end-is-a-death")
            && may_be_all
            && end.code.is_none()
            && end.signal.is_none()
            && !end.is_lost
        {
            Answered::Unseen
        } else {
            Answered::No
        }
    }
}

/// What the end of a run means.
fn outcome(run: &Run, end: &Ended, failure: Option<&Failure>, answered: Answered) -> Outcome {
    match &run.stop {
        // It had answered, and only did not go.
        Some(stop) if stop.outcome == Outcome::Died && answered == Answered::Whole => Outcome::Completed,
        Some(stop) => stop.outcome,
        None if answered != Answered::No => Outcome::Completed,
        None if end.is_lost => Outcome::Lost,
        None => match failure.and_then(Failure::outcome) {
            Some(outcome) => outcome,
            None if end.code.is_none() => Outcome::Died,
            None => Outcome::Failed,
        },
    }
}

fn is_over_by_its_word(end: &Ended) -> bool {
    end.told.as_ref().is_some_and(|telling| telling.told.activity() == Some(Activity::TurnOver))
}

/// Whether it printed no records of its own, by which its end would be known.
fn is_plain(end: &Ended) -> bool {
    let told = end.told.as_ref().map(|telling| &telling.told);
    told.is_none_or(|told| told.activity().is_none() && told.conversation().is_none())
}

fn reason(run: &Run, end: &Ended, outcome: Outcome, failure: Option<&Failure>) -> String {
    let exit = exit_words(end.code, end.signal);
    let said = failure.map(|failure| failure.message.clone()).or_else(|| end.last_output.clone());
    match (&run.stop, outcome) {
        (_, Outcome::Completed) => exit,
        (Some(stop), _) => format!("{} ({exit})", stop.reason),
        (None, Outcome::Lost) => "the place that it ran in is gone, and took it along".to_owned(),
        (None, _) => said.map_or(exit.clone(), |said| format!("{said} ({exit})")),
    }
}

/// Goes on with the newest conversation; one that ran beside others is nobody's to go on with.
fn remember_conversation(
    tx: &Connection,
    run: &Run,
    turn: &TurnView,
    end: &Ended,
    outcome: Outcome,
    policy: &Policy,
) -> Result<()> {
    let told = end.told.as_ref().map(|telling| &telling.told);
    let conversation = told.and_then(Told::conversation).or(run.conversation.as_deref());
    let is_kept = outcome == Outcome::Completed && !run.is_aside && !end.is_conversation_lost;
    let Some(conversation) = conversation.filter(|_| is_kept) else {
        return Ok(());
    };
    let tokens = match &end.told {
        // What it tells has grown over all turns; this one read the conversation as it is.
        Some(telling) if telling.vendor.counts_conversations() => Some(tellings::used(tx, run, telling)?.tokens()),
        _ => told.and_then(Told::context_tokens),
    };
    let is_crowded = tokens.is_some_and(|tokens| is_crowded(tokens, policy.windows.get(&run.agent).copied()))
        && !defect!("full-window-unnoticed");
    tx.prepare_cached(
        "UPDATE session SET conversation = ?2, talks_to = ?3, tokens = ?4, is_crowded = ?5 WHERE id = ?1",
    )?
    .execute(params![
        turn.session_id,
        conversation,
        run.agent,
        tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
        is_crowded
    ])?;
    Ok(())
}

fn turn_of(tx: &Connection, run: &Run) -> Result<Option<TurnView>> {
    let turn = run.turn_id().map(|turn| by_id(tx, turn)).transpose()?.flatten();
    Ok(turn.filter(|turn| turn.state == TurnState::Live && turn.run.as_deref() == Some(&run.id)))
}

fn tell_end(tx: &Connection, run: &Run, outcome: Outcome, reason: &str, stamp: &Stamp) -> Result<()> {
    let data = json!({ "outcome": outcome.as_str(), "reason": reason, "session": run.session_key(),
                       "turn": run.turn_id(), "lane": run.lane });
    events::append_of_run(tx, stamp, EventType::RunEnded, "", &run.id, &data)
}
