//! What becomes of work that a run did not finish: tried again, held, or a person asked. // SPEC R2, D5

use gt_core::event::EventType;
use gt_core::plan::Policy;
use gt_core::run::Outcome;
use gt_core::text::short_line;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::dispatch::alarms;
use crate::dispatch::contexts::{self, Context};
use crate::dispatch::records::{self, Hold, Record};
use crate::dispatch::runs::Run;
use crate::dispatch::steps;
use crate::error::Result;
use crate::events;
use crate::store::Stamp;

/// So often in a row work is handed on at no cost.
const HANDOFFS_MAX: usize = 20;

/// Counts the attempt, and puts the bead into line again unless something speaks against it.
pub(crate) fn plan_next(
    tx: &Connection,
    run: &Run,
    outcome: Outcome,
    reason: &str,
    last_output: Option<&str>,
    policy: &Policy,
    stamp: &Stamp,
) -> Result<()> {
    let mut record: Record = records::load(tx, run.key)?;
    record.attempts += i64::from(outcome.costs_an_attempt());
    // What an agent said itself is clearer than what it printed last.
    let output = last_output.filter(|_| !matches!(outcome, Outcome::Failed | Outcome::Deferred));
    record.last_failure = Some(with_output(reason, output));
    record.branch = run.branch.clone().or(record.branch);
    record.handoff = None;
    remember_context(&mut record, run);
    let is_slung_again = contexts::live_of(tx, run.key)?.is_some();
    let mut is_next = false;
    match outcome {
        // Somebody has decided meanwhile: slung it again, or taken it off the queue after that.
        _ if is_slung_again || (record.hold.is_some() && !gt_core::defect!("held-bead-tried-again")) => {}
        Outcome::Stopped if gt_core::defect!("stopped-bead-comes-back") => is_next = true,
        Outcome::Stopped => record.hold = Some(Hold::Stopped),
        outcome
            if outcome.costs_an_attempt()
                && record.attempts > policy.redispatch_attempts
                && !gt_core::defect!("attempts-never-used-up") =>
        {
            give_up(tx, run, &mut record, last_output, stamp)?;
        }
        outcome if outcome.is_the_agents() && gt_core::defect!("limit-loses-its-bead") => {}
        outcome => is_next = outcome.is_tried_again(),
    }
    let last = contexts::by_id(tx, &run.context)?;
    if is_next && !last.as_ref().is_some_and(Context::is_valid) {
        // One that nobody can read is not tried again; its end is recorded all the same.
        (record.hold, is_next) = (Some(Hold::Invalid), false);
    }
    records::save(tx, run.key, &record)?;
    if let Some(last) = last.filter(|_| is_next) {
        // What its agent could not do waits for the agent, not for a pause of its own.
        let (retry_at, how) = if outcome.is_the_agents() {
            (None, "agent")
        } else {
            let retry_at = stamp.now + policy.redispatch_cooldown;
            ((!gt_core::defect!("cooldown-ignored")).then_some(retry_at), "witness")
        };
        contexts::again_as_new(tx, &Context { failures: 0, last_failure: None, retry_at, ..last }, how, stamp)?;
        if gt_core::defect!("attempts-forgotten") {
            records::save(tx, run.key, &Record { attempts: 0, ..record })?;
        }
    }
    Ok(())
}

/// What it is tried again with; unless its bead was slung again meanwhile, and taken off the queue after that.
fn remember_context(record: &mut Record, run: &Run) {
    if record.hold != Some(Hold::Cleared) {
        record.context = Some(run.context.clone());
    }
}

/// Why a run ended, with the last line that its agent printed.
fn with_output(reason: &str, last_output: Option<&str>) -> String {
    let last_line = last_output.and_then(|output| output.lines().map(str::trim).rfind(|line| !line.is_empty()));
    match last_line {
        Some(line) if !reason.contains(line) => format!("{reason}; last output: {}", short_line(line)),
        _ => reason.to_owned(),
    }
}

/// Counts an attempt that was done and could not be merged; says whether it was the last, and a person is asked.
pub(crate) fn count_return(tx: &Connection, run: &Run, reason: &str, policy: &Policy, stamp: &Stamp) -> Result<bool> {
    let mut record = records::load(tx, run.key)?;
    record.attempts += 1;
    record.last_failure = Some(reason.to_owned());
    record.branch = run.branch.clone().or(record.branch);
    remember_context(&mut record, run);
    let is_last = record.attempts > policy.redispatch_attempts;
    if is_last {
        give_up(tx, run, &mut record, None, stamp)?;
    }
    records::save(tx, run.key, &record)?;
    Ok(is_last)
}

/// Puts work into line again that a run has handed on. That costs nothing while it leads somewhere.
pub(crate) fn hand_on(
    tx: &Connection,
    run: &Run,
    note: Option<String>,
    patch: Option<&str>,
    policy: &Policy,
    stamp: &Stamp,
) -> Result<()> {
    let mut record = records::load(tx, run.key)?;
    record.branch = run.branch.clone().or(record.branch);
    record.patch = patch.map(str::to_owned);
    record.handoff = Some(note.unwrap_or_default());
    let fruitless = fruitless(tx, run)?;
    let retry_at = fruitless.is_some().then(|| stamp.now + policy.redispatch_cooldown);
    if let Some(why) = fruitless {
        record.attempts += 1;
        record.last_failure = Some(why);
        remember_context(&mut record, run);
        if record.attempts > policy.redispatch_attempts && record.hold.is_none() {
            give_up(tx, run, &mut record, None, stamp)?;
        }
    }
    records::save(tx, run.key, &record)?;
    steps::requeue(tx, run, retry_at, stamp)
}

/// Why handing work on is not the way for it any more.
fn fruitless(tx: &Connection, run: &Run) -> Result<Option<String>> {
    // Those since the last run that ended otherwise, the latest, which is this one, first.
    let mut query = tx.prepare_cached(
        "SELECT tip FROM run WHERE bead = ?1 AND outcome = 'handed-off' AND NOT EXISTS (
           SELECT 1 FROM run AS other WHERE other.bead = run.bead AND other.claimed_at > run.claimed_at
             AND other.outcome IN ('completed', 'step-done', 'failed', 'deferred', 'died', 'timed-out', 'stopped'))
         ORDER BY claimed_at DESC, id DESC LIMIT ?2",
    )?;
    let tips = query.query_map(params![run.key, HANDOFFS_MAX as i64 + 1], |row| row.get(0))?;
    let tips: Vec<Option<String>> = tips.collect::<rusqlite::Result<_>>()?;
    Ok(match tips.as_slice() {
        [this, before, ..] if this == before => Some("it was handed on without a new commit".to_owned()),
        more if more.len() > HANDOFFS_MAX => Some(format!("it was handed on more than {HANDOFFS_MAX} times in a row")),
        _ => None,
    })
}

/// No rule starts it again; the mayor is asked.
fn give_up(tx: &Connection, run: &Run, record: &mut Record, last_output: Option<&str>, stamp: &Stamp) -> Result<()> {
    record.hold = Some(Hold::OutOfAttempts);
    let data = json!({ "attempts": record.attempts, "reason": record.last_failure, "branch": record.branch });
    events::append_of_run(tx, stamp, EventType::BeadEscalated, &run.bead, &run.id, &data)?;
    alarms::out_of_attempts(tx, run, record, last_output, stamp)
}
