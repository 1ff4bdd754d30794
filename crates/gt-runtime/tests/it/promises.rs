//! What every runtime promises: the same exercises in every place, and in the simulated one.

use std::fs::{self, File};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use gt_runtime::simulated::SimulatedRuntime;
use gt_runtime::{Handle, Launch, Runtime, Sighting, Stop};

use super::place::{in_every_place, tests_in};
use super::town::{Town, known};

/// A runtime together with the power to make a run exit.
trait Stage {
    fn runtime(&mut self) -> &mut dyn Runtime;
    fn launch(&self, run: &str) -> Launch;
    fn exit(&self, run: &str, code: i32);
    /// Waits until a run waits for its exit; as long as the answer lives it goes on to.
    fn await_begun(&self, run: &str) -> Option<File>;
    fn wait_for_news(&self);
    /// How a run is known that is gone.
    fn gone(&self) -> Handle;
}

struct Simulated {
    town: Town,
    runtime: SimulatedRuntime,
    news: Receiver<()>,
}

struct Real<'a> {
    runtime: Box<dyn Runtime>,
    town: &'a Town,
}

impl Stage for Simulated {
    fn runtime(&mut self) -> &mut dyn Runtime {
        &mut self.runtime
    }
    fn launch(&self, run: &str) -> Launch {
        self.town.launch(run, "true")
    }
    fn exit(&self, run: &str, code: i32) {
        self.runtime.end(run, Some(code), None);
    }
    fn await_begun(&self, _: &str) -> Option<File> {
        None
    }
    fn wait_for_news(&self) {
        self.news.recv_timeout(Duration::ZERO).unwrap();
    }
    fn gone(&self) -> Handle {
        Handle { pid: 4_000_000, birth: 1 }
    }
}

impl Stage for Real<'_> {
    fn runtime(&mut self) -> &mut dyn Runtime {
        &mut *self.runtime
    }
    fn launch(&self, run: &str) -> Launch {
        let fifo = self.town.path(&format!("{run}.exit"));
        if !fifo.exists() {
            self.town.fifo(&format!("{run}.exit"));
        }
        self.town.launch(run, &format!("read code < '{}'; exit $code", fifo.display()))
    }
    fn exit(&self, run: &str, code: i32) {
        fs::write(self.town.path(&format!("{run}.exit")), format!("{code}\n")).unwrap();
    }
    fn await_begun(&self, run: &str) -> Option<File> {
        Some(File::options().write(true).open(self.town.path(&format!("{run}.exit"))).unwrap())
    }
    fn wait_for_news(&self) {
        self.town.wait_for_news();
    }
    fn gone(&self) -> Handle {
        self.town.place().gone.clone()
    }
}

/// Makes a test of every promise in every place, and in the simulated one.
macro_rules! promises {
    ($($promise:ident),+ $(,)?) => {
        $(mod $promise {
            super::in_every_place!(kept);
            super::tests_in!(elsewhere, ELSEWHERE, kept);
            fn kept(town: &super::Town) {
                super::$promise(&mut super::Real { runtime: town.watched_runtime(), town });
            }
            #[test]
            fn simulated() {
                super::$promise(&mut super::Simulated::new());
            }
        })+
    };
}

promises!(
    a_run_that_nobody_asks_about_is_seen_too,
    a_run_is_seen_running_then_ended_with_its_code_until_that_is_acknowledged,
    a_run_that_was_never_started_is_not_seen,
    a_run_that_was_started_once_and_is_gone_has_ended_somehow,
    a_start_repeated_while_it_runs_or_before_its_end_is_acknowledged_starts_once,
    a_stopped_run_ends_by_a_signal,
    an_interrupted_run_that_does_not_care_for_it_ends_by_that,
    stopping_or_acknowledging_what_is_not_there_is_fine,
);

impl Simulated {
    fn new() -> Self {
        let (sender, news) = channel();
        let mut runtime = SimulatedRuntime::default();
        runtime.watch(Box::new(move |_| _ = sender.send(()).ok())).unwrap();
        Self { town: Town::new(), runtime, news }
    }
}

