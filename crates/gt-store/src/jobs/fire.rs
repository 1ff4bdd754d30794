//! Firing: slots that have come become turns, or a record of why not, in one transaction. // SPEC K2, K3, H1, H2
//!
//! The row of a fire and the job's next slot are written together, and the store refuses a second fire of a slot: however
//! many run the town, and whatever becomes of them, each slot fires at most once.

use std::collections::BTreeMap;

use gt_core::event::EventType;
use gt_core::job::{Backlog, BadJob, Beat, Fate, FireStatus, JobState, Payload, Schedule, Watch, fates};
use gt_core::plan::Policy;
use gt_core::refusal::Refusal;
use gt_core::session::Rules;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::log::{self, Fire};
use super::record::{self, Record, first_unseen};
use super::{Job, SELECT, UNREADABLE, beats, by_id, from_row, heed, require, settle};
use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::sessions::arrive::{self, NewMessage, SendOutcome};
use crate::sessions::claim::is_agent_full;
use crate::sessions::{get_or_make, refresh, touch};
use crate::store::{Stamp, Store};

/// Jobs that are fired together: those after them wait until these have been started.
const PAGE: usize = 128;
/// With so many records of slots a transaction ends, though more jobs are due.
const RECORDS_AT_ONCE: usize = 2_000;
/// The lane of what the clock brings.
const LANE: &str = "cron";
/// The agent that a run of a command counts as.
const SHELL: &str = "sh";

/// By what rules jobs fire.
#[derive(Debug, Clone)]
pub struct FireRules<'a> {
    pub policy: &'a Policy,
    /// How sessions take messages.
    pub sessions: &'a Rules,
    /// Since when somebody has watched the clock.
    pub since: Timestamp,
    pub grace: SignedDuration,
    pub timeout: Option<SignedDuration>,
    pub retries: u32,
    /// Whether somebody is there to try again.
    pub may_retry: bool,
    /// Fires in a row that may fail before a job is disabled; 0: any number.
    pub failures_max: u32,
}

/// What is to be done about a heartbeat that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeatWord {
    /// This is asked of its agent.
    Ask(String),
    /// It is left out; the next may come in this span of time.
    Skip { why: String, open: Open },
}

/// The span of time in which the next may come; `None`: any.
type Open = Option<(Timestamp, Timestamp)>;

/// Says what is to be done about a heartbeat.
pub type AskBeat<'a> = dyn FnMut(&Beat) -> BeatWord + 'a;

/// What firing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fired {
    pub n_fired: usize,
    /// Jobs, each with how many of its slots were missed.
    pub missed: Vec<(String, usize)>,
    /// Jobs whose slot was left out, and why.
    pub skipped: Vec<(String, String)>,
    /// Whether there are more that are due.
    pub is_more: bool,
}

impl Store {
    /// Fires what is due: first what is tried again, then what came first.
    pub fn fire_due(
        &mut self,
        rules: &FireRules<'_>,
        ask: &mut AskBeat<'_>,
        stamp: &Stamp,
    ) -> std::result::Result<Fired, StoreError> {
        if self.next_job_at()?.is_none_or(|at| at > stamp.now) {
            return Ok(Fired::default()); // only who has something to write writes
        }
        let beats = self.read(|tx| due_beats(tx, stamp.now))?;
        let ask = &mut ahead(&beats, ask);
        self.write(stamp, |tx| {
            let mut desk = Desk { tx, rules, ask, stamp, fired: Fired::default(), n_records: 0 };
            desk.try_again()?;
            let due = due(tx, stamp.now)?;
            desk.fired.is_more |= due.len() == PAGE;
            for job in &due {
                // Whoever has been away for long has much to write down: not all at once, others want to write too.
                if desk.n_records > RECORDS_AT_ONCE {
                    desk.fired.is_more = true;
                    break;
                }
                desk.see_to(job)?;
            }
            Ok(desk.fired)
        })
    }

