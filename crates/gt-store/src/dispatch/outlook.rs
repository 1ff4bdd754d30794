//! The outlook: the plan for every scheduled bead, as `list`, `status`, the dry run and `explain` show it. // SPEC D2
//!
//! The same planner and the same order as the claim's; only nothing is written.

use gt_core::agent::Activity;
use gt_core::context::ContextState;
use gt_core::explain::{self, Case, Dispatch, Explanation, Reason, Running};
use gt_core::plan::{Limit, Planner, Policy, Side, Verdict};
use gt_core::readiness::Standing;
use gt_core::rig;
use gt_core::run::RunState;
use jiff::Timestamp;
use rusqlite::Connection;

use crate::dispatch::claim::Kinds;
use crate::dispatch::contexts::{self, Context};
use crate::dispatch::runs::Run;
use crate::dispatch::scene::{self, Candidates, Work};
use crate::dispatch::scheduler::{self, SchedulerState};
use crate::dispatch::{convoys, merges, records, runs, steps};
use crate::error::{Result, StoreError};
use crate::rows::{self, Key, micros, timestamp};
use crate::sessions::claim as turns_claim;
use crate::store::Store;
use crate::{query, rigs};

/// What the scheduler would do now, and why not more.
#[derive(Debug, Clone)]
pub struct Outlook {
    pub state: SchedulerState,
    /// In dispatch order.
    pub scheduled: Vec<Scheduled>,
    /// Live polecats, starting ones included.
    pub n_live: usize,
    /// Free slots of the town's cap; of the queue's, where that rules something that is scheduled. `None` without a cap.
    pub capacity: Option<i64>,
    /// Starts in one pass, by the same rule.
    pub batch: Option<usize>,
    pub n_ready: usize,
    pub n_starting: usize,
    pub limit: Limit,
}

/// A scheduled bead and what the plan says of it.
#[derive(Debug, Clone)]
pub struct Scheduled {
    pub bead: String,
    pub title: String,
    pub context: String,
    pub rig: String,
    pub agent: String,
    pub enqueued_at: Timestamp,
    pub priority: i64,
    pub standing: Standing,
    pub failures: i64,
    pub last_failure: Option<String>,
    /// Whether a pass right now would start it.
    pub starts: bool,
    /// Why not; empty when it starts.
    pub reasons: Vec<Reason>,
    /// Whether it was queued, rather than slung.
    pub is_queued: bool,
}

impl Scheduled {
    /// Whether its work waits for something else, rather than for a slot or a time.
    pub fn is_blocked(&self) -> bool {
        self.standing != Standing::Ready
    }
}

impl Store {
    /// What a pass would do right now.
    pub fn outlook(&mut self, policy: &Policy, now: Timestamp) -> std::result::Result<Outlook, StoreError> {
        self.read(|tx| outlook(tx, policy, now))
    }

