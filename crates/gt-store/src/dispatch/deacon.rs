//! The deacon: work that somebody left is given out again, by the guards that hold for everybody. // SPEC R2
//!
//! Nothing here takes a bead from anybody: what runs, is scheduled, cools down or is held stays as it is.

use gt_core::context::SlingFields;
use gt_core::event::EventType;
use gt_core::plan::Policy;
use gt_core::run::Outcome;
use gt_core::status::Status;
use gt_core::text::one_line;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::dispatch::alarms;
use crate::dispatch::contexts::{self, Context};
use crate::dispatch::records::{self, Hold, Record};
use crate::dispatch::runs::{self, Run};
use crate::dispatch::sling::{self, ConvoyWish, Sling};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros, timestamp};
use crate::store::{Stamp, Store};
use crate::{events, query};

/// What became of a bead that was to be given out again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redispatch {
    Scheduled {
        context: String,
    },
    AlreadyScheduled {
        context: String,
    },
    /// Somebody works on it.
    Running {
        polecat: String,
    },
    /// Its work is done.
    Done,
    CoolingDown {
        until: Timestamp,
    },
    /// A person has to look. `is_new`: the mayor was asked just now.
    Escalated {
        attempts: i64,
        is_new: bool,
    },
    /// Only a person lifts what holds it.
    Held {
        reason: String,
        until: Option<Timestamp>,
    },
}

/// A hook that nobody works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleHook {
    pub bead: String,
    pub title: String,
    pub status: String,
    pub assignee: Option<String>,
    /// Since when nothing has changed.
    pub since: Timestamp,
}

impl Store {
    /// Gives a bead out again, if nothing speaks against it.
    pub fn redispatch(
        &mut self,
        bead: &str,
        policy: &Policy,
        stamp: &Stamp,
    ) -> std::result::Result<Redispatch, StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, bead)?;
            match obstacle(tx, key, bead, policy, stamp)? {
                Some(obstacle) => Ok(obstacle),
                None => schedule(tx, key, bead, stamp),
            }
        })
    }

    /// Releases beads that have been on a hook since then or longer, and that nobody works on. What a person has taken
    /// stays.
    pub fn release_stale_hooks(
        &mut self,
        before: Timestamp,
        stamp: &Stamp,
    ) -> std::result::Result<Vec<StaleHook>, StoreError> {
        self.write(stamp, |tx| {
            let stale = stale_hooks(tx, before)?;
            stale.iter().try_for_each(|(key, _)| release(tx, *key, stamp))?;
            Ok(stale.into_iter().map(|(_, hook)| hook).collect())
        })
    }

    /// Whether there is something that `release_stale_hooks` would release.
    pub fn has_stale_hooks(&mut self, before: Timestamp) -> std::result::Result<bool, StoreError> {
        self.read(|tx| Ok(!stale_hooks(tx, before)?.is_empty()))
    }
}

fn obstacle(tx: &Connection, key: Key, bead: &str, policy: &Policy, stamp: &Stamp) -> Result<Option<Redispatch>> {
    if !query::node(tx, key)?.facts.status.is_active() {
        return Ok(Some(Redispatch::Done));
    }
    let live = runs::live_of(tx, key)?.map(|run| runs::by_id(tx, &run)).transpose()?.flatten();
    if let Some(run) = live {
        return Ok(Some(Redispatch::Running { polecat: format!("{}/{}", run.rig, run.polecat) }));
    }
    let last = last_run(tx, key)?;
    let until = last.as_ref().and_then(|run| cools_until(run, policy)).filter(|until| *until > stamp.now);
    if let Some(context) = contexts::live_of(tx, key)? {
        let until = until.filter(|_| context.retry_at.is_some_and(|at| at > stamp.now));
        let scheduled = Redispatch::AlreadyScheduled { context: context.id };
        return Ok(Some(until.map_or(scheduled, |until| Redispatch::CoolingDown { until })));
    }
    let record = records::load(tx, key)?;
    match record.hold {
        None | Some(Hold::OutOfAttempts) if record.attempts > policy.redispatch_attempts => {
            escalate(tx, key, bead, record, last.as_ref(), stamp).map(Some)
        }
        None if until.is_some() => Ok(until.map(|until| Redispatch::CoolingDown { until })),
        None => Ok(taken(tx, key)?.map(|reason| Redispatch::Held { reason, until: None })),
        Some(_) => {
            let reason = record.reason(bead).map(|reason| reason.message).unwrap_or_default();
            Ok(Some(Redispatch::Held { reason, until: record.hold_until }))
        }
    }
}

