//! What a look at the runtime comes to: who is a stranger, who is stopped how, and when it is looked again.

use std::collections::VecDeque;

use gt_core::plan::PerSide;
use gt_core::run::{Outcome, StopOrder};
use gt_store::{Claimed, Fault, Findings, NotStarted};

use super::*;
use crate::dispatch::{Ready, prepare};
use crate::formulas::Library;

/// A runtime that counts surveys and fails those it is told to.
#[derive(Clone, Default)]
struct Watched {
    world: SimulatedRuntime,
    surveys: Arc<Mutex<Surveys>>,
}

#[derive(Default)]
struct Surveys {
    n: usize,
    failing: VecDeque<bool>,
}

impl Watched {
    fn n_surveys(&self) -> usize {
        self.surveys.lock().expect("no test panics with it").n
    }

    fn fail_next_survey(&self) {
        self.surveys.lock().expect("no test panics with it").failing.push_back(true);
    }
}

impl Runtime for Watched {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        self.world.start(launches)
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        let mut surveys = self.surveys.lock().expect("no test panics with it");
        surveys.n += 1;
        match surveys.failing.pop_front() {
            Some(true) => Err(RuntimeError::NoKeeper { cause: "it was busy".to_owned() }),
            _ => self.world.survey(known),
        }
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

/// A town, a dispatcher over a runtime that can be watched, and what both rest on.
struct Stage {
    _dir: TempDir,
    town: Town,
    settings: Settings,
    store: Store,
    runtime: Watched,
    dispatcher: Dispatcher,
}

impl Stage {
    fn new() -> Stage {
        let (dir, town, settings) = town();
        let runtime = Watched::default();
        let dispatcher = dispatcher(&town, runtime.clone());
        let store = open(&town);
        Stage { _dir: dir, town, settings, store, runtime, dispatcher }
    }

    /// A bead is claimed and made ready, but not started yet.
    fn claim(&mut self) -> (String, Claimed, Ready) {
        let bead = sling(&mut self.store);
        let claimed = self.dispatcher.claim(&mut self.store, &self.settings, PerSide::both(None), 0);
        let claimed = claimed.expect("it is claimed").remove(0);
        assert_eq!(claimed.work().expect("it is work").bead, bead);
        let around = Machine::here();
        let formulas = Library::of(&self.town);
        let (claimed, ready) = prepare(&*around, &self.town, &self.settings, &formulas, claimed);
        (bead, claimed, ready.expect("it can be started"))
    }

    /// A bead that an agent works on; returns its run.
    fn working(&mut self) -> String {
        let (_, claimed, ready) = self.claim();
        let run = claimed.run().to_owned();
        self.answer(claimed, ready);
        run
    }

    /// The start is made, and recorded.
    fn answer(&mut self, claimed: Claimed, ready: Ready) {
        let report = self.dispatcher.start(&mut self.store, &self.settings, vec![(claimed, Ok(ready))]);
        assert_eq!(report.expect("it is recorded").started.len(), 1);
    }

    /// Another process gives a start up.
    fn give_up(&self, run: &str) {
        let (policy, stamp) = (self.settings.policy(self.town.root()), Stamp::new(Timestamp::now(), "another"));
        let failure =
            NotStarted { run: run.to_owned(), error: "too late".to_owned(), fault: Fault::Bead, worktree: None };
        let findings = Findings { not_started: vec![failure], ..Findings::default() };
        open(&self.town).advance(&findings, &policy, None, &stamp).expect("it is recorded");
    }

    /// A person has a run stopped.
    fn order_stop(&self, run: &str) {
        let stamp = Stamp::new(Timestamp::now(), "ada");
        let (by, reason) = ("ada".to_owned(), "not like this".to_owned());
        let order = StopOrder { at: stamp.now, by, outcome: Outcome::Stopped, reason };
        assert!(open(&self.town).order_stop(run, &order, &stamp).expect("it is recorded"));
    }

    fn settle(&mut self) {
        self.dispatcher.settle(&mut self.store, &self.settings).expect("it looks");
    }

    fn look(&mut self) {
        self.dispatcher.look_again();
        self.dispatcher.look_closely();
        self.settle();
    }

