//! Chaos on the real binary: a town under load, a nemesis that kills, stops, breaks and fills what it needs, and a judge
//! who looks from outside.
//!
//! Owns: the load, the faults, the promises and the report. Uses nothing of the product but its binary, so that it can
//! believe nothing but what a user could see.

mod chance;
mod clock;
mod command;
mod daemon;
mod disk;
mod evidence;
mod judge;
mod load;
mod nemesis;
mod options;
mod pause;
mod processes;
mod receiver;
mod report;
mod scene;
mod settle;
mod tally;
mod town;

use std::fs;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use self::judge::Violation;
pub use self::options::{Options, Runtime};
pub use self::report::Report;

use self::pause::End;
use self::receiver::Receiver;
use self::scene::Scene;
use self::town::Town;

/// Runs load and faults, lets the town settle, judges it and ends it. A signal to stop ends all of it early.
pub fn run(options: &Options) -> Result<Report, String> {
    let over = Arc::new(End::default());
    let interrupted = Arc::new(End::default());
    listen_for_signals(&over, &interrupted)?;
    let receiver = Receiver::start()?;
    let town = Arc::new(Town::make(options, &receiver.address())?);
    eprintln!("chaos: seed {}, the town is {}", options.seed, town.root.display());
    let outcome = Scene::start(options, &town, &receiver, over, interrupted).and_then(|scene| scene.play(options));
    town.end();
    let mut report = outcome?;
    keep_or_remove(&town, &mut report);
    Ok(report)
}

/// The live processes of a town, by the last part of its path, each with its words.
pub fn live_processes(token: &str) -> Vec<(i32, Vec<String>)> {
    processes::of_town(token).into_iter().map(|entry| (entry.pid, entry.words())).collect()
}

/// Keeps the files if a promise was broken.
fn keep_or_remove(town: &Town, report: &mut Report) {
    if report.is_clean() {
        town.remove();
        return;
    }
    fs::write(town.evidence.join("violations.log"), report.list()).ok();
    report.kept = Some((town.root.clone(), town.evidence.clone()));
}

/// Ctrl-C, a closed terminal and `kill` end the load; what is left of the town is ended as always.
fn listen_for_signals(over: &Arc<End>, interrupted: &Arc<End>) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| format!("cannot listen for signals: {error}"))?;
    let (over, interrupted) = (Arc::clone(over), Arc::clone(interrupted));
    thread::spawn(move || {
        for _ in signals.forever() {
            interrupted.declare();
            over.declare();
        }
    });
    Ok(())
}
