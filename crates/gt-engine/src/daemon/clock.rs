//! What the daemon does when the clock says so: jobs fire; and what it makes of a clock that jumps. // SPEC K2, K3, H1

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Daemon;
use crate::error::{TownError, chain};
use crate::jobs;

/// How much longer than it should a sleep may last, or how far the clock may go back, before something has happened to the
/// clock or to the machine.
const GAP: SignedDuration = SignedDuration::from_secs(5);

impl Daemon {
    /// Fires what is due; says whether there is more of it. Nobody knows the rules before a good config was read.
    pub(super) fn fire(&mut self) -> Result<bool, TownError> {
        if !self.has_config {
            return Ok(false);
        }
        let stamp = self.dispatcher.stamp();
        let (policy, sessions) = (self.settings.policy(self.town.root()), self.settings.session_rules());
        let rules = jobs::rules(&self.settings, &policy, &sessions, self.watching_since);
        let (town, settings) = (&self.town, &self.settings);
        let fired = self.store.fire_due(&rules, &mut |beat| jobs::beat(town, settings, beat, stamp.now), &stamp)?;
        for (job, n) in &fired.missed {
            let slots = if *n == 1 { "1 of its times".to_owned() } else { format!("{n} of its times") };
            (self.log)(&format!("{job} missed {slots}"));
        }
        for (job, why) in &fired.skipped {
            (self.log)(&format!("{job} was left out: {why}"));
        }
        Ok(fired.is_more)
    }

    /// Whoever slept for much longer than it wanted to, or wakes up before it fell asleep, has not watched the clock.
    pub(super) fn heed_gap(&mut self, asleep_at: Timestamp, span: Option<Duration>) {
        let now = self.dispatcher.now();
        let slept = now.duration_since(asleep_at);
        let most =
            span.map_or(SignedDuration::MAX, |span| SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX));
        if slept > most.saturating_add(GAP) {
            (self.log)(&format!("the clock has gone on by {slept:#}; what was due meanwhile was missed"));
            self.watching_since = now;
        } else if slept < -GAP {
            (self.log)(&format!("the clock was set back by {:#}", -slept));
            self.watching_since = self.watching_since.min(now);
            self.next_patrol = self.next_patrol.min(now + self.settings.heartbeat);
            self.heed_clock();
        }
    }

    /// A clock far behind what has fired was wrong before.
    pub(super) fn heed_clock(&mut self) {
        match self.store.heed_clock(&self.dispatcher.stamp()) {
            Ok(0) => {}
            Ok(n) => (self.log)(&format!("the clock had been far ahead: {n} jobs go on from now")),
            Err(error) => (self.log)(&chain(&error)),
        }
    }

    /// Sees to it that there are the heartbeats that config and files ask for.
    pub(super) fn keep_beats(&mut self) {
        if !self.has_config {
            return;
        }
        let stamp = self.dispatcher.stamp();
        if let Err(error) = jobs::keep_beats(&self.town, &self.settings, &mut self.store, &stamp) {
            (self.log)(&format!("heartbeats could not be set up: {}", chain(&error)));
        }
    }
}
