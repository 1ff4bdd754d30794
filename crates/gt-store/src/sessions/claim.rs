//! Claiming turns: which of those that may come next fit into their lane. // SPEC L1, L2, L4
//!
//! Part of the one claim: the same transaction, pauses, guards, troubles and caps of agents. A run that waits for an answer
//! lends its place to whoever gives it, so that nested work never waits for itself.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::defect;
use gt_core::job::Command;
use gt_core::lane::{Lanes, POLECAT};
use gt_core::plan::{Policy, TroubleOf};
use gt_core::session::TurnOutcome;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::arrive::INTERRUPTED;
use super::{refresh, turns};
use crate::dispatch::claim::Claimant;
use crate::dispatch::runs::Run;
use crate::dispatch::{scene, scheduler};
use crate::error::{Result, StoreError};
use crate::jobs::{beats, fire};
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// Turns that are read together.
const PAGE: usize = 256;

/// A turn that was claimed and is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub run: String,
    pub turn: i64,
    pub session: String,
    pub agent: String,
    pub lane: String,
    pub text: String,
    /// The conversation to go on with.
    pub resumes: Option<String>,
    pub claimed_at: Timestamp,
    /// The slot that it is of, if the clock brought it.
    pub fire: Option<FireOf>,
}

/// A slot of a job, as whatever runs for it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireOf {
    pub id: i64,
    pub job: String,
    pub slot: Timestamp,
    pub attempt: i64,
    /// What is started; `None`: an agent is asked.
    pub command: Option<Command>,
}

impl Turn {
    /// Whether it starts a command, rather than ask an agent.
    pub fn is_command(&self) -> bool {
        self.fire.as_ref().is_some_and(|fire| fire.command.is_some())
    }
}

impl FireOf {
    /// Reads the columns of `FIRE`, from that one on.
    fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<FireOf>> {
        let Some(job) = row.get(first)? else { return Ok(None) };
        let command = row.get_ref(first + 3)?.as_str_or_null()?;
        Ok(Some(FireOf {
            id: row.get(first + 4)?,
            job,
            slot: timestamp(row.get(first + 1)?),
            attempt: row.get(first + 2)?,
            command: command.and_then(|text| serde_json::from_str(text).ok()),
        }))
    }
}

/// What a turn that the clock brought knows of its slot.
const FIRE: &str = "fire.name, fire.slot, fire.attempt, turn.command, fire.id";

/// How a lane stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneFigure {
    pub name: String,
    /// `None`: no limit.
    pub limit: Option<usize>,
    pub active: usize,
    pub pending: usize,
}

impl Store {
    /// Every lane, with what runs and waits in it.
    pub fn lanes(&mut self, policy: &Policy) -> std::result::Result<Vec<LaneFigure>, StoreError> {
        self.read(|tx| {
            let active = active(tx, &policy.lanes)?;
            let mut pending = BTreeMap::new();
            let mut query =
                tx.prepare_cached("SELECT lane, count(*) FROM turn WHERE state = 'waiting' GROUP BY lane")?;
            for row in query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))? {
                let (lane, n) = row?;
                *pending.entry(policy.lanes.resolve(&lane).to_owned()).or_insert(0) += n as usize;
            }
            let figure = |(name, limit): (&str, usize)| LaneFigure {
                name: name.to_owned(),
                limit: Some(limit),
                active: active.get(name).copied().unwrap_or(0),
                pending: pending.get(name).copied().unwrap_or(0),
            };
            let mut lanes: Vec<LaneFigure> = policy.lanes.iter().map(figure).collect();
            lanes.push(polecats(tx, policy)?);
            Ok(lanes)
        })
    }

    /// When a turn that waits may start, though nothing happens until then.
    pub fn next_turn_at(&mut self, after: Timestamp) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.read(|tx| {
            let sql = "SELECT min(next_at) FROM session WHERE next_turn IS NOT NULL AND next_at > ?1";
            let at: Option<i64> = tx.prepare_cached(sql)?.query_row([micros(after)], |row| row.get(0))?;
            Ok(at.map(timestamp))
        })
    }

    /// Whether a turn could start if nothing held it up.
    pub fn has_due_turns(&mut self, now: Timestamp) -> std::result::Result<bool, StoreError> {
        self.read(|tx| is_any_due(tx, now))
    }
}

