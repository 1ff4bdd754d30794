//! Jobs as the store remembers them: adding, changing, pausing, listing. (docs/decisions/0012)
//!
//! A job's row says at any time when its next slot is, so that whoever runs the town reads an index. What becomes of slots is
//! `fire`, what becomes of their runs `settle`; the rules are `gt_core::job`.

pub(crate) mod beats;
pub(crate) mod check;
pub(crate) mod fire;
mod heed;
pub(crate) mod log;
mod record;
pub(crate) mod settle;
pub(crate) mod under_way;

use gt_core::event::EventType;
use gt_core::job::{BadJob, FireStatus, JobState, Missed, Payload, Schedule, flaw_of_name, is_id};
use gt_core::refusal::Refusal;
use gt_core::text::one_line;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::sessions::arrive::Address;
use crate::store::{Stamp, Store};

/// Why a job cannot run whose payload is of no known kind.
const UNREADABLE: &str = "what it is to do cannot be read";

/// What somebody wants to be done, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlan {
    pub name: String,
    pub schedule: Schedule,
    /// The name of its time zone.
    pub tz: String,
    pub payload: Payload,
    pub missed: Missed,
    pub may_overlap: bool,
    /// How late a missed slot may still run; `None`: as the config says.
    pub grace: Option<SignedDuration>,
    pub timeout: Option<SignedDuration>,
    pub retries: Option<u32>,
    pub lane: Option<String>,
    /// Where its answer goes; `None`: nowhere.
    pub deliver: Option<Address>,
}

impl JobPlan {
    /// With all else as it is for who says nothing.
    pub fn new(name: &str, schedule: Schedule, payload: Payload) -> JobPlan {
        JobPlan {
            name: name.to_owned(),
            schedule,
            tz: "UTC".to_owned(),
            payload,
            missed: Missed::default(),
            may_overlap: false,
            grace: None,
            timeout: None,
            retries: None,
            lane: None,
            deliver: None,
        }
    }

    fn zone(&self) -> std::result::Result<TimeZone, String> {
        TimeZone::get(&self.tz).map_err(|_| format!("there is no time zone `{}`", one_line(&self.tz)))
    }

    /// Why nobody can go by it, if what is stored cannot be read.
    fn flaw(&self) -> Option<String> {
        match (&self.payload, &self.schedule) {
            (Payload::Broken(_), _) => Some(UNREADABLE.to_owned()),
            (_, Schedule::Broken { text, .. }) => Some(format!("its schedule `{}` cannot be read", one_line(text))),
            _ => None,
        }
    }

    /// The first slot after a time, or why there is none.
    fn next(&self, after: Timestamp) -> std::result::Result<Timestamp, String> {
        let next = self.schedule.next(after, &self.zone()?);
        next.ok_or_else(|| match &self.schedule {
            Schedule::At(at) => format!("{at} has passed"),
            Schedule::Every { .. } | Schedule::Cron(_) | Schedule::Broken { .. } => {
                self.flaw().unwrap_or_else(|| "no such time ever comes".to_owned())
            }
        })
    }
}

/// A job as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub plan: JobPlan,
    pub is_beat: bool,
    pub state: JobState,
    /// Why it is disabled.
    pub why: Option<String>,
    pub next_at: Option<Timestamp>,
    /// Fires in a row that failed.
    pub failures: i64,
    pub made_at: Timestamp,
    /// The slot that something became of last, and what.
    pub last_at: Option<Timestamp>,
    pub last_status: Option<FireStatus>,
    pub(crate) id: i64,
    /// The latest time at which its slots were seen to.
    pub(crate) peak_at: Timestamp,
    /// What it delivered last, if it is a heartbeat.
    pub(crate) said: Option<(String, Timestamp)>,
}

impl Job {
    pub fn id(&self) -> String {
        format!("job-{}", self.id)
    }

    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// What it delivered last, and when, if it is a heartbeat.
    pub fn said(&self) -> Option<(&str, Timestamp)> {
        self.said.as_ref().map(|(text, at)| (text.as_str(), *at))
    }
}

/// How the jobs stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobOutlook {
    pub next: Vec<Job>,
    pub n_next: usize,
    pub disabled: Vec<Job>,
    pub n_disabled: usize,
}