    /// The next time at which something changes by itself: a deferral, a back-off, a hold or trouble that ends, a
    /// successor that has waited long enough.
    pub fn next_deadline(
        &mut self,
        policy: &Policy,
        now: Timestamp,
    ) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.read(|tx| {
            let scene = scene::scene(tx, policy, now)?;
            let mut query = tx.prepare_cached(
                "SELECT min(at) FROM (
                   SELECT min(wake_at) AS at FROM bead INDEXED BY bead_by_wake
                     WHERE standing = 'deferred' AND wake_at > ?1
                   UNION ALL SELECT min(retry_at) FROM context
                     WHERE state = 'open' AND retry_at IS NOT NULL AND retry_at > ?2
                   UNION ALL SELECT min(hold_until) FROM dispatch_record
                     WHERE hold_until IS NOT NULL AND hold_until > ?1
                   UNION ALL SELECT min(until) FROM trouble WHERE until > ?1)",
            )?;
            let retries_after = if gt_core::defect!("retry-deadline-forgotten") { Timestamp::MAX } else { now };
            let stored: Option<i64> = query.query_row([micros(now), micros(retries_after)], |row| row.get(0))?;
            // It keeps back nothing that is not there.
            let has_ready = has_startable(tx, policy, now)?;
            let finishing = scene.finishing.iter().map(|run| run.until).filter(|until| has_ready && *until > now).min();
            let is_spent = scene.guards.iter().any(|guard| guard.code == scene::BUDGET);
            let tomorrow = (is_spent && !gt_core::defect!("budget-deadline-forgotten")).then(|| policy.day(now).1);
            Ok([stored.map(timestamp), finishing, tomorrow].into_iter().flatten().min())
        })
    }

    /// When there is room for a start again after those of the last second, if something waits for that: a bead or a turn. It
    /// may have come meanwhile.
    pub fn next_second(
        &mut self,
        policy: &Policy,
        now: Timestamp,
    ) -> std::result::Result<Option<Timestamp>, StoreError> {
        let Some(limit) = policy.starts_per_second else { return Ok(None) };
        self.read(|tx| {
            let free_at = scene::free_at(tx, limit, now)?;
            let is_felt = free_at.is_some()
                && !gt_core::defect!("rate-deadline-forgotten")
                && (has_startable(tx, policy, now)? || turns_claim::is_any_due(tx, now)?);
            Ok(free_at.filter(|_| is_felt))
        })
    }

    /// Says why a bead is, or is not, being worked on. // SPEC B6
    pub fn explain(
        &mut self,
        id: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> std::result::Result<Explanation, StoreError> {
        self.read(|tx| {
            let key = query::require(tx, id)?;
            let (bead, node) = rows::load_with_node(tx, key)?;
            let rigs = rigs::all(tx)?;
            let case = Case {
                bead: &bead,
                node: &node,
                blockers: &query::all_blockers(tx, &bead, now)?,
                home: rig::home(&bead.id, bead.rig.as_deref(), &rigs),
                dispatch: dispatch_of(tx, key, id, policy, now)?,
                hold: records::load(tx, key)?.reason(id),
                convoy: convoys::following(tx, id)?,
                now,
            };
            let mut explanation = explain::explain(&case);
            if node.standing_at(now) != Standing::Done {
                explanation.reasons.extend(steps::reason(tx, key)?);
                if let Some(merging) = merges::reason(tx, key)? {
                    explanation.reasons.retain(|reason| reason.code != "in-progress");
                    explanation.reasons.push(merging);
                }
            }
            Ok(explanation)
        })
    }

    /// The run that has a bead, if one lives.
    pub fn run_of(&mut self, id: &str) -> std::result::Result<Option<Run>, StoreError> {
        self.read(|tx| {
            let run = runs::live_of(tx, query::require(tx, id)?)?;
            run.map_or(Ok(None), |run| runs::by_id(tx, &run))
        })
    }

    /// How many beads are scheduled.
    pub fn scheduled_count(&mut self) -> std::result::Result<usize, StoreError> {
        self.read(|tx| {
            let sql = "SELECT count(*) FROM context WHERE state = 'open'";
            Ok(tx.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as usize)
        })
    }

    /// Whether anything of these kinds is scheduled and ready, and its time has come; others may still hold it back.
    pub fn has_ready_contexts(&mut self, kinds: Kinds, now: Timestamp) -> std::result::Result<bool, StoreError> {
        self.read(|tx| has_ready(tx, kinds, now))
    }

    /// The same of all that is started by whoever goes by this policy.
    pub fn has_startable_contexts(&mut self, policy: &Policy, now: Timestamp) -> std::result::Result<bool, StoreError> {
        self.read(|tx| has_startable(tx, policy, now))
    }
}

fn has_startable(tx: &Connection, policy: &Policy, now: Timestamp) -> Result<bool> {
    let kinds = Kinds::of(policy, |side| policy.starts(side));
    kinds.map_or(Ok(false), |kinds| has_ready(tx, kinds, now))
}

fn has_ready(tx: &Connection, kinds: Kinds, now: Timestamp) -> Result<bool> {
    let (table, is_wanted) = kinds.sql();
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {table} WHERE state = 'open' AND ready = 1 AND {is_wanted}
           AND (retry_at IS NULL OR retry_at <= ?1))"
    );
    Ok(tx.prepare_cached(&sql)?.query_row([micros(now)], |row| row.get(0))?)
}

