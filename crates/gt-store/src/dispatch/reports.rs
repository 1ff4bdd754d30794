//! What an agent says about its own run: that it is done, or that it needs a person. // SPEC P7
//!
//! A word counts while its run lives and nobody has told it to stop; any other changes nothing.

use gt_core::event::EventType;
use gt_core::merge::MergeState;
use gt_core::refusal::Refusal;
use gt_core::run::Outcome;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::dispatch::merges::{self, HandOver};
use crate::dispatch::runs::{Run, by_id};
use crate::dispatch::{alarms, hooks, steps};
use crate::error::{Result, StoreError};
use crate::rows::micros;
use crate::store::{Stamp, Store};
use crate::{beads, events, query};

/// What an agent says about its own run. // SPEC P7
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub run: String,
    pub outcome: Outcome,
    pub note: Option<String>,
    /// US dollars.
    pub cost: Option<f64>,
    /// What there is to be merged of completed work; `None`: nothing is.
    pub merge: Option<HandOver>,
    /// The commit at which it hands its work on.
    pub tip: Option<String>,
}

/// The label of beads that a person is asked to look at.
pub const ESCALATED: &str = "gt:escalated";

impl Store {
    /// Takes what an agent says about its own run. Returns what became ready; `None`: it had said so before.
    pub fn report(&mut self, report: &Report, stamp: &Stamp) -> std::result::Result<Option<Vec<String>>, StoreError> {
        match self.write(stamp, |tx| take_report(tx, report, stamp)) {
            Err(StoreError::Busy { .. } | StoreError::Full { .. })
                if gt_core::defect!("unstored-word-acknowledged") =>
            {
                Ok(Some(Vec::new()))
            }
            taken => taken,
        }
    }

    /// Hands later work of a run over instead of what waits of it; `false`: what it had handed over waits no more.
    pub fn hand_over_again(
        &mut self,
        run: &str,
        work: &HandOver,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let run = heard(tx, run)?;
            let older = merges::live_of(tx, run.key)?;
            if !older.is_some_and(|older| older.run == run.id && older.state == MergeState::Waiting) {
                return Ok(false);
            }
            match merges::hand_over(tx, &run, work, stamp) {
                Err(StoreError::Refused(Refusal::MergeLands { .. })) => Ok(false),
                other => other.map(|()| true),
            }
        })
    }

    /// Remembers that a person is asked to look at a bead: a comment, a label, an event, a letter.
    pub fn escalate(
        &mut self,
        bead: &str,
        run: Option<&str>,
        words: &str,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, bead)?;
            if let Some(run) = run {
                heard(tx, run)?;
            }
            beads::add_comment(tx, key, bead, words, stamp)?;
            beads::relabel(tx, key, bead, &[ESCALATED.to_owned()], &[], stamp)?;
            let data = json!({ "text": words });
            events::append_of_run(tx, stamp, EventType::BeadEscalated, bead, run.unwrap_or_default(), &data)?;
            alarms::asked(tx, bead, run, words, stamp)
        })
    }
}

/// A run whose word counts: it lives, and nobody has told it to stop. // SPEC P7
fn heard(tx: &Connection, id: &str) -> Result<Run> {
    let stale = |why: &str| StoreError::from(Refusal::StaleRun { run: id.to_owned(), why: why.to_owned() });
    match by_id(tx, id)? {
        None => Err(stale("is not known here")),
        Some(run) if !run.is_live() && !gt_core::defect!("stale-word-counts") => Err(stale("has ended")),
        Some(run) if run.stop.is_some() && !gt_core::defect!("stopped-word-counts") => Err(stale("was told to stop")),
        Some(run) => Ok(run),
    }
}

/// Remembers what a run says that it has cost; what was told before may be more, and never becomes less.
fn note_cost(tx: &Connection, run: &Run, dollars: Option<f64>, stamp: &Stamp) -> Result<()> {
    let least = if gt_core::defect!("reported-cost-lowers") { "-1.0" } else { "coalesce(cost, -1.0)" };
    let sql = format!("UPDATE run SET cost = ?2, cost_at = ?3 WHERE id = ?1 AND ?2 > {least}");
    tx.prepare_cached(&sql)?.execute(params![run.id, dollars, micros(stamp.now)])?;
    Ok(())
}

fn take_report(tx: &Connection, report: &Report, stamp: &Stamp) -> Result<Option<Vec<String>>> {
    let outcome = match by_id(tx, &report.run)? {
        Some(run) => steps::meant(tx, &run, report.outcome)?,
        None => report.outcome,
    };
    if by_id(tx, &report.run)?.is_some_and(|run| run.said == Some(outcome)) {
        return Ok(None);
    }
    let run = heard(tx, &report.run)?;
    tx.execute(
        "UPDATE run SET said = ?2, said_at = ?3, note = ?4, tip = ?5 WHERE id = ?1",
        params![run.id, outcome.as_str(), micros(stamp.now), report.note, report.tip],
    )?;
    note_cost(tx, &run, report.cost, stamp)?;
    let data = json!({ "outcome": outcome.as_str(), "note": report.note, "cost": report.cost,
                       "polecat": run.polecat, "rig": run.rig });
    events::append_of_run(tx, stamp, EventType::RunReported, &run.bead, &run.id, &data)?;
    if outcome != Outcome::Completed || run.is_bead_done {
        return Ok(Some(Vec::new()));
    }
    match &report.merge {
        Some(work) => merges::hand_over(tx, &run, work, stamp).map(|()| Some(Vec::new())),
        None => hooks::close_bead(tx, &run, report.note.as_deref(), stamp).map(Some),
    }
}
