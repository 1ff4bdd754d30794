//! The same work without us: processes started in a loop, rows committed to SQLite.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::agent;
use crate::town::{Town, open_gate};

/// Starts so many agents by hand; until the last one's first instruction.
pub(crate) fn starts(town: &Town, n: usize) -> Duration {
    started(town, n, |at| town.bare(town.argv(), at))
}

/// The same with a shell between, which stays to see the end.
pub(crate) fn shimmed_starts(town: &Town, n: usize) -> Duration {
    let script = "\"$@\"; echo $? > /dev/null";
    let shim = ["/bin/sh", "-c", script, "shim"].map(str::to_owned);
    let argv: Vec<String> = shim.into_iter().chain(town.argv().iter().cloned()).collect();
    started(town, n, |at| town.bare(&argv, at))
}

fn started(town: &Town, n: usize, command: impl Fn(usize) -> Command) -> Duration {
    town.forget_stamps();
    let start = agent::now();
    let mut children: Vec<Child> = (0..n).map(|at| command(at).spawn().expect("the program starts")).collect();
    let took = town.await_stamps(n).saturating_sub(start);
    for child in &mut children {
        while child.try_wait().expect("it is a child").is_none() {
            open_gate(&town.root());
        }
    }
    took
}

/// One process after the other, with one durable commit between.
pub(crate) fn chain(town: &Town, n: usize) -> Duration {
    let store = store(town);
    let start = Instant::now();
    for at in 0..n {
        town.bare(&agent::nothing(), 0).status().expect("the program starts");
        commit(&store, at);
    }
    start.elapsed()
}

/// What a sling to a daemon cannot do without.
pub(crate) fn two_starts_three_commits(town: &Town) -> Duration {
    let store = store(town);
    town.forget_stamps();
    let start = agent::now();
    town.bare(&agent::nothing(), 0).status().expect("the program starts");
    (0..3).for_each(|at| commit(&store, at));
    let mut child = town.bare(town.argv(), 1).spawn().expect("the program starts");
    let took = town.await_stamps(1).saturating_sub(start);
    while child.try_wait().expect("it is a child").is_none() {
        open_gate(&town.root());
    }
    took
}

/// A database as durable as the town's.
fn store(town: &Town) -> Connection {
    let store = Connection::open(town.root().join("bare.db")).expect("it can be made");
    store.pragma_update(None, "journal_mode", "WAL").expect("it can be set");
    store.pragma_update(None, "synchronous", "FULL").expect("it can be set");
    store.execute_batch("CREATE TABLE IF NOT EXISTS link (n INTEGER, text TEXT)").expect("it can be made");
    store
}

fn commit(store: &Connection, at: usize) {
    store.execute("INSERT INTO link VALUES (?1, 'done')", [at as i64]).expect("it can be written");
}
