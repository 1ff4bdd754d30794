//! What agents tell, as far as it is remembered: activity, usage, and limits that hold up an account. // SPEC P5, D5, D9
//!
//! Only the word of a live run counts. What lines mean is `gt_core::agent`; when they are read is the engine's.

use gt_core::agent::{Activity, Failure, Need, Told, Usage, Vendor};
use gt_core::event::EventType;
use gt_core::plan::{Trouble, TroubleOf, account_of};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::dispatch::runs::{self, Run};
use crate::dispatch::scheduler;
use crate::dispatch::{alarms, contexts};
use crate::error::Result;
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::Stamp;

/// All that an agent has told of a run so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    pub run: String,
    pub vendor: Vendor,
    pub told: Told,
}

/// Remembers what a live run has told.
pub(crate) fn record(tx: &Connection, telling: &Telling, stamp: &Stamp) -> Result<()> {
    let Some(run) = runs::by_id(tx, &telling.run)?.filter(Run::is_live) else { return Ok(()) };
    count(tx, &run, telling, stamp)?;
    // What it was told to do, or has said with `gt done`, weighs more than what it seems to do.
    if run.stop.is_some() || run.said.is_some() || run.is_bead_done {
        return Ok(());
    }
    turn(tx, &run, &telling.told, stamp)?;
    match telling.told.final_failure().or_else(|| limit_it_waits_for(&telling.told)) {
        Some(failure) => hold_up(tx, &run, failure, telling.vendor, stamp),
        None => Ok(()),
    }
}

fn limit_it_waits_for(told: &Told) -> Option<&Failure> {
    let is_limited = told.activity().and_then(Activity::need) == Some(Need::Limit);
    told.failure().filter(|_| is_limited)
}

/// Counts what it has used; that never becomes less.
pub(crate) fn count(tx: &Connection, run: &Run, telling: &Telling, stamp: &Stamp) -> Result<()> {
    let usage = used(tx, run, telling)?;
    let Usage { tokens_in, tokens_out, tokens_cached, cost_micros } = usage;
    if let Some(conversation) = telling.told.conversation() {
        tx.prepare_cached("UPDATE run SET conversation = ?2 WHERE id = ?1")?.execute(params![run.id, conversation])?;
    }
    if usage == Usage::default() {
        return Ok(());
    }
    let dollars = (cost_micros > 0).then_some(cost_micros as f64 / 1e6);
    let bounded = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    tx.prepare_cached(
        "UPDATE run SET tokens_in = max(coalesce(tokens_in, 0), ?2), tokens_out = max(coalesce(tokens_out, 0), ?3),
           tokens_cached = max(coalesce(tokens_cached, 0), ?4), cost_at = CASE WHEN ?5 > coalesce(cost, 0.0) THEN ?6 ELSE cost_at END,
           cost = CASE WHEN ?5 > coalesce(cost, 0.0) THEN ?5 ELSE cost END
         WHERE id = ?1",
    )?
    .execute(params![run.id, bounded(tokens_in), bounded(tokens_out), bounded(tokens_cached), dollars, micros(stamp.now)])?;
    Ok(())
}

/// What a run itself has used: some agents tell what all turns of their conversation have.
pub(crate) fn used(tx: &Connection, run: &Run, telling: &Telling) -> Result<Usage> {
    let usage = telling.told.usage();
    let Some(conversation) = run.resumes.as_ref().filter(|_| telling.vendor.counts_conversations()) else {
        return Ok(usage);
    };
    let mut query = tx.prepare_cached(
        "SELECT coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(tokens_cached), 0),
           coalesce(sum(cost), 0.0) FROM run WHERE conversation = ?1 AND turn IS NOT NULL AND id <> ?2",
    )?;
    let before = query.query_row(params![conversation, run.id], |row| {
        let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.max(0) as u64);
        Ok(Usage {
            tokens_in: count(0)?,
            tokens_out: count(1)?,
            tokens_cached: count(2)?,
            cost_micros: (row.get::<_, f64>(3)? * 1e6).round().max(0.0) as u64,
        })
    })?;
    Ok(usage.since(before))
}

/// Remembers what it does now, and tells when it begins or ceases to wait.
fn turn(tx: &Connection, run: &Run, told: &Told, stamp: &Stamp) -> Result<()> {
    let now = told.activity();
    if now == run.activity {
        return Ok(());
    }
    let since = told.since().unwrap_or(stamp.now).min(stamp.now);
    tx.prepare_cached("UPDATE run SET activity = ?2, waiting_for = ?3, activity_at = ?4 WHERE id = ?1")?.execute(
        params![run.id, now.map(Activity::as_str), now.and_then(Activity::need).map(Need::as_str), micros(since)],
    )?;
    let was_waiting = run.activity.and_then(Activity::need).is_some();
    let (kind, data) = match now.and_then(Activity::need) {
        Some(need) => {
            let data = json!({ "for": need.as_str(), "polecat": run.polecat, "rig": run.rig });
            alarms::waiting(tx, run, need, &data, stamp)?;
            (EventType::RunWaiting, data)
        }
        None if was_waiting => (EventType::RunResumed, json!({ "polecat": run.polecat, "rig": run.rig })),
        None => return Ok(()),
    };
    events::append_of_run(tx, stamp, kind, &run.bead, &run.id, &data)
}

/// Holds up the account of an agent that met what every other run of it would meet too; the longest hold counts.
pub(crate) fn hold_up(tx: &Connection, run: &Run, failure: &Failure, vendor: Vendor, stamp: &Stamp) -> Result<()> {
    if !failure.class.is_the_agents() || gt_core::defect!("limit-holds-nobody-up") {
        return Ok(());
    }
    let of = TroubleOf::Agent(account_of(&run.agent, account(tx, run)?.as_deref()));
    let until = failure.hold_until(stamp.now);
    let held: Option<i64> = tx
        .prepare_cached("SELECT until FROM trouble WHERE scope = ?1")?
        .query_row([of.key()], |row| row.get(0))
        .optional()?;
    // A failure that names no time holds up from when it was told; it is not told anew by being read again.
    let is_held =
        held.map(timestamp).is_some_and(|held| held >= until || (failure.until.is_none() && held > stamp.now));
    if is_held {
        return Ok(());
    }
    scheduler::note_trouble(tx, &of, &Trouble { until, reason: failure.reason(Some(vendor)) }, stamp)
}

/// The account that its context names.
fn account(tx: &Connection, run: &Run) -> Result<Option<String>> {
    let context = contexts::by_id(tx, &run.context)?;
    Ok(context.and_then(|context| context.sling_fields().ok()).and_then(|fields| fields.account))
}
