//! What the plan rests on, read in the transaction that acts on it.

use std::collections::BTreeMap;

use gt_core::explain::Reason;
use gt_core::plan::{Candidate, Finishing, Guard, Live, Policy, Retry, RetryWhy, SUCCESSOR_WAIT, Scene, TroubleOf};
use gt_core::readiness::Standing;
use gt_core::rig::Rig;
use gt_core::status;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::dispatch::contexts::Context;
use crate::dispatch::{records, runs, scheduler, troubles};
use crate::error::Result;
use crate::rows::{Key, micros, timestamp};

/// The code of a budget that is spent.
pub(crate) const BUDGET: &str = "guard-budget";

/// Everything but the candidates.
pub(crate) fn scene(tx: &Connection, policy: &Policy, now: Timestamp) -> Result<Scene> {
    let state = scheduler::state(tx, now)?;
    let (live, finishing) = living(tx, &policy.host, now)?;
    Ok(Scene {
        now,
        pause: state.pause,
        troubles: state.troubles,
        trials: troubles::due(tx, now)?,
        guards: policy.guards.iter().cloned().chain(budget_guard(tx, policy, now)?).collect(),
        caps: policy.caps.clone(),
        live,
        finishing,
        batch: policy.batch,
        batch_once: policy.batch_once,
        queue: policy.queue.clone(),
        starts_left: policy.starts_per_second.map(|limit| starts_left(tx, limit, now)).transpose()?,
    })
}

/// Every live run, and those of them whose bead is done.
fn living(tx: &Connection, host: &str, now: Timestamp) -> Result<(Vec<Live>, Vec<Finishing>)> {
    let mut query = tx.prepare_cached(
        "SELECT run.polecat, run.rig, run.agent, run.host, run.id, bead.standing, bead.closed_at
         FROM run JOIN bead ON bead.key = run.bead WHERE run.state <> 'ended' AND run.state <> ?1
         ORDER BY run.claimed_at, run.id",
    )?;
    let uncounted = if gt_core::defect!("starting-not-counted") { "starting" } else { "" };
    let mut rows = query.query([uncounted])?;
    let (mut live, mut finishing) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let (polecat, rig): (String, String) = (row.get(0)?, row.get(1)?);
        let is_done = row.get_ref(5)?.as_str_or_null().map_err(rusqlite::Error::from)?.is_none();
        // A close that lies far ahead is another clock's, and would make a successor wait for as long. One that lies a
        // little ahead was made while this pass waited for its turn.
        let is_ours = |at: &Timestamp| is_done && *at <= now + SUCCESSOR_WAIT;
        let closed_at = row.get::<_, Option<i64>>(6)?.map(timestamp).filter(is_ours);
        if let Some(closed_at) = closed_at {
            let until = closed_at + SUCCESSOR_WAIT;
            finishing.push(Finishing { run: row.get(4)?, polecat: polecat.clone(), rig: rig.clone(), until });
        }
        let is_here = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)? == host;
        live.push(Live { polecat, rig, agent: row.get(2)?, is_here });
    }
    Ok((live, finishing))
}

/// What agents have reported to have cost today, when that is too much. // SPEC D9
pub(crate) fn budget_guard(tx: &Connection, policy: &Policy, now: Timestamp) -> Result<Option<Guard>> {
    let Some(limit) = policy.daily_micros else { return Ok(None) };
    // Each in whole millionths: a sum of fractions may fall short of what it is.
    let mut sql = "SELECT coalesce(sum(CAST(round(cost * 1e6) AS INTEGER)), 0) FROM run WHERE cost_at >= ?1".to_owned();
    if gt_core::defect!("budget-counts-what-has-ended") {
        sql += " AND state <> 'working'";
    }
    let spent: i64 = tx.prepare_cached(&sql)?.query_row([micros(policy.day(now).0)], |row| row.get(0))?;
    Ok((spent >= limit).then(|| {
        let [spent, limit] = [spent, limit].map(|micros| micros as f64 / 1e6);
        let message = format!(
            "agents have reported ${spent:.2} today, and `budget.daily` is ${limit:.2}; work starts again at midnight"
        );
        Guard { code: BUDGET, message }
    }))
}

