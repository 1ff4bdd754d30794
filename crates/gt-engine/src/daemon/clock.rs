//! What the daemon does when the clock says so: jobs fire; and what it makes of a clock that jumps. // SPEC K2, K3, H1

use std::time::Duration;

use gt_core::job::RECORDS_MAX;
use gt_store::Stamp;
use jiff::{SignedDuration, Timestamp};

use super::Daemon;
use crate::crash::{self, CrashPoint};
use crate::error::{TownError, chain};
use crate::jobs;

/// How far the clock may go wrong before something has happened to it or to the machine.
const GAP: SignedDuration = SignedDuration::from_secs(5);

/// What the clock showed when it was looked at, and for how long the machine had been up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) now: Timestamp,
    pub(super) uptime: Duration,
}

impl Look {
    /// By how much the clock has gone further than time has; less than nothing: it was set back.
    fn jump(self, later: Look) -> SignedDuration {
        let passed = later.uptime.saturating_sub(self.uptime);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        later.now.duration_since(self.now).saturating_sub(passed)
    }
}

fn words(span: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(span.as_secs()))
}

impl Daemon {
    /// Fires what is due; says whether there is more of it. Nobody knows the rules before a good config was read.
    pub(super) fn fire(&mut self) -> Result<bool, TownError> {
        if !self.has_config {
            return Ok(false);
        }
        let stamp = self.dispatcher.stamp();
        let is_late = !gt_core::defect!("late-heartbeat-starts");
        if let Some(why) = jobs::too_late(&self.settings, stamp.now).filter(|_| is_late) {
            self.store.rest_beats(&why, &stamp)?;
        }
        let (policy, sessions) = (self.settings.policy(self.town.root()), self.settings.session_rules());
        let rules = jobs::rules(&self.settings, &policy, &sessions, self.watched_since());
        let (town, settings) = (&self.town, &self.settings);
        let fired = self.store.fire_due(&rules, &mut |beat| jobs::beat(town, settings, beat, stamp.now), &stamp)?;
        if fired.n_fired > 0 {
            crash::point(CrashPoint::Fired);
        }
        for (job, n) in &fired.missed {
            // One of the records stands for any number of them then.
            let n = if *n > RECORDS_MAX { format!("more than {RECORDS_MAX}") } else { n.to_string() };
            (self.log)(&format!("{job} missed {n} of its times"));
        }
        // However many slots of a job came while nobody looked.
        for same in fired.skipped.chunk_by(|one, next| one == next) {
            let (job, why) = &same[0];
            let times = if same.len() == 1 { String::new() } else { format!(" {} times", same.len()) };
            (self.log)(&format!("{job} was left out{times}: {why}"));
        }
        Ok(fired.is_more)
    }

    /// Since when the clock has been watched, though nobody has heeded yet that it was set forward just now.
    fn watched_since(&self) -> Timestamp {
        let look = self.look();
        if self.looked.jump(look) > GAP && !gt_core::defect!("clock-ahead-unnoticed") {
            look.now
        } else {
            self.watching_since
        }
    }

    fn look(&self) -> Look {
        Look { now: self.dispatcher.now(), uptime: self.around.uptime() }
    }

    /// Sees whether the clock has gone as time has; says whether not. Whoever slept with the machine, or whose clock was set
    /// forward, has not watched it.
    pub(super) fn heed_jump(&mut self) -> bool {
        let look = self.look();
        let jump = std::mem::replace(&mut self.looked, look).jump(look);
        if jump > GAP {
            (self.log)(&format!("the clock has gone ahead by {}; what was due meanwhile was missed", words(jump)));
            if !gt_core::defect!("clock-ahead-unnoticed") {
                self.watching_since = look.now;
            }
        } else if jump < -GAP {
            (self.log)(&format!("the clock was set back by {}", words(-jump)));
            self.watching_since = self.watching_since.min(look.now);
            self.patrol.next = self.patrol.next.min(look.now + self.settings.heartbeat);
            self.heed_clock(-jump);
        }
        jump.abs() > GAP
    }

    /// What waits for a time waits as long as it was to, though the clock was set back by so much; one that is far behind what
    /// has fired was wrong before. They go on from when it was looked at: what comes after that is watched.
    pub(super) fn heed_clock(&mut self, set_back: SignedDuration) {
        let stamp = Stamp { now: self.looked.now, ..self.dispatcher.stamp() };
        match self.store.heed_clock(set_back, &stamp) {
            Ok(0) => {}
            Ok(n) => (self.log)(&format!("the clock is far behind what jobs have seen: {n} of them go on from now")),
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

#[cfg(test)]
mod tests;