fn a_run_that_nobody_asks_about_is_seen_too(stage: &mut dyn Stage) {
    let launch = stage.launch("r1");
    let handle = stage.runtime().start(&[launch]).remove(0).unwrap();
    let seen = stage.runtime().survey(&[]).unwrap();
    assert_eq!(seen.get("r1"), Some(&Sighting::Running(handle)));
    stage.exit("r1", 0);
    stage.wait_for_news();
}

fn a_run_is_seen_running_then_ended_with_its_code_until_that_is_acknowledged(stage: &mut dyn Stage) {
    let launch = stage.launch("r1");
    let handle = stage.runtime().start(&[launch]).remove(0).unwrap();
    let known = known("r1", Some(&handle));
    let running = stage.runtime().survey(std::slice::from_ref(&known)).unwrap();
    assert_eq!(running["r1"], Sighting::Running(handle));

    stage.exit("r1", 7);
    stage.wait_for_news();
    let ended = stage.runtime().survey(&[]).unwrap();
    let Sighting::Ended(ending) = &ended["r1"] else { panic!("{ended:?}") };
    assert_eq!((ending.code, ending.signal, ending.leftover), (Some(7), None, 0));

    stage.runtime().acknowledge(&["r1".to_owned()]).unwrap();
    assert!(stage.runtime().survey(&[]).unwrap().is_empty());
}

fn a_run_that_was_never_started_is_not_seen(stage: &mut dyn Stage) {
    assert!(stage.runtime().survey(&[known("never", None)]).unwrap().is_empty());
}

fn a_run_that_was_started_once_and_is_gone_has_ended_somehow(stage: &mut dyn Stage) {
    let gone = stage.gone();
    let seen = stage.runtime().survey(&[known("gone", Some(&gone))]).unwrap();
    let Sighting::Ended(ending) = &seen["gone"] else { panic!("{seen:?}") };
    assert_eq!((ending.code, ending.signal), (None, None));
}

fn a_start_repeated_while_it_runs_or_before_its_end_is_acknowledged_starts_once(stage: &mut dyn Stage) {
    let launch = stage.launch("r1");
    let first = stage.runtime().start(&[launch.clone(), launch.clone()]);
    assert_eq!(first[0], first[1]);
    stage.exit("r1", 0);
    stage.wait_for_news();
    assert_eq!(stage.runtime().start(&[launch]), first[..1]);
    let sightings = stage.runtime().survey(&[known("r1", None)]).unwrap();
    assert!(matches!(sightings["r1"], Sighting::Ended(_)));
}

fn a_stopped_run_ends_by_a_signal(stage: &mut dyn Stage) {
    for (run, how, signal) in [("soft", Stop::Gently, 15), ("hard", Stop::Now, 9)] {
        let launch = stage.launch(run);
        let handle = stage.runtime().start(&[launch]).remove(0).unwrap();
        stage.runtime().stop(&known(run, Some(&handle)), how).unwrap();
        stage.wait_for_news();
        let seen = stage.runtime().survey(&[]).unwrap();
        let Sighting::Ended(ending) = &seen[run] else { panic!("{seen:?}") };
        assert_eq!((ending.code, ending.signal), (None, Some(signal)));
    }
}

fn an_interrupted_run_that_does_not_care_for_it_ends_by_that(stage: &mut dyn Stage) {
    let launch = stage.launch("r1");
    let handle = stage.runtime().start(&[launch]).remove(0).unwrap();
    // A key that is pressed before somebody reads the terminal means nothing.
    let _begun = stage.await_begun("r1");
    stage.runtime().stop(&known("r1", Some(&handle)), Stop::Interrupt).unwrap();
    stage.wait_for_news();
    let seen = stage.runtime().survey(&[]).unwrap();
    let Sighting::Ended(ending) = &seen["r1"] else { panic!("{seen:?}") };
    assert_eq!((ending.code, ending.signal), (None, Some(2)));
}

fn stopping_or_acknowledging_what_is_not_there_is_fine(stage: &mut dyn Stage) {
    stage.runtime().stop(&known("never", None), Stop::Interrupt).unwrap();
    stage.runtime().stop(&known("never", None), Stop::Gently).unwrap();
    stage.runtime().acknowledge(&["never".to_owned()]).unwrap();
}
