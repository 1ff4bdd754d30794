//! A runtime in memory for tests of what is above it: nothing runs, and what happens is what the test says.
//!
//! It keeps the same promises as the real one. Clones share one world, so that a test keeps a handle on the runtime it
//! gave away. Time is a counter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::{Ending, Handle, Known, Launch, News, Runtime, RuntimeError, Sighting, StartError, Stop};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// What happens to a start that the test has spoken about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// Nothing is started.
    Fails(StartError),
    /// It runs, but the answer is lost.
    StartsUnheard,
    /// Nothing is started, and the answer is lost.
    FailsUnheard,
}

/// Runs in memory; a clone is the same world.
#[derive(Clone, Default)]
pub struct SimulatedRuntime {
    world: Arc<Mutex<World>>,
}

#[derive(Default)]
struct World {
    running: BTreeMap<String, (Launch, Handle)>,
    ended: BTreeMap<String, (Handle, Ending)>,
    started: Vec<String>,
    outcomes: VecDeque<StartOutcome>,
    is_forgetting_acknowledgements: bool,
    is_ignoring_stops: bool,
    /// Asked to stop, and not yet ended.
    stopping: BTreeSet<String>,
    watchers: Vec<News>,
    n_births: u32,
    n_ticks: i64,
    is_losing: bool,
}

impl SimulatedRuntime {
    /// The next starts that would be made go like this, in order.
    pub fn expect_start(&self, outcomes: impl IntoIterator<Item = StartOutcome>) {
        self.world().outcomes.extend(outcomes);
    }

    /// Ends a run, as its process would.
    pub fn end(&self, run: &str, code: Option<i32>, signal: Option<i32>) {
        self.world().end(run, code, signal);
    }

    /// Ends everything without a trace of how, as after a crash of the keeper and all agents.
    pub fn end_all_unseen(&self) {
        let runs = self.running();
        let mut world = self.world();
        for run in &runs {
            world.end(run, None, None);
        }
    }

    /// Ends everything because the place where it runs goes; returns what.
    pub fn lose_all(&self) -> Vec<String> {
        let runs = self.running();
        let mut world = self.world();
        world.is_losing = true;
        for run in &runs {
            world.end(run, None, None);
        }
        world.is_losing = false;
        runs
    }

    /// Forgets every end, as when what the keeper has written down is lost.
    pub fn forget_ends(&self) {
        self.world().ended.clear();
    }

    /// From now on acknowledgements are (or are not) lost on the way.
    pub fn lose_acknowledgements(&self, is_losing: bool) {
        self.world().is_forgetting_acknowledgements = is_losing;
    }

    /// From now on runs do (or do not) go on when stopped.
    pub fn ignore_stops(&self, is_ignoring: bool) {
        self.world().is_ignoring_stops = is_ignoring;
    }

    /// The runs that run, by name.
    pub fn running(&self) -> Vec<String> {
        self.world().running.keys().cloned().collect()
    }

    pub fn n_running(&self) -> usize {
        self.world().running.len()
    }

    /// Every start that really happened, in order; a run in it twice was started twice.
    pub fn started(&self) -> Vec<String> {
        self.world().started.clone()
    }

    /// The runs that were asked to stop and go on.
    pub fn stopping(&self) -> Vec<String> {
        let world = self.world();
        world.stopping.iter().filter(|run| world.running.contains_key(*run)).cloned().collect()
    }

    /// Whether a run was started, and is not forgotten.
    pub fn knows(&self, run: &str) -> bool {
        let world = self.world();
        world.running.contains_key(run) || world.ended.contains_key(run)
    }

    /// What a running run was started with.
    pub fn launch(&self, run: &str) -> Option<Launch> {
        self.world().running.get(run).map(|(launch, _)| launch.clone())
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for SimulatedRuntime {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        let mut world = self.world();
        launches.iter().map(|launch| world.start(launch)).collect()
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        Ok(self.world().survey(known))
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        let mut world = self.world();
        match how {
            Stop::Interrupt if world.is_ignoring_stops => {}
            Stop::Interrupt => world.end(&known.run, None, Some(SIGINT)),
            Stop::Gently if world.is_ignoring_stops => drop(world.stopping.insert(known.run.clone())),
            Stop::Gently => world.end(&known.run, None, Some(SIGTERM)),
            Stop::Now => world.end(&known.run, None, Some(SIGKILL)),
        }
        Ok(())
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        let mut world = self.world();
        if !world.is_forgetting_acknowledgements {
            world.ended.retain(|run, _| !runs.contains(run));
        }
        Ok(())
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        self.world().watchers.push(news);
        Ok(())
    }
}

impl World {
    fn start(&mut self, launch: &Launch) -> Result<Handle, StartError> {
        if let Some((_, handle)) = self.running.get(&launch.run) {
            return Ok(handle.clone());
        }
        if let Some((handle, _)) = self.ended.get(&launch.run) {
            return Ok(handle.clone());
        }
        let unheard = || StartError::Unknown { cause: "the answer was lost".to_owned() };
        match self.outcomes.pop_front() {
            None => Ok(self.bear(launch)),
            Some(StartOutcome::Fails(error)) => Err(error),
            Some(StartOutcome::FailsUnheard) => Err(unheard()),
            Some(StartOutcome::StartsUnheard) => {
                self.bear(launch);
                Err(unheard())
            }
        }
    }

    fn bear(&mut self, launch: &Launch) -> Handle {
        self.n_births += 1;
        let handle = Handle { pid: self.n_births, birth: u64::from(self.n_births) };
        self.started.push(launch.run.clone());
        self.running.insert(launch.run.clone(), (launch.clone(), handle.clone()));
        handle
    }

    fn end(&mut self, run: &str, code: Option<i32>, signal: Option<i32>) {
        if let Some((_, handle)) = self.running.remove(run) {
            let ending = self.ending(code, signal);
            self.ended.insert(run.to_owned(), (handle, ending.clone()));
            for watcher in &self.watchers {
                // The world is locked meanwhile: like the real news, these may wake somebody, and no more.
                watcher(Some((run.to_owned(), ending.clone())));
            }
        }
    }

    fn ending(&mut self, code: Option<i32>, signal: Option<i32>) -> Ending {
        self.n_ticks += 1;
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(self.n_ticks);
        Ending { code, signal, at, leftover: 0, is_lost: self.is_losing }
    }

    fn survey(&mut self, known: &[Known]) -> BTreeMap<String, Sighting> {
        for Known { run, handle, .. } in known {
            let is_seen = self.running.contains_key(run) || self.ended.contains_key(run);
            if let (false, Some(handle)) = (is_seen, handle) {
                // It was started, and is gone: it ended while nobody looked.
                let ending = self.ending(None, None);
                self.ended.insert(run.clone(), (handle.clone(), ending));
            }
        }
        let ended = self.ended.iter().map(|(run, (_, ending))| (run.clone(), Sighting::Ended(ending.clone())));
        let running = self.running.iter().map(|(run, (_, handle))| (run.clone(), Sighting::Running(handle.clone())));
        ended.chain(running).collect()
    }
}
