//! Runs: what became of a claim, from the start to the end. // SPEC P6, P7, R1
//!
//! Every verb looks first whether the run still lives: what an earlier run says, or what is recorded twice, changes
//! nothing.

mod row;

use gt_core::agent::{Activity, Failure, Need, Usage};
use gt_core::context::CloseReason;
use gt_core::event::EventType;
use gt_core::plan::{Policy, TroubleOf, backoff};
use gt_core::run::{Outcome, RunState, StopOrder, exit_words};
use gt_core::status::Status;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use self::row::{SELECT, from_row};
use crate::dispatch::claim::Findings;
use crate::dispatch::contexts::{self, Context};
use crate::dispatch::records::{self, Hold, Record};
use crate::dispatch::tellings::{self, Telling};
use crate::dispatch::unfinished::{self, plan_next};
use crate::dispatch::{alarms, hooks, polecats, steps, troubles};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros};
use crate::sessions::turns;
use crate::store::{Stamp, Store};
use crate::{events, query};

/// A run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub id: String,
    pub bead: String,
    pub title: String,
    /// Whether the bead's work is over, by whoever's word.
    pub is_bead_done: bool,
    pub bead_closed_at: Option<Timestamp>,
    pub context: String,
    pub rig: String,
    pub polecat: String,
    pub agent: String,
    pub host: String,
    pub state: RunState,
    pub starter: String,
    pub claimed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub pid: Option<u32>,
    pub birth: Option<u64>,
    pub session: Option<String>,
    pub branch: Option<String>,
    pub worktree: Option<String>,
    pub log: Option<String>,
    pub said: Option<Outcome>,
    pub said_at: Option<Timestamp>,
    pub stop: Option<StopOrder>,
    pub outcome: Option<Outcome>,
    pub end_reason: Option<String>,
    /// What it printed last, if it did not finish.
    pub last_output: Option<String>,
    /// When it was last found to be silent for too long, and interrupted for it.
    pub stalled_at: Option<Timestamp>,
    pub interrupted_at: Option<Timestamp>,
    /// What it does, by its agent's word.
    pub activity: Option<Activity>,
    pub activity_at: Option<Timestamp>,
    /// The agent's own name for its conversation.
    pub conversation: Option<String>,
    pub usage: Usage,
    /// The step that it is at, in words, where its work is done step by step.
    pub step: Option<String>,
    /// The turn of a session that it answers; then it has no bead.
    pub turn: Option<TurnOf>,
    /// The lane that it counts in; `None`: the scheduler's cap.
    pub lane: Option<String>,
    /// The conversation that it goes on with.
    pub resumes: Option<String>,
    pub(crate) is_aside: bool,
    pub(crate) key: Key,
}

/// What a run answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOf {
    pub id: i64,
    pub session: String,
    /// How long it may take; `None`: as the config says.
    pub timeout: Option<SignedDuration>,
}

/// A start that worked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub run: String,
    /// When it really was, which may be a moment before it is recorded; `None`: nobody knows.
    pub at: Option<Timestamp>,
    /// 0, and born at 0: no process of this machine.
    pub pid: u32,
    pub birth: u64,
    pub branch: Option<String>,
    pub worktree: Option<String>,
    pub log: String,
    /// The formula in use, with its hash.
    pub formula: Option<String>,
    /// The name that we gave to its conversation.
    pub conversation: Option<String>,
}

/// A start that did not, and whose fault that was. // SPEC D5
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    pub run: String,
    pub error: String,
    pub fault: Fault,
    /// What was made for it all the same.
    pub worktree: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Counts towards the breaker.
    Bead,
    /// Its agent cannot be started.
    Agent,
    /// Nothing can be started in its rig.
    Rig,
    /// Nothing can be started at all.
    Town,
}

/// A run that was seen to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub run: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Processes that it left behind.
    pub leftover: u32,
    /// Whether the place it ran in is gone and took it along.
    pub is_lost: bool,
    /// Where it worked, if its start was not recorded.
    pub worktree: Option<String>,
    pub branch: Option<String>,
    /// Why its worktree cannot be used for other work.
    pub kept: Option<String>,
    /// The file with what it had not committed.
    pub patch: Option<String>,
    /// What it had told until then.
    pub told: Option<Telling>,
    /// What it printed last.
    pub last_output: Option<String>,
    /// What it answered, if it was asked by a session.
    pub reply: Option<String>,
    /// Whether its agent does not have the conversation any more that it was to go on with.
    pub is_conversation_lost: bool,
}

