//! Why a turn waits: the same facts that the claim goes by, in words. A reason is never empty. // SPEC B6, L1

use gt_core::defect;
use gt_core::plan::{Policy, SECOND_IS_FULL, TroubleOf};
use gt_core::session::limit;
use gt_core::time::format;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::arrive::INTERRUPTED;
use super::claim::{active, is_agent_full};
use super::turns::{self, TurnState, TurnView};
use crate::dispatch::{scene, scheduler};
use crate::error::{Result, StoreError};
use crate::store::Store;

/// What is said of a turn that nothing holds up.
pub const ABOUT_TO_START: &str = "nothing is in its way: it starts with the next pass of the daemon";

impl Store {
    /// Why a turn has not started; `None`: it has, or there is none.
    pub fn why_waiting(
        &mut self,
        turn: i64,
        policy: &Policy,
        now: Timestamp,
    ) -> std::result::Result<Option<String>, StoreError> {
        self.read(|tx| match turns::by_id(tx, turn)?.filter(|turn| turn.state == TurnState::Waiting) {
            Some(turn) => reason(tx, &turn, policy, now).map(Some),
            None => Ok(None),
        })
    }
}

fn reason(tx: &Connection, turn: &TurnView, policy: &Policy, now: Timestamp) -> Result<String> {
    if let Some(reason) = of_town(tx, policy, now)? {
        return Ok(reason);
    }
    if let Some(reason) = of_session(tx, turn)? {
        return Ok(reason);
    }
    if turn.due_at > now {
        let until = format(turn.due_at);
        return Ok(match &turn.error {
            Some(error) => format!("it is tried again at {until}, because {error}"),
            None => format!("more messages may come until {until}"),
        });
    }
    let asked = turn.agent.clone().or(super::by_key(tx, &turn.session)?.and_then(|session| session.wishes.agent));
    if gives_way(tx, turn)? {
        return Ok("it starts once what it takes the place of has ended".to_owned());
    }
    let agent = asked.as_ref().unwrap_or(&policy.default_agent);
    let of = TroubleOf::Agent(agent.clone());
    if let Some(trouble) = scheduler::state(tx, now)?.troubles.get(&of) {
        return Ok(of.sentence(trouble, now));
    }
    if is_agent_full(tx, policy, agent)? {
        return Ok(format!("as many runs of agent `{agent}` live as `agents.{agent}.max` allows"));
    }
    let lane = policy.lanes.resolve(&turn.lane);
    let (n, most) = (active(tx, &policy.lanes)?.get(lane).copied().unwrap_or(0), policy.lanes.limit(lane));
    if n >= most {
        return Ok(format!("the lane `{lane}` is full: {n} of {most} run; `gt lane set {lane} N` changes that"));
    }
    Ok(ABOUT_TO_START.to_owned())
}

/// What holds everything.
fn of_town(tx: &Connection, policy: &Policy, now: Timestamp) -> Result<Option<String>> {
    let state = scheduler::state(tx, now)?;
    if let Some(pause) = state.pause {
        return Ok(Some(format!("the scheduler is paused by {}; `gt scheduler resume` lets it go on", pause.by)));
    }
    if let Some(trouble) = state.troubles.get(&TroubleOf::Town) {
        return Ok(Some(TroubleOf::Town.sentence(trouble, now)));
    }
    if let Some(guard) = policy.guards.first().cloned().or(scene::budget_guard(tx, policy, now)?) {
        return Ok(Some(guard.message));
    }
    let left = policy.starts_per_second.map(|limit| scene::starts_left(tx, limit, now)).transpose()?;
    Ok((left == Some(0)).then(|| SECOND_IS_FULL.to_owned()))
}

/// Whether a run of its session still lives that gave way to a newer message.
fn gives_way(tx: &Connection, turn: &TurnView) -> Result<bool> {
    let mut query = tx.prepare_cached(
        "SELECT 1 FROM session JOIN turn AS old ON old.session = session.id JOIN run ON run.id = old.run
         WHERE session.key = ?1 AND old.state = 'live' AND run.stop_reason = ?2",
    )?;
    Ok(query.exists(params![turn.session, INTERRUPTED])?)
}

/// What is ahead of it in its own session.
fn of_session(tx: &Connection, turn: &TurnView) -> Result<Option<String>> {
    let sql = "SELECT session.n_live, session.is_crowded,
                 (SELECT count(*) FROM turn AS other WHERE other.session = session.id AND other.state = 'waiting' AND other.id < ?2)
               FROM session WHERE key = ?1";
    let (n_live, is_crowded, n_ahead): (i64, bool, i64) = tx
        .prepare_cached(sql)?
        .query_row(params![turn.session, turn.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let n_all = n_live + n_ahead;
    let is_behind = n_ahead > 0 || n_live as usize >= limit(&turn.session, is_crowded);
    Ok((is_behind && !defect!("reason-forgets-the-session")).then(|| match n_all {
        1 => "1 turn of its session is ahead of it".to_owned(),
        n => format!("{n} turns of its session are ahead of it"),
    }))
}
