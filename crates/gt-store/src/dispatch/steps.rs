//! Work that is done step by step: each step is a run of its own, and what is done stays done. // SPEC P9
//!
//! A sling plans the steps of a bead. The end of a run marks its step in the same transaction, and the bead goes back to
//! its old place in the queue until the last one is done. A step that fails is tried again like any other work.

use gt_core::explain::Reason;
use gt_core::run::Outcome;
use gt_core::text::one_line;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::dispatch::contexts::{self, Context};
use crate::dispatch::records::{self, Record};
use crate::dispatch::runs::{Ended, Run};
use crate::error::Result;
use crate::rows::{self, Key, micros};
use crate::store::Stamp;

/// A step before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    pub id: String,
    pub title: String,
}

/// The step that a run is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentStep {
    pub id: String,
    pub title: String,
    /// From 1.
    pub place: usize,
    pub total: usize,
    /// The steps before it.
    pub done: Vec<DoneStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneStep {
    pub title: String,
    /// What it left for those after it to know.
    pub note: Option<String>,
    pub branch: Option<String>,
}

impl CurrentStep {
    pub fn is_last(&self) -> bool {
        self.place == self.total
    }

    /// Where the step before it left its work.
    pub fn from_branch(&self) -> Option<&str> {
        self.done.iter().rev().find_map(|step| step.branch.as_deref())
    }
}

/// Plans the steps of a bead; what was planned for it earlier is forgotten.
pub(crate) fn plan(tx: &Connection, bead: Key, slung_at: Timestamp, steps: &[PlannedStep]) -> Result<()> {
    tx.prepare_cached("DELETE FROM step WHERE bead = ?1")?.execute([bead])?;
    let mut insert =
        tx.prepare_cached("INSERT INTO step (bead, place, slung_at, id, title) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (place, step) in (1_i64..).zip(steps) {
        insert.execute(params![bead, place, micros(slung_at), step.id, step.title])?;
    }
    Ok(())
}

/// The first step of a bead that is not done, as the sling of this time planned it.
pub(crate) fn current(tx: &Connection, bead: Key, slung_at: Timestamp) -> Result<Option<CurrentStep>> {
    let mut query = tx.prepare_cached(
        "SELECT id, title, place, done_at IS NOT NULL, note, branch FROM step
         WHERE bead = ?1 AND slung_at = ?2 ORDER BY place",
    )?;
    let mut rows = query.query(params![bead, micros(slung_at)])?;
    let (mut current, mut done, mut total) = (None, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        total += 1;
        if row.get(3)? {
            done.push(DoneStep { title: row.get(1)?, note: row.get(4)?, branch: row.get(5)? });
        } else if current.is_none() {
            current = Some((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as usize));
        }
    }
    Ok(current.map(|(id, title, place)| CurrentStep { id, title, place, total, done }))
}

/// The step that a run is at.
pub(crate) fn of_run(tx: &Connection, run: &Run) -> Result<Option<CurrentStep>> {
    match contexts::by_id(tx, &run.context)? {
        Some(context) => current(tx, context.bead, context.enqueued_at),
        None => Ok(None),
    }
}

