//! `cargo bench -p gt-runtime --bench terminals`: what does a terminal cost beside tmux alone, and beside no terminal?
//!
//! Every figure of ours stands beside the bare one of the same run; only the ratios mean anything. Prints Markdown for
//! `docs/benchmarks.md`; exits with 1 when a limit is not met. `-- --quick` has fewer rounds.

#[path = "terminals/bare.rs"]
mod bare;
#[path = "terminals/town.rs"]
mod town;

use std::time::{Duration, Instant};

use gt_runtime::{Known, Place, Runtime as _, Stop};

use bare::Bare;
use town::Town;

const FAN: usize = 100;

struct Row {
    name: String,
    ours: Duration,
    bare: Duration,
    most: f64,
}

impl Row {
    fn new(name: String, most: f64, rounds: Vec<(Duration, Duration)>) -> Self {
        let (ours, bare) = rounds.into_iter().unzip();
        Self { name, ours: median(ours), bare: median(bare), most }
    }

    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.bare.as_secs_f64()
    }
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 3 } else { 9 };
    let mut rows = vec![fan_out(rounds)];
    for n_live in [0, 50, 200] {
        rows.push(survey(n_live, rounds * 20));
    }
    println!("| what | gt | bare | ratio | limit | |\n|---|--:|--:|--:|--:|---|");
    for row in &rows {
        let verdict = if row.ratio() <= row.most { "met" } else { "**not met**" };
        let (ours, bare) = (show(row.ours), show(row.bare));
        println!("| {} | {ours} | {bare} | {:.2} | {:.1} | {verdict} |", row.name, row.ratio(), row.most);
    }
    if rows.iter().any(|row| row.ratio() > row.most) {
        std::process::exit(1);
    }
}

/// From the call to the answer that all run, with a keeper and a server that are there already.
fn fan_out(rounds: usize) -> Row {
    eprintln!("fan-out of {FAN} …");
    let town = Town::new();
    let mut runtime = town.runtime();
    let mut bare = Bare::start();
    let mut times = Vec::new();
    for round in 0..=rounds {
        let launches: Vec<_> = (0..FAN).map(|n| town.launch(&format!("r{round}-{n}"), Place::Terminal)).collect();
        let begun = Instant::now();
        let started = runtime.start(&launches);
        let ours = begun.elapsed();
        assert!(started.iter().all(Result::is_ok), "{started:?}");
        town.end_all(&mut runtime);
        let theirs = bare.fan_out(&launches);
        // The first round starts both servers.
        if round > 0 {
            times.push((ours, theirs));
        }
    }
    Row::new("fan-out: 100 runs in terminals, beside 100 bare `new-session`".to_owned(), 2.0, times)
}

/// One survey of so many runs in terminals, beside one of as many plain processes.
fn survey(n_live: usize, rounds: usize) -> Row {
    eprintln!("surveys of {n_live} …");
    let (mut in_terminals, mut in_processes) = (surveyed(n_live, Place::Terminal), surveyed(n_live, Place::Process));
    let times = (0..rounds).map(|_| (in_terminals(), in_processes())).collect();
    Row::new(format!("one survey with {n_live} runs in terminals, beside as many plain processes"), 1.5, times)
}

fn surveyed(n_live: usize, place: Place) -> impl FnMut() -> Duration {
    let town = Town::new();
    let mut runtime = town.runtime();
    // One more, so that what is kept for a place is there even with nothing in it.
    let launches: Vec<_> = (0..=n_live).map(|n| town.launch(&format!("r{n}"), place)).collect();
    let started = runtime.start(&launches);
    let known: Vec<Known> = launches
        .iter()
        .zip(started)
        .map(|(launch, handle)| Known { run: launch.run.clone(), handle: handle.ok(), log: None })
        .collect();
    runtime.stop(&known[n_live], Stop::Now).expect("the keeper answers");
    town.await_live(&mut runtime, n_live);
    move || {
        let begun = Instant::now();
        let seen = runtime.survey(&known[..n_live]).expect("the keeper answers");
        let took = begun.elapsed();
        assert!(seen.len() >= n_live && town.exists());
        took
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn show(time: Duration) -> String {
    if time < Duration::from_millis(1) {
        format!("{} µs", time.as_micros())
    } else {
        format!("{:.2} ms", time.as_secs_f64() * 1e3)
    }
}
