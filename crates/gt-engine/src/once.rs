//! What a command does itself: one pass, a direct sling, seeing a run end. // SPEC P2, D6, D8
//!
//! The same passes as the daemon's, until nothing more may start. Waits only where a setting or a stop demands it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use gt_core::plan::Side;
use gt_store::{Claimed, Sling, Slung, Stamp, Store};
use jiff::SignedDuration;

use crate::crash::{self, CrashPoint};
use crate::dispatch::{self, Dispatcher, PassReport, Prepared};
use crate::error::TownError;
use crate::formulas::Library;
use crate::lock::Held;
use crate::pace::{self, Batch, Pace};
use crate::places;
pub use crate::settings::Limits;
use crate::settings::{Isolation, Settings};
pub use crate::surroundings::shares;
use crate::surroundings::{self, Machine, Surroundings};
use crate::town::Town;

/// How long a command waits for a run that it has told to stop.
const STOP_WAIT: Duration = Duration::from_secs(15);
/// A daemon may be the first to hear of an end: then it is recorded, and never news here.
const RECORDED_EVERY: Duration = Duration::from_millis(100);

/// A dispatcher for one command.
pub fn dispatcher(town: &Town, store: &mut Store, actor: &str) -> Dispatcher {
    let around = Machine::here();
    Dispatcher::new(town.clone(), places::runtime(town, store, &*around), actor, around)
}

/// The right to pass, and the settings as they are now that it is ours: passes exclude each other, and what was read
/// before the wait may be old.
pub struct Turn {
    around: Arc<dyn Surroundings>,
    town: Town,
    limits: Limits,
    held: Held,
    pub settings: Settings,
}

impl Turn {
    /// Waits for it.
    pub fn take(
        around: &Arc<dyn Surroundings>,
        town: &Town,
        store: &mut Store,
        limits: Limits,
    ) -> Result<Turn, TownError> {
        let held = around.take_turn(town)?;
        let mut settings = Settings::load(town, store, &**around)?;
        settings.limit_once(limits);
        Ok(Turn { around: Arc::clone(around), town: town.clone(), limits, held, settings })
    }

    /// Whether somebody else had it first.
    pub fn waited(&self) -> bool {
        self.held.waited
    }

    /// What was started counts against the batch that this command has asked for.
    fn count_started(&mut self, n: usize) {
        self.limits.batch = self.limits.batch.map(|batch| batch.saturating_sub(n));
        self.settings.limit_once(self.limits);
    }

    fn is_batch_over(&self) -> bool {
        self.limits.batch == Some(0)
    }

    /// Lets others pass for a while.
    fn step_aside(self, store: &mut Store, span: SignedDuration) -> Result<Turn, TownError> {
        let Turn { around, town, limits, held, .. } = self;
        drop(held);
        surroundings::pause(&*around, span.unsigned_abs());
        Turn::take(&around, &town, store, limits)
    }
}

/// One pass: all that may start after so many have been, one after the other where the settings space the starts.
pub fn run(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    mut turn: Turn,
    n_before: usize,
) -> Result<PassReport, TownError> {
    let mut report = PassReport::default();
    let mut batch = Batch::after(n_before);
    loop {
        let policy = turn.settings.policy(turn.town.root());
        if policy.is_deferred && !turn.limits.starts_queued {
            return Ok(report); // a cap was set meanwhile: what is left is the daemon's, or whoever's asks for a run
        }
        let pace = Pace::of(&turn.settings, &policy, store, dispatcher.now())?;
        let before = batch;
        let limits = before.within(&policy, pace.limits);
        let claimed = dispatcher.claim(store, &turn.settings, limits, before.n_all())?;
        batch.count(&policy, &claimed);
        turn.count_started(claimed.iter().filter_map(Claimed::work).count());
        report.extend(start(dispatcher, store, &turn.settings, claimed)?);
        dispatcher.acknowledge();
        // Spaced starts are claimed one at a time, so that pause and clear still bite; together they are one batch.
        let left = batch.left(&policy);
        let goes_on = |side: &Side| {
            let is_early = pace.waits.of(*side).is_some();
            let has_claimed = batch.n_of(*side) > before.n_of(*side);
            (is_early || has_claimed) && *left.of(*side) != Some(0) && !turn.is_batch_over()
        };
        let waits = pace::until_next(&turn.settings, &policy, store, dispatcher.now())?;
        match Side::BOTH.into_iter().filter(goes_on).filter_map(|side| *waits.of(side)).min() {
            Some(span) => turn = turn.step_aside(store, span)?,
            // The one that was tried for the others has started.
            None if dispatcher.take_freed() => {}
            None => return Ok(report),
        }
    }
}

/// Starts what has been claimed.
pub fn start(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    settings: &Settings,
    claimed: Vec<Claimed>,
) -> Result<PassReport, TownError> {
    if claimed.is_empty() {
        return Ok(PassReport::default());
    }
    let prepared = prepare_all(dispatcher, settings, claimed);
    dispatcher.start(store, settings, prepared)
}

/// Whether a worktree has to be made for it, which takes its time.
pub(crate) fn needs_worktree(settings: &Settings, claimed: &Claimed) -> bool {
    claimed.work().is_some_and(|work| settings.isolation(&work.rig.name) == Isolation::Worktree)
}