    fn is_live(&mut self, run: &str) -> bool {
        self.store.run(run).expect("it answers").is_some_and(|run| run.is_live())
    }
}

/// Its own starter is about to hear that it was given up, and stops it then.
#[test]
fn what_is_being_started_here_is_no_stranger_though_another_process_gave_it_up() {
    let mut stage = Stage::new();
    let (_, claimed, ready) = stage.claim();
    let run = claimed.run().to_owned();
    stage.give_up(&run);
    let mut world = stage.runtime.world.clone();
    world.start(std::slice::from_ref(&ready.launch)).remove(0).expect("it begins");
    stage.look();
    assert_eq!(world.running(), [run.as_str()], "a look leaves it to its start");
    world.end(&run, Some(0), None);
    stage.look();
    assert!(world.knows(&run), "its end is not acknowledged before its start was recorded");
    stage.answer(claimed, ready);
    stage.look();
    assert!(!world.knows(&run), "now it is a stranger like any other");
}

#[test]
fn what_was_told_to_stop_while_it_started_is_stopped_gently() {
    let mut stage = Stage::new();
    let world = stage.runtime.world.clone();
    world.ignore_stops(true);
    let (_, claimed, ready) = stage.claim();
    let run = claimed.run().to_owned();
    stage.order_stop(&run);
    stage.answer(claimed, ready);
    assert_eq!((world.running(), world.stopping()), (vec![run.clone()], vec![run.clone()]), "it may end by itself");
    assert!(stage.is_live(&run));
}

#[test]
fn what_was_given_up_while_it_started_is_stopped_at_once() {
    let mut stage = Stage::new();
    let world = stage.runtime.world.clone();
    world.ignore_stops(true);
    let (_, claimed, ready) = stage.claim();
    let run = claimed.run().to_owned();
    stage.give_up(&run);
    stage.answer(claimed, ready);
    assert_eq!(world.started(), [run.as_str()]);
    assert_eq!(world.running(), Vec::<String>::new(), "another run may have its bead by now");
}

#[test]
fn what_runs_though_it_was_given_up_is_stopped_by_whoever_looks_and_what_is_unknown_is_left_alone() {
    let mut stage = Stage::new();
    let mut world = stage.runtime.world.clone();
    world.ignore_stops(true);
    let (_, claimed, ready) = stage.claim();
    let run = claimed.run().to_owned();
    stage.give_up(&run);
    let unknown = Launch { run: "run-of-another-town".to_owned(), ..ready.launch.clone() };
    assert!(world.start(&[ready.launch, unknown.clone()]).iter().all(Result::is_ok));
    // The process that claimed it is gone.
    stage.dispatcher = dispatcher(&stage.town, stage.runtime.clone());
    stage.look();
    assert_eq!(world.running(), [unknown.run.as_str()]);
    world.end(&unknown.run, Some(0), None);
    stage.look();
    assert!(!world.knows(&unknown.run) && !world.knows(&run), "ends that no record waits for are acknowledged");
}

#[test]
fn a_survey_that_failed_is_repeated_by_the_next_pass() {
    let mut stage = Stage::new();
    let run = stage.working();
    stage.settle();
    let n_before = stage.runtime.n_surveys();
    // It ends, and the news of that is lost.
    stage.runtime.world.end(&run, Some(7), None);
    stage.dispatcher.look_again();
    stage.runtime.fail_next_survey();
    assert!(stage.dispatcher.settle(&mut stage.store, &stage.settings).is_err());
    assert!(stage.is_live(&run));
    stage.settle();
    assert!(!stage.is_live(&run), "it was looked again");
    assert_eq!(stage.runtime.n_surveys(), n_before + 2);
    stage.settle();
    assert_eq!(stage.runtime.n_surveys(), n_before + 2, "and not more often than that");
}

#[test]
fn an_end_that_was_told_needs_no_survey_and_is_acknowledged_once_it_is_recorded() {
    let mut stage = Stage::new();
    let run = stage.working();
    stage.settle();
    let n_before = stage.runtime.n_surveys();
    let world = stage.runtime.world.clone();
    let heard = Arc::new(Mutex::new(None));
    let news = Arc::clone(&heard);
    let tell: News = Box::new(move |end| *news.lock().expect("no test panics with it") = end);
    stage.dispatcher.runtime().watch(tell).expect("it is watched");
    world.end(&run, Some(7), None);
    let (run, ending) = heard.lock().expect("no test panics with it").take().expect("it was told");
    stage.dispatcher.hear(run.clone(), ending);
    stage.settle();
    let ended = stage.store.run(&run).expect("it answers").expect("it is known");
    assert_eq!(ended.end_reason.as_deref(), Some("exit code 7"));
    assert_eq!(stage.runtime.n_surveys(), n_before);
    assert!(world.knows(&run), "it is recorded first");
    stage.dispatcher.acknowledge();
    assert!(!world.knows(&run));
}

#[test]
fn a_run_is_asked_to_stop_once_and_again_only_by_another_process() {
    let mut stage = Stage::new();
    let run = stage.working();
    let world = stage.runtime.world.clone();
    world.ignore_stops(true);
    stage.order_stop(&run);
    stage.settle();
    assert_eq!(world.stopping(), [run.as_str()]);
    let n_surveys = stage.runtime.n_surveys();
    stage.settle();
    stage.settle();
    assert_eq!(stage.runtime.n_surveys(), n_surveys, "a stop that was asked for is no reason to look");
    world.ignore_stops(false);
    stage.look();
    assert_eq!(world.running(), [run.as_str()], "it was asked before");
    stage.dispatcher = dispatcher(&stage.town, stage.runtime.clone());
    stage.settle();
    assert_eq!(world.running(), Vec::<String>::new());
    stage.look();
    let run = stage.store.run(&run).expect("it answers").expect("it is known");
    assert_eq!(run.outcome, Some(Outcome::Stopped));
    assert_eq!(run.end_reason.as_deref(), Some("not like this (killed by signal 15)"));
}
