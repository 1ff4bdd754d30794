//! `cargo bench --bench sessions`: 200 sessions with 50 messages each, beside a semaphore and channels in memory.
//!
//! Prints Markdown for `docs/benchmarks.md`; exits with 1 when an answer is missing, doubled or out of order, or a limit was
//! exceeded. Turns are a real daemon's, with real processes that take 0–20 ms; the other side does nothing but wait as
//! long. `-- --quick` has 40 sessions with 10 messages.

#[path = "sessions/agent.rs"]
mod agent;
#[path = "sessions/judge.rs"]
mod judge;
#[path = "sessions/memory.rs"]
mod memory;
#[path = "sessions/town.rs"]
mod town;

use std::time::Duration;

use judge::Judged;

/// How many sessions, and messages in each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) sessions: usize,
    pub(crate) messages: usize,
}

impl Size {
    fn n(self) -> usize {
        self.sessions * self.messages
    }
}

/// What a side has measured: when it was all over, and how long each message took.
pub(crate) struct Measured {
    pub(crate) time: Duration,
    pub(crate) latencies: Vec<Duration>,
}

impl Measured {
    fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort();
        sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Which lane the messages of a session go to.
pub(crate) type LaneOf = fn(usize) -> &'static str;

fn all_in_main(_: usize) -> &'static str {
    "main"
}

/// A tenth in `main`, three in `subagent`, six in `delegate`.
fn mixed(session: usize) -> &'static str {
    match session % 10 {
        0 => "main",
        1..=3 => "subagent",
        _ => "delegate",
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if agent::has_played(&arguments) {
        return;
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let size = if is_quick { Size { sessions: 40, messages: 10 } } else { Size { sessions: 200, messages: 50 } };
    let rows = [
        ("all in `main` (2 at once)", all_in_main as LaneOf, 0),
        ("in three lanes", mixed, 0),
        ("in three lanes, the daemon killed 5 times", mixed, 5),
    ];
    println!(
        "| {} sessions × {} messages | gt | memory | messages a second | added to each turn | p50 of the wait | p99 | |",
        size.sessions, size.messages
    );
    println!("|---|--:|--:|--:|--:|--:|--:|---|");
    let mut is_well = true;
    for (what, lane_of, n_kills) in rows {
        eprintln!("{what} …");
        let (ours, judged) = town::measure(size, lane_of, n_kills);
        let theirs = memory::measure(size, lane_of);
        is_well &= judged.is_well();
        println!("{}", row(what, size, &ours, &theirs, &judged));
    }
    if !is_well {
        std::process::exit(1);
    }
}

fn row(what: &str, size: Size, ours: &Measured, theirs: &Measured, judged: &Judged) -> String {
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let rate = size.n() as f64 / ours.time.as_secs_f64();
    let added = ours.time.saturating_sub(theirs.time) / u32::try_from(size.n()).unwrap_or(u32::MAX);
    let verdict = judged.words();
    format!(
        "| {what} | {} | {} | {rate:.0} | {} | {} | {} | {verdict} |",
        seconds(ours.time),
        seconds(theirs.time),
        millis(added),
        seconds(ours.percentile(50)),
        seconds(ours.percentile(99)),
    )
}
