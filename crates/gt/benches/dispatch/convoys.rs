//! The table of seed 001 §7: how long until all of a convoy's ready work is dispatched, in direct and deferred mode.
//!
//! From the start of the command that is the cause to the first instruction of the last agent; of the chain, to the close
//! of its last bead.

use std::time::Duration;

use crate::town::Town;
use crate::{agent, median, refs, show};

/// Every row has to be faster than this, with slots free.
const MOST: Duration = Duration::from_secs(1);

/// One row: what happens, what the seed says of it, and how it is measured.
struct Row {
    name: &'static str,
    seed: &'static str,
    role: &'static str,
    measure: fn(&Town) -> Duration,
}

const ROWS: [Row; 5] = [
    Row { name: "launch: 8 beads of wave 1", seed: "at once", role: agent::STAMP, measure: |town| launch(town, 8) },
    Row { name: "chain of 4", seed: "5 s a step", role: agent::FINISH, measure: |town| chain(town, 4) },
    Row { name: "fan-out: one close frees 3", seed: "65 s", role: agent::STAMP, measure: |town| fan_out(town, 3) },
    Row { name: "fan-out: one close frees 10", seed: "4.5 min", role: agent::STAMP, measure: |town| fan_out(town, 10) },
    Row { name: "cold convoy of 10, no launch", seed: "5 min", role: agent::STAMP, measure: |town| cold(town, 10) },
];

/// Prints the table; whether every row was fast enough.
pub(crate) fn report(rounds: usize) -> bool {
    println!("| what | in the seed | direct | deferred |\n|---|--:|--:|--:|");
    let mut is_fast = true;
    for row in ROWS {
        eprintln!("{} …", row.name);
        let [direct, deferred] = [0, 64].map(|cap| {
            let town = Town::new(cap, row.role);
            median((0..rounds).map(|_| (row.measure)(&town)).collect())
        });
        is_fast &= direct.max(deferred) < MOST;
        println!("| {} | {} | {} | {} |", row.name, row.seed, show(direct), show(deferred));
    }
    println!("\nEvery row under a second: {}.", if is_fast { "met" } else { "**not met**" });
    is_fast
}

fn launch(town: &Town, n: usize) -> Duration {
    let beads = town.create(n, None);
    let took = until_started(town, n, &[&["convoy", "launch", "--force"], refs(&beads).as_slice()].concat());
    town.finish(&beads);
    took
}

fn cold(town: &Town, n: usize) -> Duration {
    let beads = town.create(n, None);
    let took = until_started(town, n, &[&["convoy", "create", "Cold"], refs(&beads).as_slice()].concat());
    town.finish(&beads);
    took
}

/// The blocker is assigned to a person, so that only its close counts.
fn fan_out(town: &Town, n: usize) -> Duration {
    let blocker = town.create(1, None).remove(0);
    town.gt(&["bead", "update", &blocker, "--assignee", "ann"]);
    let beads = town.create(n, Some(&blocker));
    town.gt(&[&["convoy", "create", "Fan", &blocker], refs(&beads).as_slice()].concat());
    let took = until_started(town, n, &["close", &blocker]);
    town.finish(&beads);
    took
}

fn chain(town: &Town, n: usize) -> Duration {
    let beads = town.create_chain(n);
    let start = agent::now();
    town.gt(&[&["convoy", "launch", "--force"], refs(&beads).as_slice()].concat());
    town.await_closed(beads.last().expect("a chain has an end"));
    agent::now().saturating_sub(start)
}

fn until_started(town: &Town, n: usize, cause: &[&str]) -> Duration {
    town.forget_stamps();
    let start = agent::now();
    town.gt(cause);
    town.await_stamps(n).saturating_sub(start)
}
