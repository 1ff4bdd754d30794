//! Troubles that only a new try can end: a missing program, a repository that is gone, a machine without room. // SPEC D5
//!
//! Each try in vain makes the next one come later. When its time has come, one run is claimed for all that the trouble
//! holds; the others wait until that run has started.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::event::EventType;
use gt_core::plan::{Candidate, LONGEST_HOLD, Missing, Planner, Trial, Trouble, TroubleOf};
use gt_core::rig::Rig;
use gt_core::run::RunState;
use gt_core::time;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use crate::dispatch::claim::Claimant;
use crate::dispatch::runs::{self, Run, Started};
use crate::error::Result;
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::Stamp;

/// What is remembered of a trouble.
struct Known {
    trouble: Trouble,
    tries: i64,
}

impl Known {
    fn of(tx: &Connection, of: &TroubleOf) -> Result<Option<Known>> {
        let mut query = tx.prepare_cached("SELECT until, reason, tries FROM trouble WHERE scope = ?1")?;
        let known = query.query_row([of.key()], |row| {
            Ok(Known { trouble: Trouble { until: timestamp(row.get(0)?), reason: row.get(1)? }, tries: row.get(2)? })
        });
        Ok(known.optional()?)
    }

    fn is_held(&self, now: Timestamp) -> bool {
        self.trouble.until > now
    }

    /// Whether another try in vain is one more of the same; what lies longer back has nothing to do with it.
    fn goes_on(&self, now: Timestamp) -> bool {
        self.tries > 0 && self.trouble.until + LONGEST_HOLD > now
    }
}

/// Remembers that a start was in vain, or would be. Those that fail together are one try. The log is told what is new.
pub(crate) fn note(tx: &Connection, of: &TroubleOf, reason: &str, stamp: &Stamp) -> Result<Trouble> {
    let known = Known::of(tx, of)?;
    if let Some(known) = known.as_ref().filter(|known| known.is_held(stamp.now) && known.trouble.reason == reason) {
        return Ok(known.trouble.clone());
    }
    let before = known.filter(|known| known.goes_on(stamp.now));
    let is_held = before.as_ref().is_some_and(|before| before.is_held(stamp.now));
    let tries = before.as_ref().map_or(0, |before| before.tries) + i64::from(!is_held);
    let trouble = hold(tx, of, reason, tries, stamp.now)?;
    if before.is_none_or(|before| before.trouble.reason != reason) {
        let data = json!({ "what": of.to_string(), "reason": reason, "until": time::format(trouble.until) });
        events::append(tx, stamp, EventType::SchedulerHeldUp, None, &data)?;
    }
    Ok(trouble)
}

fn hold(tx: &Connection, of: &TroubleOf, reason: &str, tries: i64, now: Timestamp) -> Result<Trouble> {
    let trouble = Trouble { until: now + of.hold(tries), reason: reason.to_owned() };
    tx.prepare_cached(
        "INSERT INTO trouble (scope, until, reason, tries) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (scope) DO UPDATE SET until = max(until, excluded.until), reason = excluded.reason,
           tries = excluded.tries",
    )?
    .execute(params![of.key(), micros(trouble.until), trouble.reason, tries])?;
    Ok(trouble)
}

/// Runs have started that are not recorded as started yet: what was in trouble for them is not any more. Returns whether
/// others may start because of that.
pub(crate) fn end_proven(tx: &Connection, started: &[Started], stamp: &Stamp) -> Result<bool> {
    if started.is_empty() || !tx.prepare_cached("SELECT 1 FROM trouble WHERE tries > 0")?.exists([])? {
        return Ok(false);
    }
    let mut is_any = false;
    for start in started {
        let is_new = |run: &Run| run.state == RunState::Starting;
        let Some(run) = runs::by_id(tx, &start.run)?.filter(is_new) else { continue };
        // A turn has a program of its own, and no rig.
        let of_bead = [TroubleOf::Program(run.agent.clone()), TroubleOf::Rig(run.rig.clone())];
        let proven = of_bead.into_iter().filter(|_| !run.is_turn()).chain([TroubleOf::Town]);
        for of in proven {
            let mut delete = tx.prepare_cached("DELETE FROM trouble WHERE scope = ?1 AND tries > 0")?;
            if delete.execute([of.key()])? > 0 {
                events::append(tx, stamp, EventType::SchedulerFreed, None, &json!({ "what": of.to_string() }))?;
                is_any = true;
            }
        }
    }
    Ok(is_any)
}

/// Troubles whose time has come, and that may not be over.
pub(crate) fn due(tx: &Connection, now: Timestamp) -> Result<BTreeMap<TroubleOf, Trial>> {
    let mut query =
        tx.prepare_cached("SELECT scope, tries, reason FROM trouble WHERE tries > 0 AND until <= ?1 AND until > ?2")?;
    let rows = query.query_map([micros(now), micros(now - LONGEST_HOLD)], |row| {
        let of = TroubleOf::parse(row.get_ref(0)?.as_str()?);
        Ok((of, Trial { tries: row.get(1)?, reason: row.get(2)? }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Remembers that others wait for the start that was just planned.
pub(crate) fn begin_trials(tx: &Connection, planner: &Planner, now: Timestamp) -> Result<()> {
    for (of, trial) in planner.begun_trials() {
        hold(tx, of, &trial.reason, trial.tries + 1, now)?;
    }
    Ok(())
}

/// Looks for what a start needs, once for all that need the same.
#[derive(Default)]
pub(crate) struct Probes {
    /// Agents with rigs that were looked at.
    done: BTreeSet<(String, String)>,
}

impl Probes {
    /// Tells the planner what a start of this candidate would lack.
    pub(crate) fn look(
        &mut self,
        tx: &Connection,
        candidate: &Candidate,
        rig: Option<&Rig>,
        claimant: &Claimant<'_>,
        planner: &mut Planner,
        stamp: &Stamp,
    ) -> Result<()> {
        let Some(rig) = rig.filter(|_| !planner.is_held_up(candidate)) else { return Ok(()) };
        if !self.done.insert((candidate.agent.clone(), rig.name.clone())) {
            return Ok(());
        }
        if let Some(Missing { of, reason }) = (claimant.probe)(&candidate.agent, rig) {
            let trouble = note(tx, &of, &reason, stamp)?;
            if gt_core::defect!("missing-program-holds-nothing") {
                return Ok(());
            }
            planner.hold_up(of, trouble);
        }
        Ok(())
    }
}
