//! The pass: look at what lives, record what happened, claim what may start, start it, record that. // SPEC P6, D4
//!
//! Recovery is the first half of every pass, so a start after a crash is a pass like any other. There are no threads
//! and no waiting here: the daemon, a one-shot command and the simulation each drive a `Dispatcher` in their own way.

mod ages;
mod hear;
mod prepare;
mod probe;
mod remains;
mod report;
mod stops;
mod unsure;
pub mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_core::plan::{PerSide, Policy};
use gt_core::rig::Rig;
use gt_core::run::RunState;
use gt_runtime::{Ending, Handle, Known, Launch, Runtime, Sighting, StartError, Stop};
use gt_store::{Advance, Claimant, Claimed, Ended, Findings, NotStarted, Run, Stamp, Started, Store};
use jiff::{SignedDuration, Timestamp};

use crate::agents::{Listener, Seeker};
use crate::crash::{self, CrashPoint};
use crate::error::TownError;
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use crate::town::Town;

use self::ages::Ages;
pub use self::hear::{LINGER_GRACE, lingers_until};
pub(crate) use self::prepare::TOWN_TROUBLE;
pub use self::prepare::{Prepared, Ready, prepare};
use self::prepare::{given_up, not_answered, refused, started};
pub use self::report::{PassReport, TurnReport};
use self::unsure::Unsure;
use self::witness::Looks;

/// How long an agent may live on after its work is over. // SPEC P4
pub const FINISH_GRACE: SignedDuration = SignedDuration::from_secs(10);
/// How often somebody else's start is looked after.
const STARTER_CHECK: SignedDuration = SignedDuration::from_secs(1);

/// The same, for a process that a test may have made impatient.
fn finish_grace() -> SignedDuration {
    FINISH_GRACE * i32::from(gt_runtime::patience::percent()) / 100
}

/// Drives runs from claim to end.
pub struct Dispatcher {
    town: Town,
    runtime: Box<dyn Runtime + Send>,
    around: Arc<dyn Surroundings>,
    new_run: Box<dyn FnMut() -> String + Send>,
    actor: String,
    /// This process, as it stands in the runs that it claims.
    me: String,
    /// Claimed by us, and being started right now.
    in_flight: BTreeSet<String>,
    /// Told to stop by us already.
    stopped: BTreeSet<String>,
    /// Whether starts are recorded with whatever is recorded next, instead of at once.
    records_later: bool,
    /// Starts that are to be recorded with whatever is recorded next.
    pending: Vec<Started>,
    /// Endings that were told.
    heard: BTreeMap<String, Sighting>,
    /// Whether something may have ended that was not told.
    is_look_due: bool,
    /// Recorded as ended, to be acknowledged.
    unacknowledged: Vec<String>,
    /// Whether the next look goes through endings though no run lives.
    looks_closely: bool,
    /// Whether a start was given up whose starter may still make it: from then on such runs are looked for.
    has_given_up: bool,
    /// Whether a start has ended a trouble since somebody asked.
    has_freed: bool,
    was_guarded: bool,
    /// What agents tell, and whether it is listened to in every pass.
    listener: Listener,
    is_listening: bool,
    /// Starts whose answer was lost.
    unsure: Unsure,
    /// When silent runs are looked at.
    looks: Looks,
    /// How long runs have lasted.
    ages: Ages,
}

impl Dispatcher {
    pub fn new(town: Town, runtime: Box<dyn Runtime + Send>, actor: &str, around: Arc<dyn Surroundings>) -> Dispatcher {
        let ids = Arc::clone(&around);
        Dispatcher {
            town,
            runtime,
            new_run: Box::new(move || ids.new_run()),
            actor: actor.to_owned(),
            me: around.own_process(),
            around,
            in_flight: BTreeSet::new(),
            stopped: BTreeSet::new(),
            records_later: false,
            pending: Vec::new(),
            heard: BTreeMap::new(),
            is_look_due: true,
            unacknowledged: Vec::new(),
            looks_closely: false,
            has_given_up: false,
            has_freed: false,
            was_guarded: false,
            listener: Listener::default(),
            is_listening: false,
            unsure: Unsure::default(),
            looks: Looks::default(),
            ages: Ages::default(),
        }
    }