impl Run {
    pub fn is_live(&self) -> bool {
        self.state != RunState::Ended
    }

    /// Whether it answers a session, instead of working on a bead.
    pub fn is_turn(&self) -> bool {
        self.turn.is_some()
    }

    pub(crate) fn turn_id(&self) -> Option<i64> {
        self.turn.as_ref().map(|turn| turn.id)
    }

    pub(crate) fn session_key(&self) -> Option<&str> {
        self.turn.as_ref().map(|turn| turn.session.as_str())
    }

    /// As its bead names it.
    pub(crate) fn assignee(&self) -> String {
        gt_core::names::assignee(&self.rig, &self.polecat)
    }

    /// When its work was over, though its process may live. Where the bead does not say (it was deleted, or closed by
    /// another clock, far ahead) the run has been over for as long as it can have been; ever, if that clock claimed it too.
    pub fn finished_at(&self, now: Timestamp) -> Option<Timestamp> {
        const SKEW: SignedDuration = SignedDuration::from_secs(10);
        if !self.is_bead_done {
            return self.said_at;
        }
        let is_ours = |at: &Timestamp| *at <= now + SKEW;
        let over = self.bead_closed_at.filter(is_ours).unwrap_or(self.claimed_at);
        Some(Some(over).filter(is_ours).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// What it waits for, while that counts.
    pub fn waits_for(&self) -> Option<Need> {
        let is_at_work = self.is_live() && self.stop.is_none() && self.said.is_none() && !self.is_bead_done;
        self.activity.and_then(Activity::need).filter(|_| is_at_work)
    }

    /// What its end means. // the bead's word first, then its own, then an order, then what it failed with, then silence
    fn outcome_at_end(&self, failure: Option<&Failure>, is_lost: bool) -> Outcome {
        match (self.is_bead_done, self.said, &self.stop) {
            (true, None, None) if gt_core::defect!("close-loses-to-silence") => Outcome::Died,
            (true, ..) => Outcome::Completed,
            (false, Some(said), _) => said,
            (false, _, Some(stop)) => stop.outcome,
            _ if gt_core::defect!("limit-costs-an-attempt") => Outcome::Died,
            _ => failure.and_then(Failure::outcome).unwrap_or(if is_lost { Outcome::Lost } else { Outcome::Died }),
        }
    }
}

impl Store {
    pub fn run(&mut self, id: &str) -> std::result::Result<Option<Run>, StoreError> {
        self.read(|tx| by_id(tx, id))
    }

    /// The runs of a bead, the latest first.
    pub fn runs_of(&mut self, bead: &str) -> std::result::Result<Vec<Run>, StoreError> {
        self.read(|tx| {
            let key = query::require(tx, bead)?;
            select(tx, "run.bead = ?1 ORDER BY run.claimed_at DESC, run.id DESC", params![key])
        })
    }

    /// The bead that the worker of this run had before.
    pub fn work_before(&mut self, run: &Run) -> std::result::Result<Option<String>, StoreError> {
        self.read(|tx| {
            let earlier = "run.rig = ?1 AND run.polecat = ?2 AND run.id <> ?3 ORDER BY run.claimed_at DESC LIMIT 1";
            Ok(select(tx, earlier, params![run.rig, run.polecat, run.id])?.pop().map(|run| run.bead))
        })
    }

    /// Takes over the start of a run from a starter that is gone; says whether nobody else was first.
    pub fn take_over(&mut self, run: &Run, starter: &str, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE run SET starter = ?3 WHERE id = ?1 AND starter = ?2 AND state = 'starting'";
            Ok(tx.execute(sql, params![run.id, run.starter, starter])? > 0)
        })
    }

    /// Tells a run to stop; nothing it says counts from now on. Says whether it lived.
    pub fn order_stop(&mut self, run: &str, order: &StopOrder, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| match by_id(tx, run)?.filter(Run::is_live) {
            Some(run) => order_stop(tx, &run, order, stamp).map(|()| true),
            None => Ok(false),
        })
    }
}