/// Makes everything ready, several worktrees at a time.
fn prepare_all(dispatcher: &Dispatcher, settings: &Settings, claimed: Vec<Claimed>) -> Vec<Prepared> {
    let (town, around) = (dispatcher.town(), &**dispatcher.around());
    let n_slow = claimed.iter().filter(|one| needs_worktree(settings, one)).count();
    let formulas = &Library::of(town);
    let one = |one| dispatch::prepare(around, town, settings, formulas, one);
    if n_slow < 2 {
        return claimed.into_iter().map(one).collect();
    }
    surroundings::for_each(around, claimed, one)
}

/// Records what has ended and takes up what was left half-way.
pub fn settle(dispatcher: &mut Dispatcher, store: &mut Store, settings: &Settings) -> Result<(), TownError> {
    dispatcher.look_again();
    let again = dispatcher.settle(store, settings)?;
    start(dispatcher, store, settings, again)?;
    dispatcher.acknowledge();
    Ok(())
}

/// Passes until this run has ended, because it was told to stop; gives up after a while.
pub fn await_end(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    settings: &Settings,
    run: &str,
) -> Result<bool, TownError> {
    let (sender, news) = mpsc::channel();
    dispatcher.runtime().watch(Box::new(move |_| sender.send(()).unwrap_or_default()))?;
    let around = Arc::clone(dispatcher.around());
    let deadline = around.uptime() + STOP_WAIT;
    let mut is_news = true;
    loop {
        if is_news {
            settle(dispatcher, store, settings)?;
        }
        if !store.run(run)?.is_some_and(|run| run.is_live()) {
            return Ok(true);
        }
        let left = deadline.saturating_sub(around.uptime());
        if left.is_zero() {
            return Ok(false);
        }
        is_news = match surroundings::receive(&*around, &news, Some(left.min(RECORDED_EVERY))) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        };
    }
}

/// A direct sling: stores, claims and starts, in this very process. Where a cap was set meanwhile it only stores.
pub fn sling(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    wanted: &Sling,
) -> Result<(Vec<Slung>, PassReport), TownError> {
    let (around, town) = (Arc::clone(dispatcher.around()), dispatcher.town().clone());
    let turn = Turn::take(&around, &town, store, Limits::default())?;
    let settings = &turn.settings;
    if settings.policy(town.root()).is_deferred {
        return Ok((schedule(store, wanted, &dispatcher.stamp())?, PassReport::default()));
    }
    settle(dispatcher, store, settings)?;
    // That may have taken a while, and the machine is asked as it is now.
    let mut policy = settings.policy(town.root());
    if gt_core::defect!("direct-sling-skips-guards") {
        policy.guards.clear();
    }
    let pace = Pace::of(settings, &policy, store, dispatcher.now())?;
    let stamp = dispatcher.stamp();
    let (slung, claimed) = dispatcher
        .claim_by(settings, &policy, pace.limits, 0, |claimant| store.sling(wanted, Some(claimant), &stamp))?;
    crash::point(CrashPoint::Scheduled);
    let claimed: Vec<Claimed> = claimed.into_iter().map(Claimed::from).collect();
    dispatcher.take(&claimed);
    let n_claimed = claimed.len();
    let mut report = start(dispatcher, store, settings, claimed)?;
    let has_daemon = around.has_daemon(&town);
    if has_daemon && settings.is_spaced(Side::Scheduler) {
        return Ok((slung, report)); // whatever has to keep its distance is the daemon's to start
    }
    if !has_daemon {
        await_fenced(dispatcher, store, settings, &slung)?;
    }
    report.extend(run(dispatcher, store, turn, n_claimed)?);
    Ok((slung, report))
}

/// Stores, and by that wakes the daemon; never starts anything. // SPEC P2
pub fn schedule(store: &mut Store, wanted: &Sling, stamp: &Stamp) -> Result<Vec<Slung>, TownError> {
    let (slung, _) = store.sling(wanted, None, stamp)?;
    crash::point(CrashPoint::Scheduled);
    Ok(slung)
}

/// Where a bead was taken away by force, its old run is seen to end.
fn await_fenced(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    settings: &Settings,
    slung: &[Slung],
) -> Result<(), TownError> {
    for run in store.live_runs()?.iter() {
        if run.stop.is_some() && slung.iter().any(|slung| slung.bead == run.bead) {
            await_end(dispatcher, store, settings, &run.id)?;
        }
    }
    Ok(())
}

/// Records what has ended, and in direct mode starts what that made possible.
pub fn carry_on(dispatcher: &mut Dispatcher, store: &mut Store) -> Result<PassReport, TownError> {
    let turn = Turn::take(dispatcher.around(), dispatcher.town(), store, Limits::default())?;
    settle(dispatcher, store, &turn.settings)?;
    if turn.settings.policy(turn.town.root()).is_deferred {
        return Ok(PassReport::default());
    }
    run(dispatcher, store, turn, 0)
}

/// Sees a run that was told to stop to its end; `false`: it has not ended yet.
pub fn see_stopped(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    settings: &Settings,
    run: &str,
) -> Result<bool, TownError> {
    let (around, town) = (dispatcher.around(), dispatcher.town());
    let _turn = if around.has_daemon(town) { None } else { Some(Turn::take(around, town, store, Limits::default())?) };
    await_end(dispatcher, store, settings, run)
}
