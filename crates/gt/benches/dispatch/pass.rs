//! Passes of the real engine while many agents live in terminals: that they do must not be felt.
//!
//! What a sling takes is measured with the daemon. It is killed then, so that nobody else passes.

use std::time::{Duration, Instant};

use gt_core::event::EventType;
use gt_core::plan::PerSide;
use gt_engine::dispatch::Dispatcher;
use gt_engine::settings::Settings;
use gt_engine::{Town as Place, once};
use gt_runtime::{Known, Stop};
use gt_store::Store;
use serde_json::json;

use crate::town::Town;
use crate::{agent, median, show};

const CROWDS: [usize; 3] = [0, 50, 200];
/// What is measured, and the most that it may take beside 200 for what it takes beside nobody: flat, as well as a few
/// microseconds can be told apart. Who reads or looks at all that live sees each of them.
const ROWS: [(&str, Option<f64>); 4] = [
    ("one sling to a waiting daemon, to the agent's first instruction", Some(1.5)),
    ("a pass with nothing to do", Some(2.0)),
    ("a pass that reads anew who lives, because something has changed", None),
    ("a pass that looks at all that lives", None),
];

/// What each row takes with each crowd in terminals, and with the largest one without.
pub(crate) struct Passes {
    in_terminals: [[Duration; 4]; 3],
    in_processes: [Duration; 4],
}

pub(crate) fn measure(rounds: usize) -> Passes {
    let in_processes = with_crowd("process", CROWDS[2], rounds);
    Passes { in_terminals: CROWDS.map(|n_live| with_crowd("tmux", n_live, rounds)), in_processes }
}

impl Passes {
    pub(crate) fn is_well(&self) -> bool {
        (0..ROWS.len()).all(|row| ROWS[row].1.is_none_or(|most| self.ratio(row) <= most))
    }

    fn ratio(&self, row: usize) -> f64 {
        self.in_terminals[2][row].as_secs_f64() / self.in_terminals[0][row].as_secs_f64()
    }

    pub(crate) fn table(&self) -> String {
        let head = "| beside agents in terminals | 0 | 50 | 200 | 200 : 0 | limit | | 200 without |\n\
                    |---|--:|--:|--:|--:|--:|---|--:|";
        let rows = (0..ROWS.len()).map(|row| self.row(row));
        std::iter::once(head.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
    }

    fn row(&self, row: usize) -> String {
        let (name, most) = ROWS[row];
        let [none, some, many] = self.in_terminals.map(|times| show(times[row]));
        let (without, ratio) = (show(self.in_processes[row]), self.ratio(row));
        let verdict = match most {
            None => " | ".to_owned(),
            Some(most) if ratio <= most => format!(" {most:.1} | met "),
            Some(most) => format!(" {most:.1} | **not met** "),
        };
        format!("| {name} | {none} | {some} | {many} | {ratio:.2} |{verdict}| {without} |")
    }
}

fn with_crowd(runtime: &str, n_live: usize, rounds: usize) -> [Duration; 4] {
    eprintln!("beside {n_live} agents ({runtime}) …");
    let mut town = Town::new_in(runtime, 1000, agent::STAMP);
    // One more, so that there is a keeper, and a server, even for nobody.
    let crowd = town.create(n_live + 1, None);
    town.forget_stamps();
    town.gt(&[&["sling"], crate::refs(&crowd).as_slice()].concat());
    town.await_stamps(n_live + 1);
    let mut engine = Engine::of(&town);
    let slings: Vec<Duration> = (0..rounds).map(|_| engine.sling_one(&town)).collect();
    town.kill_daemon();
    engine.end(&town, &crowd[n_live]);
    let idle: Vec<Duration> = (0..rounds * 10).map(|_| engine.pass()).collect();
    let reading: Vec<Duration> = (0..rounds * 10).map(|_| engine.read_anew()).collect();
    let looking: Vec<Duration> = (0..rounds * 10).map(|_| engine.look()).collect();
    [slings, idle, reading, looking].map(median)
}

struct Engine {
    dispatcher: Dispatcher,
    store: Store,
    /// As another process has it.
    elsewhere: Store,
    settings: Settings,
}

impl Engine {
    /// It listens for ends, so the keeper stays.
    fn of(town: &Town) -> Engine {
        let place = Place::at(&town.root()).expect("there is a town");
        let [mut store, elsewhere] = [(); 2].map(|()| place.open_store().expect("it has a store"));
        let mut dispatcher = once::dispatcher(&place, &mut store, "bench");
        dispatcher.runtime().watch(Box::new(|_| ())).expect("the keeper answers");
        let settings = Settings::load(&place, &mut store, &**dispatcher.around()).expect("it has a config");
        Engine { dispatcher, store, elsewhere, settings }
    }

    fn pass(&mut self) -> Duration {
        let Engine { dispatcher, store, settings, .. } = self;
        let begun = Instant::now();
        let claimed = dispatcher.claim(store, settings, PerSide::both(None), 0).expect("it can claim");
        assert!(claimed.is_empty(), "nothing waits to be started");
        dispatcher.acknowledge();
        begun.elapsed()
    }

    fn look(&mut self) -> Duration {
        self.dispatcher.look_again();
        self.pass()
    }

    fn read_anew(&mut self) -> Duration {
        let stamp = self.dispatcher.stamp();
        self.elsewhere.record(EventType::DaemonStarted, &json!({}), &stamp).expect("it can be written");
        self.pass()
    }

    /// To the daemon; what was started is ended again.
    fn sling_one(&mut self, town: &Town) -> Duration {
        let bead = town.create(1, None).remove(0);
        town.forget_stamps();
        let begun = agent::now();
        town.gt(&["sling", &bead]);
        let took = town.await_stamps(1).saturating_sub(begun);
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
            .stop(&Known { run: run.clone(), handle: None, log: None }, Stop::Now)
            .expect("the keeper answers");
        while self.store.live_runs().expect("it can be read").iter().any(|live| live.id == run) {
            self.look();
        }
    }
}