/// Records what happened to runs.
///
/// Returns those that were started though nobody wants that any more: they were given up or told to stop meanwhile.
pub(crate) fn record(tx: &Connection, findings: &Findings, policy: &Policy, stamp: &Stamp) -> Result<Vec<Run>> {
    let mut unwanted = Vec::new();
    for start in &findings.started {
        unwanted.extend(record_started(tx, start, stamp)?);
    }
    findings.told.iter().try_for_each(|telling| tellings::record(tx, telling, stamp))?;
    findings.not_started.iter().try_for_each(|failure| record_not_started(tx, failure, policy, stamp))?;
    findings.ended.iter().try_for_each(|end| record_ended(tx, end, policy, stamp))?;
    Ok(unwanted)
}

/// Every run that lives, the oldest first.
pub(crate) fn living(tx: &Connection) -> Result<Vec<Run>> {
    select(tx, "run.state <> 'ended' ORDER BY run.claimed_at, run.id", params![])
}

fn select(tx: &Connection, condition: &str, arguments: impl rusqlite::Params) -> Result<Vec<Run>> {
    let mut query = tx.prepare_cached(&format!("{SELECT} WHERE {condition}"))?;
    Ok(query.query_map(arguments, from_row)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn by_id(tx: &Connection, id: &str) -> Result<Option<Run>> {
    Ok(select(tx, "run.id = ?1", params![id])?.pop())
}

/// The runs of a turn, the first of them first.
pub(crate) fn of_turn(tx: &Connection, turn: i64) -> Result<Vec<Run>> {
    select(tx, "run.turn = ?1 AND run.turn IS NOT NULL ORDER BY run.claimed_at, run.id", params![turn])
}

/// The live run of a bead.
pub(crate) fn live_of(tx: &Connection, bead: Key) -> Result<Option<String>> {
    let mut query = tx.prepare_cached("SELECT id FROM run WHERE bead = ?1 AND state <> 'ended'")?;
    Ok(query.query_row([bead], |row| row.get(0)).optional()?)
}

pub(crate) fn order_stop(tx: &Connection, run: &Run, order: &StopOrder, stamp: &Stamp) -> Result<()> {
    if run.stop.is_some() {
        return Ok(());
    }
    tx.execute(
        "UPDATE run SET stop_at = ?2, stop_by = ?3, stop_outcome = ?4, stop_reason = ?5 WHERE id = ?1",
        params![run.id, micros(order.at), order.by, order.outcome.as_str(), order.reason],
    )?;
    let data = json!({ "reason": order.reason, "polecat": run.polecat, "rig": run.rig });
    events::append_of_run(tx, stamp, EventType::RunStopping, &run.bead, &run.id, &data)
}

/// Returns the run if it should not have been started.
fn record_started(tx: &Connection, start: &Started, stamp: &Stamp) -> Result<Option<Run>> {
    let run = match by_id(tx, &start.run)? {
        Some(run) if run.state == RunState::Starting => run,
        other => return Ok(other.filter(|run| !run.is_live())),
    };
    if run.is_turn() {
        return turns::started(tx, run, start, stamp);
    }
    note_started(tx, &run, start, stamp)?;
    polecats::settle(tx, &run.id, start.worktree.as_deref(), start.branch.as_deref())?;
    close_claimed(tx, &run, stamp)?;
    hooks::begin_work(tx, run.key, stamp)?;
    // A run elsewhere is no process of this machine.
    let pid = Some(start.pid).filter(|pid| *pid != 0);
    let data = json!({ "rig": run.rig, "polecat": run.polecat, "agent": run.agent, "pid": pid,
                       "branch": start.branch, "formula": start.formula });
    events::append_of_run(tx, stamp, EventType::RunStarted, &run.bead, &run.id, &data)?;
    Ok(Some(run).filter(|run| run.stop.is_some()))
}

/// Remembers that a run works, and where.
pub(crate) fn note_started(tx: &Connection, run: &Run, start: &Started, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "UPDATE run SET state = 'working', started_at = ?2, pid = ?3, birth = ?4, branch = ?5, worktree = ?6, log = ?7,
           conversation = coalesce(conversation, ?8)
         WHERE id = ?1",
    )?
    .execute(params![
        run.id,
        micros(stamp.now),
        start.pid,
        start.birth as i64,
        start.branch,
        start.worktree,
        start.log,
        start.conversation
    ])?;
    Ok(())
}

/// The context of a run that has started is done with.
fn close_claimed(tx: &Connection, run: &Run, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "UPDATE context SET state = 'closed', closed_at = ?2, close_reason = ?3 WHERE id = ?1 AND state = 'claimed'",
    )?
    .execute(params![run.context, micros(stamp.now), CloseReason::Dispatched.as_str()])?;
    Ok(())
}

