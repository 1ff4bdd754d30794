//! Two who look at the same town at the same time, as a daemon and a command that waits for an agent do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::plan::TroubleOf;
use gt_core::rig::{Rig, RigState};
use gt_runtime::simulated::{SimulatedRuntime, StartOutcome};
use gt_runtime::{Handle, Known, Launch, News, Runtime, RuntimeError, Sighting, StartError, Stop};
use gt_store::{ConvoyWish, NewBead, Sling, Stamp, Store};
use jiff::Timestamp;
use tempfile::TempDir;

use super::Dispatcher;

use crate::once::{self, Limits, Turn};
use crate::settings::Settings;
use crate::surroundings::Machine;
use crate::town::Town;

mod looks;

/// A runtime in which something happens right before each survey.
struct Meddling {
    world: SimulatedRuntime,
    before_survey: Box<dyn FnMut() + Send>,
}

impl Runtime for Meddling {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        self.world.start(launches)
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        (self.before_survey)();
        self.world.survey(known)
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        self.world.stop(known, how)
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        self.world.acknowledge(runs)
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        self.world.watch(news)
    }
}

/// A town with a rig, and its settings.
fn town() -> (TempDir, Town, Settings) {
    let dir = TempDir::with_prefix("dispatch-").expect("a temporary directory can be made");
    let stamp = Stamp::new(Timestamp::now(), "tester");
    let (town, _) = Town::init(dir.path(), &stamp).expect("the directory is empty");
    let rig = Rig {
        name: "shop".to_owned(),
        prefix: "gt".to_owned(),
        path: dir.path().display().to_string(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    };
    open(&town).add_rig(&rig, &stamp).expect("it is the first");
    let config = "default_agent = \"a\"\nguards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\n\
         [agents.a]\ncommand = [\"/bin/sh\"]\n[rigs.shop]\nisolation = \"none\"\n";
    std::fs::write(town.config_path(), config).expect("the town can be written");
    let settings = Settings::load(&town, &mut open(&town), &*Machine::here()).expect("the config is right");
    (dir, town, settings)
}

fn turn(town: &Town) -> Turn {
    Turn::take(&Machine::here(), town, &mut open(town), Limits::default()).expect("nobody else passes")
}

fn open(town: &Town) -> Store {
    Store::open(&town.store_path()).expect("the store is there")
}

/// Makes a bead and schedules it.
fn sling(store: &mut Store) -> String {
    let stamp = Stamp::new(Timestamp::now(), "tester");
    let new = NewBead { prefix: "gt".to_owned(), parent: None, bead: Bead::new("", "Work") };
    let bead = store.create_bead(&new, &stamp).expect("nothing is wrong with it");
    let sling = Sling {
        beads: vec![bead.clone()],
        rig: None,
        fields: SlingFields::default(),
        force: false,
        convoy: ConvoyWish::No,
        is_batch: false,
        prescriptions: std::collections::BTreeMap::new(),
    };
    store.sling(&sling, None, &stamp).expect("nothing is wrong with it");
    bead
}

fn dispatcher(town: &Town, runtime: impl Runtime + Send + 'static) -> Dispatcher {
    Dispatcher::new(town.clone(), Box::new(runtime), "tester", Machine::here())
}

#[test]
fn an_end_that_nobody_has_recorded_is_not_acknowledged_by_one_who_looked_too_early() {
    let (_dir, town, settings) = town();
    let world = SimulatedRuntime::default();
    let mut first = dispatcher(&town, world.clone());
    let mut store = open(&town);
    let long = sling(&mut store);
    once::run(&mut first, &mut store, turn(&town), 0).expect("it starts");
    let quick = sling(&mut store);
    let first = Arc::new(Mutex::new((first, store)));
    // While the second one looks, the first one starts a run that ends at once.
    let meddling = {
        let (first, world, town, quick) = (Arc::clone(&first), world.clone(), town.clone(), quick.clone());
        move || {
            let (dispatcher, store) = &mut *first.lock().expect("nobody panics with it");
            let report = once::run(dispatcher, store, turn(&town), 0).expect("it starts");
            assert_eq!(report.started[0].bead, quick);
            world.end(&report.started[0].run, Some(7), None);
        }
    };
    let mut second = dispatcher(&town, Meddling { world, before_survey: Box::new(meddling) });
    once::settle(&mut second, &mut open(&town), &settings).expect("there is nothing to do");
    let (first, store) = &mut *first.lock().expect("nobody panics with it");
    once::settle(first, store, &settings).expect("the end is recorded");
    let run = &store.runs_of(&quick).expect("the bead is there")[0];
    assert_eq!((run.is_live(), run.end_reason.as_deref()), (false, Some("exit code 7")));
    assert!(store.runs_of(&long).expect("the bead is there")[0].is_live());
}

/// What the town is held up by.
fn trouble(store: &mut Store) -> Option<String> {
    let state = store.scheduler_state(Timestamp::now()).expect("it answers");
    state.troubles.get(&TroubleOf::Town).map(|trouble| trouble.reason.clone())
}

#[test]
fn answers_that_stay_away_hold_the_town_up_and_cost_the_bead_nothing() {
    let (_dir, town, mut settings) = town();
    let world = SimulatedRuntime::default();
    world.expect_start([StartOutcome::FailsUnheard, StartOutcome::FailsUnheard]);
    let mut dispatcher = dispatcher(&town, world.clone());
    let mut store = open(&town);
    let bead = sling(&mut store);
    let report = once::run(&mut dispatcher, &mut store, turn(&town), 0).expect("it is tried");
    assert_eq!((report.unknown.len(), trouble(&mut store)), (1, None), "one answer may be lost");
    once::settle(&mut dispatcher, &mut store, &settings).expect("it is tried again");
    let why = trouble(&mut store).expect("two are trouble");
    assert!(why.starts_with("nobody knows whether it was started"), "{why}");
    once::settle(&mut dispatcher, &mut store, &settings).expect("it is left alone for a while");
    assert!(world.running().is_empty(), "the third start would have worked");
    settings.start_timeout = jiff::SignedDuration::ZERO;
    once::settle(&mut dispatcher, &mut store, &settings).expect("it is given up");
    let run = &store.runs_of(&bead).expect("the bead is there")[0];
    assert_eq!((run.is_live(), run.end_reason.as_deref()), (false, Some(why.as_str())));
    let outlook = store.outlook(&settings.policy(town.root()), Timestamp::now()).expect("it answers");
    assert_eq!(outlook.scheduled[0].failures, 0, "it was not the bead's fault");
}

#[test]
fn a_run_in_another_place_is_recorded_and_known_as_such() {
    let (_dir, town, settings) = town();
    let mut store = open(&town);
    let bead = sling(&mut store);
    let mut dispatcher = dispatcher(&town, Elsewhere);
    once::run(&mut dispatcher, &mut store, turn(&town), 0).expect("it starts");
    let run = store.runs_of(&bead).expect("the bead is there").remove(0);
    assert_eq!(super::handle(&run), Some(Handle::ELSEWHERE));
    once::settle(&mut dispatcher, &mut store, &settings).expect("it is seen");
    assert!(store.run(&run.id).expect("it answers").is_some_and(|run| run.is_live()), "it is not taken for dead");
}

/// A place in which everything that was started runs.
struct Elsewhere;

impl Runtime for Elsewhere {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        launches.iter().map(|_| Ok(Handle::ELSEWHERE)).collect()
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        assert!(known.iter().all(|known| known.handle.as_ref().is_some_and(|handle| !handle.is_here())));
        Ok(known.iter().map(|known| (known.run.clone(), Sighting::Running(Handle::ELSEWHERE))).collect())
    }

    fn stop(&mut self, _: &Known, _: Stop) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn acknowledge(&mut self, _: &[String]) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn watch(&mut self, _: News) -> Result<(), RuntimeError> {
        Ok(())
    }
}