/// Who has it, though no run of ours does.
fn taken(tx: &Connection, bead: Key) -> Result<Option<String>> {
    let sql = "SELECT status, assignee FROM bead WHERE key = ?1";
    let (status, assignee): (String, Option<String>) =
        tx.prepare_cached(sql)?.query_row([bead], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let who = assignee.as_deref().map(one_line);
    let is_persons = who.as_ref().is_some_and(|who| !who.contains("/polecats/"));
    let way_on = if is_persons { "" } else { "; `gt deacon stale-hooks` releases what nobody works on" };
    Ok(match (status.as_str(), who) {
        ("hooked" | "in_progress", Some(who)) => Some(format!("it is on the hook of {who}{way_on}")),
        ("hooked" | "in_progress", None) => Some(format!("it is on somebody's hook{way_on}")),
        (_, who) => who.map(|who| format!("it is assigned to {who}")),
    })
}

fn last_run(tx: &Connection, bead: Key) -> Result<Option<Run>> {
    let sql = "SELECT id FROM run WHERE bead = ?1 ORDER BY claimed_at DESC, id DESC LIMIT 1";
    let id: Option<String> = tx.prepare_cached(sql)?.query_row([bead], |row| row.get(0)).optional()?;
    Ok(id.map(|id| runs::by_id(tx, &id)).transpose()?.flatten())
}

/// A bead rests after a run that did not finish it.
fn cools_until(run: &Run, policy: &Policy) -> Option<Timestamp> {
    let has_failed = run.outcome.is_some_and(Outcome::costs_an_attempt);
    run.ended_at.filter(|_| has_failed).map(|at| at + policy.redispatch_cooldown)
}

/// Asks the mayor, once.
fn escalate(
    tx: &Connection,
    key: Key,
    bead: &str,
    mut record: Record,
    last: Option<&Run>,
    stamp: &Stamp,
) -> Result<Redispatch> {
    let attempts = record.attempts;
    let is_new = match last {
        Some(last) if !alarms::is_mayor_asked(tx, last)? => {
            let data = json!({ "attempts": attempts, "reason": record.last_failure, "branch": record.branch });
            events::append_of_run(tx, stamp, EventType::BeadEscalated, bead, &last.id, &data)?;
            alarms::out_of_attempts(tx, last, &record, last.last_output.as_deref(), stamp)?;
            true
        }
        _ => false,
    };
    if record.hold.is_none() {
        record.hold = Some(Hold::OutOfAttempts);
        records::save(tx, key, &record)?;
    }
    Ok(Redispatch::Escalated { attempts, is_new })
}

/// As it was slung the last time, or as anybody would sling it.
fn schedule(tx: &Connection, key: Key, bead: &str, stamp: &Stamp) -> Result<Redispatch> {
    let new = || Sling {
        beads: vec![bead.to_owned()],
        rig: None,
        fields: SlingFields::default(),
        force: false,
        convoy: ConvoyWish::No,
        is_batch: false,
        prescriptions: std::collections::BTreeMap::new(),
    };
    let last = records::load(tx, key)?.context.map(|id| contexts::by_id(tx, &id)).transpose()?.flatten();
    let context = match last.filter(Context::is_valid) {
        Some(last) => {
            let again = Context { failures: 0, last_failure: None, retry_at: None, ..last };
            contexts::again_as_new(tx, &again, "deacon", stamp)?
        }
        None => sling::schedule(tx, &new(), stamp)?.into_iter().find_map(|slung| slung.context).unwrap_or_default(),
    };
    Ok(Redispatch::Scheduled { context })
}

/// On a hook without anybody there: no run has it, and it is nobody's or a worker's, whichever town that was of.
pub(crate) const IS_ABANDONED: &str = "bead.status IN ('hooked', 'in_progress')
   AND (bead.assignee IS NULL OR bead.assignee LIKE '%/polecats/%')
   AND NOT EXISTS (SELECT 1 FROM run WHERE run.bead = bead.key AND run.state <> 'ended')";

fn stale_hooks(tx: &Connection, before: Timestamp) -> Result<Vec<(Key, StaleHook)>> {
    let mut query = tx.prepare_cached(&format!(
        "SELECT key, id, title, status, assignee, updated_at FROM bead
         WHERE {IS_ABANDONED} AND updated_at <= ?1 ORDER BY updated_at, key"
    ))?;
    let hooks = query.query_map(params![micros(before)], |row| {
        let hook = StaleHook {
            bead: row.get(1)?,
            title: row.get(2)?,
            status: row.get(3)?,
            assignee: row.get(4)?,
            since: timestamp(row.get(5)?),
        };
        Ok((row.get(0)?, hook))
    })?;
    Ok(hooks.collect::<rusqlite::Result<_>>()?)
}

/// Takes a bead off a hook that nobody works on.
pub(crate) fn release(tx: &Connection, key: Key, stamp: &Stamp) -> Result<()> {
    let mut bead = rows::load(tx, key)?;
    let data = json!({ "assignee": bead.assignee, "from": bead.status.as_str(), "status": "open",
                       "since": bead.updated_at.map(gt_core::time::format), "reason": "stale-hook" });
    bead.set_status(Status::Open, stamp.now);
    bead.assignee = None;
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(key, &bead)?;
    ledger.flush()?;
    events::append(tx, stamp, EventType::BeadReleased, Some(&bead.id), &data)
}
