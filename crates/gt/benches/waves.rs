//! `cargo bench --bench waves`: what does planning a convoy cost, and does it stay linear?
//!
//! Ours stands beside petgraph's `toposort` of the same graph in memory, in the same run; ours also gives the waves,
//! what is gated and what is wrong. Reading the graph out of a store is told apart. Prints Markdown for
//! `docs/benchmarks.md`; exits with 1 when a limit is not met. `-- --quick` leaves the largest graph out of the store.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::convoy::graph::{Graph, Link, LinkKind, Place, Spot};
use gt_core::convoy::plan::{self, Source};
use gt_core::rig::{Rig, RigState};
use gt_engine::intake;
use gt_store::{Going, ImportOptions, Staging, Stamp, Store};
use jiff::Timestamp;
use petgraph::graph::{DiGraph, NodeIndex};

const SIZES: [usize; 2] = [100_000, 1_000_000];
const ROUNDS: usize = 5;
/// Ours to petgraph's, and ten times the beads to ten times the time.
const RATIO_MAX: f64 = 3.0;
const GROWTH_MAX: f64 = 1.5;

/// A small generator; the numbers only have to be the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Each bead waits for up to three earlier ones, anywhere: pairs of waiting and waited for.
fn edges(size: usize) -> Vec<(u32, u32)> {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut edges = Vec::with_capacity(size * 3 / 2);
    for at in 1..size {
        for _ in 0..dice.roll(4) {
            edges.push((at as u32, dice.roll(at) as u32));
        }
    }
    edges
}

fn id(at: usize) -> String {
    format!("gt-{at:07}")
}

struct Measured {
    size: usize,
    n_edges: usize,
    n_waves: usize,
    ours: Duration,
    petgraph: Duration,
    /// Making the graph from lists of beads and edges.
    made: Duration,
}

impl Measured {
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.petgraph.as_secs_f64()
    }
}

fn measure(size: usize) -> Measured {
    eprintln!("planning {size} beads …");
    let edges = edges(size);
    let theirs: DiGraph<(), (), u32> = DiGraph::from_edges(edges.iter().map(|(from, to)| (*to, *from)));
    let spots: Vec<Spot> = (0..size).map(|at| Spot { rig: Some(0), ..Spot::new(id(at), "") }).collect();
    let places = vec![Place { name: "shop".to_owned(), state: RigState::Active }];
    let links: Vec<Link> =
        edges.iter().map(|(source, target)| Link { source: *source, target: *target, kind: LinkKind::Holds }).collect();
    let start = Instant::now();
    let graph = Graph::new(spots, places, &links);
    let made = start.elapsed();
    let (mut ours, mut petgraph, mut n_waves) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let order: Vec<NodeIndex<u32>> = petgraph::algo::toposort(&theirs, None).expect("there is no ring");
        petgraph.push(start.elapsed());
        black_box(order);
        let start = Instant::now();
        let plan = plan::plan(&graph, Source::Tasks);
        ours.push(start.elapsed());
        assert!(plan.n_tasks() == size && plan.errors.is_empty());
        n_waves = plan.n_waves();
    }
    let n_edges = graph.n_edges();
    Measured { size, n_edges, n_waves, ours: median(ours), petgraph: median(petgraph), made }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The same graph in a store: below one epic.
struct Stored {
    size: usize,
    staged: Duration,
    again: Duration,
    seen: Duration,
}

fn store(dir: &Path, size: usize) -> Stored {
    eprintln!("staging {size} beads out of a store …");
    let mut store = Store::create(&dir.join(format!("{size}.db"))).expect("a store");
    let rig = Rig {
        name: "shop".to_owned(),
        prefix: "gt".to_owned(),
        path: "/src/shop".to_owned(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    };
    store.add_rig(&rig, &stamp()).expect("a rig");
    let file = intake::read(jsonl(size).as_bytes(), |_| {});
    intake::import(&mut store, file, &ImportOptions::default(), &stamp(), |_| {}).expect("the import");
    let staging = Staging { words: vec!["gt-epic".to_owned()], title: None, then: Going::Stage };
    let start = Instant::now();
    let staged = store.stage_convoy(&staging, &stamp()).expect("it can be staged");
    let first = start.elapsed();
    assert_eq!(staged.plan.n_tasks(), size);
    let start = Instant::now();
    assert!(store.stage_convoy(&staging, &stamp()).expect("it can be staged again").is_restaged);
    let again = start.elapsed();
    let start = Instant::now();
    let picture = store.convoy_picture(&staged.convoy.expect("it was stored"), Timestamp::now()).expect("a picture");
    assert_eq!(picture.n_total(), size);
    Stored { size, staged: first, again, seen: start.elapsed() }
}

fn jsonl(size: usize) -> String {
    let mut text = r#"{"id":"gt-epic","title":"All of it","issue_type":"epic"}"#.to_owned() + "\n";
    let edges = edges(size);
    let mut rest = edges.iter().peekable();
    for at in 0..size {
        write!(text, r#"{{"id":"{}","title":"Bead number {at}","dependencies":["#, id(at)).expect("it is a string");
        text.push_str(r#"{"depends_on_id":"gt-epic","type":"parent-child"}"#);
        while let Some((_, to)) = rest.next_if(|(from, _)| *from as usize == at) {
            write!(text, r#",{{"depends_on_id":"{}","type":"blocks"}}"#, id(*to as usize)).expect("it is a string");
        }
        text.push_str("]}\n");
    }
    text
}

fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "bench")
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let measured = SIZES.map(measure);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let in_store: &[usize] = if is_quick { &SIZES[..1] } else { &SIZES };
    let stored: Vec<Stored> = in_store.iter().map(|size| store(dir.path(), *size)).collect();
    println!("| beads | edges | waves | plan | petgraph | ratio | most | |\n|--:|--:|--:|--:|--:|--:|--:|---|");
    for one in &measured {
        let Measured { size, n_edges, n_waves, ours, petgraph, .. } = one;
        let (ours, theirs, ratio) = (show(*ours), show(*petgraph), one.ratio());
        let met = if ratio <= RATIO_MAX { "met" } else { "MISSED" };
        println!("| {size} | {n_edges} | {n_waves} | {ours} | {theirs} | {ratio:.2} | {RATIO_MAX:.1} | {met} |");
    }
    let factor = measured[1].size as f64 / measured[0].size as f64;
    let growth = measured[1].ours.as_secs_f64() / measured[0].ours.as_secs_f64() / factor;
    let of_theirs = measured[1].petgraph.as_secs_f64() / measured[0].petgraph.as_secs_f64() / factor;
    // A graph that no longer fits into the processor's caches costs everybody more for each edge.
    let is_linear = growth <= GROWTH_MAX.max(of_theirs * GROWTH_MAX);
    let met = if is_linear { "met" } else { "MISSED" };
    println!("\nTen times the beads cost {growth:.2} times as much each (petgraph: {of_theirs:.2}): {met}.\n");
    println!("| beads | made in memory | staged from the store | staged again | seen |\n|--:|--:|--:|--:|--:|");
    for (one, stored) in measured.iter().zip(&stored) {
        let Stored { size, staged, again, seen } = stored;
        println!("| {size} | {} | {} | {} | {} |", show(one.made), show(*staged), show(*again), show(*seen));
    }
    if !is_linear || measured.iter().any(|one| one.ratio() > RATIO_MAX) {
        std::process::exit(1);
    }
}

fn show(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