    /// Fires a job now, whatever its schedule says.
    pub fn fire_now(
        &mut self,
        name: &str,
        rules: &FireRules<'_>,
        ask: &mut AskBeat<'_>,
        stamp: &Stamp,
    ) -> std::result::Result<Fire, StoreError> {
        let known = self.read(|tx| require(tx, name))?;
        let ask = &mut ahead(beat_in(&known.plan.payload), ask);
        self.write(stamp, |tx| {
            let job = require(tx, name)?;
            if unfinished(tx, job.id)?.is_some()
                && !job.plan.may_overlap
                && !gt_core::defect!("run-by-hand-beside-itself")
            {
                return Err(Refusal::from(BadJob::Runs { name: job.plan.name }).into());
            }
            let mut desk = Desk { tx, rules, ask, stamp, fired: Fired::default(), n_records: 0 };
            if let Payload::Heartbeat(beat) = &job.plan.payload
                && desk.is_busy(&beat.agent)?
            {
                return Err(Refusal::from(BadJob::AgentBusy { agent: beat.agent.clone() }).into());
            }
            let mut slot = stamp.now;
            loop {
                match desk.fire(&job, slot, true)? {
                    Some((id, _)) => return Ok(log::by_id(tx, id)?.expect("it was just written")),
                    // A slot of just this moment has been taken.
                    None => slot += SignedDuration::from_micros(1),
                }
            }
        })
    }
}

/// Asks about heartbeats before anything is written: who answers reads files, and others want to write meanwhile. What comes
/// up only then is asked about then.
fn ahead(beats: &[Beat], ask: &mut AskBeat<'_>) -> impl FnMut(&Beat) -> BeatWord {
    let words: BTreeMap<String, BeatWord> = beats.iter().map(|beat| (beat.agent.clone(), ask(beat))).collect();
    move |beat| words.get(&beat.agent).cloned().unwrap_or_else(|| ask(beat))
}

fn beat_in(payload: &Payload) -> &[Beat] {
    match payload {
        Payload::Heartbeat(beat) => std::slice::from_ref(beat),
        _ => &[],
    }
}

/// The heartbeats that are due, or to be tried again.
fn due_beats(tx: &Connection, now: Timestamp) -> Result<Vec<Beat>> {
    let sql = format!(
        "{SELECT} WHERE is_beat = 1 AND (next_at <= ?1
           OR EXISTS (SELECT 1 FROM fire WHERE fire.job = job.id AND status = 'running' AND retry_at <= ?1))"
    );
    let mut query = tx.prepare_cached(&sql)?;
    let jobs = query.query_map([micros(now)], from_row)?.collect::<rusqlite::Result<Vec<Job>>>()?;
    Ok(jobs.iter().flat_map(|job| beat_in(&job.plan.payload)).cloned().collect())
}

fn due(tx: &Connection, now: Timestamp) -> Result<Vec<Job>> {
    let sql = format!("{SELECT} WHERE next_at <= ?1 AND next_at IS NOT NULL ORDER BY next_at, id LIMIT {PAGE}");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_map([micros(now)], from_row)?.collect::<rusqlite::Result<_>>()?)
}

/// What a job is still at: the first slot, how many, and whether a run has begun.
pub(super) struct Unfinished {
    slot: Timestamp,
    n: usize,
    has_begun: bool,
}

/// What a job is still at, if it is.
pub(super) fn unfinished(tx: &Connection, job: i64) -> Result<Option<Unfinished>> {
    let sql = "SELECT min(slot), count(*), max(started_at IS NOT NULL) FROM fire WHERE job = ?1 AND status = 'running'";
    let found = tx.prepare_cached(sql)?.query_row([job], |row| {
        let Some(slot) = row.get::<_, Option<i64>>(0)?.map(timestamp) else { return Ok(None) };
        Ok(Some(Unfinished { slot, n: row.get::<_, i64>(1)? as usize, has_begun: row.get(2)? }))
    });
    Ok(found?)
}

