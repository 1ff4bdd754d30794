//! Stopping: the oldest turn of a session, or all of them, in whatever phase they are. // SPEC L4

use gt_core::defect;
use gt_core::event::EventType;
use gt_core::run::{Outcome, StopOrder};
use gt_core::session::TurnOutcome;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::arrive::{NewMessage, remember, repeated};
use super::{by_key, refresh, turns};
use crate::dispatch::runs::{self, Run};
use crate::error::{Result, StoreError};
use crate::events;
use crate::store::{Stamp, Store};

/// What was stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Runs that were told to stop.
    pub runs: Vec<String>,
    /// Turns that waited and were cancelled.
    pub n_cancelled: usize,
    /// What goes on or waits all the same.
    pub n_left: usize,
}

impl Stopped {
    /// What is said to whoever asked for it.
    pub fn words(&self) -> String {
        let count = |n: usize, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        let stopped = count(self.runs.len(), "turn that ran", "turns that ran");
        let cancelled = count(self.n_cancelled, "message that waited", "messages that waited");
        let said = match (self.runs.len(), self.n_cancelled) {
            (0, 0) => return "Nothing runs or waits here.".to_owned(),
            (_, 0) => format!("Stopped {stopped}"),
            (0, _) => format!("Cancelled {cancelled}"),
            _ => format!("Stopped {stopped} and cancelled {cancelled}"),
        };
        match self.n_left {
            0 => format!("{said}."),
            1 => format!("{said}; 1 more is left."),
            n => format!("{said}; {n} more are left."),
        }
    }
}

impl Store {
    /// Stops the oldest turn of a session, or all of them.
    pub fn stop_session(&mut self, key: &str, is_all: bool, stamp: &Stamp) -> std::result::Result<Stopped, StoreError> {
        self.write(stamp, |tx| stop(tx, key, is_all, stamp))
    }

    /// Obeys a command that came as a message, once however often it comes; says what was answered.
    pub fn obey(
        &mut self,
        message: &NewMessage,
        is_all: bool,
        stamp: &Stamp,
    ) -> std::result::Result<String, StoreError> {
        self.write(stamp, |tx| {
            if let Some(sent) = repeated(tx, &message.channel, message.source.as_deref())? {
                let sql = "SELECT answer FROM message WHERE id = ?1";
                let answer: Option<String> = tx.prepare_cached(sql)?.query_row([sent.message], |row| row.get(0))?;
                return Ok(answer.unwrap_or_default());
            }
            let answer = stop(tx, &message.session, is_all, stamp)?.words();
            let id = remember(tx, message, None, stamp)?;
            tx.prepare_cached("UPDATE message SET answer = ?2 WHERE id = ?1")?.execute(params![id, answer])?;
            if let Some(to) = &message.deliver {
                super::outbox::put(
                    tx,
                    &format!("message-{id}"),
                    to,
                    &message.session,
                    None,
                    "stopped",
                    &answer,
                    stamp,
                )?;
            }
            Ok(answer)
        })
    }
}

fn stop(tx: &Connection, key: &str, is_all: bool, stamp: &Stamp) -> Result<Stopped> {
    let Some(session) = by_key(tx, key)? else { return Ok(Stopped::default()) };
    let why = format!("{} stopped it", stamp.actor);
    let mut stopped =
        if is_all { everything(tx, session.id, &why, stamp)? } else { oldest(tx, session.id, &why, stamp)? };
    refresh(tx, session.id)?;
    let n_waiting: i64 = tx
        .prepare_cached("SELECT count(*) FROM turn WHERE session = ?1 AND state = 'waiting'")?
        .query_row([session.id], |row| row.get(0))?;
    stopped.n_left = n_waiting as usize + live(tx, session.id)?.len();
    if defect!("stop-hides-what-is-left") {
        stopped.n_left = 0;
    }
    if stopped.runs.len() + stopped.n_cancelled > 0 {
        let data = json!({ "session": key, "runs": stopped.runs, "cancelled": stopped.n_cancelled, "all": is_all });
        events::append(tx, stamp, EventType::SessionStopped, None, &data)?;
    }
    Ok(stopped)
}