fn polecats(tx: &Connection, policy: &Policy) -> Result<LaneFigure> {
    let count = |sql: &str| -> Result<usize> {
        Ok(tx.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))?.max(0) as usize)
    };
    Ok(LaneFigure {
        name: POLECAT.to_owned(),
        limit: policy.caps.town,
        active: count("SELECT count(*) FROM run WHERE state <> 'ended' AND bead IS NOT NULL")?,
        pending: count("SELECT count(*) FROM context WHERE state = 'open'")?,
    })
}

pub(crate) fn is_any_due(tx: &Connection, now: Timestamp) -> Result<bool> {
    let mut query = tx.prepare_cached("SELECT 1 FROM session WHERE next_turn IS NOT NULL AND next_at <= ?1 LIMIT 1")?;
    Ok(query.exists([micros(now)])?)
}

/// What runs in each lane; whoever has the place of a run that waits for it does not count beside that.
pub(super) fn active(tx: &Connection, lanes: &Lanes) -> Result<BTreeMap<String, usize>> {
    let mut query = tx.prepare_cached(
        "SELECT run.lane, count(*) FROM run
           LEFT JOIN run AS host ON host.id = run.rides AND host.state <> 'ended'
         WHERE run.state <> 'ended' AND run.lane IS NOT NULL AND host.id IS NULL GROUP BY run.lane",
    )?;
    let mut active = BTreeMap::new();
    for row in query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))? {
        let (lane, n) = row?;
        *active.entry(lanes.resolve(&lane).to_owned()).or_insert(0) += n as usize;
    }
    Ok(active)
}

/// Claims every turn that may start now; also returns the heartbeats that have to give way to one that may not.
pub(crate) fn claim_turns(
    tx: &Connection,
    claimant: &mut Claimant<'_>,
    stamp: &Stamp,
) -> Result<(Vec<Turn>, Vec<Run>)> {
    if !is_any_due(tx, stamp.now)? {
        return Ok((Vec::new(), Vec::new()));
    }
    let Some(mut room) = Room::look(tx, claimant.policy, stamp.now)? else { return Ok((Vec::new(), Vec::new())) };
    let mut claimed = Vec::new();
    loop {
        let n_before = claimed.len();
        for lane in due_lanes(tx, stamp.now)? {
            claim_in(tx, claimant, &lane, &mut room, &mut claimed, stamp)?;
        }
        // A session with room for several has a next one now.
        if claimed.len() == n_before {
            return Ok((claimed, beats::give_way(tx, &room.wanted, stamp)?));
        }
    }
}

/// What is left of every limit.
struct Room<'a> {
    lanes: &'a Lanes,
    default_agent: &'a str,
    active: BTreeMap<String, usize>,
    /// Agents that are held up, with no account named.
    held_up: BTreeSet<String>,
    starts_left: Option<usize>,
    /// Runs whose place somebody has already.
    lent: BTreeSet<String>,
    /// Agents without a place left, as far as that was seen.
    full: BTreeSet<String>,
    /// Those of them whom somebody has asked something.
    wanted: BTreeSet<String>,
}

impl<'a> Room<'a> {
    /// `None`: nothing starts at all.
    fn look(tx: &Connection, policy: &'a Policy, now: Timestamp) -> Result<Option<Room<'a>>> {
        let state = scheduler::state(tx, now)?;
        let is_held = state.pause.is_some()
            || state.troubles.contains_key(&TroubleOf::Town)
            || !policy.guards.is_empty()
            || (scene::budget_guard(tx, policy, now)?.is_some() && !defect!("spent-budget-starts-turns"));
        if is_held {
            return Ok(None);
        }
        let held_up = state.troubles.into_keys().filter_map(|of| match of {
            TroubleOf::Agent(name) => Some(name),
            TroubleOf::Town | TroubleOf::Program(_) | TroubleOf::Rig(_) => None,
        });
        let mut query = tx.prepare_cached("SELECT rides FROM run WHERE state <> 'ended' AND rides IS NOT NULL")?;
        let lent = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Some(Room {
            lanes: &policy.lanes,
            default_agent: &policy.default_agent,
            active: active(tx, &policy.lanes)?,
            held_up: held_up.collect(),
            starts_left: policy.starts_per_second.map(|limit| scene::starts_left(tx, limit, now)).transpose()?,
            lent,
            full: BTreeSet::new(),
            wanted: BTreeSet::new(),
        }))
    }

