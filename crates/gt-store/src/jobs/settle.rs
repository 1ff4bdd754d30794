//! What becomes of a fire when an attempt at it has ended: it is over, or tried again; and of its job. // SPEC K4, H1, H2
//!
//! Part of the transaction in which the turn ends, so that neither is known without the other. Whether an answer arrives
//! changes nothing here: what was done is not done again.

use std::borrow::Cow;

use gt_core::agent::FailureClass;
use gt_core::event::EventType;
use gt_core::heartbeat::{self, REPEATED_WITHIN, Verdict};
use gt_core::job::{Beat, Command, FireStatus, JobState, Payload, Schedule, Setback, chance, retry_after};
use gt_core::run::Outcome;
use gt_core::session::TurnOutcome;
use gt_core::text::one_line;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::fire::unfinished;
use super::log::{self, Fire};
use super::{Job, beats, by_id, save};
use crate::error::Result;
use crate::mail::{self, MAYOR, NewLetter};
use crate::rows::{micros, timestamp};
use crate::sessions::arrive::Address;
use crate::sessions::{refresh, turns};
use crate::store::Stamp;
use crate::{events, notices};

/// How an attempt ended.
pub(crate) struct Attempt<'a> {
    pub(crate) fire: i64,
    pub(crate) run: Option<&'a str>,
    pub(crate) outcome: TurnOutcome,
    pub(crate) reply: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    /// Where its answer goes, unless it is decided only now.
    pub(crate) to: Option<&'a Address>,
}

/// Something to be delivered.
pub(crate) struct Answer {
    pub(crate) to: Address,
    pub(crate) text: String,
}

/// The exit code of our own program for what can be done later.
const NOT_NOW: i32 = 5;

/// Why something failed that said nothing of it.
const UNKNOWN: &str = "nobody knows why";

/// That nothing is delivered.
pub(super) struct Kept {
    word: &'static str,
    why: Option<Cow<'static, str>>,
}

impl Kept {
    /// There is nothing to tell, or nobody to tell it to.
    const NONE: Kept = Kept { word: "none", why: None };
    const SILENT: Kept = Kept { word: "suppressed", why: Some(Cow::Borrowed("it said NO_REPLY")) };

    /// The mayor got a letter instead.
    pub(super) fn mailed(why: String) -> Kept {
        Kept { word: "mailed", why: Some(why.into()) }
    }
}

/// That an attempt is being made.
pub(crate) fn started(tx: &Connection, turn: i64, run: &str, at: Timestamp) -> Result<()> {
    let sql = "UPDATE fire SET started_at = coalesce(started_at, ?3), run = ?2
               WHERE id = (SELECT fire FROM turn WHERE id = ?1)";
    tx.prepare_cached(sql)?.execute(params![turn, run, micros(at)])?;
    Ok(())
}

/// That what it takes is missing: trying again soon would not help.
pub(crate) fn is_hopeless(tx: &Connection, fire: i64) -> Result<()> {
    tx.prepare_cached("UPDATE fire SET retries = 0 WHERE id = ?1")?.execute([fire])?;
    Ok(())
}