pub(crate) fn end_run(tx: &Connection, run: &Run, outcome: Outcome, reason: &str, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE run SET state = 'ended', ended_at = ?2, outcome = ?3, end_reason = ?4 WHERE id = ?1")?
        .execute(params![run.id, micros(stamp.now), outcome.as_str(), reason])?;
    Ok(())
}

fn record_not_started(tx: &Connection, failure: &NotStarted, policy: &Policy, stamp: &Stamp) -> Result<()> {
    // Who has spoken was started, whatever somebody saw who looked before.
    let is_unstarted = |run: &Run| run.state == RunState::Starting && run.said.is_none();
    let Some(run) = by_id(tx, &failure.run)?.filter(is_unstarted) else { return Ok(()) };
    if run.is_turn() {
        return turns::not_started(tx, &run, failure, policy, stamp);
    }
    end_run(tx, &run, Outcome::NotStarted, &failure.error, stamp)?;
    if failure.worktree.is_some() {
        polecats::settle(tx, &run.id, failure.worktree.as_deref(), None)?;
    }
    polecats::free(tx, &run.id, None, stamp)?;
    // A name that never had a place to work in is given back.
    tx.execute("DELETE FROM polecat WHERE last_run = ?1 AND run IS NULL AND worktree IS NULL", [&run.id])?;
    let data = json!({ "outcome": Outcome::NotStarted.as_str(), "reason": failure.error, "polecat": run.polecat,
                       "rig": run.rig });
    events::append_of_run(tx, stamp, EventType::RunEnded, &run.bead, &run.id, &data)?;
    let stop = run.stop.as_ref().filter(|stop| stop.outcome == Outcome::Stopped);
    match (contexts::by_id(tx, &run.context)?, stop) {
        (Some(context), None) => reopen(tx, &context, failure, policy, stamp)?,
        // Whoever stopped it does not want it to be tried again.
        (Some(context), Some(stop)) => {
            contexts::close(tx, &context, CloseReason::Cleared, Some(&stop.reason), stamp)?;
            plan_next(tx, &run, Outcome::Stopped, &stop.reason, None, policy, stamp)?;
        }
        (None, _) => {}
    }
    release(tx, run.key, &run, Status::Open, stamp)?;
    let of = match &failure.fault {
        Fault::Bead => return Ok(()),
        Fault::Agent => TroubleOf::Program(run.agent),
        Fault::Rig => TroubleOf::Rig(run.rig),
        Fault::Town => TroubleOf::Town,
    };
    troubles::note(tx, &of, &failure.error, stamp).map(drop)
}

/// A context whose start failed is open again, or its circuit breaks.
fn reopen(tx: &Connection, context: &Context, failure: &NotStarted, policy: &Policy, stamp: &Stamp) -> Result<()> {
    let is_its_fault = failure.fault == Fault::Bead;
    let failures = context.failures + i64::from(is_its_fault);
    let waits = is_its_fault && !gt_core::defect!("backoff-ignored");
    let retry_at = waits.then(|| stamp.now + backoff(failures));
    tx.execute(
        "UPDATE context SET state = 'open', ready = 0, run = NULL, failures = ?2, retry_at = ?3,
           last_failure = coalesce(?4, last_failure) WHERE id = ?1",
        params![context.id, failures, retry_at.map(micros), is_its_fault.then_some(&failure.error)],
    )?;
    if !is_its_fault {
        return Ok(());
    }
    let work = contexts::bead_id(tx, context.bead)?;
    let data = json!({ "context": context.id, "failures": failures, "error": failure.error });
    events::append(tx, stamp, EventType::ContextFailed, Some(&work), &data)?;
    if failures >= policy.max_failures && !gt_core::defect!("breaker-never-breaks") {
        let mut record = records::load(tx, context.bead)?;
        record.last_failure = Some(failure.error.clone());
        record.hold = Some(Hold::CircuitBroken);
        record.hold_until = Some(stamp.now + policy.breaker_reset);
        record.context = Some(context.id.clone());
        records::save(tx, context.bead, &record)?;
        contexts::close(tx, context, CloseReason::CircuitBroken, Some(&failure.error), stamp)?;
        // Every try that is let through later breaks it again; one letter says it all.
        if failures <= n_failed_starts(tx, context)? && !gt_core::defect!("circuit-breaks-silently") {
            alarms::circuit_broken(tx, &work, failures, &failure.error, stamp)?;
        }
    }
    Ok(())
}