pub(crate) fn outlook(tx: &Connection, policy: &Policy, now: Timestamp) -> Result<Outlook> {
    let state = scheduler::state(tx, now)?;
    let scene = scene::scene(tx, policy, now)?;
    let rigs = rigs::all(tx)?;
    let candidates = Candidates::new(tx, policy, &rigs, &scene);
    let mut planner = Planner::new(scene);
    let n_live = planner.n_live();
    let capacities = Side::BOTH.map(|side| planner.capacity(side));
    let mut scheduled: Vec<Scheduled> = Vec::new();
    for context in in_order(tx, policy.by_priority)? {
        scheduled.push(consider(tx, &candidates, &mut planner, &context, now)?);
    }
    let queue = policy.queue.as_ref().filter(|_| scheduled.iter().any(|one| one.is_queued));
    Ok(Outlook {
        state,
        scheduled,
        n_live,
        capacity: capacities[usize::from(queue.is_some())],
        batch: policy.batch_once.or(queue.map_or(policy.batch, |queue| queue.batch)),
        n_ready: planner.n_ready(),
        n_starting: planner.n_started(),
        limit: planner.limit(),
    })
}

fn dispatch_of(tx: &Connection, key: Key, id: &str, policy: &Policy, now: Timestamp) -> Result<Dispatch> {
    let is_open = contexts::live_of(tx, key)?.is_some_and(|context| context.state == ContextState::Open);
    if is_open {
        let scheduled = outlook(tx, policy, now)?.scheduled;
        let n_scheduled = scheduled.len();
        let place = scheduled.into_iter().enumerate().find(|(_, scheduled)| scheduled.bead == id);
        if let Some((at, scheduled)) = place {
            let has_batch = policy.has_batch(scheduled.is_queued);
            return Ok(Dispatch::Scheduled { position: at + 1, n_scheduled, reasons: scheduled.reasons, has_batch });
        }
    }
    let Some(run) = runs::live_of(tx, key)? else { return Ok(Dispatch::Nothing) };
    let Some(run) = runs::by_id(tx, &run)? else { return Ok(Dispatch::Nothing) };
    Ok(Dispatch::Running(Running {
        is_starting: run.state == RunState::Starting,
        since: run.started_at.unwrap_or(run.claimed_at),
        run: run.id,
        rig: run.rig,
        polecat: run.polecat,
        waits: run.activity.and_then(Activity::need).zip(run.activity_at).filter(|_| run.said.is_none()),
        stop: run.stop.map(|stop| stop.reason),
    }))
}

fn in_order(tx: &Connection, by_priority: bool) -> Result<Vec<Context>> {
    let order = if by_priority { "priority, enqueued_at, id" } else { "enqueued_at, id" };
    let sql = format!("SELECT {} FROM context WHERE state = 'open' ORDER BY {order}", contexts::COLUMNS);
    Ok(tx.prepare_cached(&sql)?.query_map([], contexts::from_row)?.collect::<rusqlite::Result<_>>()?)
}

fn consider(
    tx: &Connection,
    candidates: &Candidates<'_>,
    planner: &mut Planner,
    context: &Context,
    now: Timestamp,
) -> Result<Scheduled> {
    let (bead, node) = rows::load_with_node(tx, context.bead)?;
    let standing = node.standing_at(now);
    let waits_for = if standing == Standing::Ready {
        Vec::new()
    } else {
        explain::waits(&bead, &node, &query::all_blockers(tx, &bead, now)?, now)
    };
    let (issue_type, assignee) = (bead.issue_type.as_deref(), bead.assignee.as_deref());
    let work = Work { id: &bead.id, standing, issue_type, assignee, waits_for };
    let verdict = match context.sling_fields() {
        Ok(_) => planner.consider(&candidates.make(context, work, now)?),
        Err(why) => {
            let message = format!("its context is invalid ({why}); the pass that comes to it closes it");
            Verdict::Hold(vec![Reason { code: "invalid-context", message }])
        }
    };
    let (starts, reasons) = match verdict {
        Verdict::Start => (true, Vec::new()),
        Verdict::Hold(reasons) => (false, reasons),
    };
    Ok(Scheduled {
        bead: bead.id,
        title: bead.title,
        context: context.id.clone(),
        rig: context.rig.clone(),
        agent: candidates.agent(context),
        enqueued_at: context.enqueued_at,
        priority: bead.priority,
        standing,
        failures: context.failures,
        last_failure: context.last_failure.clone(),
        starts,
        reasons,
        is_queued: context.is_queued,
    })
}