/// Whether the job that a turn is of runs already, and may not run beside itself.
pub(crate) fn runs_beside(tx: &Connection, turn: i64) -> Result<bool> {
    let sql = "SELECT 1 FROM fire AS mine JOIN job ON job.id = mine.job
                 JOIN fire AS other ON other.job = mine.job AND other.status = 'running' AND other.id <> mine.id
                 JOIN turn ON turn.id = other.turn
               WHERE mine.turn = ?1 AND NOT may_overlap AND turn.state = 'live'";
    Ok(tx.prepare_cached(sql)?.exists([turn])? && !gt_core::defect!("changed-job-runs-beside-itself"))
}

/// Whoever fires, with all that it takes.
struct Desk<'a, 'b> {
    tx: &'a Connection,
    rules: &'a FireRules<'a>,
    ask: &'a mut AskBeat<'b>,
    stamp: &'a Stamp,
    fired: Fired,
    /// What was written down so far.
    n_records: usize,
}

impl Desk<'_, '_> {
    /// Sees to all slots of a job that have come.
    fn see_to(&mut self, job: &Job) -> Result<()> {
        let (tx, stamp) = (self.tx, self.stamp);
        let zone = match (job.plan.flaw(), job.plan.zone()) {
            (Some(why), _) | (None, Err(why)) => return settle::disable(tx, job, &why, stamp),
            (None, Ok(zone)) => zone,
        };
        let Some(first) = first_unseen(job, stamp.now, &zone) else { return self.go_on(job, &zone, None) };
        let backlog = Backlog::of(&job.plan.schedule, first, stamp.now, &zone);
        if let Some((first, last)) = backlog.earlier {
            self.miss_many(job, first, last)?;
        }
        self.n_records += backlog.slots.len();
        let mut open = None;
        for (slot, fate) in fates(&backlog.slots, &self.watch(job)?) {
            if job.peak_at > stamp.now && !gt_core::defect!("ahead-counts-as-missed") {
                heed::not_over(tx, job.id, slot, job.plan.schedule.next(slot, &zone), stamp.now)?;
            }
            match fate {
                Fate::Fires => open = self.fire(job, slot, false)?.and_then(|(_, open)| open).or(open),
                Fate::FiresLate(why) => {
                    if !gt_core::defect!("late-run-unexplained") {
                        self.leave_out(job, slot, FireStatus::Missed, &why)?;
                    }
                    open = self.fire(job, slot, false)?.and_then(|(_, open)| open).or(open);
                }
                Fate::Missed(_) if gt_core::defect!("missed-unrecorded") => {}
                Fate::Missed(why) => self.leave_out(job, slot, FireStatus::Missed, &why)?,
                // What it would run beside was left out itself.
                Fate::Skipped(_) if job.is_beat && unfinished(tx, job.id)?.is_none() => {
                    open = self.fire(job, slot, false)?.and_then(|(_, open)| open).or(open);
                }
                Fate::Skipped(why) => self.leave_out(job, slot, FireStatus::Skipped, &why)?,
            }
        }
        self.go_on(job, &zone, open)
    }

    /// Its slots have been seen to.
    fn go_on(&mut self, job: &Job, zone: &TimeZone, open: Open) -> Result<()> {
        let next = self.next_slot(job, zone, open);
        self.tx
            .prepare_cached(
                "UPDATE job SET next_at = ?2, seen_at = ?3, peak_at = max(peak_at, ?3) WHERE id = ?1 AND state = 'active'",
            )?
            .execute(params![job.id, next.map(micros), micros(self.stamp.now)])?;
        if next.is_none() && unfinished(self.tx, job.id)?.is_none() {
            self.has_had_its_time(job)?;
        }
        Ok(())
    }

    fn watch(&self, job: &Job) -> Result<Watch> {
        // What comes only once is better late than never, and waits for what it would run beside.
        let is_once = matches!(job.plan.schedule, Schedule::At(_));
        let unfinished = unfinished(self.tx, job.id)?;
        Ok(Watch {
            missed: job.plan.missed,
            grace: job.plan.grace.or(Some(self.rules.grace).filter(|_| !is_once)),
            may_overlap: job.plan.may_overlap || is_once,
            since: self.rules.since,
            now: self.stamp.now,
            busy_with: unfinished.as_ref().map(|at| at.slot),
            has_begun: unfinished.as_ref().is_some_and(|at| at.has_begun),
            n_unfinished: unfinished.map_or(0, |at| at.n),
        })
    }