const SELECT: &str =
    "SELECT id, name, is_beat, kind, schedule, anchor, tz, payload, missed, may_overlap, grace, timeout, retries,
    lane, channel, recipient, state, why, next_at, failures, made_at, last_at, last_status, said, said_at, peak_at
    FROM job";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Job> {
    let span =
        |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(SignedDuration::from_micros));
    let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
    let channel: Option<String> = row.get(14)?;
    let recipient: Option<String> = row.get(15)?;
    let said: Option<String> = row.get(23)?;
    Ok(Job {
        id: row.get(0)?,
        plan: JobPlan {
            name: row.get(1)?,
            schedule: Schedule::parse(row.get_ref(3)?.as_str()?, row.get_ref(4)?.as_str()?, timestamp(row.get(5)?)),
            tz: row.get(6)?,
            payload: Payload::parse(row.get_ref(7)?.as_str()?),
            missed: Missed::parse(row.get_ref(8)?.as_str()?).unwrap_or_default(),
            may_overlap: row.get(9)?,
            grace: span(10)?,
            timeout: span(11)?,
            retries: row.get::<_, Option<i64>>(12)?.and_then(|n| u32::try_from(n).ok()),
            lane: row.get(13)?,
            deliver: channel.map(|channel| Address { channel, recipient, reply_to: None }),
        },
        is_beat: row.get(2)?,
        state: JobState::parse(row.get_ref(16)?.as_str()?).unwrap_or(JobState::Disabled),
        why: row.get(17)?,
        next_at: time(18)?,
        failures: row.get(19)?,
        made_at: timestamp(row.get(20)?),
        last_at: time(21)?,
        last_status: row.get_ref(22)?.as_str_or_null()?.and_then(FireStatus::parse),
        said: said.zip(time(24)?),
        peak_at: timestamp(row.get(25)?),
    })
}

impl Store {
    /// Adds jobs, all or none of them.
    pub fn add_jobs(&mut self, plans: &[JobPlan], stamp: &Stamp) -> std::result::Result<Vec<Job>, StoreError> {
        self.write(stamp, |tx| plans.iter().map(|plan| add(tx, plan, false, stamp)).collect())
    }

    /// A job, by its name or its id.
    pub fn job(&mut self, name: &str) -> std::result::Result<Job, StoreError> {
        self.read(|tx| require(tx, name))
    }

    /// Jobs, whose slot comes first first; those without one last.
    pub fn jobs(&mut self, with_beats: bool, limit: Option<usize>) -> std::result::Result<Vec<Job>, StoreError> {
        self.read(|tx| {
            let mut jobs = Vec::new();
            // One after the other, so that each is an index and nothing has to be sorted.
            for part in [
                "next_at IS NOT NULL AND is_beat <= ?1 ORDER BY next_at, id",
                "next_at IS NULL AND is_beat <= ?1 ORDER BY id",
            ] {
                let left = limit.map_or(-1, |limit| limit.saturating_sub(jobs.len()) as i64);
                let mut query = tx.prepare_cached(&format!("{SELECT} WHERE {part} LIMIT ?2"))?;
                for job in query.query_map(params![with_beats, left], from_row)? {
                    jobs.push(job?);
                }
            }
            Ok(jobs)
        })
    }

