//! Heartbeats: jobs that the config makes, one for each agent. // SPEC H1, H1a

use std::collections::BTreeSet;

use gt_core::event::EventType;
use gt_core::job::{BadJob, BadSchedule, Beat, JobState, Missed, Payload, every};
use gt_core::refusal::Refusal;
use gt_core::run::{Outcome, StopOrder};
use gt_core::session::TurnOutcome;
use jiff::SignedDuration;
use rusqlite::{OptionalExtension as _, params};
use serde_json::json;

use super::{Job, JobPlan, SELECT, add, first_slot, from_row, heed, record, save, settle, tell};
use crate::dispatch::runs::{self, Run};
use crate::error::{Result, StoreError};
use crate::rows::micros;
use crate::sessions::refresh;
use crate::sessions::turns;
use crate::store::{Stamp, Store};

/// What all their names begin with.
pub(super) const PREFIX: &str = "heartbeat:";

/// Why a heartbeat rests that nobody has stopped.
const OFF: &str = "heartbeats are switched off: `gt heartbeat enable`";

/// The job that is the heartbeat of an agent.
pub fn beat_of(agent: &str) -> String {
    format!("{PREFIX}{agent}")
}

/// Turns of heartbeats that the clock has brought and nobody has started, with their sessions.
fn waiting(tx: &rusqlite::Connection) -> Result<Vec<(i64, i64)>> {
    let mut query = tx.prepare_cached(
        "SELECT turn.id, turn.session FROM job CROSS JOIN fire ON fire.job = job.id CROSS JOIN turn ON turn.id = fire.turn
         WHERE job.is_beat = 1 AND fire.status = 'running' AND fire.is_manual = 0 AND turn.state = 'waiting'",
    )?;
    Ok(query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn is_beat(name: &str) -> bool {
    name.starts_with(PREFIX)
}

impl Store {
    /// Heartbeats, by the names of their agents.
    pub fn beats(&mut self) -> std::result::Result<Vec<Job>, StoreError> {
        self.read(all)
    }

    /// Gives up heartbeats that have waited until now, unless a person has asked for them; says how many.
    pub fn rest_beats(&mut self, why: &str, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        if self.read(|tx| Ok(waiting(tx)?.is_empty()))? {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            let waiting = waiting(tx)?;
            for (turn, session) in &waiting {
                turns::end(tx, *turn, TurnOutcome::Dropped, None, Some(why), stamp)?;
                refresh(tx, *session)?;
            }
            Ok(waiting.len())
        })
    }

    /// Sees to it that there are these heartbeats and no others, as often as that; says whether something changed. Who was
    /// stopped or has stopped itself stays so.
    pub fn keep_beats(&mut self, wanted: &Beats, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        let there = self.beats()?;
        if wanted.are(&there) {
            return Ok(false); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            let there = all(tx)?;
            for job in there.iter().filter(|job| wanted.of(job).is_none()) {
                record::miss_overdue(tx, job, "nobody saw to it before the heartbeat was taken away", stamp)?;
                tx.prepare_cached("DELETE FROM job WHERE id = ?1")?.execute([job.id])?;
                settle::give_up_waiting(tx, job.id, "the heartbeat was taken away", stamp)?;
                tell(tx, EventType::JobRemoved, job, stamp)?;
            }
            for beat in &wanted.beats {
                match there.iter().find(|job| job.name() == beat_of(&beat.agent)) {
                    Some(job) => update(tx, job, beat, wanted, stamp)?,
                    None if wanted.is_on => add(tx, &plan(beat, wanted.interval, stamp)?, true, stamp).map(|_| ())?,
                    None => {}
                }
            }
            Ok(true)
        })
    }

    /// Has alerts go to the mayor that wait for any channel but these, which are all that there are; says how many.
    pub fn mail_stranded_alerts(&mut self, channels: &[&str], stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        if self.read(|tx| stranded(tx, channels))?.is_empty() {
            return Ok(0); // only who has something to write writes
        }
        self.write(stamp, |tx| {
            let stranded = stranded(tx, channels)?;
            stranded.into_iter().try_fold(0, |n, alert| mail_stranded(tx, alert, stamp).map(|()| n + 1))
        })
    }
}

/// An alert that waits to be delivered.
struct Alert {
    parcel: i64,
    fire: i64,
    agent: String,
    channel: String,
    text: String,
}