/// Starts of a context that failed; one that a broken circuit has let through counts more failures than it has had.
fn n_failed_starts(tx: &Connection, context: &Context) -> Result<i64> {
    let sql = "SELECT count(*) FROM run WHERE bead = ?1 AND context = ?2 AND outcome = ?3";
    let arguments = params![context.bead, context.id, Outcome::NotStarted.as_str()];
    Ok(tx.prepare_cached(sql)?.query_row(arguments, |row| row.get(0))?)
}

/// Takes the bead off the run's hook, unless somebody else has taken it, and the run's name off the bead.
fn release(tx: &Connection, key: Key, run: &Run, status: Status, stamp: &Stamp) -> Result<()> {
    let mut bead = rows::load(tx, key)?;
    let is_hooked = matches!(bead.status, Status::Hooked | Status::InProgress);
    let is_its = match &bead.assignee {
        Some(assignee) => *assignee == run.assignee(),
        None => is_hooked, // a person took its name off; nobody else would take the bead off the hook
    };
    if bead.status.is_active() && is_its && !gt_core::defect!("bead-stays-on-its-hook") {
        if is_hooked {
            bead.set_status(status, stamp.now);
        }
        bead.assignee = None;
        bead.updated_at = Some(stamp.now);
        let mut ledger = Ledger::new(tx, stamp.now);
        ledger.rewrite(key, &bead)?;
        ledger.flush()?;
        let data = json!({ "polecat": run.polecat, "rig": run.rig, "status": bead.status.as_str() });
        events::append_of_run(tx, stamp, EventType::BeadReleased, &bead.id, &run.id, &data)?;
    }
    // While the context was claimed it did not follow the bead.
    tx.prepare_cached(
        "UPDATE context SET (ready, priority) = (SELECT CASE WHEN standing IS NULL THEN 2 ELSE standing = 'ready' END,
           priority FROM bead WHERE key = context.bead) WHERE bead = ?1 AND state <> 'closed' AND state = 'open'",
    )?
    .execute([key])?;
    Ok(())
}

/// How a run ended that said nothing.
fn silent_end(outcome: Outcome, end: &Ended) -> String {
    let is_quiet = outcome == Outcome::Died && end.code == Some(0);
    if is_quiet { "exited without `gt done`".to_owned() } else { exit_words(end.code, end.signal) }
}