    /// With the next look also clears away what somebody recorded and did not live to acknowledge.
    pub fn look_closely(&mut self) {
        self.looks_closely = true;
    }

    pub fn town(&self) -> &Town {
        &self.town
    }

    pub fn runtime(&mut self) -> &mut dyn Runtime {
        &mut *self.runtime
    }

    /// From now on runs are started, and found, in another place.
    pub fn set_runtime(&mut self, runtime: Box<dyn Runtime + Send>) {
        self.runtime = runtime;
        (self.is_look_due, self.looks_closely) = (true, true);
    }

    pub fn around(&self) -> &Arc<dyn Surroundings> {
        &self.around
    }

    pub fn now(&self) -> Timestamp {
        self.around.now()
    }

    pub fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), &self.actor)
    }

    /// From now on a start is recorded together with what happens next; the owner sees to it that something does.
    pub fn record_starts_later(&mut self) {
        self.records_later = true;
    }

    /// Takes in that a run has ended; the next pass records it.
    pub fn hear(&mut self, run: String, ending: Ending) {
        self.heard.insert(run, Sighting::Ended(ending));
    }

    /// Has the next pass look at what really lives.
    pub fn look_again(&mut self) {
        self.is_look_due = true;
    }

    /// Whether there are starts that wait to be recorded.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Records what happened since the last pass, and claims what may start now: every turn, and of beads at most so many of
    /// each side, after `n_before` others of the same batch.
    pub fn claim(
        &mut self,
        store: &mut Store,
        settings: &Settings,
        limits: PerSide<Option<usize>>,
        n_before: usize,
    ) -> Result<Vec<Claimed>, TownError> {
        self.advance(store, settings, Some((limits, n_before)))
    }

    /// Records what happened since the last pass and takes up what a dead process left half-way; claims nothing new.
    pub fn settle(&mut self, store: &mut Store, settings: &Settings) -> Result<Vec<Claimed>, TownError> {
        self.advance(store, settings, None)
    }

    fn advance(
        &mut self,
        store: &mut Store,
        settings: &Settings,
        claim: Option<(PerSide<Option<usize>>, usize)>,
    ) -> Result<Vec<Claimed>, TownError> {
        let stamp = self.stamp();
        let (mut findings, mut again) = self.look(store, settings)?;
        if !findings.ended.is_empty() {
            self.look_for_unsaved(&mut findings);
            crash::point(CrashPoint::SawEnds);
        }
        findings.started.append(&mut self.pending);
        let mut policy = settings.policy(self.town.root());
        let advance = match claim {
            None => {
                let advance = record(store, &findings, &policy, &stamp)?;
                self.has_freed |= advance.is_freed;
                advance
            }
            Some((mut limits, n_before)) => {
                if gt_core::defect!("count-outside-claim") {
                    let n_live = store.live_runs()?.len();
                    let n_free = policy.caps.town.take().map(|cap| cap.saturating_sub(n_live));
                    limits.scheduler = [limits.scheduler, n_free].into_iter().flatten().min();
                }
                self.was_guarded = !policy.guards.is_empty();
                let claim = |claimant: &mut Claimant<'_>| store.advance(&findings, &policy, Some(claimant), &stamp);
                self.claim_by(settings, &policy, limits, n_before, claim)?
            }
        };
        if !findings.started.is_empty() {
            crash::point(CrashPoint::RecordedStart);
        }
        self.listener.note_recorded(&findings.told);
        self.note_ends(&findings);
        self.stop_unwanted(&advance);
        if !advance.claimed.is_empty() || !advance.turns.is_empty() {
            crash::point(CrashPoint::Claimed);
        }
        again.extend(advance.claimed.into_iter().map(Claimed::from));
        again.extend(advance.turns.into_iter().map(Claimed::from));
        self.take(&again);
        Ok(again)
    }

    /// Lets the dispatcher start runs that another verb of this process has claimed.
    pub fn take(&mut self, claimed: &[Claimed]) {
        self.in_flight.extend(claimed.iter().map(|one| one.run().to_owned()));
    }

    /// Claims, as this process does, through another verb of the store.
    pub fn claim_by<T>(
        &mut self,
        settings: &Settings,
        policy: &Policy,
        limits: PerSide<Option<usize>>,
        n_before: usize,
        claim: impl FnOnce(&mut Claimant<'_>) -> T,
    ) -> T {
        let seeker = self.seeker();
        let probe = |agent: &str, rig: &Rig| probe::missing(&*self.around, settings, agent, rig, seeker);
        let (starter, new_run) = (self.me.as_str(), &mut self.new_run);
        claim(&mut Claimant { policy, starter, new_run, limits, n_before, probe: &probe })
    }

    fn seeker(&self) -> Seeker {
        if self.is_listening { Seeker::Daemon } else { Seeker::Command }
    }

    /// Whether the machine forbade every start when something was to be claimed last.
    pub fn was_guarded(&self) -> bool {
        self.was_guarded
    }

    /// Whether a start has shown since the last question that others may start too.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.has_freed)
    }

    /// Starts prepared runs, and records how that went.
    pub fn start(
        &mut self,
        store: &mut Store,
        settings: &Settings,
        prepared: Vec<Prepared>,
    ) -> Result<PassReport, TownError> {
        let launches: Vec<Launch> =
            prepared.iter().filter_map(|(_, ready)| Some(ready.as_ref().ok()?.launch.clone())).collect();
        if !launches.is_empty() {
            crash::point(CrashPoint::Prepared);
        }
        let mut handles = self.runtime.start(&launches).into_iter();
        if !launches.is_empty() {
            crash::point(CrashPoint::Launched);
        }
        let stamp = self.stamp();
        let (mut findings, mut report, mut trouble) = (Findings::default(), PassReport::default(), None);
        for (claimed, ready) in prepared {
            self.in_flight.remove(claimed.run());
            let outcome = match ready {
                Ok(ready) => match handles.next().unwrap_or_else(not_answered) {
                    Ok(handle) => Ok(started(claimed.run(), &ready, &handle, stamp.now)),
                    Err(StartError::Unknown { .. }) if gt_core::defect!("lost-answer-taken-for-started") => {
                        Ok(started(claimed.run(), &ready, &Handle { pid: 0, birth: 0 }, stamp.now))
                    }
                    Err(error @ StartError::Unknown { .. }) => {
                        trouble = self.unsure.note(claimed.run(), error.to_string(), stamp.now).or(trouble);
                        report.note_unknown(claimed);
                        continue;
                    }
                    Err(error) => Err(refused(&claimed, &ready, &error, self.seeker())),
                },
                Err(not_started) => Err(not_started),
            };
            self.unsure.settle(claimed.run());
            match outcome {
                Ok(started) => {
                    self.ages.begin(&started.run, self.around.uptime());
                    findings.started.push(started);
                    report.note_started(claimed);
                }
                Err(failure) => {
                    report.note_failed(claimed, failure.error.clone());
                    findings.not_started.push(failure);
                }
            }
        }
        if self.records_later && findings.not_started.is_empty() {
            self.pending.append(&mut findings.started);
        }
        let policy = settings.policy(self.town.root());
        let advance = record(store, &findings, &policy, &stamp)?;
        self.has_freed |= advance.is_freed;
        self.stop_unwanted(&advance);
        if report.has_unknown() {
            self.is_look_due = true;
        }
        if !findings.started.is_empty() {
            crash::point(CrashPoint::RecordedStart);
        }
        if let Some(trouble) = trouble {
            store.hold_up(&trouble, &stamp)?;
        }
        Ok(report)
    }

    fn note_ends(&mut self, findings: &Findings) {
        if findings.ended.is_empty() {
            return;
        }
        crash::point(CrashPoint::RecordedEnds);
        let ended: Vec<String> = findings.ended.iter().map(|end| end.run.clone()).collect();
        self.stopped.retain(|run| !ended.contains(run));
        for run in &ended {
            self.unsure.settle(run);
        }
        self.unacknowledged.extend(ended);
    }

    /// Lets the runtime forget what has been recorded. Nothing waits for this, so it comes last.
    pub fn acknowledge(&mut self) {
        // What cannot be acknowledged now is seen again, and then known to have ended.
        if !self.unacknowledged.is_empty() && self.runtime.acknowledge(&self.unacknowledged).is_ok() {
            self.unacknowledged.clear();
            crash::point(CrashPoint::Acknowledged);
        }
    }

    /// Compares what is recorded with what lives.
    fn look(&mut self, store: &mut Store, settings: &Settings) -> Result<(Findings, Vec<Claimed>), TownError> {
        let runs = store.live_runs()?;
        let now = self.now();
        self.ages.note(&runs, now, self.around.uptime());
        // A start that takes too long is given up, whoever is at it.
        let is_late = |run: &Run| now >= run.claimed_at + settings.start_timeout;
        let is_settled = |run: &&Run| {
            gt_core::defect!("in-flight-starts-again") || !self.in_flight.contains(&run.id) || is_late(run)
        };
        let runs: Vec<&Run> = runs.iter().filter(is_settled).collect();
        let heard = std::mem::take(&mut self.heard);
        let is_heard = |run: &&&Run| heard.contains_key(&run.id);
        let silent: Vec<&Run> = runs.iter().filter(|run| !is_heard(run)).copied().collect();
        self.witness(&silent, store, settings)?;
        let is_due = self.is_look_due || runs.iter().any(|run| self.needs_a_look(run, settings, now));
        let mut look = Look { now, ..Look::default() };
        look.findings.told = self.listen(&runs, settings);
        if !is_due {
            // What was told is known; the others are left alone.
            for (id, sighting) in heard {
                match runs.iter().find(|run| run.id == id) {
                    Some(run) => self.look_at(run, Some(&sighting), store, settings, &mut look)?,
                    None => self.unacknowledged.push(id), // somebody else was quicker to record it
                }
            }
            return Ok((look.findings, look.again));
        }
        self.is_look_due = false;
        if runs.is_empty() && self.unacknowledged.is_empty() && !self.looks_closely && !self.has_given_up {
            return Ok((look.findings, look.again));
        }
        let known: Vec<Known> = runs.iter().map(|run| known(&self.town, run)).collect();
        // Read before the survey: whoever has begun by now and is not seen in it is gone.
        look.begun = runs.iter().filter(|run| self.has_begun(run)).map(|run| run.id.clone()).collect();
        let sightings = self.runtime.survey(&known).inspect_err(|_| self.is_look_due = true)?;
        self.looks_closely = false;
        for run in runs {
            self.look_at(run, sightings.get(&run.id), store, settings, &mut look)?;
        }
        self.forget_strangers(store, &sightings, &known)?;
        Ok((look.findings, look.again))
    }

    /// Whether a run has to be stopped, given up or taken over, so that one has to know how it really is.
    fn needs_a_look(&self, run: &Run, settings: &Settings, now: Timestamp) -> bool {
        let is_after = |at: Option<Timestamp>, span: SignedDuration| at.is_some_and(|at| now >= at + span);
        let is_to_stop = run.stop.is_some()
            || is_after(run.finished_at(now), finish_grace())
            || is_after(lingers_until(run), SignedDuration::ZERO)
            || self.is_too_old(run, settings);
        let is_pending = self.pending.iter().any(|start| start.run == run.id);
        let is_left = run.state == RunState::Starting
            && !is_pending
            && (run.starter == self.me || !self.around.is_alive(&run.starter));
        (is_to_stop && !self.stopped.contains(&run.id)) || is_left
    }

    /// Whether a run has lasted for as long as it may. Where a daemon watches, nobody else judges by the clock.
    fn is_too_old(&self, run: &Run, settings: &Settings) -> bool {
        let age = self.ages.of(&run.id, self.around.uptime());
        let is_so = settings.longest(run).zip(age).is_some_and(|(longest, age)| age >= longest);
        is_so && (self.is_listening || !self.around.has_daemon(&self.town))
    }

    /// Whether a run that is not recorded as started has left a trace of its own: its log, or its word.
    fn has_begun(&self, run: &Run) -> bool {
        run.state == RunState::Starting
            && (run.finished_at(self.now()).is_some() || self.town.log_path(&run.id).exists())
    }

    fn look_at(
        &mut self,
        run: &Run,
        sighting: Option<&Sighting>,
        store: &mut Store,
        settings: &Settings,
        look: &mut Look,
    ) -> Result<(), TownError> {
        match sighting {
            Some(Sighting::Ended(ending)) => look.findings.ended.push(Ended {
                code: ending.code,
                signal: ending.signal,
                leftover: ending.leftover,
                is_lost: ending.is_lost,
                ..self.ended_unseen(run, store, settings)?
            }),
            // It must not be given up, however long that takes: it may do its work yet.
            Some(Sighting::Starting) if gt_core::defect!("executing-taken-for-gone") => {
                self.look_at_missing(run, store, settings, look)?;
            }
            Some(Sighting::Starting) => {}
            Some(Sighting::Running(handle)) => {
                let is_pending = self.pending.iter().any(|start| start.run == run.id);
                if run.state == RunState::Starting && !is_pending {
                    look.findings.started.push(self.adopted(run, handle, store, settings)?);
                }
                self.watch_over(run, store, settings)?;
            }
            None => self.look_at_missing(run, store, settings, look)?,
        }
        Ok(())
    }

    /// A run that nobody started: its starter is still at it, or somebody has to take over.
    fn look_at_missing(
        &mut self,
        run: &Run,
        store: &mut Store,
        settings: &Settings,
        look: &mut Look,
    ) -> Result<(), TownError> {
        // By the clock of when the look began: it may have been set back since, and what is in flight is looked at
        // only because it was late then.
        let is_late = look.now >= run.claimed_at + settings.start_timeout;
        let is_ours = run.starter == self.me;
        if !is_ours && gt_core::defect!("orphaned-start-left-alone") {
            return Ok(());
        }
        // Told to stop or not: what its starter is just starting can only be stopped once it is there.
        if !is_late && !is_ours && self.around.is_alive(&run.starter) {
            return Ok(());
        }
        if look.begun.contains(&run.id) {
            // It ran, and ended while no keeper was there to see it: a second start would do its work twice.
            look.findings.ended.push(self.ended_unseen(run, store, settings)?);
            return Ok(());
        }
        if is_late || run.stop.is_some() {
            self.has_given_up = true;
            let worktree = self.workplace(run, store, settings)?.map(|(path, _)| path);
            let unsure = self.unsure.settle(&run.id);
            look.findings.not_started.push(NotStarted { worktree, ..given_up(run, unsure) });
            return Ok(());
        }
        if self.unsure.is_resting(&run.id, look.now) {
            return Ok(());
        }
        if (is_ours || store.take_over(run, &self.me, &self.stamp())?)
            && let Some(claimed) = store.claimed(&run.id)?
        {
            look.again.push(claimed);
        }
        Ok(())
    }

    /// Endings that belong to no live run have been recorded before. What runs though it was given up is stopped: its
    /// starter did not live to see that it came too late. What lives by now is for the next look.
    fn forget_strangers(
        &mut self,
        store: &mut Store,
        sightings: &BTreeMap<String, Sighting>,
        known: &[Known],
    ) -> Result<(), TownError> {
        let known: BTreeSet<&str> = known.iter().map(|known| known.run.as_str()).collect();
        let mut strangers = Vec::new();
        for (run, sighting) in sightings.iter().filter(|(run, _)| !known.contains(run.as_str())) {
            let recorded = store.run(run)?;
            if self.in_flight.contains(run) || recorded.as_ref().is_some_and(Run::is_live) {
                continue;
            }
            match sighting {
                Sighting::Ended(_) => strangers.push(run.clone()),
                Sighting::Running(handle) if recorded.is_some() && !gt_core::defect!("unwanted-start-left-running") => {
                    let known = Known { run: run.clone(), handle: Some(handle.clone()), log: None };
                    self.runtime.stop(&known, Stop::Now)?;
                }
                // Nobody knows how it came here, so nobody ends it.
                Sighting::Running(_) | Sighting::Starting => {}
            }
        }
        if !strangers.is_empty() {
            self.runtime.acknowledge(&strangers)?;
        }
        self.unacknowledged.clear();
        Ok(())
    }

    /// When a pass has something to do for the runs that live, though nothing happens.
    pub fn next_deadline(&self, store: &mut Store, settings: &Settings) -> Result<Option<Timestamp>, TownError> {
        let (now, uptime) = (self.now(), self.around.uptime());
        let mut deadlines = Vec::new();
        for run in store.live_runs()?.iter() {
            let is_stopped = self.stopped.contains(&run.id);
            let over_at = run.finished_at(now).map(|at| at + finish_grace()).or_else(|| lingers_until(run));
            deadlines.extend(over_at.filter(|_| !is_stopped));
            deadlines.extend(self.listener.next_look(run));
            deadlines.extend(self.next_witness(run, settings));
            if run.state == RunState::Starting {
                let late_at = run.claimed_at + settings.start_timeout;
                deadlines.push(if late_at > now { late_at } else { now + STARTER_CHECK });
                // Whoever else is at it may die without a word, and of a start that was not answered nobody hears.
                let is_at_it = self.in_flight.contains(&run.id) || self.pending.iter().any(|start| start.run == run.id);
                deadlines.extend((run.starter != self.me || !is_at_it).then(|| now + STARTER_CHECK));
            }
            let age = self.ages.of(&run.id, uptime).or_else(|| Some(now.duration_since(run.started_at?)));
            let left = settings.longest(run).zip(age).map(|(longest, age)| longest.saturating_sub(age));
            deadlines.extend(left.filter(|_| !is_stopped).and_then(|left| now.checked_add(left).ok()));
        }
        Ok(deadlines.into_iter().min())
    }
}

#[derive(Default)]
struct Look {
    /// When it began.
    now: Timestamp,
    findings: Findings,
    /// To be started again, because whoever claimed them is gone.
    again: Vec<Claimed>,
    /// Not recorded as started, but begun.
    begun: BTreeSet<String>,
}

fn record(store: &mut Store, findings: &Findings, policy: &Policy, stamp: &Stamp) -> Result<Advance, TownError> {
    if findings.is_empty() {
        return Ok(Advance::default());
    }
    Ok(store.advance(findings, policy, None, stamp)?)
}

/// What the runtime needs to know to find a run again.
pub fn known(town: &Town, run: &Run) -> Known {
    Known { run: run.id.clone(), handle: handle(run), log: Some(town.log_path(&run.id)) }
}

/// The process of a run, once its start was recorded.
pub fn handle(run: &Run) -> Option<Handle> {
    run.pid.zip(run.birth).map(|(pid, birth)| Handle { pid, birth })
}

#[cfg(test)]
mod tests;
