//! What a pass makes of what agents tell: it is recorded with the pass, and whoever lingers is ended. // SPEC P5, D5
//!
//! Only the daemon listens all the time. Everybody else reads the last words of a run that has ended, so that its end is
//! recorded as what it was.

use gt_core::agent::{Activity, Failure, Need, Vendor};
use gt_core::run::{Outcome, StopOrder};
use gt_store::{Run, Store, Telling};
use jiff::{SignedDuration, Timestamp};

use super::Dispatcher;
use crate::agents;
use crate::error::TownError;
use crate::settings::Settings;
use crate::wake::Follow;

/// How long an agent may live on after its last word.
pub const LINGER_GRACE: SignedDuration = SignedDuration::from_secs(30);

impl Dispatcher {
    /// From now on what agents tell is listened to in every pass.
    pub fn listen_to_agents(&mut self) {
        self.is_listening = true;
    }

    /// From now on what agents write into records of their own wakes whoever watches with this.
    pub fn follow_records(&mut self, follow: Follow) {
        self.listener.follow_with(follow);
    }

    /// Whether agents have told something that a pass should record.
    pub fn has_been_told(&mut self, store: &mut Store, settings: &Settings) -> Result<bool, TownError> {
        if !self.listener.is_listening() {
            return Ok(false);
        }
        let runs = store.live_runs()?;
        Ok(!self.listen(&runs.iter().collect::<Vec<_>>(), settings).is_empty())
    }

    pub(super) fn listen(&mut self, runs: &[&Run], settings: &Settings) -> Vec<Telling> {
        if !self.is_listening {
            return Vec::new();
        }
        let now = self.now();
        self.listener.listen(&self.town, runs, |agent| agents::speaks(&settings.config, agent), now)
    }

    /// All that a run has told, now that it is over.
    pub(super) fn last_words(&mut self, run: &Run, settings: &Settings) -> Option<Telling> {
        let now = self.now();
        self.listener.words_of(&self.town, run, agents::speaks(&settings.config, &run.agent), true, now)
    }

    /// Ends a run whose turn is over or whose account has reached its limit, and that lives on.
    pub(super) fn end_lingering(
        &mut self,
        run: &Run,
        store: &mut Store,
        settings: &Settings,
    ) -> Result<bool, TownError> {
        let now = self.now();
        let is_due = lingers_until(run).is_some_and(|at| now >= at);
        if !is_due || run.stop.is_some() {
            return Ok(false);
        }
        // What is recorded may be old: it may have gone on since.
        let speaks = agents::speaks(&settings.config, &run.agent);
        let telling = self.listener.words_of(&self.town, run, speaks, false, now);
        let Some(telling) = telling.filter(|telling| telling.told.activity() == run.activity) else {
            return Ok(false);
        };
        let order = order(telling.told.failure(), telling.vendor, &self.actor, now);
        store.order_stop(&run.id, &order, &self.stamp())?;
        Ok(true)
    }
}

fn order(failure: Option<&Failure>, vendor: Vendor, by: &str, at: Timestamp) -> StopOrder {
    let outcome = failure.and_then(Failure::outcome).unwrap_or(Outcome::Died);
    let reason = match failure {
        Some(failure) => failure.reason(Some(vendor)),
        None => "its turn was over, its bead was not done, and it did not end".to_owned(),
    };
    StopOrder { at, by: by.to_owned(), outcome, reason }
}

/// When a run that has nothing more to do is ended, if it does not end by itself.
pub fn lingers_until(run: &Run) -> Option<Timestamp> {
    let is_last_word = matches!(run.activity, Some(Activity::TurnOver | Activity::Waiting(Need::Limit)));
    run.activity_at.filter(|_| is_last_word).map(|at| at + LINGER_GRACE)
}