    fn is_free(&self, lane: &str) -> bool {
        let limit = self.lanes.limit(lane) + usize::from(defect!("lane-limit-exceeded"));
        defect!("lane-overfull") || self.active.get(lane).copied().unwrap_or(0) < limit
    }

    fn has_starts(&self) -> bool {
        self.starts_left != Some(0)
    }

    fn note_full(&mut self, agent: String, is_asked: bool) {
        self.wanted.extend(is_asked.then(|| agent.clone()));
        self.full.insert(agent);
    }

    fn take(&mut self, place: &Place) {
        match &place.rides {
            Some(host) => drop(self.lent.insert(host.clone())),
            None => *self.active.entry(place.lane.clone()).or_insert(0) += 1,
        }
        self.starts_left = self.starts_left.map(|left| left.saturating_sub(1));
    }
}

/// Lanes in which a turn could start.
fn due_lanes(tx: &Connection, now: Timestamp) -> Result<Vec<String>> {
    let sql = "SELECT DISTINCT next_lane FROM session WHERE next_turn IS NOT NULL AND next_at <= ?1";
    let mut query = tx.prepare_cached(sql)?;
    Ok(query.query_map([micros(now)], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// A turn that would be next in its session.
struct Next {
    id: i64,
    session: i64,
    key: String,
    agent: Option<String>,
    text: String,
    /// Whether a run waits for it, or for one that waits behind it.
    is_awaited: bool,
    conversation: Option<String>,
    talks_to: Option<String>,
    n_live: i64,
    /// Whether it begins a conversation of its own, with which nobody goes on.
    is_apart: bool,
    fire: Option<FireOf>,
}

/// Looks through a lane, as far as it takes: however many cannot start, one behind them may.
fn claim_in(
    tx: &Connection,
    claimant: &mut Claimant<'_>,
    stored: &str,
    room: &mut Room<'_>,
    claimed: &mut Vec<Turn>,
    stamp: &Stamp,
) -> Result<()> {
    let lane = room.lanes.resolve(stored).to_owned();
    let is_free = room.is_free(&lane);
    let mut after = 0;
    loop {
        let page = page(tx, stored, is_free, room, after, stamp.now)?;
        let is_last = page.len() < PAGE;
        after = page.last().map_or(after, |next| next.id);
        for next in page {
            if !room.has_starts() {
                return Ok(());
            }
            claimed.extend(claim_one(tx, claimant, next, &lane, room, stamp)?);
        }
        // In a lane that is full by now only those can start that somebody waits for, and they are looked for by themselves.
        if is_last || is_free && !room.is_free(&lane) {
            return Ok(());
        }
    }
}

/// Claims a turn, if there is room for it.
fn claim_one(
    tx: &Connection,
    claimant: &mut Claimant<'_>,
    next: Next,
    lane: &str,
    room: &mut Room<'_>,
    stamp: &Stamp,
) -> Result<Option<Turn>> {
    let own = next.agent.clone().filter(|_| !defect!("session-agent-ignored"));
    let agent = own.unwrap_or_else(|| claimant.policy.default_agent.clone());
    if next.is_beat() && beats::is_answering(tx, &agent)? {
        turns::end(tx, next.id, TurnOutcome::Dropped, None, Some(&beats::busy(&agent)), stamp)?;
        refresh(tx, next.session)?;
        return Ok(None);
    }
    // A group runs several turns at once, and a job that was changed had another session; but it runs only once at a time.
    if next.fire.is_some() && fire::runs_beside(tx, next.id)? {
        return Ok(None);
    }
    let is_full = is_agent_full(tx, claimant.policy, &agent)?;
    let place = if room.is_free(lane) && !is_full {
        Some(Place { lane: lane.to_owned(), rides: None })
    } else {
        lender(tx, &next, room, is_full.then_some(&agent))?
    };
    let Some(place) = place else {
        if is_full {
            room.note_full(agent, next.fire.is_none());
        }
        return Ok(None);
    };
    let run = (claimant.new_run)();
    let turn = next.write(tx, run, agent, &place, claimant, stamp)?;
    room.take(&place);
    Ok(Some(turn))
}

/// Sessions that runs wait for.
const AWAITED: &str = "(SELECT session FROM turn WHERE parent IS NOT NULL AND state <> 'ended')";

/// Who is asked, if not said: the default agent.
const AGENT: &str = "coalesce(turn.agent, session.agent, ?5)";

/// The first of those after a turn that could start in a lane; in one that is full, only those of sessions that somebody waits
/// for. Whose agent is held up cannot, nor whose agent is known to have no place, unless somebody lends it one.
fn page(tx: &Connection, lane: &str, is_free: bool, room: &Room<'_>, after: i64, now: Timestamp) -> Result<Vec<Next>> {
    let only = if is_free { String::new() } else { format!("AND turn.session IN {AWAITED}") };
    let sql = format!(
        "SELECT turn.id, turn.session, key, coalesce(turn.agent, session.agent), text, turn.session IN {AWAITED},
           conversation, talks_to, n_live, is_apart, {FIRE}
         FROM session JOIN turn ON turn.id = session.next_turn LEFT JOIN fire ON fire.id = turn.fire
         WHERE next_turn > ?4 AND next_turn IS NOT NULL AND next_lane = ?1 AND next_at <= ?2 {only}
           AND {AGENT} NOT IN (SELECT value FROM json_each(?6))
           AND (turn.fire IS NOT NULL OR turn.session IN {AWAITED} OR {AGENT} NOT IN (SELECT value FROM json_each(?7)))
           AND (turn.fire IS NULL OR turn.session IN {AWAITED} OR {AGENT} NOT IN (SELECT value FROM json_each(?8)))
           AND (n_live = 0 OR NOT EXISTS (SELECT 1 FROM turn AS old JOIN run ON run.id = old.run
                  WHERE old.session = session.id AND old.state = 'live' AND run.stop_reason = ?3)) ORDER BY next_turn LIMIT {PAGE}"
    );
    let mut query = tx.prepare_cached(&sql)?;
    let names = |agents: &BTreeSet<String>| json!(agents).to_string();
    let (held_up, wanted, full) = (names(&room.held_up), names(&room.wanted), names(&room.full));
    let interrupted = if defect!("interrupt-overtakes-what-ends") { "" } else { INTERRUPTED };
    let values = params![lane, micros(now), interrupted, after, room.default_agent, held_up, wanted, full];
    let rows = query.query_map(values, |row| {
        Ok(Next {
            id: row.get(0)?,
            session: row.get(1)?,
            key: row.get(2)?,
            agent: row.get(3)?,
            text: row.get(4)?,
            is_awaited: row.get(5)?,
            conversation: row.get(6)?,
            talks_to: row.get(7)?,
            n_live: row.get(8)?,
            is_apart: row.get(9)?,
            fire: FireOf::from_row(row, 10)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Where a run counts: in a lane, and there beside whoever has lent it the place.
struct Place {
    lane: String,
    rides: Option<String>,
}

/// The place of a run that waits for this turn, or for one behind it, if that lives and has not lent it to another. It stays
/// one of its lane, even when whoever lent it has ended first. Where an agent has no place left, it is one of that agent's.
fn lender(tx: &Connection, next: &Next, room: &Room<'_>, agent: Option<&String>) -> Result<Option<Place>> {
    if !next.is_awaited {
        return Ok(None);
    }
    let mut query = tx.prepare_cached(
        "SELECT run.id, run.lane FROM turn JOIN run ON run.id = turn.parent
         WHERE turn.session = ?1 AND turn.state = 'waiting'
           AND run.state <> 'ended' AND run.stop_at IS NULL AND run.lane IS NOT NULL
           AND (?2 IS NULL OR run.agent = ?2) ORDER BY turn.id",
    )?;
    let places = query
        .query_map(params![next.session, agent], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    for place in places {
        let (host, lane) = place?;
        if !room.lent.contains(&host) {
            return Ok(Some(Place { lane, rides: Some(host) }));
        }
    }
    Ok(None)
}

/// A run has ended that had its place from another: whoever has it from that run has it from the other now. So it stays one
/// place, and is not lent a second time.
pub(super) fn hand_on(tx: &Connection, run: &str) -> Result<()> {
    let mut query = tx.prepare_cached("SELECT rides FROM run WHERE id = ?1")?;
    let Some(host) = query.query_row([run], |row| row.get::<_, Option<String>>(0))? else { return Ok(()) };
    tx.prepare_cached(
        "UPDATE run INDEXED BY run_in_lane SET rides = ?2 WHERE rides = ?1 AND state <> 'ended' AND lane IS NOT NULL",
    )?
    .execute([run, &host])?;
    Ok(())
}

pub(crate) fn is_agent_full(tx: &Connection, policy: &Policy, agent: &str) -> Result<bool> {
    let Some(cap) = policy.caps.agents.get(agent) else { return Ok(false) };
    let sql = "SELECT count(*) FROM run WHERE state <> 'ended' AND agent = ?1";
    let n: i64 = tx.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?;
    Ok(n as usize >= *cap)
}

impl Next {
    fn is_beat(&self) -> bool {
        self.fire.as_ref().is_some_and(|fire| beats::is_beat(&fire.job))
    }

    fn write(
        self,
        tx: &Connection,
        run: String,
        agent: String,
        place: &Place,
        claimant: &Claimant<'_>,
        stamp: &Stamp,
    ) -> Result<Turn> {
        // A conversation bears one turn at a time: whoever starts beside another begins one of its own.
        let is_alone = (self.n_live == 0 || defect!("conversation-shared")) && !self.is_apart;
        let resumes = self.conversation.filter(|_| is_alone && self.talks_to.as_deref() == Some(&agent));
        tx.prepare_cached(
            "INSERT INTO run (id, context, rig, polecat, agent, host, state, starter, claimed_at, turn, lane, resumes, rides,
               is_aside) VALUES (?1, '', '', '', ?2, ?3, 'starting', ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            run,
            agent,
            claimant.policy.host,
            claimant.starter,
            micros(stamp.now),
            self.id,
            place.lane,
            resumes,
            place.rides,
            !is_alone,
        ])?;
        tx.prepare_cached("UPDATE turn SET state = 'live', run = ?2, error = NULL WHERE id = ?1")?
            .execute(params![self.id, run])?;
        refresh(tx, self.session)?;
        Ok(Turn {
            run,
            turn: self.id,
            session: self.key,
            agent,
            lane: place.lane.clone(),
            text: self.text,
            resumes,
            claimed_at: stamp.now,
            fire: self.fire,
        })
    }
}

/// The turn of a live run, as it was claimed.
pub(crate) fn of_run(tx: &Connection, run: &str) -> Result<Option<Turn>> {
    let sql = format!(
        "SELECT run.id, turn.id, session.key, run.agent, run.lane, turn.text, run.resumes, run.claimed_at, {FIRE}
         FROM run JOIN turn ON turn.id = run.turn JOIN session ON session.id = turn.session
           LEFT JOIN fire ON fire.id = turn.fire
         WHERE run.id = ?1 AND run.state <> 'ended'"
    );
    let mut query = tx.prepare_cached(&sql)?;
    let turn = query.query_row([run], |row| {
        Ok(Turn {
            run: row.get(0)?,
            turn: row.get(1)?,
            session: row.get(2)?,
            agent: row.get(3)?,
            lane: row.get(4)?,
            text: row.get(5)?,
            resumes: row.get(6)?,
            claimed_at: timestamp(row.get(7)?),
            fire: FireOf::from_row(row, 8)?,
        })
    });
    Ok(turn.optional()?)
}
