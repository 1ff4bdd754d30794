//! Which agents a pass stops, and how: those that are unwanted or told to stop,
//! that run for too long, and that outlive their work.
//!
//! Owns: who is asked to stop, once. Does not own: silent runs (`witness.rs`) nor what the runtime does with such a request.

use gt_core::run::{Outcome, StopOrder};
use gt_runtime::Stop;
use gt_store::{Advance, Run, Store};

use super::{Dispatcher, finish_grace, known};
use crate::error::TownError;
use crate::settings::Settings;

impl Dispatcher {
    /// What was given up or told to stop while it was being started is stopped now that it is there. What does not hear
    /// that is found by the next look; what was claimed meanwhile does not wait for it.
    pub(super) fn stop_unwanted(&mut self, advance: &Advance) {
        for run in &advance.unwanted {
            if !run.is_live() && gt_core::defect!("unwanted-start-left-running") {
                continue;
            }
            let how = if run.is_live() { Stop::Gently } else { Stop::Now };
            if self.stop(run, how).is_err() {
                (self.is_look_due, self.looks_closely) = (true, true);
            }
        }
    }

    /// Asks a run to stop, once; one that could not be asked is asked again by the next look.
    pub(super) fn stop(&mut self, run: &Run, how: Stop) -> Result<(), TownError> {
        if !self.stopped.contains(&run.id) {
            self.runtime.stop(&known(&self.town, run), how)?;
            self.stopped.insert(run.id.clone());
        }
        Ok(())
    }

    /// Ends what was told to stop, has run for too long, or lingers after its work is over.
    pub(super) fn watch_over(&mut self, run: &Run, store: &mut Store, settings: &Settings) -> Result<(), TownError> {
        let now = self.now();
        let is_over = run.finished_at(now).is_some_and(|at| now >= at + finish_grace())
            && !gt_core::defect!("finished-agent-lingers");
        let is_too_long =
            self.is_too_old(run, settings) && run.stop.is_none() && !gt_core::defect!("max-run-not-enforced");
        if is_too_long && run.finished_at(now).is_none() {
            let order = StopOrder {
                at: now,
                by: self.actor.clone(),
                outcome: Outcome::TimedOut,
                reason: settings.too_long(run),
            };
            store.order_stop(&run.id, &order, &self.stamp())?;
        }
        if !gt_core::defect!("last-word-lingers") && self.end_lingering(run, store, settings)? {
            return self.stop(run, Stop::Gently);
        }
        if run.stop.is_some() || is_over || is_too_long || gt_core::defect!("healthy-agent-stopped") {
            self.stop(run, Stop::Gently)?;
        }
        Ok(())
    }
}
