//! One pass by a command: `gt sling` in direct mode, `gt scheduler run`. // SPEC P2, D6, D8
//!
//! The same passes as the daemon's, until nothing more may start. Waits only where a setting or a stop demands it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gt_runtime::process::ProcessRuntime;
use gt_store::{Assignment, Store};
use jiff::SignedDuration;

use crate::dispatch::{self, Dispatcher, PassReport, Prepared, Seams};
use crate::error::TownError;
use crate::lock::{Held, Lock};
use crate::settings::{Isolation, Settings};
use crate::town::Town;
use crate::wait;

/// Worktrees that are made at once.
const PREPARE_THREADS: usize = 4;
/// How long a command waits for a run that it has told to stop.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// The runtime of a town.
pub fn runtime(town: &Town) -> ProcessRuntime {
    let keeper = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("gt"));
    let keep = [keeper.clone().into(), "keeper".into(), town.keeper_dir().into(), "--".into()];
    // Without a daemon this is who notices that a worker has ended.
    let tell = [keeper.into(), "--town".into(), town.root().into()];
    let look = ["scheduler", "run", "--after-exit"].map(OsString::from);
    ProcessRuntime::new(town.keeper_dir(), keep.into_iter().chain(tell).chain(look).collect())
}

/// A dispatcher for one command.
pub fn dispatcher(town: &Town, actor: &str) -> Dispatcher {
    Dispatcher::new(town.clone(), Box::new(runtime(town)), actor, Seams::real())
}

/// The right to pass, and the settings as they are now that it is ours: passes exclude each other, and what was read
/// before the wait may be old.
#[derive(Debug)]
pub struct Turn {
    town: Town,
    limits: Limits,
    held: Held,
    pub settings: Settings,
}

/// Other limits than the settings', for one command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub batch: Option<usize>,
    pub max_polecats: Option<usize>,
}

impl Turn {
    /// Waits for it.
    pub fn take(town: &Town, limits: Limits) -> Result<Turn, TownError> {
        let held = Lock::Pass.take(town)?;
        let mut settings = Settings::load(town)?;
        settings.limit_once(limits.batch, limits.max_polecats);
        Ok(Turn { town: town.clone(), limits, held, settings })
    }

    /// Whether somebody else had it first.
    pub fn waited(&self) -> bool {
        self.held.waited
    }

    /// Lets others pass for a while.
    fn step_aside(self, span: SignedDuration) -> Result<Turn, TownError> {
        let Turn { town, limits, held, .. } = self;
        drop(held);
        wait::pause(span.unsigned_abs());
        Turn::take(&town, limits)
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
    let mut n_started = n_before;
    loop {
        let is_spaced = !turn.settings.spawn_delay.is_zero();
        let left = turn.settings.policy(turn.town.root()).batch.map(|batch| batch.saturating_sub(n_started));
        // Spaced starts are claimed one at a time, so that pause and clear still bite; together they are one batch.
        if is_spaced && n_started > 0 && (left == Some(0) || !store.has_ready_contexts()?) {
            return Ok(report);
        }
        if let Some(span) = until_next_start(dispatcher, store, &turn.settings)? {
            turn = turn.step_aside(span)?;
            continue;
        }
        let limit = if is_spaced { left.map(|left| left.min(1)).or(Some(1)) } else { left };
        let claimed = dispatcher.claim(store, &turn.settings, limit)?;
        let n_claimed = claimed.len();
        report.extend(start(dispatcher, store, &turn.settings, claimed)?);
        dispatcher.acknowledge();
        n_started += n_claimed;
        if !is_spaced || n_claimed == 0 {
            return Ok(report);
        }
    }
}

/// How long it is until the settings allow another start, whoever made the last one; `None`: it may be now.
pub fn until_next_start(
    dispatcher: &Dispatcher,
    store: &mut Store,
    settings: &Settings,
) -> Result<Option<SignedDuration>, TownError> {
    if settings.spawn_delay.is_zero() {
        return Ok(None);
    }
    let now = dispatcher.now();
    let last = store.scheduler_state(now)?.last_dispatch_at.filter(|at| *at <= now);
    let left = last.map(|at| (at + settings.spawn_delay).duration_since(now));
    Ok(left.filter(SignedDuration::is_positive))
}

/// Starts what has been claimed.
pub fn start(
    dispatcher: &mut Dispatcher,
    store: &mut Store,
    settings: &Settings,
    claimed: Vec<Assignment>,
) -> Result<PassReport, TownError> {
    if claimed.is_empty() {
        return Ok(PassReport::default());
    }
    let prepared = prepare_all(dispatcher, settings, claimed);
    dispatcher.start(store, settings, prepared)
}

/// Makes everything ready, several worktrees at a time.
fn prepare_all(dispatcher: &Dispatcher, settings: &Settings, claimed: Vec<Assignment>) -> Vec<Prepared> {
    let (town, now) = (dispatcher.town(), dispatcher.now());
    let n_slow = claimed.iter().filter(|a| settings.isolation(&a.rig.name) == Isolation::Worktree).count();
    if n_slow < 2 {
        return claimed.into_iter().map(|one| dispatch::prepare(town, settings, one, now)).collect();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares(claimed)
            .into_iter()
            .map(|share| {
                let one = |one| dispatch::prepare(town, settings, one, now);
                scope.spawn(move || share.into_iter().map(one).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("preparing does not panic")).collect()
    })
}

/// As many parts as there are threads for.
pub fn shares(claimed: Vec<Assignment>) -> Vec<Vec<Assignment>> {
    let share = claimed.len().div_ceil(PREPARE_THREADS).max(1);
    let mut rest = claimed.into_iter();
    let next = || {
        let share: Vec<Assignment> = rest.by_ref().take(share).collect();
        (!share.is_empty()).then_some(share)
    };
    std::iter::from_fn(next).collect()
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
    let deadline = Instant::now() + STOP_WAIT;
    loop {
        settle(dispatcher, store, settings)?;
        if !store.run(run)?.is_some_and(|run| run.is_live()) {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || news.recv_timeout(left).is_err() {
            return Ok(false);
        }
    }
}