    /// The next slot; where it may come only in a span of time the first in that, or its beginning if none lies in it.
    fn next_slot(&self, job: &Job, zone: &TimeZone, open: Open) -> Option<Timestamp> {
        let next = match &job.plan.schedule {
            Schedule::Every { span, .. } if gt_core::defect!("slots-drift") => self.stamp.now + *span,
            schedule => schedule.next(self.stamp.now, zone)?,
        };
        let Some((from, to)) = open.filter(|(from, _)| *from > next) else { return Some(next) };
        // A slot at the very beginning counts.
        let first = job.plan.schedule.next(from - SignedDuration::from_micros(1), zone);
        first.filter(|first| *first < to).or(Some(from))
    }

    /// A job that will never run again, and has not run.
    fn has_had_its_time(&mut self, job: &Job) -> Result<()> {
        match by_id(self.tx, job.id)?.filter(|job| job.state == JobState::Active) {
            Some(job) => settle::disable(self.tx, &job, "its time has passed, and it did not run", self.stamp),
            None => Ok(()),
        }
    }

    /// Fires a slot; says which fire it is, and for a heartbeat that is left out when the next may come. `None`: it was
    /// fired before.
    fn fire(&mut self, job: &Job, slot: Timestamp, is_manual: bool) -> Result<Option<(i64, Open)>> {
        let (text, skip) = match self.what_to_say(job)? {
            BeatWord::Ask(text) => (text, None),
            BeatWord::Skip { why, open } => (String::new(), Some((why, open))),
        };
        let status = if skip.is_some() { FireStatus::Skipped } else { FireStatus::Running };
        let why = skip.as_ref().map(|(why, _)| why.as_str());
        let is_untold = job.is_beat && skip.is_some() && !is_manual && gt_core::defect!("skipped-heartbeat-unrecorded");
        let Some(id) = (if is_untold { None } else { self.write(job, slot, status, why, is_manual)? }) else {
            return Ok(None);
        };
        if let Some((why, open)) = skip {
            self.note_left_out(job, slot, status, &why)?;
            return Ok(Some((id, open)));
        }
        self.begin(job, id, slot, 1, &text)?;
        self.fired.n_fired += 1;
        let data = json!({ "job": job.name(), "slot": slot, "fire": id, "manual": is_manual });
        events::append(self.tx, self.stamp, EventType::JobFired, None, &data)?;
        Ok(Some((id, None)))
    }

    fn what_to_say(&mut self, job: &Job) -> Result<BeatWord> {
        let Payload::Heartbeat(beat) = &job.plan.payload else { return Ok(BeatWord::Ask(job.plan.payload.words())) };
        match (self.ask)(beat) {
            BeatWord::Ask(_) if self.is_busy(&beat.agent)? && !gt_core::defect!("busy-agent-woken") => {
                Ok(BeatWord::Skip { why: beats::busy(&beat.agent), open: None })
            }
            word => Ok(word),
        }
    }

    /// What a person asks for, at whatever hour, is tried again at whatever hour.
    fn what_to_say_again(&mut self, job: &Job, fire: &Fire) -> Result<BeatWord> {
        let word = self.what_to_say(job)?;
        let BeatWord::Skip { open: Some(_), .. } = word else { return Ok(word) };
        let (Payload::Heartbeat(beat), Some(turn), true) = (&job.plan.payload, fire.turn, fire.is_manual) else {
            return Ok(word);
        };
        if self.is_busy(&beat.agent)? {
            return Ok(BeatWord::Skip { why: beats::busy(&beat.agent), open: None });
        }
        let sql = "SELECT text FROM turn WHERE id = ?1";
        // Pruning keeps the turn. If it is gone all the same, that must not keep other jobs from firing.
        let text = self.tx.prepare_cached(sql)?.query_row([turn], |row| row.get(0)).optional()?;
        Ok(text.map_or(word, BeatWord::Ask))
    }

