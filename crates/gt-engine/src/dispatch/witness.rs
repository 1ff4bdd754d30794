//! The witness of a pass: what is done about runs that give no sign of life. // SPEC R1
//!
//! What is to be done is decided by `gt_core::witness` and written down first. A run is looked at only when its silence
//! could have lasted long enough, so nobody looks at files all the time.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::agent::Activity;
use gt_core::explain::Reason;
use gt_core::run::{Outcome, RunState, StopOrder};
use gt_core::witness::{self, Silence, Step};
use gt_runtime::Stop;
use gt_store::{Run, Store};
use jiff::{SignedDuration, Timestamp};

use super::{Dispatcher, known};
use crate::agents;
use crate::error::TownError;
use crate::settings::Settings;
use crate::signs;
use crate::town::Town;

/// When each silent run is looked at next.
#[derive(Debug, Default)]
pub(super) struct Looks {
    span: SignedDuration,
    by_run: BTreeMap<String, Timestamp>,
    /// Signs that lie ahead, because the clock was set back after them, and when they were first seen.
    ahead: BTreeMap<String, (Timestamp, Timestamp)>,
    /// What was recorded of a run and lay ahead so: the clock that catches up with it brings no sign of life.
    void: BTreeMap<String, Timestamp>,
}

impl Looks {
    /// Forgets who is not watched any more, and everybody when the span has changed.
    fn follow(&mut self, watched: &[&Run], span: SignedDuration) {
        if self.span != span {
            *self = Looks { span, ..Looks::default() };
        }
        if !self.by_run.is_empty() {
            let watched: BTreeSet<&str> = watched.iter().map(|run| run.id.as_str()).collect();
            self.by_run.retain(|id, _| watched.contains(id.as_str()));
            self.ahead.retain(|id, _| watched.contains(id.as_str()));
            self.void.retain(|id, _| watched.contains(id.as_str()));
        }
    }

    /// When its silence could have lasted too long; what lies further ahead was reckoned before the clock was set back.
    fn next(&self, run: &Run, span: SignedDuration, now: Timestamp) -> Timestamp {
        let answered = run.interrupted_at.or(run.stalled_at).unwrap_or_else(|| last_known(run));
        let next = self.by_run.get(&run.id).copied().unwrap_or_else(|| after(answered, span));
        if next > after(now, span) { now } else { next }
    }

    /// Since when a run is silent. A sign that lies ahead counts from when it was first seen to do so.
    fn since(&mut self, run: &Run, sign: Timestamp, now: Timestamp) -> Timestamp {
        let recorded = last_known(run);
        if recorded > now {
            self.void.insert(run.id.clone(), recorded);
        }
        if let Some((_, seen)) = self.ahead.get(&run.id).filter(|(known, seen)| *known == sign && *seen <= now) {
            return *seen; // though the clock may have caught up
        }
        if sign > now && !gt_core::defect!("silence-waits-for-the-clock") {
            self.ahead.insert(run.id.clone(), (sign, now));
            return now;
        }
        let is_void = self.void.get(&run.id) == Some(&recorded);
        if is_void { sign } else { recorded.max(sign) }
    }
}

impl Dispatcher {
    /// Answers the silence of these runs.
    pub(super) fn witness(&mut self, runs: &[&Run], store: &mut Store, settings: &Settings) -> Result<(), TownError> {
        let Some(span) = settings.stall_after else { return Ok(()) };
        let now = self.now();
        let watched: Vec<&Run> = runs.iter().copied().filter(|run| is_watched(run, now)).collect();
        self.looks.follow(&watched, span);
        let due: Vec<&Run> = watched.into_iter().filter(|run| now >= self.looks.next(run, span, now)).collect();
        if due.is_empty() || gt_core::defect!("silence-ignored") {
            return Ok(());
        }
        let ids: Vec<&str> = due.iter().map(|run| run.id.as_str()).collect();
        let silent_before = now.checked_sub(span).unwrap_or(Timestamp::MIN);
        let signs = self.around.last_signs(&self.town, &ids, silent_before);
        for run in due {
            // Where nobody can tell nobody is blamed.
            let next = match signs.get(&run.id) {
                Some(at) => {
                    let since = self.looks.since(run, *at, now);
                    self.answer(run, since, store, settings)?
                }
                None => after(now, span),
            };
            self.looks.by_run.insert(run.id.clone(), next);
        }
        Ok(())
    }