/// How many runs ended without finishing what is to be done now, and where the last of them left its work. Those of steps
/// that are done by now are none of them.
pub(crate) fn unfinished(
    tx: &Connection,
    context: &Context,
    record: Record,
    step: Option<&CurrentStep>,
) -> Result<(i64, Option<String>)> {
    let Some(step) = step.filter(|step| !step.done.is_empty() && !gt_core::defect!("attempts-of-all-steps")) else {
        return Ok((record.attempts, record.branch));
    };
    let sql = "SELECT tried, left_branch FROM step WHERE bead = ?1 AND place = ?2";
    let (n_tried, branch): (i64, Option<String>) = tx
        .prepare_cached(sql)?
        .query_row(params![context.bead, step.place as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // A retry has taken back what was counted before it.
    Ok((n_tried.min(record.attempts), branch))
}

/// What a run's word means: that it is done with a step is not that the bead is.
pub(crate) fn meant(tx: &Connection, run: &Run, said: Outcome) -> Result<Outcome> {
    let is_step = said == Outcome::Completed
        && of_run(tx, run)?.is_some_and(|step| !step.is_last())
        && !gt_core::defect!("step-counts-as-all");
    Ok(if is_step { Outcome::StepDone } else { said })
}

/// What the end of a run at a step means. One that ends well and leaves nothing uncommitted is done, word or no word.
pub(crate) fn outcome(at_end: Outcome, run: &Run, end: &Ended, step: &CurrentStep) -> Outcome {
    let is_stopped = run.stop.as_ref().is_some_and(|stop| stop.outcome == Outcome::Stopped);
    match at_end {
        Outcome::StepDone if is_stopped => Outcome::Stopped,
        Outcome::Died
            if end.code == Some(0) && (end.kept.is_none() || gt_core::defect!("unclean-step-counts-as-done")) =>
        {
            if step.is_last() && !gt_core::defect!("last-step-leaves-its-bead-open") {
                Outcome::Completed
            } else {
                Outcome::StepDone
            }
        }
        other => other,
    }
}

/// Marks the step of a run as done, or counts the run as one that has tried it. Not by times: a clock may be set back.
pub(crate) fn finish(tx: &Connection, run: &Run, step: &CurrentStep, outcome: Outcome, stamp: &Stamp) -> Result<()> {
    let is_done = run.said == Some(Outcome::StepDone)
        || outcome == Outcome::StepDone
        || (outcome == Outcome::Completed && step.is_last());
    if gt_core::defect!("failed-step-begins-anew") && outcome == Outcome::Failed {
        tx.execute("UPDATE step SET run = NULL, done_at = NULL WHERE bead = ?1", [run.key])?;
    }
    if !is_done {
        let sql = "UPDATE step SET tried = tried + ?3, left_branch = coalesce(?4, left_branch)
                   WHERE bead = ?1 AND place = ?2";
        let n_tried = i64::from(outcome.costs_an_attempt());
        tx.prepare_cached(sql)?.execute(params![run.key, step.place as i64, n_tried, run.branch])?;
    } else if !gt_core::defect!("step-done-forgotten") {
        tx.prepare_cached(
            "UPDATE step SET run = ?3, branch = ?4, note = (SELECT note FROM run WHERE id = ?3), done_at = ?5
             WHERE bead = ?1 AND place = ?2",
        )?
        .execute(params![run.key, step.place as i64, run.id, run.branch, micros(stamp.now)])?;
    }
    Ok(())
}

/// Puts a bead back in its old place, for its next step; unless somebody has decided otherwise meanwhile.
pub(crate) fn requeue(tx: &Connection, run: &Run, retry_at: Option<Timestamp>, stamp: &Stamp) -> Result<()> {
    let bead = run.key;
    let is_decided = records::load(tx, bead)?.hold.is_some() || contexts::live_of(tx, bead)?.is_some();
    if is_decided || gt_core::defect!("next-step-forgotten") {
        return Ok(());
    }
    if let Some(last) = contexts::by_id(tx, &run.context)?.filter(Context::is_valid) {
        let enqueued_at = if gt_core::defect!("step-loses-its-plan") { stamp.now } else { last.enqueued_at };
        let next = Context { failures: 0, last_failure: None, retry_at, enqueued_at, ..last };
        contexts::again_as_new(tx, &next, "step", stamp)?;
    }
    Ok(())
}

/// Whether a bead is still on the hook of a run.
pub(crate) fn is_on_hook(tx: &Connection, run: &Run) -> Result<bool> {
    let bead = rows::load(tx, run.key)?;
    Ok(bead.status.is_active() && bead.assignee == Some(run.assignee()))
}

/// Which step of a bead comes next, in words.
pub(crate) fn reason(tx: &Connection, bead: Key) -> Result<Option<Reason>> {
    let Some(context) = contexts::latest_of(tx, bead)? else { return Ok(None) };
    let step = current(tx, bead, context.enqueued_at)?;
    Ok(step.map(|step| Reason { code: "step", message: words(&step) }))
}

fn words(step: &CurrentStep) -> String {
    format!("it is done step by step, and is at step {} of {}: {}", step.place, step.total, one_line(&step.title))
}