/// That an attempt has ended; what is to be delivered is returned.
pub(crate) fn ended(tx: &Connection, attempt: &Attempt<'_>, stamp: &Stamp) -> Result<Option<Answer>> {
    let Some(mut fire) = log::by_id(tx, attempt.fire)?.filter(|fire| fire.status == FireStatus::Running) else {
        return Ok(None);
    };
    let job = by_id(tx, fire.job_id)?;
    let end = attempt.run.map(|run| end_of(tx, run)).transpose()?.flatten();
    if let Some(run) = attempt.run {
        name_run(tx, fire.id, run)?;
        count_usage(tx, fire.id, run)?;
    }
    fire.run = attempt.run.map(str::to_owned); // the row may still name the run of an earlier attempt
    let status = match attempt.outcome {
        TurnOutcome::Done => FireStatus::Ok,
        TurnOutcome::Cancelled => FireStatus::Cancelled,
        TurnOutcome::Failed if end.is_some_and(|end| end.outcome == Some(Outcome::TimedOut)) => FireStatus::Timeout,
        // Perhaps an attempt before has handed it over, and was cut off.
        TurnOutcome::Failed if is_under_way(job.as_ref(), end) && fire.attempt > 1 => FireStatus::Ok,
        TurnOutcome::Failed if is_under_way(job.as_ref(), end) => FireStatus::Skipped,
        // Its agent was busy when it would have started.
        TurnOutcome::Dropped if beats::is_beat(&fire.job) => FireStatus::Skipped,
        TurnOutcome::Failed | TurnOutcome::Dropped => FireStatus::Failed,
    };
    let is_failed =
        status == FireStatus::Failed || (status == FireStatus::Timeout && gt_core::defect!("timeout-tried-again"));
    if is_failed && is_tried_again(tx, &fire, job.as_ref(), end, attempt.error, stamp)? {
        return Ok(None);
    }
    close(tx, &fire, status, attempt.error, stamp)?;
    let answer = answer(tx, &fire, job.as_ref(), status, attempt, stamp)?;
    note_delivery(tx, fire.id, answer.as_ref().err().unwrap_or(&Kept { word: "waiting", why: None }))?;
    if let Some(job) = job {
        learn(tx, job, &fire, status, attempt.error, stamp)?;
    }
    Ok(answer.ok())
}

/// Whether our own program has found that what it was to hand over is in somebody's hands.
fn is_under_way(job: Option<&Job>, end: Option<End>) -> bool {
    let is_gt = job.is_some_and(|job| matches!(job.plan.payload.command(), Some(Command::Gt(_))));
    is_gt && end.is_some_and(|end| end.outcome == Some(Outcome::Failed) && end.exit_code == Some(NOT_NOW))
}

/// That an attempt could not even be asked for.
pub(super) fn not_begun(tx: &Connection, fire: i64, why: &str, stamp: &Stamp) -> Result<()> {
    let attempt = Attempt { fire, run: None, outcome: TurnOutcome::Dropped, reply: None, error: Some(why), to: None };
    ended(tx, &attempt, stamp).map(|_| ())
}

