//! Silence: what the witness may do about runs that give no sign of life, and when it must. // SPEC R1
//!
//! Agents leave their signs in the world, by the clock and by the time that really passed. Here each rung of the witness
//! (reported, interrupted, stopped) is held against what it could know of them.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::agent::Activity;
use gt_core::event::Event;
use gt_core::run::RunState;
use gt_store::Run;
use jiff::{SignedDuration, Timestamp};

use crate::model::Model;

/// How much later than it could the witness may act, in the healed world.
const LATE: Duration = Duration::from_secs(5);
/// What comes so soon after an interrupt is its echo.
const ECHO: SignedDuration = SignedDuration::from_secs(2);
/// How the reason of a stop begins that is the witness's.
const UNHEARD: &str = "it gave no sign of life";

/// A sign of life.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    /// By the clock, as a file's time would be.
    pub at: Timestamp,
    /// By the time that really passed.
    pub uptime: Duration,
    /// It has said that it waits, or that its turn is over: now it is silent with reason.
    pub is_excused: bool,
}

/// What whoever moved goes by.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The last signs, as whoever moved has read them; who is not among them is not to be blamed.
    pub read: BTreeMap<String, Sign>,
    /// The shortest span that may be too long, in seconds.
    pub span: i64,
    pub uptime: Duration,
    /// When the clock was set last.
    pub set_at: Duration,
}

/// How far the silence of a live run has been answered.
#[derive(Debug, Clone, Default)]
struct Rungs {
    started: Option<Timestamp>,
    stalled: Option<Timestamp>,
    interrupted: Option<Timestamp>,
    is_stopped: bool,
    is_waiting: bool,
    /// When the last of it was, by the time that really passed.
    since: Duration,
}

#[derive(Debug, Default)]
pub struct Silences(BTreeMap<String, Rungs>);

impl Silences {
    /// Takes in what happened next, before the model does.
    pub fn apply(&mut self, event: &Event, model: &Model, watch: &Watch) -> Result<(), String> {
        let Some(id) = event.run.as_ref().filter(|_| event.kind.starts_with("run.")) else { return Ok(()) };
        let text = |key: &str| event.data.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let rungs = self.0.entry(id.clone()).or_default();
        match event.kind.as_str() {
            "run.started" => (rungs.started, rungs.since) = (Some(event.ts), watch.uptime),
            "run.waiting" => rungs.is_waiting = true,
            "run.resumed" => rungs.is_waiting = false,
            "run.stalled" => {
                let since = gt_core::time::parse(text("since")).ok_or("nobody says since when a run is silent")?;
                rungs.check_blamed(event, id, model, watch)?;
                rungs.check_reported(event, id, since, watch)?;
                (rungs.stalled, rungs.interrupted, rungs.since) = (Some(event.ts), None, watch.uptime);
            }
            "run.interrupted" => {
                rungs.check_blamed(event, id, model, watch)?;
                rungs.check_climb(event, id, rungs.stalled.filter(|_| rungs.interrupted.is_none()), watch)?;
                (rungs.interrupted, rungs.since) = (Some(event.ts), watch.uptime);
            }
            "run.stopping" if text("reason").starts_with(UNHEARD) => {
                rungs.check_climb(event, id, rungs.interrupted, watch)?;
                rungs.is_stopped = true;
            }
            "run.ended" => {
                let is_its_word = model.live(id).is_none_or(|run| run.said.is_some()) || is_done(event, model);
                if rungs.is_stopped && !is_its_word && text("outcome") != "timed-out" {
                    return Err(format!("{id} was stopped because of its silence, and ended as {}", text("outcome")));
                }
                self.0.remove(id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the log says that a run was interrupted, or it is over.
    pub fn may_be_interrupted(&self, run: &str) -> bool {
        self.0.get(run).is_none_or(|rungs| rungs.interrupted.is_some())
    }

    /// In the healed world: nobody is silent for longer than the witness may take, and nobody sleeps over it.
    pub fn check_late(
        &self,
        run: &Run,
        sign: &Sign,
        settled: Duration,
        span: Duration,
        now: Now,
    ) -> Result<(), String> {
        let is_watched = run.state == RunState::Working
            && run.stop.is_none()
            && run.finished_at(now.clock).is_none()
            && run.waits_for().is_none()
            && run.activity != Some(Activity::TurnOver);
        let rungs = self.0.get(&run.id).cloned().unwrap_or_default();
        let since = sign.uptime.max(rungs.since).max(settled);
        // A sign from before the clock was set back counts from when it was first seen, a span later.
        let n_spans = if sign.uptime <= settled { 2 } else { 1 };
        if !is_watched || now.uptime <= since + n_spans * span + LATE {
            return Ok(());
        }
        Err(format!("{} is silent since {since:?}, it is {:?}, and everybody sleeps: {rungs:?}", run.id, now.uptime))
    }
}

/// This moment, by the clock and by the time that really passed.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub clock: Timestamp,
    pub uptime: Duration,
}

impl Rungs {
    /// Who is being started, waits, is over, or of whom nobody can tell, is left alone.
    fn check_blamed(&self, event: &Event, id: &str, model: &Model, watch: &Watch) -> Result<(), String> {
        let run = model.live(id).ok_or_else(|| format!("{} of {id}, which does not live", event.kind))?;
        let is_over = run.said.is_some() || run.is_stopping || is_done(event, model);
        let sign = watch.read.get(id);
        if is_over || !run.is_started || self.is_waiting || sign.is_none_or(|sign| sign.is_excused) {
            return Err(format!("{} of {id}, which is silent with reason: {run:?}, {self:?}, {sign:?}", event.kind));
        }
        Ok(())
    }

    /// Nothing is reported before it has been silent for as long as it may; once for each silence.
    fn check_reported(&self, event: &Event, id: &str, since: Timestamp, watch: &Watch) -> Result<(), String> {
        // A sign that was given before the clock was set cannot be compared.
        let sign = watch.read.get(id).filter(|sign| sign.uptime > watch.set_at);
        let span = Duration::from_secs(watch.span.unsigned_abs());
        let is_heard = |sign: &Sign| since < sign.at || watch.uptime < sign.uptime + span;
        let is_early = event.ts < since + SignedDuration::from_secs(watch.span) || sign.is_some_and(is_heard);
        let answered = self.interrupted.or(self.stalled);
        let is_again = answered.is_some_and(|at| since <= at && at <= event.ts);
        if is_early || is_again {
            return Err(format!("{id} was reported as silent since {since} at {}: {self:?}, {sign:?}", event.ts));
        }
        Ok(())
    }

    /// A rung follows the one before it, as long after it as the span is, and only if no sign came since.
    fn check_climb(&self, event: &Event, id: &str, below: Option<Timestamp>, watch: &Watch) -> Result<(), String> {
        let Some(below) = below else {
            return Err(format!("{} of {id} without the step before it: {self:?}", event.kind));
        };
        let span = SignedDuration::from_secs(watch.span);
        let is_sign = |sign: &Sign| sign.uptime > self.since && sign.at > below + ECHO.min(span / 2);
        let is_heard = watch.read.get(id).is_none_or(is_sign);
        if event.ts < below + span || is_heard {
            return Err(format!("{} of {id} at {}: {self:?}, {:?}", event.kind, event.ts, watch.read.get(id)));
        }
        Ok(())
    }
}

fn is_done(event: &Event, model: &Model) -> bool {
    event.bead.as_ref().and_then(|bead| model.beads.get(bead)).is_some_and(|bead| bead.is_done)
}