    /// The jobs whose slots come next, those that were disabled, and how many there are of each.
    pub fn job_outlook(&mut self, most: usize) -> std::result::Result<JobOutlook, StoreError> {
        self.read(|tx| {
            let count = |of: &str| -> Result<usize> {
                let sql = format!("SELECT count(*) FROM job WHERE {of}");
                Ok(tx.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0))? as usize)
            };
            let first = |of: &str, by: &str| -> Result<Vec<Job>> {
                let mut query = tx.prepare_cached(&format!("{SELECT} WHERE {of} ORDER BY {by} LIMIT ?1"))?;
                Ok(query.query_map([most as i64], from_row)?.collect::<rusqlite::Result<_>>()?)
            };
            let (next, disabled) = ("next_at IS NOT NULL", "state = 'disabled'");
            Ok(JobOutlook {
                next: first(next, "next_at, id")?,
                n_next: count(next)?,
                disabled: first(disabled, "name")?,
                n_disabled: count(disabled)?,
            })
        })
    }

    /// Changes a job; its next slot is found anew only if its schedule is another.
    pub fn edit_job(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut JobPlan),
        stamp: &Stamp,
    ) -> std::result::Result<Job, StoreError> {
        self.write(stamp, |tx| {
            let mut job = require_own(tx, name)?;
            let before = job.clone();
            change(&mut job.plan);
            if job.plan == before.plan {
                return Ok(job);
            }
            if job.plan.name != before.plan.name {
                refuse_name(tx, &job.plan.name, false)?;
            }
            reschedule(&mut job, &before.plan, stamp)?;
            if job.next_at != before.next_at {
                record::miss_overdue(tx, &before, "nobody saw to it before its job was changed", stamp)?;
                heed::note_seen(tx, job.id, stamp.now)?;
            }
            save(tx, &job)?;
            tell(tx, EventType::JobChanged, &job, stamp)?;
            Ok(job)
        })
    }

    /// Has a job leave its slots out, and what waits to be started; what runs goes on. Says whether that is new.
    pub fn pause_job(&mut self, name: &str, stamp: &Stamp) -> std::result::Result<(Job, bool), StoreError> {
        Ok(self.pause_jobs(&[name], stamp)?.remove(0))
    }

    /// Has jobs leave their slots out, all or none of them.
    pub fn pause_jobs(
        &mut self,
        names: &[impl AsRef<str>],
        stamp: &Stamp,
    ) -> std::result::Result<Vec<(Job, bool)>, StoreError> {
        self.write(stamp, |tx| named(tx, names, require)?.into_iter().map(|job| pause(tx, job, stamp)).collect())
    }

    /// Has a job go on from now: what came meanwhile is nobody's. Says whether that is new.
    pub fn resume_job(&mut self, name: &str, stamp: &Stamp) -> std::result::Result<(Job, bool), StoreError> {
        Ok(self.resume_jobs(&[name], stamp)?.remove(0))
    }

    /// Has jobs go on from now, all or none of them.
    pub fn resume_jobs(
        &mut self,
        names: &[impl AsRef<str>],
        stamp: &Stamp,
    ) -> std::result::Result<Vec<(Job, bool)>, StoreError> {
        self.write(stamp, |tx| named(tx, names, require)?.into_iter().map(|job| resume(tx, job, stamp)).collect())
    }

    /// Forgets a job, and what waits to be started; what runs goes on, and what became of its slots stays known.
    pub fn remove_job(&mut self, name: &str, stamp: &Stamp) -> std::result::Result<Job, StoreError> {
        Ok(self.remove_jobs(&[name], stamp)?.remove(0))
    }

    /// Forgets jobs, all or none of them.
    pub fn remove_jobs(
        &mut self,
        names: &[impl AsRef<str>],
        stamp: &Stamp,
    ) -> std::result::Result<Vec<Job>, StoreError> {
        self.write(stamp, |tx| {
            let jobs = named(tx, names, require_own)?;
            jobs.iter().try_for_each(|job| remove(tx, job, stamp))?;
            Ok(jobs)
        })
    }

    /// When the next slot of a job comes, or one that failed is tried again.
    pub fn next_job_at(&mut self) -> std::result::Result<Option<Timestamp>, StoreError> {
        self.read(|tx| {
            let mut sql = "SELECT min(at) FROM (SELECT min(next_at) AS at FROM job WHERE next_at IS NOT NULL
                         UNION ALL SELECT min(retry_at) FROM fire WHERE retry_at IS NOT NULL)";
            if gt_core::defect!("job-retry-deadline-forgotten") {
                sql = "SELECT min(next_at) FROM job WHERE next_at IS NOT NULL";
            }
            let at: Option<i64> = tx.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(at.map(timestamp))
        })
    }
}