/// What waits to be started, or to be tried again, is over instead.
pub(super) fn give_up_waiting(tx: &Connection, job: i64, why: &str, stamp: &Stamp) -> Result<()> {
    give_up_retries(tx, job, why, stamp)?;
    let mut query = tx.prepare_cached(
        "SELECT turn.id, turn.session FROM fire JOIN turn ON turn.id = fire.turn
         WHERE fire.job = ?1 AND status = 'running' AND turn.state = 'waiting' ORDER BY turn.id",
    )?;
    let waiting: Vec<(i64, i64)> =
        query.query_map([job], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (turn, session) in waiting {
        turns::end(tx, turn, TurnOutcome::Cancelled, None, Some(why), stamp)?;
        refresh(tx, session)?;
    }
    Ok(())
}

/// What would be tried again is over instead.
fn give_up_retries(tx: &Connection, job: i64, why: &str, stamp: &Stamp) -> Result<()> {
    let mut query =
        tx.prepare_cached("SELECT id FROM fire WHERE job = ?1 AND status = 'running' AND retry_at IS NOT NULL")?;
    let waiting: Vec<i64> = query.query_map([job], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for id in waiting {
        let Some(fire) = log::by_id(tx, id)? else { continue };
        let error = fire.error.as_ref().map_or_else(|| why.to_owned(), |error| format!("{error}; {why}"));
        close(tx, &fire, FireStatus::Failed, Some(&error), stamp)?;
        note_delivery(tx, id, &Kept::NONE)?;
    }
    Ok(())
}

pub(super) fn note_delivery(tx: &Connection, fire: i64, kept: &Kept) -> Result<()> {
    tx.prepare_cached("UPDATE fire SET delivery = ?2, delivery_error = ?3 WHERE id = ?1")?
        .execute(params![fire, kept.word, kept.why])?;
    Ok(())
}

/// How the run of an attempt ended.
#[derive(Debug, Clone, Copy)]
struct End {
    outcome: Option<Outcome>,
    class: Option<FailureClass>,
    exit_code: Option<i32>,
}

fn end_of(tx: &Connection, run: &str) -> Result<Option<End>> {
    let mut query = tx.prepare_cached("SELECT outcome, failure, exit_code FROM run WHERE id = ?1")?;
    let end = query.query_row([run], |row| {
        Ok(End {
            outcome: row.get_ref(0)?.as_str_or_null()?.and_then(Outcome::parse),
            class: row.get_ref(1)?.as_str_or_null()?.and_then(FailureClass::parse),
            exit_code: row.get(2)?,
        })
    });
    Ok(end.optional()?)
}

/// A run may end before its start is recorded.
fn name_run(tx: &Connection, fire: i64, run: &str) -> Result<()> {
    tx.prepare_cached("UPDATE fire SET run = ?2 WHERE id = ?1 AND run IS NOT ?2")?.execute(params![fire, run])?;
    Ok(())
}

fn count_usage(tx: &Connection, fire: i64, run: &str) -> Result<()> {
    tx.prepare_cached(
        "UPDATE fire SET tokens_in = coalesce(fire.tokens_in + run.tokens_in, fire.tokens_in, run.tokens_in),
           tokens_out = coalesce(fire.tokens_out + run.tokens_out, fire.tokens_out, run.tokens_out),
           tokens_cached = coalesce(fire.tokens_cached + run.tokens_cached, fire.tokens_cached, run.tokens_cached),
           cost = coalesce(fire.cost + run.cost, fire.cost, run.cost)
         FROM run WHERE run.id = ?2 AND fire.id = ?1",
    )?
    .execute(params![fire, run])?;
    Ok(())
}

/// Puts off what may go better soon; a job that nobody wants any more is not tried again.
fn is_tried_again(
    tx: &Connection,
    fire: &Fire,
    job: Option<&Job>,
    end: Option<End>,
    error: Option<&str>,
    stamp: &Stamp,
) -> Result<bool> {
    let Some(job) = job.filter(|job| fire.is_manual || job.state == JobState::Active) else { return Ok(false) };
    let setback = Setback {
        outcome: end.and_then(|end| end.outcome).or(Some(Outcome::NotStarted)),
        class: end.and_then(|end| end.class),
        exit_code: end.and_then(|end| end.exit_code),
        is_gt: matches!(job.plan.payload.command(), Some(Command::Gt(_))),
    };
    if (fire.attempt > fire.retries && !gt_core::defect!("retries-never-used-up")) || !setback.is_worth_retrying() {
        return Ok(false);
    }
    let n_before = if gt_core::defect!("retry-pause-never-grows") { 0 } else { fire.attempt - 1 };
    let n = u32::try_from(n_before).unwrap_or(0);
    let at = stamp.now + retry_after(n, chance(fire.job_id, fire.slot, fire.attempt));
    tx.prepare_cached("UPDATE fire SET retry_at = ?2, error = ?3 WHERE id = ?1")?.execute(params![
        fire.id,
        micros(at),
        error
    ])?;
    Ok(true)
}

fn close(tx: &Connection, fire: &Fire, status: FireStatus, error: Option<&str>, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE fire SET status = ?2, ended_at = ?3, error = ?4, retry_at = NULL WHERE id = ?1")?
        .execute(params![fire.id, status.as_str(), micros(stamp.now), error])?;
    let data = json!({ "job": fire.job, "slot": fire.slot, "fire": fire.id, "status": status.as_str(),
                       "attempt": fire.attempt, "error": error });
    events::append_of_run(tx, stamp, EventType::JobEnded, "", fire.run.as_deref().unwrap_or_default(), &data)
}

/// What is to be delivered of it, or why nothing is.
fn answer(
    tx: &Connection,
    fire: &Fire,
    job: Option<&Job>,
    status: FireStatus,
    attempt: &Attempt<'_>,
    stamp: &Stamp,
) -> Result<std::result::Result<Answer, Kept>> {
    let reply = attempt.reply.unwrap_or_default();
    let to_its_place = |text: String| match attempt.to {
        Some(to) => Ok(Answer { to: to.clone(), text }),
        None => Err(Kept::NONE),
    };
    Ok(match (status, job.map(|job| (job, &job.plan.payload))) {
        (FireStatus::Ok, Some((job, Payload::Heartbeat(beat)))) => return alert(tx, fire, job, beat, reply, stamp),
        // That a heartbeat failed is no alert; whoever looks sees it, and it stops itself.
        (FireStatus::Cancelled | FireStatus::Skipped, _) | (_, Some((_, Payload::Heartbeat(_)))) => Err(Kept::NONE),
        (FireStatus::Ok, _) if reply.trim().is_empty() => Err(Kept::NONE),
        (FireStatus::Ok, Some((_, payload))) if payload.command().is_none() && heartbeat::wants_silence(reply) => {
            Err(Kept::SILENT)
        }
        (FireStatus::Ok, _) => to_its_place(reply.to_owned()),
        _ => {
            let why = attempt.error.unwrap_or(UNKNOWN);
            to_its_place(format!("The job {} failed: {why}.", fire.job))
        }
    })
}

/// What a heartbeat has to tell: the last two of its steps. // seed 003 §5
fn alert(
    tx: &Connection,
    fire: &Fire,
    job: &Job,
    beat: &Beat,
    reply: &str,
    stamp: &Stamp,
) -> Result<std::result::Result<Answer, Kept>> {
    if reply.trim().is_empty() {
        return Ok(Err(Kept { word: "suppressed", why: Some("it said nothing".into()) }));
    }
    let text = match heartbeat::judge(reply, beat.ack_max_chars) {
        Verdict::AllWell if gt_core::defect!("heartbeat-ok-delivered") => reply.to_owned(),
        Verdict::AllWell => return Ok(Err(Kept { word: "suppressed", why: Some("all is well".into()) })),
        Verdict::Alert(text) => text,
    };
    if heartbeat::wants_silence(reply) {
        return Ok(Err(Kept::SILENT));
    }
    if is_repeated(tx, job, &text, stamp)? {
        return Ok(Err(Kept { word: "repeated", why: Some("it said the same within 24 hours".into()) }));
    }
    if beat.target == "none" {
        return Ok(Err(Kept { word: "none", why: Some("`heartbeat.target` is none".into()) }));
    }
    tx.prepare_cached("UPDATE fire SET told = ?2 WHERE id = ?1")?.execute(params![fire.id, text])?;
    tx.prepare_cached("UPDATE job SET said = ?2, said_at = ?3 WHERE id = ?1")?.execute(params![
        job.id,
        text,
        micros(stamp.now)
    ])?;
    Ok(match target(tx, beat)? {
        Ok(to) => Ok(Answer { to, text }),
        // It is not to be lost.
        Err(why) => Err(Kept::mailed(mail_alert(tx, &beat.agent, text, &why, stamp)?)),
    })
}

/// Whether the agent has told the same lately, as the last thing or before that.
fn is_repeated(tx: &Connection, job: &Job, text: &str, stamp: &Stamp) -> Result<bool> {
    if gt_core::defect!("alert-told-again") {
        return Ok(false);
    }
    if gt_core::defect!("alert-told-once-for-ever") {
        return Ok(job.said().is_some_and(|(said, _)| said == text));
    }
    if heartbeat::is_repeated(text, job.said(), stamp.now) {
        return Ok(true);
    }
    let is_same = |(said, at): &(String, Timestamp)| heartbeat::is_repeated(text, Some((said, *at)), stamp.now);
    Ok(!gt_core::defect!("only-the-last-alert-known") && told_lately(tx, job.name(), stamp)?.iter().any(is_same))
}

/// What a heartbeat told, and when.
pub(super) const TOLD_LATELY: &str =
    "SELECT told, ended_at FROM fire WHERE name = ?1 AND ended_at BETWEEN ?2 AND ?3 AND told IS NOT NULL";

/// What a heartbeat has told around now, whatever the clock showed then; also before it was taken away and came back.
fn told_lately(tx: &Connection, name: &str, stamp: &Stamp) -> Result<Vec<(String, Timestamp)>> {
    let bounds = params![name, micros(stamp.now - REPEATED_WITHIN), micros(stamp.now + REPEATED_WITHIN)];
    let mut query = tx.prepare_cached(TOLD_LATELY)?;
    let told = query.query_map(bounds, |row| Ok((row.get(0)?, timestamp(row.get(1)?))))?;
    Ok(told.collect::<rusqlite::Result<_>>()?)
}

/// Tells the mayor what nobody else would hear; says why so.
pub(super) fn mail_alert(tx: &Connection, agent: &str, text: String, why: &str, stamp: &Stamp) -> Result<String> {
    let subject = format!("the heartbeat of {agent} has something to tell");
    let letter = NewLetter { to: MAYOR.to_owned(), subject, body: text, bead: None, run: None };
    if !gt_core::defect!("stranded-alert-lost") {
        mail::put(tx, &letter, stamp)?;
    }
    Ok(format!("{why}, so the mayor got a letter"))
}

/// Where a heartbeat's word goes, or why there is no such place.
fn target(tx: &Connection, beat: &Beat) -> Result<std::result::Result<Address, String>> {
    let to = match beat.target.as_str() {
        "last" => last_used(tx)?,
        named => {
            let (channel, recipient) = match named.split_once(':') {
                Some((channel, who)) => (channel, Some(who.to_owned())),
                None => (named, None),
            };
            Some(Address { channel: channel.to_owned(), recipient, reply_to: None })
        }
    };
    Ok(match to {
        None => Err("no channel was used yet".to_owned()),
        Some(to) if !beat.channels.contains(&to.channel) => Err(no_channel(&to.channel)),
        Some(to) => Ok(to),
    })
}

pub(super) fn no_channel(name: &str) -> String {
    format!("there is no channel `{}`", one_line(name))
}

/// The channel that a person used last.
fn last_used(tx: &Connection) -> Result<Option<Address>> {
    let mut query = tx.prepare_cached(
        "SELECT channel, recipient FROM turn WHERE channel IS NOT NULL AND fire IS NULL ORDER BY id DESC LIMIT 1",
    )?;
    let last = query.query_row([], |row| Ok(Address { channel: row.get(0)?, recipient: row.get(1)?, reply_to: None }));
    Ok(last.optional()?)
}

/// What a job learns from the end of one of its fires.
fn learn(
    tx: &Connection,
    mut job: Job,
    fire: &Fire,
    status: FireStatus,
    error: Option<&str>,
    stamp: &Stamp,
) -> Result<()> {
    note_last(tx, job.id, fire.slot, status)?;
    let is_once = matches!(job.plan.schedule, Schedule::At(_));
    let is_given_up = status == FireStatus::Cancelled && job.state != JobState::Active;
    if is_given_up || job.state == JobState::Disabled && !is_once {
        return Ok(()); // it rests, and whoever has it go on begins anew
    }
    if is_its_end(tx, &job, fire)? {
        return match status {
            _ if gt_core::defect!("failed-one-shot-forgotten") => forget(tx, &job, stamp),
            FireStatus::Ok => forget(tx, &job, stamp),
            // Whoever has run by hand what rests already sees how that ends.
            _ if fire.is_manual && job.state == JobState::Disabled => Ok(()),
            _ => disable(tx, &job, &only_run_words(status, error), stamp),
        };
    }
    // Whoever runs it by hand sees how that ends; it says nothing against the times that come by themselves.
    if fire.is_manual && status != FireStatus::Ok {
        return Ok(());
    }
    job.failures = match status {
        FireStatus::Ok => 0,
        status if status.is_failure() => job.failures + 1,
        _ => return Ok(()),
    };
    tx.prepare_cached("UPDATE job SET failures = ?2 WHERE id = ?1")?.execute(params![job.id, job.failures])?;
    let is_tireless = job.is_beat && gt_core::defect!("failing-heart-goes-on");
    if fire.failures_max > 0 && !is_tireless && job.failures >= fire.failures_max && job.state == JobState::Active {
        let error = error.unwrap_or(UNKNOWN);
        let why = match job.failures {
            1 => format!("it failed: {error}"),
            n => format!("it failed {n} times in a row, the last time so: {error}"),
        };
        return disable(tx, &job, &why, stamp);
    }
    Ok(())
}

/// Why a job that runs once rests.
fn only_run_words(status: FireStatus, error: Option<&str>) -> String {
    let what = match status {
        FireStatus::Timeout => "its only run took too long",
        FireStatus::Cancelled => "its only run was cancelled",
        FireStatus::Skipped | FireStatus::Missed => "its only time was left out",
        FireStatus::Failed | FireStatus::Running | FireStatus::Ok => "its only run failed",
    };
    format!("{what}: {}", error.unwrap_or(UNKNOWN))
}

/// Whether a job that runs once has had its run. One that is run by hand before its time, or has got another time since,
/// keeps that.
fn is_its_end(tx: &Connection, job: &Job, fire: &Fire) -> Result<bool> {
    let Schedule::At(at) = job.plan.schedule else { return Ok(false) };
    let is_nothing_left = job.next_at.is_none() && job.state != JobState::Paused;
    let is_its_own = !fire.is_manual && at == fire.slot;
    Ok(is_its_own || is_nothing_left && unfinished(tx, job.id)?.is_none())
}

/// A job that runs once has run.
fn forget(tx: &Connection, job: &Job, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("DELETE FROM job WHERE id = ?1")?.execute([job.id])?;
    give_up_retries(tx, job.id, "its job has run, and is gone", stamp)?;
    super::tell(tx, EventType::JobRemoved, job, stamp)
}

/// Has a job rest until somebody has looked at it, who is told.
pub(super) fn disable(tx: &Connection, job: &Job, why: &str, stamp: &Stamp) -> Result<()> {
    let job = Job { state: JobState::Disabled, why: Some(why.to_owned()), next_at: None, ..job.clone() };
    save(tx, &job)?;
    let data = json!({ "job": job.name(), "id": job.id(), "reason": why, "failures": job.failures });
    events::append(tx, stamp, EventType::JobDisabled, None, &data)?;
    give_up_waiting(tx, job.id, "its job was disabled", stamp)?;
    let (what, then) = if let Payload::Heartbeat(beat) = &job.plan.payload {
        (format!("the {} stopped itself", job.plan.payload.words()), format!("gt heartbeat enable {}", beat.agent))
    } else {
        (format!("the job {} is disabled", job.name()), then(&job))
    };
    let body = format!("{why}\n\nthen: {then}\n");
    let letter = NewLetter { to: MAYOR.to_owned(), subject: what.clone(), body, bead: None, run: None };
    if !gt_core::defect!("disabled-untold") {
        mail::put(tx, &letter, stamp)?;
    }
    notices::put(tx, EventType::JobDisabled, None, &format!("{what}: {why}"), &data, stamp)
}

/// What has a disabled job run again. One whose only time has passed does not come by itself.
fn then(job: &Job) -> String {
    let name = job.name();
    match job.plan.schedule {
        Schedule::At(_) => format!("gt cron run {name}\nor:   gt cron edit {name} --at 'in 1h'"),
        _ => format!("gt cron resume {name}"),
    }
}

/// What became of a job's last slot.
pub(super) fn note_last(tx: &Connection, job: i64, slot: Timestamp, status: FireStatus) -> Result<()> {
    tx.prepare_cached("UPDATE job SET last_at = ?2, last_status = ?3 WHERE id = ?1")?.execute(params![
        job,
        micros(slot),
        status.as_str()
    ])?;
    Ok(())
}
