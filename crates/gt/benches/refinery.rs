//! `cargo bench --bench refinery`: what do batches save, how is a bad one found, and what does reusing a worktree save?
//!
//! Prints Markdown for `docs/benchmarks.md`; exits with 1 when a limit is not met. Merges are a real daemon's, with real git and a
//! gate that takes three seconds. `-- --quick` has a gate of 0.3 s and a repository of 2,000 files instead of 20,000.

#[path = "refinery/trees.rs"]
mod trees;
#[path = "refinery/yard.rs"]
mod yard;

use std::time::Duration;

use yard::{Tally, Yard};

const MERGES: usize = 20;
/// Batched beside one by one, at most.
const BATCHED_MAX: f64 = 1.0 / 3.0;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (gate, n_files) = if is_quick { ("0.3", 2_000) } else { ("3", 20_000) };
    let merges = merges(gate);
    println!("{}", merges.table(gate));
    let trees = trees::measure(n_files);
    println!("\n{}", trees.table());
    if !merges.is_well() {
        std::process::exit(1);
    }
}

/// Twenty merges, with and without company, and with a bad one among them.
struct Merges {
    alone: Tally,
    batched: Tally,
    one_bad: Tally,
}

fn merges(gate: &str) -> Merges {
    let run = |what: &str, batch: usize, bad: Option<usize>| {
        eprintln!("{MERGES} merges {what} …");
        Yard::new(gate, batch, bad, MERGES).merge_all()
    };
    Merges {
        batched: run("batched", MERGES, None),
        one_bad: run("batched, a bad one among them", MERGES, Some(MERGES / 3)),
        alone: run("one by one", 1, None),
    }
}

impl Merges {
    fn ratio(&self) -> f64 {
        self.batched.time.as_secs_f64() / self.alone.time.as_secs_f64()
    }

    fn is_well(&self) -> bool {
        let is_whole = |merged: &Tally, n_back: usize| merged.n_merged == MERGES - n_back && merged.n_back == n_back;
        let are_whole = is_whole(&self.alone, 0) && is_whole(&self.batched, 0) && is_whole(&self.one_bad, 1);
        are_whole && self.ratio() < BATCHED_MAX
    }

    fn table(&self, gate: &str) -> String {
        let row = |what: &str, merged: &Tally, more: String| {
            let Tally { time, n_merged, n_back, n_gates, .. } = merged;
            format!("| {what} | {} | {n_merged} | {n_back} | {n_gates} | {more} |\n", show(*time))
        };
        let verdict = if self.is_well() { "met" } else { "**not met**" };
        let batched = format!("{:.2} of one by one; limit {BATCHED_MAX:.2}: {verdict}", self.ratio());
        let head = format!(
            "| {MERGES} merges, a gate of {gate} s | time | merged | came back | gate runs | |\n|---|--:|--:|--:|--:|---|\n"
        );
        let rows = [
            row("one by one (`refinery.batch = 1`)", &self.alone, String::new()),
            row("batched", &self.batched, batched),
            row("batched, one of them breaks the gate", &self.one_bad, "only it comes back".to_owned()),
        ];
        head + rows.concat().trim_end()
    }
}

fn show(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{:.0} ms", time.as_secs_f64() * 1e3);
    }
    format!("{:.1} s", time.as_secs_f64())
}