pub(crate) fn starts_left(tx: &Connection, limit: usize, now: Timestamp) -> Result<usize> {
    let since = micros(now - SignedDuration::from_secs(1));
    // What lies ahead was claimed before the clock was set back, and holds nobody up.
    let mut query = tx.prepare_cached("SELECT count(*) FROM run WHERE claimed_at > ?1 AND claimed_at <= ?2")?;
    let until = if gt_core::defect!("starts-ahead-count") { Timestamp::MAX } else { now };
    let n: i64 = query.query_row([since, micros(until)], |row| row.get(0))?;
    Ok(limit.saturating_sub(n as usize))
}

/// When the start that takes the last place of a second is a second old; `None`: there were never so many.
pub(crate) fn free_at(tx: &Connection, limit: usize, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut query = tx.prepare_cached(
        "SELECT claimed_at FROM run WHERE claimed_at <= ?1 ORDER BY claimed_at DESC LIMIT 1 OFFSET ?2",
    )?;
    let last: Option<i64> =
        query.query_row([micros(now), limit.saturating_sub(1) as i64], |row| row.get(0)).optional()?;
    Ok(last.map(|at| timestamp(at) + SignedDuration::from_secs(1)))
}

/// What readiness and the rest of the row say about a scheduled bead.
pub(crate) struct Work<'a> {
    pub(crate) id: &'a str,
    pub(crate) standing: Standing,
    pub(crate) issue_type: Option<&'a str>,
    pub(crate) assignee: Option<&'a str>,
    pub(crate) waits_for: Vec<Reason>,
}

/// Makes candidates of contexts.
pub(crate) struct Candidates<'a> {
    tx: &'a Connection,
    policy: &'a Policy,
    rigs: BTreeMap<&'a str, &'a Rig>,
    has_finishing: bool,
    has_agent_troubles: bool,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(tx: &'a Connection, policy: &'a Policy, rigs: &'a [Rig], scene: &Scene) -> Candidates<'a> {
        let rigs = rigs.iter().map(|rig| (rig.name.as_str(), rig)).collect();
        let has_agent_troubles = scene.troubles.keys().any(|of| matches!(of, TroubleOf::Agent(_)));
        Candidates { tx, policy, rigs, has_finishing: !scene.finishing.is_empty(), has_agent_troubles }
    }

    pub(crate) fn agent(&self, context: &Context) -> String {
        context.agent.clone().unwrap_or_else(|| self.policy.default_agent.clone())
    }

    pub(crate) fn rig(&self, name: &str) -> Option<&'a Rig> {
        self.rigs.get(name).copied()
    }

    pub(crate) fn make(&self, context: &Context, work: Work<'_>, now: Timestamp) -> Result<Candidate> {
        let is_other = |who: &&str| Some(*who) != context.assignee.as_deref();
        let is_taken = work.standing == Standing::Held;
        let predecessors = if self.has_finishing && work.standing == Standing::Ready {
            predecessors(self.tx, context.bead)?
        } else {
            Vec::new()
        };
        Ok(Candidate {
            context: context.id.clone(),
            bead: work.id.to_owned(),
            rig: context.rig.clone(),
            rig_state: self.rig(&context.rig).map(|rig| rig.state),
            agent: self.agent(context),
            account: if self.has_agent_troubles {
                context.sling_fields().ok().and_then(|fields| fields.account)
            } else {
                None
            },
            standing: work.standing,
            no_work: work.issue_type.filter(|kind| !status::is_slingable(Some(kind))).map(str::to_owned),
            assigned_to: work.assignee.filter(is_other).filter(|_| !is_taken).map(str::to_owned),
            waits_for: work.waits_for,
            old_run: runs::live_of(self.tx, context.bead)?,
            retry: match context.retry_at.filter(|at| *at > now) {
                Some(at) => Some(Retry { at, why: retry_why(self.tx, context)? }),
                None => None,
            },
            predecessors,
            is_queued: context.is_queued,
        })
    }
}

fn retry_why(tx: &Connection, context: &Context) -> Result<RetryWhy> {
    if context.failures > 0 {
        let last = context.last_failure.clone().unwrap_or_default();
        return Ok(RetryWhy::FailedStart { failures: context.failures, last });
    }
    let record = records::load(tx, context.bead)?;
    Ok(RetryWhy::Attempt { attempts: record.attempts, last: record.last_failure.unwrap_or_default() })
}

/// Live runs whose bead this one waited for.
fn predecessors(tx: &Connection, bead: Key) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached(
        "SELECT run.id FROM edge JOIN bead ON bead.id = edge.target
           JOIN run ON run.bead = bead.key AND run.state <> 'ended'
         WHERE edge.source = ?1 AND edge.type <> 'parent-child'",
    )?;
    Ok(query.query_map(params![bead], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
