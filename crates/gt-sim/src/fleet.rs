//! The agents' runtime as a process of the town sees it: the simulated one, with everything that can go wrong between.

use std::collections::BTreeMap;

use gt_engine::daemon::Cause;
use gt_runtime::simulated::{SimulatedRuntime, StartOutcome};
use gt_runtime::{Handle, Known, Launch, News, Runtime, RuntimeError, Sighting, StartError, Stop};

use crate::around::Around;
use crate::world::Shared;

pub struct Fleet {
    pub around: Around,
    pub runtime: SimulatedRuntime,
}

impl Fleet {
    fn start_one(&mut self, launch: &Launch) -> Result<Handle, StartError> {
        let was_there = self.runtime.knows(&launch.run);
        if !was_there && let Some(outcome) = bad_start(&self.around.world) {
            self.runtime.expect_start([outcome]);
        }
        self.around.world.lock().starts.push((self.around.pid, launch.run.clone()));
        let answer = self.runtime.start(std::slice::from_ref(launch)).pop().expect("one launch has one answer");
        if !was_there && self.runtime.knows(&launch.run) {
            std::fs::write(&launch.log, "").expect("the town's directory can be written");
            let mut world = self.around.world.lock();
            let unseen = world.faults.unseen;
            if !world.chance(unseen) {
                world.give_sign(&launch.run, false);
            }
        }
        self.around.world.tell(|| format!("process {} starts {}: {answer:?}", self.around.pid, launch.run));
        answer
    }

    fn is_executing(&self) -> bool {
        let mut world = self.around.world.lock();
        let executing = world.faults.executing;
        world.chance(executing)
    }

    fn is_deaf(&self) -> Result<(), RuntimeError> {
        let mut world = self.around.world.lock();
        let deaf_keeper = world.faults.deaf_keeper;
        if world.chance(deaf_keeper) {
            return Err(RuntimeError::NoKeeper { cause: "it has just died".to_owned() });
        }
        Ok(())
    }
}

fn bad_start(world: &Shared) -> Option<StartOutcome> {
    let mut world = world.lock();
    let bad_start = world.faults.bad_start;
    if !world.chance(bad_start) {
        return None;
    }
    let cause = || "so it was drawn".to_owned();
    Some(match world.rng.u32(0..5) {
        0 => StartOutcome::Fails(StartError::NoProgram { program: "agent".to_owned(), cause: cause() }),
        1 => StartOutcome::Fails(StartError::NoRoom { cause: cause() }),
        2 => StartOutcome::Fails(StartError::Failed { cause: cause() }),
        3 => StartOutcome::StartsUnheard,
        _ => StartOutcome::FailsUnheard,
    })
}

impl Runtime for Fleet {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        self.around.boundary();
        let answers = launches.iter().map(|launch| self.start_one(launch)).collect();
        self.around.boundary();
        answers
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        self.around.boundary();
        self.is_deaf()?;
        self.around.world.tell(|| format!("process {} surveys {} runs", self.around.pid, known.len()));
        let mut sightings = self.runtime.survey(known)?;
        for run in known.iter().filter(|known| known.handle.is_none()) {
            if let Some(Sighting::Running(_)) = sightings.get(&run.run)
                && self.is_executing()
            {
                sightings.insert(run.run.clone(), Sighting::Starting);
            }
        }
        self.around.boundary();
        Ok(sightings)
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        self.around.boundary();
        self.is_deaf()?;
        self.around.world.tell(|| format!("process {} stops {} ({how:?})", self.around.pid, known.run));
        {
            let mut world = self.around.world.lock();
            if how == Stop::Interrupt {
                world.interrupts.push(known.run.clone());
                world.pokes.push(known.run.clone());
            } else {
                world.stops.push(known.run.clone());
            }
        }
        self.runtime.stop(known, how)?;
        self.around.boundary();
        Ok(())
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        self.around.boundary();
        self.is_deaf()?;
        let is_lost = {
            let mut world = self.around.world.lock();
            let lost_acknowledgement = world.faults.lost_acknowledgement;
            world.chance(lost_acknowledgement)
        };
        self.around.world.lock().acknowledged.extend_from_slice(runs);
        if !is_lost {
            self.runtime.acknowledge(runs)?;
        }
        self.around.boundary();
        Ok(())
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        let (world, pid) = (self.around.world.clone(), self.around.pid);
        self.runtime.watch(Box::new(move |end| {
            let mut guard = world.lock();
            let lost_news = guard.faults.lost_news;
            if guard.chance(lost_news) {
                guard.owed_news.insert(pid);
                return;
            }
            if let Some(process) = guard.processes.get_mut(&pid) {
                process.has_mail = true;
                drop(guard);
                news(end);
            }
        }))
    }
}

/// Whoever has missed news is told to look for itself, as a watcher that has lost its keeper for a moment is.
pub fn pay_owed_news(world: &Shared) {
    let mut world = world.lock();
    for pid in std::mem::take(&mut world.owed_news) {
        world.post(pid, Cause::Ended(None));
    }
}
