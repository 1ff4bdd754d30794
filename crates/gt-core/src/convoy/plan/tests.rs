//! Tests of waves, gates and rings: tables, and properties of random graphs.

mod findings;
mod properties;

use super::super::findings::Category;
use super::super::graph::{Graph, Link, LinkKind, Place, Spot};
use super::*;
use crate::edge::EdgeType;
use crate::rig::RigState;
use crate::status::{self, Status};

/// Beads as `id`, `id:type` or `id:type:status`, with ` @rig` at home in a rig, and `-id` for those that are only
/// waited for; edges as `a<b` (b waits for a) and `a>b` (a is b's parent).
pub(super) fn graph(beads: &str, edges: &str) -> Graph {
    let spots: Vec<Spot> = beads.split_whitespace().map(spot).collect();
    let place = |id: &str| spots.iter().position(|spot| spot.id == id).expect("it is a bead of the test") as u32;
    let link = |words: &str| {
        let (kind, a, b) = match words.split_once('<') {
            Some((a, b)) => (EdgeType::Blocks, a, b),
            None => words.split_once('>').map(|(a, b)| (EdgeType::ParentChild, a, b)).expect("an edge"),
        };
        let (source, target) = (place(b), place(a));
        let holds = spots[target as usize].status.is_active();
        Link { source, target, kind: LinkKind::of(&kind, holds).expect("plans look at it") }
    };
    let links: Vec<Link> = edges.split_whitespace().map(link).collect();
    let places = [("shop", RigState::Active), ("attic", RigState::Parked), ("dock", RigState::Docked)];
    let places = places.into_iter().map(|(name, state)| Place { name: name.to_owned(), state }).collect();
    Graph::new(spots, places, &links)
}

fn spot(words: &str) -> Spot {
    let (words, rig) = words.split_once('@').unwrap_or((words, "shop"));
    let mut parts = words.split(':');
    let id = parts.next().expect("a word has a first part");
    let kind = parts.next().unwrap_or("task");
    let mut spot = Spot::new(id.trim_start_matches('-'), format!("Do {id}"));
    spot.is_member = !id.starts_with('-');
    spot.kind = (kind != "task").then(|| kind.into());
    spot.is_slingable = status::is_slingable(Some(kind));
    spot.status = Status::parse(parts.next().unwrap_or("open"));
    spot.rig = ["shop", "attic", "dock"].iter().position(|name| *name == rig).map(|at| at as u32);
    spot
}

fn ids(graph: &Graph, beads: &[u32]) -> String {
    beads.iter().map(|at| graph.id(*at)).collect::<Vec<_>>().join(" ")
}

/// Waves, what is gated by what, and rings: `a | b c; d by e; a → b → a`.
fn shown(beads: &str, edges: &str) -> String {
    let graph = graph(beads, edges);
    let plan = plan(&graph, Source::Tasks);
    let mut parts = vec![plan.waves().map(|wave| ids(&graph, wave)).collect::<Vec<_>>().join(" | ")];
    let gated = |gated: &Gated| format!("{} by {}", graph.id(gated.bead), ids(&graph, &gated.by));
    parts.extend(plan.gated.iter().map(gated));
    let cycles = plan.errors.iter().filter(|error| error.category == Category::Cycle);
    parts.extend(cycles.map(|error| error.message.clone()));
    parts.join("; ")
}

#[test]
fn waves_follow_direct_blocking_edges() {
    for (beads, edges, expected) in [
        ("a b c", "", "a b c"),
        ("a b c", "a<b b<c", "a | b | c"),
        ("a b c d", "a<b a<c b<d c<d", "a | b c | d"),
        ("a b c d", "a<b b<d", "a c | b | d"),
        ("d c b a", "a<b a<b b<d", "a c | b | d"),
        ("", "", ""),
        // Parents never order.
        ("e:epic a b", "e>a e>b a<b", "a | b"),
        ("a b", "a>b", "a b"),
    ] {
        assert_eq!(shown(beads, edges), expected, "{beads} with {edges}");
    }
}

