//! The store's verbs on towns of several sizes, each beside raw SQLite.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gt_engine::{Town, intake};
use gt_store::{ImportOptions, ReadyFilter, Stamp, Store};
use jiff::Timestamp;

use crate::raw::{Raw, import_plain};
use crate::synthetic;

const ROUNDS: usize = 400;
/// Beads that people and agents keep looking at, spread over the whole town.
const WORKING_SET: usize = 40;
pub(crate) const FAN_OUTS: [usize; 4] = [1, 100, 1_000, 10_000];

/// Ours and raw SQLite's, for the same work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) ours: Duration,
    pub(crate) raw: Duration,
}

impl Pair {
    pub(crate) fn ratio(self) -> f64 {
        self.ours.as_secs_f64() / self.raw.as_secs_f64()
    }
}

pub(crate) struct Measured {
    pub(crate) size: usize,
    pub(crate) town: PathBuf,
    pub(crate) import: Pair,
    /// The same import beside tables without any secondary index.
    pub(crate) import_plain: Pair,
    pub(crate) ready: Pair,
    /// A bead out of a few dozen that are looked at again and again.
    pub(crate) show: Pair,
    /// A bead that nobody has looked at for long: its pages come from the file.
    pub(crate) first_look: Pair,
    pub(crate) close: Vec<(usize, Pair)>,
}

impl Measured {
    /// What one more dependent costs between 1,000 and 10,000, to what it costs between 100 and 1,000.
    pub(crate) fn growth(&self) -> f64 {
        let [few, more, many] = [1, 2, 3].map(|at| self.close[at].1.ours.as_secs_f64());
        ((many - more) / 9_000.0) / ((more - few) / 900.0)
    }
}

pub(crate) fn measure(dir: &Path, size: usize) -> Measured {
    let (town, _) = Town::init(dir, &stamp()).expect("a town");
    let mut store = town.open_store().expect("its store");
    let mut raw = Raw::create(&dir.join("raw.db"));
    let (import, import_plain) = import(&mut store, &mut raw, dir, size);
    // A fresh connection, as every command has one.
    drop(store);
    let mut store = town.open_store().expect("its store");
    let ready = ready(&mut store, &raw);
    let (show, first_look) = (show(&mut store, &raw, size), first_look(&mut store, &raw, size));
    let close = FAN_OUTS.into_iter().map(|n| (n, close(&mut store, dir, n))).collect();
    Measured { size, town: dir.to_owned(), import, import_plain, ready, show, first_look, close }
}

fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "bench")
}

/// Imports into the town, and for a median into fresh stores beside it. Raw SQLite gets the rows already parsed.
fn import(store: &mut Store, raw: &mut Raw, dir: &Path, size: usize) -> (Pair, Pair) {
    let text = synthetic::jsonl(size);
    let rounds = if size > 100_000 { 1 } else { 1 + 400_000 / (size + 99_000) };
    let mut times = vec![import_once(store, raw, &dir.join("plain.db"), &text)];
    for round in 1..rounds {
        let path = |name: &str| dir.join(format!("again-{name}-{round}.db"));
        let mut store = Store::create(&path("import")).expect("a store");
        times.push(import_once(&mut store, &mut Raw::create(&path("raw")), &path("plain"), &text));
    }
    let middle = |which: usize| median(rounds, |round| times[round][which]);
    let [ours, same, plain] = [0, 1, 2].map(middle);
    (Pair { ours, raw: same }, Pair { ours, raw: plain })
}

/// From the file's bytes to the commit; then the store's own tables, then plain ones.
fn import_once(store: &mut Store, raw: &mut Raw, plain: &Path, text: &str) -> [Duration; 3] {
    let start = Instant::now();
    let file = intake::read(text.as_bytes(), |_| {});
    intake::import(store, file, &ImportOptions::default(), &stamp(), |_| {}).expect("the import");
    let ours = start.elapsed();
    let file = intake::read(text.as_bytes(), |_| {});
    [ours, raw.import(&file.beads), import_plain(plain, &file.beads)]
}

fn ready(store: &mut Store, raw: &Raw) -> Pair {
    let ours = median(ROUNDS, |_| {
        let start = Instant::now();
        let listing = store.ready(&ReadyFilter::default(), 100, Timestamp::now()).expect("an answer");
        assert_eq!(listing.beads.len(), 100);
        start.elapsed()
    });
    Pair { ours, raw: median(ROUNDS, |_| raw.read(1, 100)) }
}

fn show(store: &mut Store, raw: &Raw, size: usize) -> Pair {
    look(store, raw, |round| (round % WORKING_SET) * (size / WORKING_SET))
}

fn first_look(store: &mut Store, raw: &Raw, size: usize) -> Pair {
    look(store, raw, |round| (round * 7_919 + 13) % size)
}

fn look(store: &mut Store, raw: &Raw, place: impl Fn(usize) -> usize) -> Pair {
    let ours = median(ROUNDS, |round| {
        let id = synthetic::id(place(round));
        let start = Instant::now();
        store.bead(&id).expect("the bead");
        start.elapsed()
    });
    Pair { ours, raw: median(ROUNDS, |round| raw.read(place(round) as i64 + 1, 1)) }
}

/// Closes a bead that so many others wait for; reopening it for the next round is not timed.
fn close(store: &mut Store, dir: &Path, n_dependents: usize) -> Pair {
    let file = intake::read(synthetic::hub_jsonl(n_dependents).as_bytes(), |_| {});
    let mut raw = Raw::create(&dir.join(format!("raw-{n_dependents}.db")));
    raw.import(&file.beads);
    intake::import(store, file, &ImportOptions::default(), &stamp(), |_| {}).expect("the import");
    let hub = [synthetic::hub(n_dependents)];
    let rounds = if n_dependents > 1000 { 21 } else { 101 };
    let ours = median(rounds, |_| {
        let start = Instant::now();
        let changed = store.close_beads(&hub, None, &stamp()).expect("it closes");
        let took = start.elapsed();
        assert_eq!(changed.became_ready.len(), n_dependents);
        store.reopen_beads(&hub, &stamp()).expect("it reopens");
        took
    });
    // The dependents and the hub.
    let standing = |round: usize| if round.is_multiple_of(2) { "blocked" } else { "ready" };
    Pair { ours, raw: median(rounds, |round| raw.update(n_dependents + 1, standing(round))) }
}

pub(crate) fn median(rounds: usize, mut once: impl FnMut(usize) -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..rounds).map(&mut once).collect();
    times.sort_unstable();
    times[rounds / 2]
}