    /// Whether an agent answers somebody, or has no place left.
    fn is_busy(&self, agent: &str) -> Result<bool> {
        Ok(beats::is_answering(self.tx, agent)? || is_agent_full(self.tx, self.rules.policy, agent)?)
    }

    /// Writes down what becomes of a slot, unless that is known.
    fn write(
        &self,
        job: &Job,
        slot: Timestamp,
        status: FireStatus,
        why: Option<&str>,
        is_manual: bool,
    ) -> Result<Option<i64>> {
        let retries = job.plan.retries.unwrap_or(self.rules.retries) * u32::from(self.rules.may_retry);
        let failures_max = self.rules.failures_max;
        Record { job, slot, status, why, is_manual, retries, failures_max }.write(self.tx, self.stamp)
    }

    fn leave_out(&mut self, job: &Job, slot: Timestamp, status: FireStatus, why: &str) -> Result<()> {
        match self.write(job, slot, status, Some(why), false)? {
            Some(_) => self.note_left_out(job, slot, status, why),
            None => Ok(()),
        }
    }

    fn note_left_out(&mut self, job: &Job, slot: Timestamp, status: FireStatus, why: &str) -> Result<()> {
        record::tell_left_out(self.tx, job, slot, status, why, self.stamp)?;
        if status == FireStatus::Skipped {
            self.fired.skipped.push((job.name().to_owned(), why.to_owned()));
            return Ok(());
        }
        match self.fired.missed.iter_mut().find(|(name, _)| name == job.name()) {
            Some((_, n)) => *n += 1,
            None => self.fired.missed.push((job.name().to_owned(), 1)),
        }
        Ok(())
    }

    /// One record for all slots up to the last of them.
    fn miss_many(&mut self, job: &Job, first: Timestamp, last: Timestamp) -> Result<()> {
        let why = "no daemon watched the clock then, nor at the times after it";
        self.leave_out(job, first, FireStatus::Missed, why)?;
        record::extend(self.tx, job, first, last)
    }