#[test]
fn only_active_work_of_the_convoy_is_in_a_wave() {
    for (beads, edges, expected) in [
        ("e:epic d:decision a:bug b:feature c:chore", "", "a b c"),
        // What is done is in no wave and holds nothing back.
        ("a:task:closed b:task:tombstone c:task:pinned d", "a<d b<d c<d", "d"),
        ("a:task:in_progress b", "a<b", "a | b"),
        // What lies outside is somebody else's; readiness waits for it, the waves do not.
        ("-x a b", "x<a a<b", "a | b"),
    ] {
        assert_eq!(shown(beads, edges), expected, "{beads} with {edges}");
    }
}

#[test]
fn what_waits_for_no_agents_work_is_gated() {
    for (beads, edges, expected) in [
        ("d:decision a b", "d<a", "b; a by d"),
        ("-d:decision a b", "d<a", "b; a by d"),
        ("d:decision:closed a", "d<a", "a"),
        ("d:decision:tombstone a", "d<a", "a"),
        ("d:decision a b c", "d<a a<b c<b", "c; a by d; b by d"),
        ("d:decision e:epic a b c", "d<a e<b a<c b<c", "; a by d; b by e; c by d e"),
        ("d:decision a b", "d<a d<b", "; a by d; b by d"),
    ] {
        assert_eq!(shown(beads, edges), expected, "{beads} with {edges}");
    }
}

#[test]
fn rings_are_told_from_their_first_bead_on() {
    let told = |ring: &str| format!("these wait for each other: {ring}");
    for (beads, edges, expected) in [
        ("a b", "a<b b<a", format!("; {}", told("a → b → a"))),
        ("a", "a<a", format!("; {}", told("a → a"))),
        ("c b a", "b<a c<b a<c", format!("; {}", told("a → b → c → a"))),
        ("a b x y z", "a<b b<a x<y y<x b<z", format!("; {}; {}", told("a → b → a"), told("x → y → x"))),
        // A ring is found whatever else is wrong with it, and what is free of it keeps its wave.
        ("d:decision a b c", "d<a a<b b<a", format!("c; {}", told("a → b → a"))),
        ("d:decision e:epic", "d<e e<d", String::new()),
        ("a:task:closed b", "a<b b<a", "b".to_owned()),
    ] {
        assert_eq!(shown(beads, edges), expected, "{beads} with {edges}");
    }
}

#[test]
fn gates_are_named_up_to_a_limit() {
    let gates: Vec<String> = (0..40).map(|at| format!("d{at:02}:decision")).collect();
    let edges: Vec<String> = (0..40).map(|at| format!("d{at:02}<a")).collect();
    let graph = graph(&format!("{} a b", gates.join(" ")), &format!("{} a<b", edges.join(" ")));
    let plan = plan(&graph, Source::Tasks);
    assert_eq!(plan.gated.len(), 2);
    assert!(plan.gated.iter().all(|gated| gated.by.len() == GATES_MAX && gated.by == plan.gated[0].by));
}

#[test]
fn a_long_chain_is_planned_without_deep_calls() {
    let n = 100_000_u32;
    let spots = (0..n).map(|at| Spot { rig: Some(0), ..Spot::new(format!("t{at:06}"), "") }).collect();
    let places = vec![Place { name: "shop".to_owned(), state: RigState::Active }];
    let link = |at: u32, target: u32| Link { source: at, target, kind: LinkKind::Holds };
    let mut links: Vec<Link> = (1..n).map(|at| link(at, at - 1)).collect();
    let chain = plan(&Graph::new(spots, places, &links), Source::Tasks);
    assert_eq!((chain.n_waves(), chain.n_tasks(), chain.widest()), (n as usize, n as usize, Some((1, 1))));
    links.push(link(0, n - 1));
    let spots = (0..n).map(|at| Spot::new(format!("t{at:06}"), "")).collect();
    let ring = plan(&Graph::new(spots, Vec::new(), &links), Source::Tasks);
    assert_eq!((ring.n_waves(), ring.errors[0].beads.len()), (0, n as usize));
}
