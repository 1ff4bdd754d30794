//! One run from the first bead to the verdict: starts load, daemon and nemesis, ends them in order, and calls the judge.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::clock;
use crate::daemon::Daemon;
use crate::evidence::{Script, Watch, lines};
use crate::judge::{Case, Violation, judge};
use crate::load::Load;
use crate::nemesis::{Deeds, Nemesis, Targets};
use crate::options::Options;
use crate::pause::End;
use crate::receiver::Receiver;
use crate::report::Report;
use crate::settle;
use crate::tally::Tally;
use crate::town::Town;

#[derive(Debug)]
pub(crate) struct Scene {
    town: Arc<Town>,
    receiver: Arc<Receiver>,
    tally: Arc<Tally>,
    watch: Arc<Watch>,
    daemon: Arc<Daemon>,
    load: Arc<Load>,
    deeds: Arc<Mutex<Deeds>>,
    /// The end of load and faults.
    over: Arc<End>,
    interrupted: Arc<End>,
    feeders: Vec<JoinHandle<()>>,
    raging: JoinHandle<()>,
    watching: JoinHandle<()>,
    keeping: JoinHandle<()>,
}

impl Scene {
    /// Starts the daemon, the load and the nemesis.
    pub(crate) fn start(
        options: &Options,
        town: &Arc<Town>,
        receiver: &Arc<Receiver>,
        over: Arc<End>,
        interrupted: Arc<End>,
    ) -> Result<Scene, String> {
        let tally = Arc::new(Tally::default());
        let (watch, watching) = Watch::start(&town.evidence);
        let (daemon, keeping) = Daemon::start(town);
        let load = Load::new(town, receiver, &tally, &over);
        let feeders = load.start(options.seed)?;
        let targets = Targets {
            town: Arc::clone(town),
            daemon: Arc::clone(&daemon),
            watch: Arc::clone(&watch),
            load: Arc::clone(&load),
            receiver: Arc::clone(receiver),
            tally: Arc::clone(&tally),
        };
        let nemesis = Nemesis::new(options, targets);
        let deeds = nemesis.deeds();
        let rage_over = Arc::clone(&over);
        let raging = thread::spawn(move || nemesis.rage(&rage_over));
        let (town, receiver) = (Arc::clone(town), Arc::clone(receiver));
        Ok(Scene {
            town,
            receiver,
            tally,
            watch,
            daemon,
            load,
            deeds,
            over,
            interrupted,
            feeders,
            raging,
            watching,
            keeping,
        })
    }

    /// Waits for the time to be over, lets the town settle, and judges it.
    pub(crate) fn play(mut self, options: &Options) -> Result<Report, String> {
        self.over.wait(options.length);
        self.over.declare();
        let since = Instant::now();
        let feeders = std::mem::take(&mut self.feeders);
        let mut violations = Vec::new();
        let mut settled_in = since.elapsed();
        join(self.raging, "nemesis")?;
        if !self.interrupted.has_come() {
            eprintln!("chaos: the faults are over; the town settles");
            feeders.into_iter().try_for_each(|feeder| join(feeder, "load"))?;
            let paused_at = clock::now();
            let settled = settle::pause_jobs(&self.town, &self.interrupted)
                .and_then(|()| settle::settle(&self.town, &self.load, &self.receiver, &self.interrupted));
            settled_in = since.elapsed();
            violations.extend(settled.err().map(|missing| Violation::new("the town settles", missing)));
            let recovered = settle::recover(&self.town, &self.interrupted);
            let promise = "nothing is left that needs a person";
            violations.extend(recovered.err().map(|missing| Violation::new(promise, missing)));
            self.watch.end();
            join(self.watching, "watch")?;
            let deeds = self.deeds.lock().unwrap_or_else(PoisonError::into_inner);
            fs::write(self.town.evidence.join("faults.log"), deeds.diary.join("\n") + "\n").ok();
            let asked = self.load.asked();
            violations.extend(judge(&Case {
                town: &self.town,
                tally: &self.tally,
                asked: &asked,
                deeds: &deeds,
                posts: self.receiver.posts(),
                agents: lines(&self.town.evidence, Script::Agent),
                turns: lines(&self.town.evidence, Script::Turn),
                slots: lines(&self.town.evidence, Script::Slot),
                last_seen: self.watch.last_seen(),
                self_ends: self.daemon.self_ends(),
                jobs_paused_at: paused_at,
            }));
        }
        let was_interrupted = self.interrupted.has_come();
        if was_interrupted {
            violations.clear();
        }
        self.daemon.end();
        join(self.keeping, "daemon's keeper")?;
        Ok(Report {
            seed: options.seed,
            runtime: options.runtime.name(),
            has_disk: options.disk.is_some(),
            length: options.length,
            settled_in,
            counts: self.tally.take(),
            violations,
            was_interrupted,
            kept: None,
        })
    }
}

fn join(thread: JoinHandle<()>, name: &str) -> Result<(), String> {
    thread.join().map_err(|_| format!("the {name} panicked"))
}