    /// Tries again what failed, now that its time has come.
    fn try_again(&mut self) -> Result<()> {
        let mut query = self.tx.prepare_cached(
            "SELECT id FROM fire WHERE retry_at <= ?1 AND retry_at IS NOT NULL ORDER BY retry_at LIMIT ?2",
        )?;
        let due: Vec<i64> = query
            .query_map(params![micros(self.stamp.now), PAGE as i64], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.fired.is_more = due.len() == PAGE;
        for id in due {
            let Some(fire) = log::by_id(self.tx, id)? else { continue };
            let Some(job) = by_id(self.tx, fire.job_id)? else { continue };
            match self.what_to_say_again(&job, &fire)? {
                BeatWord::Ask(text) => {
                    let attempt = fire.attempt + 1;
                    let mut sql = "UPDATE fire SET retry_at = NULL, attempt = ?2, turn = NULL WHERE id = ?1";
                    if gt_core::defect!("retry-not-noted") {
                        sql = "UPDATE fire SET attempt = ?2, turn = NULL WHERE id = ?1";
                    }
                    self.tx.prepare_cached(sql)?.execute(params![id, attempt])?;
                    self.begin(&job, id, fire.slot, attempt, &text)?;
                    self.fired.n_fired += 1;
                }
                BeatWord::Skip { why, .. } => {
                    let sql =
                        "UPDATE fire SET retry_at = NULL, status = 'skipped', error = ?2, ended_at = ?3 WHERE id = ?1";
                    self.tx.prepare_cached(sql)?.execute(params![id, why, micros(self.stamp.now)])?;
                    self.note_left_out(&job, fire.slot, FireStatus::Skipped, &why)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the turn of an attempt.
    fn begin(&self, job: &Job, fire: i64, slot: Timestamp, attempt: i64, text: &str) -> Result<()> {
        let turn = match &job.plan.payload {
            Payload::Broken(_) => {
                settle::is_hopeless(self.tx, fire)?;
                return settle::not_begun(self.tx, fire, UNREADABLE, self.stamp);
            }
            Payload::Message { text, session: Some(session), agent } => {
                match self.say_in(job, fire, attempt, text, session, agent.as_deref())? {
                    Ok(turn) => turn,
                    Err(why) => return settle::not_begun(self.tx, fire, &why, self.stamp),
                }
            }
            payload => {
                let agent = match payload {
                    Payload::Message { agent, .. } => agent.as_deref(),
                    Payload::Heartbeat(beat) => Some(beat.agent.as_str()),
                    _ => Some(SHELL),
                };
                self.make_turn(job, slot, text, agent)?
            }
        };
        let command = job.plan.payload.command().map(|command| json!(command).to_string());
        let timeout = job.plan.timeout.or(self.rules.timeout).map(|span| span.as_micros() as i64);
        self.tx
            .prepare_cached("UPDATE turn SET fire = ?2, attempt = ?3, command = ?4, timeout = ?5 WHERE id = ?1")?
            .execute(params![turn, fire, attempt, command, timeout])?;
        self.tx.prepare_cached("UPDATE fire SET turn = ?2 WHERE id = ?1")?.execute(params![fire, turn])?;
        Ok(())
    }

    fn lane(&self, job: &Job) -> String {
        self.rules.policy.lanes.resolve(job.plan.lane.as_deref().unwrap_or(LANE)).to_owned()
    }

    /// A turn in a session of the job's own: it waits for nobody but its lane, and nobody goes on with what it says.
    fn make_turn(&self, job: &Job, slot: Timestamp, text: &str, agent: Option<&str>) -> Result<i64> {
        let key = match (job.is_beat, job.plan.may_overlap) {
            (true, _) if gt_core::defect!("heartbeat-in-a-session") => "dm:ann".to_owned(),
            (true, _) => job.name().to_owned(),
            (false, false) => format!("cron:{}", job.name()),
            (false, true) => format!("cron:{}:{slot}", job.name()),
        };
        let session = get_or_make(self.tx, &key, self.stamp)?;
        // Where a heartbeat's answer goes is decided when it is known.
        let to = job.plan.deliver.as_ref().filter(|_| !job.is_beat);
        self.tx
            .prepare_cached(
                "INSERT INTO turn (session, origin, text, agent, lane, channel, recipient, state, made_at, due_at, is_apart)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting', ?8, ?8, 1)",
            )?
            .execute(params![
                session.id,
                job.name(),
                text,
                agent,
                self.lane(job),
                to.map(|to| &to.channel),
                to.and_then(|to| to.recipient.as_ref()),
                micros(self.stamp.now),
            ])?;
        let turn = self.tx.last_insert_rowid();
        touch(self.tx, session.id, self.stamp)?;
        refresh(self.tx, session.id)?;
        Ok(turn)
    }

    /// A message in somebody's session, by the rules of that; the error says why it was not taken.
    fn say_in(
        &self,
        job: &Job,
        fire: i64,
        attempt: i64,
        text: &str,
        session: &str,
        agent: Option<&str>,
    ) -> Result<std::result::Result<i64, String>> {
        let message = NewMessage {
            session: session.to_owned(),
            text: text.to_owned(),
            sender: format!("cron:{}", job.name()),
            channel: LANE.to_owned(),
            source: Some(format!("{fire} {attempt}")),
            agent: agent.map(str::to_owned),
            lane: Some(self.lane(job)),
            deliver: job.plan.deliver.clone(),
            parent: None,
            is_whole: true,
        };
        match arrive::take(self.tx, &message, self.rules.sessions, &self.rules.policy.lanes, self.stamp)? {
            Ok(sent) if sent.outcome == SendOutcome::Full => Ok(Err(format!("`{session}` takes no more messages now"))),
            Ok(sent) => Ok(sent.turn.ok_or_else(|| format!("`{session}` did not take the message"))),
            Err(refusal) => Ok(Err(refusal.to_string())),
        }
    }
}