fn add(tx: &Connection, plan: &JobPlan, is_beat: bool, stamp: &Stamp) -> Result<Job> {
    refuse_name(tx, &plan.name, is_beat)?;
    let next_at = first_slot(plan, stamp)?;
    let anchor = anchor_of(&plan.schedule, stamp);
    tx.prepare_cached(
        "INSERT INTO job (name, is_beat, kind, schedule, anchor, tz, payload, missed, may_overlap, state, next_at, made_at,
           seen_at, peak_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'active', ?10, ?11, ?11, ?11)",
    )?
    .execute(params![
        plan.name,
        is_beat,
        plan.schedule.kind(),
        plan.schedule.text(),
        micros(anchor),
        plan.tz,
        plan.payload.text(),
        plan.missed.as_str(),
        plan.may_overlap,
        micros(next_at),
        micros(stamp.now)
    ])?;
    let job = Job {
        id: tx.last_insert_rowid(),
        plan: plan.clone(),
        is_beat,
        state: JobState::Active,
        why: None,
        next_at: Some(next_at),
        failures: 0,
        made_at: stamp.now,
        last_at: None,
        last_status: None,
        said: None,
        peak_at: stamp.now,
    };
    save(tx, &job)?;
    tell(tx, EventType::JobAdded, &job, stamp)?;
    Ok(job)
}

/// Finds the next slot of a job whose times are others now. Only a new schedule wakes one that is disabled; one that is paused
/// stays so, but what never comes it cannot wait for either.
fn reschedule(job: &mut Job, before: &JobPlan, stamp: &Stamp) -> Result<()> {
    let has_new_schedule = job.plan.schedule != before.schedule;
    if !has_new_schedule && job.plan.tz == before.tz {
        return Ok(());
    }
    let next_at = Some(first_slot(&job.plan, stamp)?);
    match job.state {
        JobState::Active => job.next_at = next_at,
        JobState::Disabled if has_new_schedule => {
            (job.state, job.why, job.failures, job.next_at) = (JobState::Active, None, 0, next_at);
        }
        JobState::Disabled | JobState::Paused => (),
    }
    Ok(())
}

fn pause(tx: &Connection, mut job: Job, stamp: &Stamp) -> Result<(Job, bool)> {
    // One that has a reason rests only as long as that lasts.
    let is_new = job.state != JobState::Paused || job.why.is_some();
    if is_new {
        record::miss_overdue(tx, &job, "nobody saw to it before its job was paused", stamp)?;
        let next_at = job.next_at.filter(|_| gt_core::defect!("paused-job-fires"));
        (job.state, job.next_at, job.why) = (JobState::Paused, next_at, None);
        save(tx, &job)?;
        if !gt_core::defect!("paused-job-starts") {
            settle::give_up_waiting(tx, job.id, "its job was paused", stamp)?;
        }
        tell(tx, EventType::JobChanged, &job, stamp)?;
    }
    Ok((job, is_new))
}

fn resume(tx: &Connection, mut job: Job, stamp: &Stamp) -> Result<(Job, bool)> {
    let is_new = job.state != JobState::Active;
    if is_new {
        job.next_at = Some(slot_left(&job.plan, stamp)?);
        (job.state, job.why, job.failures) = (JobState::Active, None, 0);
        heed::note_seen(tx, job.id, stamp.now)?;
        save(tx, &job)?;
        tell(tx, EventType::JobChanged, &job, stamp)?;
    }
    Ok((job, is_new))
}

fn remove(tx: &Connection, job: &Job, stamp: &Stamp) -> Result<()> {
    record::miss_overdue(tx, job, "nobody saw to it before its job was removed", stamp)?;
    tx.prepare_cached("DELETE FROM job WHERE id = ?1")?.execute([job.id])?;
    settle::give_up_waiting(tx, job.id, "its job was removed", stamp)?;
    tell(tx, EventType::JobRemoved, job, stamp)
}

fn anchor_of(schedule: &Schedule, stamp: &Stamp) -> Timestamp {
    match schedule {
        Schedule::Every { anchor, .. } => *anchor,
        Schedule::At(_) | Schedule::Cron(_) | Schedule::Broken { .. } => stamp.now,
    }
}

fn first_slot(plan: &JobPlan, stamp: &Stamp) -> Result<Timestamp> {
    plan.next(stamp.now).map_err(|why| Refusal::from(BadJob::NeverRuns { name: one_line(&plan.name), why }).into())
}

/// The next slot of a job that is known.
fn slot_left(plan: &JobPlan, stamp: &Stamp) -> Result<Timestamp> {
    let is_once = matches!(plan.schedule, Schedule::At(_));
    let none = |why| Refusal::from(BadJob::NoneLeft { name: one_line(&plan.name), why, is_once });
    Ok(plan.next(stamp.now).map_err(none)?)
}