/// Stops what runs, the oldest first, or cancels what waits.
fn oldest(tx: &Connection, session: i64, why: &str, stamp: &Stamp) -> Result<Stopped> {
    let mut stopped = Stopped::default();
    let mut running = live(tx, session)?;
    if defect!("stop-takes-the-newest") {
        running.reverse();
    }
    if let Some(run) = running.into_iter().next() {
        stop_run(tx, &run, why, stamp, &mut stopped)?;
        return Ok(stopped);
    }
    let sql = "SELECT id FROM turn WHERE session = ?1 AND state = 'waiting' ORDER BY id LIMIT 1";
    let waiting: Option<i64> = tx.prepare_cached(sql)?.query_row([session], |row| row.get(0)).optional()?;
    if let Some(turn) = waiting {
        turns::end(tx, turn, TurnOutcome::Cancelled, None, Some(why), stamp)?;
        stopped.n_cancelled = 1;
    }
    Ok(stopped)
}

/// Stops all that runs in a session and cancels all that waits there.
pub(super) fn everything(tx: &Connection, session: i64, why: &str, stamp: &Stamp) -> Result<Stopped> {
    let mut stopped = Stopped::default();
    // What waits first: otherwise the end of what runs would let it start.
    let mut query = tx.prepare_cached("SELECT id FROM turn WHERE session = ?1 AND state = 'waiting' ORDER BY id")?;
    let waiting: Vec<i64> = query.query_map([session], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for turn in waiting {
        if defect!("stop-all-leaves-what-waits") && why != super::arrive::INTERRUPTED {
            continue;
        }
        turns::end(tx, turn, TurnOutcome::Cancelled, None, Some(why), stamp)?;
        stopped.n_cancelled += 1;
    }
    for run in live(tx, session)? {
        if defect!("interrupt-leaves-what-runs") && why == super::arrive::INTERRUPTED {
            continue;
        }
        stop_run(tx, &run, why, stamp, &mut stopped)?;
    }
    Ok(stopped)
}

/// Runs of a session that nobody has told to stop, the oldest first.
fn live(tx: &Connection, session: i64) -> Result<Vec<Run>> {
    let mut query = tx.prepare_cached(
        "SELECT run.id FROM turn JOIN run ON run.id = turn.run WHERE turn.session = ?1 AND turn.state = 'live'
           AND run.state <> 'ended' AND run.stop_at IS NULL ORDER BY turn.id",
    )?;
    let ids: Vec<String> = query.query_map([session], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut live = Vec::new();
    for id in ids {
        live.extend(runs::by_id(tx, &id)?);
    }
    Ok(live)
}

/// Tells a run to stop, and with it all that it has asked for and waits for.
fn stop_run(tx: &Connection, run: &Run, why: &str, stamp: &Stamp, stopped: &mut Stopped) -> Result<()> {
    let order = StopOrder { at: stamp.now, by: stamp.actor.clone(), outcome: Outcome::Stopped, reason: why.to_owned() };
    runs::order_stop(tx, run, &order, stamp)?;
    stopped.runs.push(run.id.clone());
    if defect!("stop-spares-nested-work") {
        return Ok(());
    }
    abandon(tx, &run.id, why, stamp, stopped)
}

/// Stops what a run has asked for: nobody waits for it any more.
pub(crate) fn abandon(tx: &Connection, run: &str, why: &str, stamp: &Stamp, stopped: &mut Stopped) -> Result<()> {
    let mut query = tx.prepare_cached(
        "SELECT id, session, state = 'live', run FROM turn WHERE parent = ?1 AND parent IS NOT NULL AND state <> 'ended'",
    )?;
    let children: Vec<(i64, i64, bool, Option<String>)> = query
        .query_map([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (turn, session, is_live, child) in children {
        if !is_live {
            turns::end(tx, turn, TurnOutcome::Cancelled, None, Some(why), stamp)?;
            stopped.n_cancelled += 1;
            refresh(tx, session)?;
            continue;
        }
        let child = child.map(|child| runs::by_id(tx, &child)).transpose()?.flatten();
        if let Some(child) = child.filter(|child| child.is_live() && child.stop.is_none()) {
            stop_run(tx, &child, why, stamp, stopped)?;
        }
    }
    Ok(())
}