fn record_ended(tx: &Connection, end: &Ended, policy: &Policy, stamp: &Stamp) -> Result<()> {
    let Some(mut run) = by_id(tx, &end.run)?.filter(|run| run.is_live() || gt_core::defect!("end-counts-twice")) else {
        return Ok(());
    };
    if run.is_turn() {
        return turns::ended(tx, &run, end, policy, stamp);
    }
    if run.state == RunState::Starting && end.worktree.is_some() {
        settle_late(tx, &mut run, end)?;
    }
    let failure = end.told.as_ref().and_then(|telling| telling.told.failure());
    let current = steps::of_run(tx, &run)?;
    let outcome = run.outcome_at_end(failure, end.is_lost);
    let outcome = current.as_ref().map_or(outcome, |step| steps::outcome(outcome, &run, end, step));
    let exit = exit_words(end.code, end.signal);
    let reason = match (&run.stop, outcome, failure) {
        (_, Outcome::Failed, _) => run.note(tx)?.unwrap_or_else(|| exit.clone()),
        (_, Outcome::Completed | Outcome::HandedOff | Outcome::Deferred, _) => exit.clone(),
        (Some(stop), ..) => format!("{} ({exit})", stop.reason),
        (None, Outcome::Lost, _) => "the server of its terminal is gone, and took it along".to_owned(),
        (None, _, Some(failure)) => format!("{} ({exit})", failure.message),
        _ => silent_end(outcome, end),
    };
    if let Some(telling) = end.told.as_ref().filter(|_| !gt_core::defect!("last-cost-unheard")) {
        tellings::count(tx, &run, telling, stamp)?;
    }
    end_run(tx, &run, outcome, &reason, stamp)?;
    let last_output = end.last_output.as_deref().filter(|_| !outcome.is_progress());
    tx.prepare_cached("UPDATE run SET exit_code = ?2, exit_signal = ?3, failure = ?4, last_output = ?5 WHERE id = ?1")?
        .execute(params![run.id, end.code, end.signal, failure.map(|failure| failure.class.as_str()), last_output])?;
    if let (Some(telling), Some(failure), true) = (&end.told, failure, outcome.is_the_agents()) {
        tellings::hold_up(tx, &run, failure, telling.vendor, stamp)?;
    }
    polecats::free(tx, &run.id, end.kept.as_deref(), stamp)?;
    close_claimed(tx, &run, stamp)?;
    let data = json!({ "outcome": outcome.as_str(), "reason": reason, "exit_code": end.code, "signal": end.signal,
                       "leftover": end.leftover, "polecat": run.polecat, "rig": run.rig, "branch": run.branch,
                       "failure": failure.map(|failure| failure.class.as_str()), "last_output": last_output });
    events::append_of_run(tx, stamp, EventType::RunEnded, &run.bead, &run.id, &data)?;
    if let Some(kept) = &end.kept {
        let data = json!({ "rig": run.rig, "polecat": run.polecat, "worktree": run.worktree, "why": kept });
        events::append_of_run(tx, stamp, EventType::PolecatKept, &run.bead, &run.id, &data)?;
    }
    if let Some(step) = &current {
        steps::finish(tx, &run, step, outcome, stamp)?;
    }
    match outcome {
        Outcome::Completed if run.is_bead_done => return Ok(()),
        Outcome::Completed if run.said.is_none() && steps::is_on_hook(tx, &run)? => {
            return hooks::close_bead(tx, &run, None, stamp).map(drop);
        }
        Outcome::HandedOff => {
            unfinished::hand_on(tx, &run, run.note(tx)?, end.patch.as_deref(), policy, stamp)?;
            return release(tx, run.key, &run, Status::Open, stamp);
        }
        Outcome::StepDone => {
            steps::requeue(tx, &run, None, stamp)?;
            return release(tx, run.key, &run, Status::Open, stamp);
        }
        // It said so, and somebody has opened the bead again since.
        Outcome::Completed => return release(tx, run.key, &run, Status::Open, stamp),
        _ => {}
    }
    let is_put_off = outcome == Outcome::Deferred && contexts::live_of(tx, run.key)?.is_none();
    let status = if is_put_off { Status::Deferred } else { Status::Open };
    let record = records::load(tx, run.key)?;
    if record.patch != end.patch {
        records::save(tx, run.key, &Record { patch: end.patch.clone(), ..record })?;
    }
    plan_next(tx, &run, outcome, &reason, last_output, policy, stamp)?;
    release(tx, run.key, &run, status, stamp)?;
    alarms::recovered(tx, &run, outcome, &reason, last_output, stamp)
}

/// Remembers where a run worked whose start nobody lived to record.
fn settle_late(tx: &Connection, run: &mut Run, end: &Ended) -> Result<()> {
    (run.worktree, run.branch) = (end.worktree.clone(), end.branch.clone());
    tx.prepare_cached("UPDATE run SET worktree = ?2, branch = ?3 WHERE id = ?1")?.execute(params![
        run.id,
        run.worktree,
        run.branch
    ])?;
    polecats::settle(tx, &run.id, run.worktree.as_deref(), run.branch.as_deref())
}

impl Run {
    fn note(&self, tx: &Connection) -> Result<Option<String>> {
        Ok(tx.prepare_cached("SELECT note FROM run WHERE id = ?1")?.query_row([&self.id], |row| row.get(0))?)
    }
}