/// Alerts in the outbox that wait, of those parcels that this says.
fn alerts(tx: &rusqlite::Connection, which: &str, value: &dyn rusqlite::ToSql) -> Result<Vec<Alert>> {
    let sql = format!(
        "SELECT outbox.id, fire.id, substr(fire.name, length(?1) + 1), channel, text
         FROM outbox CROSS JOIN fire ON fire.turn = CAST(substr(key, 6) AS INTEGER)
         WHERE outbox.state = 'waiting' AND key LIKE 'turn-%' AND delivery = 'waiting' AND fire.name LIKE ?1 || '%'
           AND {which} ORDER BY +outbox.id"
    );
    let mut query = tx.prepare_cached(&sql)?;
    let rows = query.query_map(params![PREFIX, value], |row| {
        let (parcel, fire, agent, channel, text) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        Ok(Alert { parcel, fire, agent, channel, text })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Alerts that wait for any channel but these.
fn stranded(tx: &rusqlite::Connection, channels: &[&str]) -> Result<Vec<Alert>> {
    alerts(tx, "channel NOT IN (SELECT value FROM json_each(?2))", &json!(channels).to_string())
}

/// A parcel is about to be given up: if it is an alert, the mayor is told instead, and it counts as told.
pub(crate) fn not_delivered(tx: &rusqlite::Connection, parcel: i64, why: &str, stamp: &Stamp) -> Result<()> {
    alerts(tx, "outbox.id = ?2", &parcel)?.into_iter().try_for_each(|alert| mail_instead(tx, alert, why, stamp))
}

fn mail_instead(tx: &rusqlite::Connection, alert: Alert, why: &str, stamp: &Stamp) -> Result<()> {
    let told = settle::mail_alert(tx, &alert.agent, alert.text, why, stamp)?;
    settle::note_delivery(tx, alert.fire, &settle::Kept::mailed(told))
}

/// The letter first, so that it is known to be mailed when its parcel is given up.
fn mail_stranded(tx: &rusqlite::Connection, alert: Alert, stamp: &Stamp) -> Result<()> {
    let (parcel, why) = (alert.parcel, settle::no_channel(&alert.channel));
    mail_instead(tx, alert, &why, stamp)?;
    tx.prepare_cached("UPDATE outbox SET state = 'failed', error = ?2, done_at = ?3 WHERE id = ?1")?
        .execute(params![parcel, why, micros(stamp.now)])?;
    Ok(())
}

/// The heartbeats that there are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beats {
    /// Whether any heart beats at all; those that are there keep what is known of them.
    pub is_on: bool,
    pub interval: SignedDuration,
    pub beats: Vec<Beat>,
}

impl Beats {
    fn of(&self, job: &Job) -> Option<&Beat> {
        self.beats.iter().find(|beat| beat_of(&beat.agent) == job.name())
    }

    /// Whether those that are there are as they are to be.
    fn are(&self, there: &[Job]) -> bool {
        let is_there = |beat: &Beat| there.iter().any(|job| job.name() == beat_of(&beat.agent));
        let is_so = |job: &Job| self.of(job).is_some_and(|beat| is_as(job, beat, self.interval)) && !self.switches(job);
        there.iter().all(is_so) && (!self.is_on || self.beats.iter().all(is_there))
    }

    /// Whether a heartbeat is to go on, or to rest, because all are.
    fn switches(&self, job: &Job) -> bool {
        if self.is_on {
            let is_stopped = job.state == JobState::Paused && gt_core::defect!("stopped-heart-beats-again");
            job.why.as_deref() == Some(OFF) || is_stopped
        } else {
            job.state == JobState::Active && !gt_core::defect!("switched-off-heart-beats")
        }
    }
}

fn all(tx: &rusqlite::Connection) -> Result<Vec<Job>> {
    let mut query = tx.prepare_cached(&format!("{SELECT} WHERE is_beat = 1 ORDER BY name"))?;
    Ok(query.query_map([], from_row)?.collect::<rusqlite::Result<_>>()?)
}

fn is_as(job: &Job, beat: &Beat, interval: SignedDuration) -> bool {
    let is_often = matches!(job.plan.schedule, gt_core::job::Schedule::Every { span, .. } if span == interval);
    is_often && job.plan.payload == Payload::Heartbeat(beat.clone())
}

fn plan(beat: &Beat, interval: SignedDuration, stamp: &Stamp) -> Result<JobPlan> {
    let name = beat_of(&beat.agent);
    let never = |bad: BadSchedule| Refusal::from(BadJob::NeverRuns { name: name.clone(), why: bad.to_string() });
    let schedule = every(interval, stamp.now).map_err(never)?;
    Ok(JobPlan { missed: Missed::Skip, ..JobPlan::new(&name, schedule, Payload::Heartbeat(beat.clone())) })
}

/// Another distance is counted from now on. With other hours nobody waits for those before; what is due already stays so.
/// Anything else leaves the next one where it is.
fn update(tx: &rusqlite::Connection, job: &Job, beat: &Beat, wanted: &Beats, stamp: &Stamp) -> Result<()> {
    let (is_same, switches) = (is_as(job, beat, wanted.interval), wanted.switches(job));
    if is_same && !switches {
        return Ok(());
    }
    let (before, mut job) = (job, job.clone());
    let fresh = plan(beat, wanted.interval, stamp)?;
    let is_other_distance = fresh.schedule.text() != job.plan.schedule.text();
    if is_other_distance {
        job.plan.schedule = fresh.schedule;
    }
    if switches {
        (job.state, job.why) =
            if wanted.is_on { (JobState::Active, None) } else { (JobState::Paused, Some(OFF.to_owned())) };
    }
    let first = first_slot(&job.plan, stamp)?;
    job.next_at = match job.state {
        JobState::Active if is_other_distance || switches => Some(first),
        JobState::Active if hours_of(&job) != beat.hours.as_deref() => job.next_at.map(|at| at.min(first)),
        JobState::Active => job.next_at,
        JobState::Paused | JobState::Disabled => None,
    };
    job.plan.payload = fresh.payload;
    if job.next_at != before.next_at {
        record::miss_overdue(tx, before, "nobody saw to it before heartbeats were changed", stamp)?;
        heed::note_seen(tx, job.id, stamp.now)?;
    }
    save(tx, &job)?;
    if job.state == JobState::Paused {
        settle::give_up_waiting(tx, job.id, "heartbeats were switched off", stamp)?;
    }
    tell(tx, EventType::JobChanged, &job, stamp)
}

/// The hours in which it may be, as far as is known.
fn hours_of(job: &Job) -> Option<&str> {
    match &job.plan.payload {
        Payload::Heartbeat(beat) => beat.hours.as_deref(),
        _ => None,
    }
}

/// Whether an agent answers somebody right now.
pub(crate) fn is_answering(tx: &rusqlite::Connection, agent: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM run WHERE state <> 'ended' AND lane IS NOT NULL AND agent = ?1";
    Ok(tx.prepare_cached(sql)?.exists([agent])?)
}

/// Why a heartbeat is left out then.
pub(crate) fn busy(agent: &str) -> String {
    format!("{agent} was busy")
}

/// Has the heartbeats of agents stop whose places somebody wants: nobody waits for one of them. // SPEC H2
pub(crate) fn give_way(tx: &rusqlite::Connection, agents: &BTreeSet<String>, stamp: &Stamp) -> Result<Vec<Run>> {
    let mut told = Vec::new();
    for agent in agents.iter().filter(|_| !gt_core::defect!("heartbeat-keeps-its-place")) {
        let mut query = tx.prepare_cached(
            "SELECT run.id FROM run INDEXED BY run_in_lane CROSS JOIN turn ON turn.id = run.turn CROSS JOIN fire ON fire.id = turn.fire
             WHERE run.lane IS NOT NULL AND run.state <> 'ended' AND run.agent = ?1 AND run.stop_at IS NULL AND fire.name = ?2",
        )?;
        let beat: Option<String> = query.query_row([agent, &beat_of(agent)], |row| row.get(0)).optional()?;
        let Some(run) = beat.map(|beat| runs::by_id(tx, &beat)).transpose()?.flatten() else { continue };
        let reason = "it gave way to a message for its agent".to_owned();
        let order = StopOrder { at: stamp.now, by: stamp.actor.clone(), outcome: Outcome::Stopped, reason };
        runs::order_stop(tx, &run, &order, stamp)?;
        // What is just being started is stopped once it is there.
        told.extend(Some(Run { stop: Some(order), ..run }).filter(|run| run.started_at.is_some()));
    }
    Ok(told)
}
