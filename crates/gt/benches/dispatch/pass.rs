//! Passes of the real engine while many agents live in terminals: that they do must add nothing to what a pass costs, which
//! grows with the number of those who live, wherever they do.
//!
//! The daemon starts the agents and is killed then, so that nobody else passes.

use std::time::{Duration, Instant};

use gt_core::plan::PerSide;
use gt_engine::dispatch::{Dispatcher, PassReport};
use gt_engine::settings::Settings;
use gt_engine::{Town as Place, once};
use gt_runtime::{Known, Stop};
use gt_store::Store;

use crate::town::Town;
use crate::{agent, median, show};

const CROWDS: [usize; 3] = [0, 50, 200];
const NAMES: [&str; 3] =
    ["a pass with nothing to do", "a pass that looks at all that lives", "a pass that starts one more"];
/// With 200 in terminals, beside 200 without.
const RATIO_MAX: f64 = 1.5;

/// What the passes cost with each crowd in terminals, and with the largest one without.
pub(crate) struct Passes {
    in_terminals: [[Duration; 3]; 3],
    in_processes: [Duration; 3],
}

pub(crate) fn measure(rounds: usize) -> Passes {
    let in_processes = with_crowd("process", CROWDS[2], rounds);
    Passes { in_terminals: CROWDS.map(|n_live| with_crowd("tmux", n_live, rounds)), in_processes }
}

impl Passes {
    /// A start in a terminal costs more than one without, whoever else lives: that row has no limit.
    pub(crate) fn is_well(&self) -> bool {
        (0..2).all(|row| self.ratio(row) <= RATIO_MAX)
    }

    fn ratio(&self, row: usize) -> f64 {
        self.in_terminals[2][row].as_secs_f64() / self.in_processes[row].as_secs_f64()
    }

    pub(crate) fn table(&self) -> String {
        let head = "| beside agents in terminals | 0 | 50 | 200 | 200 without | ratio | limit | |\n\
                    |---|--:|--:|--:|--:|--:|--:|---|";
        let rows = NAMES.iter().enumerate().map(|(row, name)| self.row(row, name));
        std::iter::once(head.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
    }

    fn row(&self, row: usize, name: &str) -> String {
        let [none, some, many] = self.in_terminals.map(|times| show(times[row]));
        let (without, ratio) = (show(self.in_processes[row]), self.ratio(row));
        let verdict = match ratio {
            _ if row == 2 => "| ",
            ratio if ratio <= RATIO_MAX => "1.5 | met ",
            _ => "1.5 | **not met** ",
        };
        format!("| {name} | {none} | {some} | {many} | {without} | {ratio:.2} | {verdict}|")
    }
}

fn with_crowd(runtime: &str, n_live: usize, rounds: usize) -> [Duration; 3] {
    eprintln!("passes beside {n_live} agents ({runtime}) …");
    let mut town = Town::new_in(runtime, 1000, agent::STAMP);
    // One more, so that there is a keeper, and a server, even for nobody.
    let crowd = town.create(n_live + 1, None);
    town.forget_stamps();
    town.gt(&[&["sling"], crate::refs(&crowd).as_slice()].concat());
    town.await_stamps(n_live + 1);
    let mut engine = Engine::of(&town);
    town.kill_daemon();
    engine.look();
    engine.end(&town, &crowd[n_live]);
    let idle = (0..rounds * 10).map(|_| engine.pass().0).collect();
    let looking = (0..rounds * 10).map(|_| engine.look()).collect();
    let starting = (0..rounds).map(|_| engine.start_one(&town)).collect();
    [median(idle), median(looking), median(starting)]
}

struct Engine {
    dispatcher: Dispatcher,
    store: Store,
    settings: Settings,
}

impl Engine {
    /// It listens for ends, so the keeper stays.
    fn of(town: &Town) -> Engine {
        let place = Place::at(&town.root()).expect("there is a town");
        let mut dispatcher = once::dispatcher(&place, "bench");
        dispatcher.runtime().watch(Box::new(|_| ())).expect("the keeper answers");
        let store = place.open_store().expect("it has a store");
        Engine { dispatcher, store, settings: Settings::load(&place).expect("it has a config") }
    }

    fn pass(&mut self) -> (Duration, PassReport) {
        let Engine { dispatcher, store, settings } = self;
        let begun = Instant::now();
        let claimed = dispatcher.claim(store, settings, PerSide::both(None), 0).expect("it can claim");
        let report = once::start(dispatcher, store, settings, claimed).expect("it can start");
        dispatcher.acknowledge();
        (begun.elapsed(), report)
    }

    fn look(&mut self) -> Duration {
        self.dispatcher.look_again();
        self.pass().0
    }

    fn start_one(&mut self, town: &Town) -> Duration {
        let bead = town.create(1, None).remove(0);
        town.gt(&["sling", &bead]);
        let (took, report) = self.pass();
        assert_eq!(report.started.len(), 1, "{report:?}");
        self.end(town, &bead);
        took
    }

    /// Ends the run of a bead, and sees it recorded.
    fn end(&mut self, town: &Town, bead: &str) {
        town.gt(&["close", bead]);
        let runs = self.store.live_runs().expect("it can be read");
        let run = runs.iter().find(|run| run.bead.as_str() == bead).expect("it runs").id.clone();
        self.dispatcher
            .runtime()
            .stop(&Known { run: run.clone(), handle: None }, Stop::Now)
            .expect("the keeper answers");
        while self.store.live_runs().expect("it can be read").iter().any(|live| live.id == run) {
            self.look();
        }
    }
}