    /// Does what is to be done about a run that is silent since then; returns when to look again.
    fn answer(
        &mut self,
        run: &Run,
        since: Timestamp,
        store: &mut Store,
        settings: &Settings,
    ) -> Result<Timestamp, TownError> {
        let stamp = self.stamp();
        let span = settings.stall_after.unwrap_or(SignedDuration::MAX);
        let silence = Silence { since, stalled_at: run.stalled_at, interrupted_at: run.interrupted_at };
        match witness::step(silence, span, stamp.now) {
            Step::Wait(at) => return Ok(at),
            _ if !gt_core::defect!("waiting-taken-for-stalled") && self.has_reason(run, settings) => {}
            Step::Report => drop(store.report_stall(run, since, &stamp)?),
            Step::Interrupt => {
                // One that does not reach it is as good as one that it ignores.
                if gt_core::defect!("interrupt-not-noted") || store.note_interrupt(run, since, &stamp)? {
                    self.runtime.stop(&known(&self.town, run), Stop::Interrupt)?;
                }
            }
            Step::Stop => {
                let order = StopOrder {
                    at: stamp.now,
                    by: self.actor.clone(),
                    outcome: Outcome::TimedOut,
                    reason: "it gave no sign of life, and an interrupt did not change that".to_owned(),
                };
                store.order_stop(&run.id, &order, &stamp)?;
                self.stop(run, Stop::Gently)?;
            }
        }
        Ok(after(stamp.now, span))
    }

    /// Whether its last word was that it waits, or has nothing more to do. What is recorded may be old: nobody need have
    /// listened since.
    fn has_reason(&mut self, run: &Run, settings: &Settings) -> bool {
        let (now, speaks) = (self.now(), agents::speaks(&settings.config, &run.agent));
        let telling = self.listener.words_of(&self.town, run, speaks, false, now);
        telling.and_then(|telling| telling.told.activity()).is_some_and(|activity| activity != Activity::Working)
    }

    /// When the silence of a run has to be looked at, if it is watched.
    pub(super) fn next_witness(&self, run: &Run, settings: &Settings) -> Option<Timestamp> {
        let (now, span) = (self.now(), settings.stall_after?);
        is_watched(run, now).then(|| self.looks.next(run, span, now))
    }
}

/// Why a run that works counts as stalled, and what comes next; `None`: it does not, or nobody can tell. // SPEC B6
pub fn explain(run: &Run, town: &Town, settings: &Settings, now: Timestamp) -> Option<Reason> {
    let span = settings.stall_after.filter(|_| is_watched(run, now))?;
    let silent_before = now.checked_sub(span).unwrap_or(Timestamp::MIN);
    let seen = *signs::last_signs(town, &[&run.id], silent_before).get(&run.id)?;
    let since = last_known(run).max(seen);
    let silence = Silence { since, stalled_at: run.stalled_at, interrupted_at: run.interrupted_at };
    witness::explain(&format!("{}/{}", run.rig, run.polecat), silence, span, now)
}

/// Who is being started is left alone; who waits for somebody, or has nothing more to do, is silent with reason.
fn is_watched(run: &Run, now: Timestamp) -> bool {
    run.state == RunState::Working
        && !run.is_turn() // it has its timeout
        && run.stop.is_none()
        && run.finished_at(now).is_none()
        && run.waits_for().is_none()
        && run.activity != Some(Activity::TurnOver)
}

/// The last sign of life that is recorded.
fn last_known(run: &Run) -> Timestamp {
    let started_at = run.started_at.unwrap_or(run.claimed_at);
    run.activity_at.map_or(started_at, |at| at.max(started_at))
}

fn after(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}
