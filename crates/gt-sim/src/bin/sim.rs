//! `cargo xtask sim`: many seeds, on every core, and what they came to.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gt_sim::coverage::Coverage;
use gt_sim::sim::{self, Failure, Plan, Towns};

fn main() -> ExitCode {
    match Wishes::read(std::env::args().skip(1).collect()) {
        Ok(wishes) => wishes.fulfil(),
        Err(why) => {
            eprintln!("error: {why}; `cargo xtask --help` shows what there is");
            ExitCode::from(2)
        }
    }
}

/// From so many seeds on a transition that nobody has met is a hole in the simulation, and a failure.
const SEEDS_TO_MEET_ALL: u64 = 20_000;
/// With fewer it is not worth telling which are missing.
const SEEDS_TO_TELL: u64 = 500;

struct Wishes {
    first: u64,
    n_seeds: u64,
    n_steps: usize,
    on_disk: bool,
    tells: bool,
    towns: Towns,
    /// Whether the first failure is enough.
    until_found: bool,
}

impl Wishes {
    fn read(words: Vec<String>) -> Result<Wishes, String> {
        let mut wishes = Wishes {
            first: 0,
            n_seeds: 1_000,
            n_steps: 500,
            on_disk: false,
            tells: false,
            towns: Towns::default(),
            until_found: false,
        };
        let mut words = VecDeque::from(words);
        while let Some(word) = words.pop_front() {
            let mut number = || {
                let given = words.pop_front().ok_or_else(|| format!("`{word}` needs a number"))?;
                given.parse::<u64>().map_err(|_| format!("`{word}` needs a number, not `{given}`"))
            };
            match word.as_str() {
                "--seeds" => wishes.n_seeds = number()?,
                "--from" => wishes.first = number()?,
                "--seed" => (wishes.first, wishes.n_seeds, wishes.tells) = (number()?, 1, true),
                "--steps" => wishes.n_steps = usize::try_from(number()?).unwrap_or(usize::MAX),
                "--disk" => wishes.on_disk = true,
                "--until-found" => wishes.until_found = true,
                other => {
                    wishes.towns = Towns::by_flag(other).ok_or_else(|| format!("there is no `{other}`"))?;
                }
            }
        }
        Ok(wishes)
    }

    fn plan(&self, seed: u64) -> Plan {
        Plan { seed, n_steps: self.n_steps, on_disk: self.on_disk, tells: self.tells, towns: self.towns }
    }

    fn fulfil(&self) -> ExitCode {
        let begin = Instant::now();
        let next = AtomicU64::new(self.first);
        let result = Mutex::new((Coverage::default(), 0_usize, Vec::<Failure>::new()));
        std::thread::scope(|scope| {
            // A strand that hands over leaves its core idle for a moment, so there are more workers than cores.
            for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| self.work(&next, &result));
            }
        });
        let (coverage, n_runs, mut failures) = result.into_inner().expect("no worker panics");
        failures.sort_by_key(|failure| failure.plan.seed);
        for failure in failures.iter().take(10) {
            failure.story.iter().for_each(|line| println!("{line}"));
            println!("{failure}");
        }
        // The table of transitions is about beads.
        let missing = if self.towns == Towns::Beads { coverage.missing() } else { Vec::new() };
        println!(
            "{} seeds of {} steps, {n_runs} runs, {} failures, {} transitions met and {} missing, in {:.1} s",
            next.into_inner().min(self.first.saturating_add(self.n_seeds)) - self.first,
            self.n_steps,
            failures.len(),
            coverage.n_met(),
            missing.len(),
            begin.elapsed().as_secs_f64()
        );
        // A few seeds cannot meet everything, and nobody wants to read what.
        let is_long = self.n_seeds >= SEEDS_TO_MEET_ALL;
        for (phase, event) in missing.iter().filter(|_| self.n_seeds >= SEEDS_TO_TELL) {
            println!("  never met: `{event}` on a bead that is {phase}");
        }
        for (pair, n) in coverage.rarest(if is_long { 12 } else { 0 }) {
            println!("  rare ({n}): {pair}");
        }
        let is_fine = failures.is_empty() && (missing.is_empty() || !is_long);
        if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn work(&self, next: &AtomicU64, result: &Mutex<(Coverage, usize, Vec<Failure>)>) {
        // Seeds are given out in order and what was given out is run, so the lowest that fails is among those found.
        while !self.until_found || result.lock().expect("no worker panics").2.is_empty() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.first.saturating_add(self.n_seeds) {
                return;
            }
            let came_to = sim::run(self.plan(seed));
            let mut result = result.lock().expect("no worker panics");
            match came_to {
                Ok(report) => {
                    report.story.iter().for_each(|line| println!("{line}"));
                    result.0.add(&report.coverage);
                    result.1 += report.n_runs;
                }
                Err(failure) => result.2.push(*failure),
            }
        }
    }
}