/// A heartbeat's name has a mark that no other job's may have.
fn refuse_name(tx: &Connection, name: &str, is_beat: bool) -> Result<()> {
    if let Some(why) = flaw_of_name(name).filter(|_| !is_beat) {
        return Err(Refusal::from(BadJob::Name { name: one_line(name), why }).into());
    }
    if tx.prepare_cached("SELECT 1 FROM job WHERE name = ?1")?.exists([name])? {
        return Err(Refusal::from(BadJob::Exists { name: name.to_owned() }).into());
    }
    Ok(())
}

/// Writes all of a job that may change.
fn save(tx: &Connection, job: &Job) -> Result<()> {
    let plan = &job.plan;
    let span = |span: Option<SignedDuration>| span.map(|span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX));
    let (channel, recipient) =
        plan.deliver.as_ref().map_or((None, None), |to| (Some(&to.channel), to.recipient.as_ref()));
    let anchor = match plan.schedule {
        Schedule::Every { anchor, .. } => Some(micros(anchor)),
        Schedule::At(_) | Schedule::Cron(_) | Schedule::Broken { .. } => None,
    };
    tx.prepare_cached(
        "UPDATE job SET name = ?2, kind = ?3, schedule = ?4, anchor = coalesce(?5, anchor), tz = ?6, payload = ?7, missed = ?8,
           may_overlap = ?9, grace = ?10, timeout = ?11, retries = ?12, lane = ?13, channel = ?14, recipient = ?15, state = ?16,
           why = ?17, next_at = ?18, failures = ?19 WHERE id = ?1",
    )?
    .execute(params![
        job.id,
        plan.name,
        plan.schedule.kind(),
        plan.schedule.text(),
        anchor,
        plan.tz,
        plan.payload.text(),
        plan.missed.as_str(),
        plan.may_overlap,
        span(plan.grace),
        span(plan.timeout),
        plan.retries,
        plan.lane,
        channel,
        recipient,
        job.state.as_str(),
        job.why,
        job.next_at.map(micros),
        job.failures
    ])?;
    Ok(())
}

fn tell(tx: &Connection, kind: EventType, job: &Job, stamp: &Stamp) -> Result<()> {
    let data = json!({ "job": job.name(), "id": job.id(), "kind": job.plan.schedule.kind(),
                       "payload": job.plan.payload.kind(), "state": job.state.as_str(), "next_at": job.next_at });
    events::append(tx, stamp, kind, None, &data)
}

/// The number of the job whose id this is.
fn number(name: &str) -> Option<i64> {
    name.strip_prefix("job-").filter(|_| is_id(name)).and_then(|digits| digits.parse().ok())
}

fn find(tx: &Connection, name: &str) -> Result<Option<Job>> {
    match number(name) {
        Some(id) => by_id(tx, id),
        None => Ok(tx.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?.query_row([name], from_row).optional()?),
    }
}

fn by_id(tx: &Connection, id: i64) -> Result<Option<Job>> {
    Ok(tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?.query_row([id], from_row).optional()?)
}

fn require(tx: &Connection, name: &str) -> Result<Job> {
    match find(tx, name)? {
        Some(job) => Ok(job),
        None => Err(StoreError::NoJob { name: one_line(name), near: near(tx, name)? }),
    }
}

/// The jobs that are named, each once.
fn named(
    tx: &Connection,
    names: &[impl AsRef<str>],
    require: impl Fn(&Connection, &str) -> Result<Job>,
) -> Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    for name in names {
        let job = require(tx, name.as_ref())?;
        if jobs.iter().all(|other| other.id != job.id) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// One that somebody has added, and may change.
fn require_own(tx: &Connection, name: &str) -> Result<Job> {
    let job = require(tx, name)?;
    if job.is_beat {
        return Err(Refusal::from(BadJob::IsHeartbeat { name: job.plan.name }).into());
    }
    Ok(job)
}

fn near(tx: &Connection, name: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached("SELECT name FROM job LIMIT 10000")?;
    let names: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(gt_core::near::closest(name, names.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests;
