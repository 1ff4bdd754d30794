//! Ways, rings, and which edges of a batch close one.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

/// A graph as text: `a>b b>c`.
fn check_path(graph: &str, from: char, to: char, wanted: Option<&str>) {
    let next = |here: &char| -> Result<Vec<char>, Infallible> {
        let arcs = graph.split_whitespace().map(|arc| (arc.chars().next().unwrap(), arc.chars().last().unwrap()));
        Ok(arcs.filter(|(source, _)| source == here).map(|(_, target)| target).collect())
    };
    let Ok(way) = path(&from, &to, next);
    assert_eq!(way.map(String::from_iter).as_deref(), wanted, "{from} to {to} in {graph}");
}

#[test]
fn a_path_is_the_shortest_way_with_both_ends() {
    check_path("a>b b>c", 'a', 'c', Some("abc"));
    check_path("a>b b>c a>c", 'a', 'c', Some("ac"));
    check_path("a>b b>c c>d a>e e>d", 'a', 'd', Some("aed"));
    check_path("a>b b>a", 'a', 'a', Some("a"));
}

#[test]
fn where_there_is_no_way_there_is_none_also_among_rings() {
    check_path("a>b", 'b', 'a', None);
    check_path("a>b b>c c>a d>a", 'a', 'd', None);
    check_path("", 'a', 'b', None);
}

#[test]
fn a_search_that_fails_says_so() {
    assert_eq!(path(&1, &2, |_| Err::<Vec<i32>, &str>("no disk")), Err("no disk"));
}

#[test]
fn a_ring_begins_and_ends_with_the_same_bead() {
    use Spot::{Bead, ChildrenOf};
    let check = |way: &[Spot<char>], wanted: &str| assert_eq!(String::from_iter(ring(way)), wanted, "{way:?}");
    check(&[Bead('a'), Bead('b'), Bead('a')], "aba");
    check(&[Bead('a'), Bead('b')], "aba");
    check(&[Bead('a')], "aa");
    check(&[Bead('a'), ChildrenOf('p'), Bead('c'), Bead('a')], "aca");
    check(&[ChildrenOf('p'), Bead('c'), Bead('p'), ChildrenOf('p')], "cpc");
}

#[test]
fn every_edge_type_stands_for_its_waiting() {
    let shown = |kind: &str| {
        let arcs = arcs(&'a', &'b', &EdgeType::parse(kind));
        arcs.map(|(from, to)| format!("{from:?} → {to:?}")).collect::<Vec<_>>().join(", ")
    };
    for kind in ["blocks", "conditional-blocks", "merge-blocks"] {
        assert_eq!(shown(kind), "Bead('a') → Bead('b')", "{kind}");
    }
    assert_eq!(shown("waits-for"), "Bead('a') → Bead('b'), Bead('a') → ChildrenOf('b')");
    assert_eq!(shown("parent-child"), "Bead('a') → Bead('b'), ChildrenOf('b') → Bead('a')");
    assert_eq!(shown("tracks"), "");
}

/// Adds the batch edge by edge in order of owners, and leaves out each that finds a way back.
fn naive(n_spots: u32, batch: &[BatchArc]) -> Vec<u32> {
    let mut accepted: Vec<(u32, u32)> = Vec::new();
    let mut dropped = Vec::new();
    let fixed = batch.iter().filter(|arc| arc.owner.is_none());
    accepted.extend(fixed.map(|arc| (arc.from, arc.to)));
    let mut owners: Vec<u32> = batch.iter().filter_map(|arc| arc.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    for owner in owners {
        let group: Vec<(u32, u32)> =
            batch.iter().filter(|arc| arc.owner == Some(owner)).map(|arc| (arc.from, arc.to)).collect();
        if group.iter().any(|(from, to)| reach(n_spots, &accepted, *to)[*from as usize]) {
            dropped.push(owner);
        } else {
            accepted.extend(group);
        }
    }
    dropped
}

/// What can be reached from a spot, itself included, by trying all arcs again and again.
fn reach(n_spots: u32, arcs: &[(u32, u32)], from: u32) -> Vec<bool> {
    let mut reached = vec![false; n_spots as usize];
    reached[from as usize] = true;
    for _ in 0..n_spots {
        for (source, target) in arcs {
            reached[*target as usize] |= reached[*source as usize];
        }
    }
    reached
}

fn is_acyclic(n_spots: u32, arcs: &[(u32, u32)]) -> bool {
    arcs.iter().all(|(from, to)| !reach(n_spots, arcs, *to)[*from as usize])
}

const N_BEADS: u32 = 7;
const N_SPOTS: u32 = 2 * N_BEADS;

fn number(spot: Spot<u32>) -> u32 {
    match spot {
        Spot::Bead(bead) => bead,
        Spot::ChildrenOf(bead) => N_BEADS + bead,
    }
}

/// A batch as an import makes it: real edges between beads, some of them there already.
fn some_batch() -> impl Strategy<Value = Vec<BatchArc>> {
    let kinds = ["blocks", "merge-blocks", "waits-for", "parent-child", "tracks"];
    let edge = (0..N_BEADS, 0..N_BEADS, 0..kinds.len());
    (proptest::collection::vec(edge.clone(), 0..4), proptest::collection::vec(edge, 0..16)).prop_map(
        move |(present, wanted)| {
            let mut batch: Vec<BatchArc> = Vec::new();
            for (source, target, kind) in present {
                let n_before = batch.len();
                for (from, to) in arcs(&source, &target, &EdgeType::parse(kinds[kind])) {
                    batch.push(BatchArc { from: number(from), to: number(to), owner: None });
                }
                if !is_acyclic(N_SPOTS, &without(&batch, &[])) {
                    batch.truncate(n_before); // what is there already has no rings
                }
            }
            for (owner, (source, target, kind)) in wanted.into_iter().enumerate() {
                for (from, to) in arcs(&source, &target, &EdgeType::parse(kinds[kind])) {
                    batch.push(BatchArc { from: number(from), to: number(to), owner: Some(owner as u32) });
                }
            }
            batch
        },
    )
}

fn without(batch: &[BatchArc], dropped: &[u32]) -> Vec<(u32, u32)> {
    let stays = |arc: &&BatchArc| arc.owner.is_none_or(|owner| !dropped.contains(&owner));
    batch.iter().filter(stays).map(|arc| (arc.from, arc.to)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_the_dropped_edges_there_is_no_ring(batch in some_batch()) {
        let dropped = closing_edges(N_SPOTS as usize, &batch);
        prop_assert!(is_acyclic(N_SPOTS, &without(&batch, &dropped)), "{:?} of {:?}", dropped, batch);
    }

    #[test]
    fn nothing_is_dropped_where_there_was_no_ring(batch in some_batch()) {
        if is_acyclic(N_SPOTS, &without(&batch, &[])) {
            prop_assert_eq!(closing_edges(N_SPOTS as usize, &batch), Vec::<u32>::new());
        }
    }

    #[test]
    fn judged_by_one_order_there_is_no_ring_either_and_what_was_there_stays(batch in some_batch()) {
        let dropped = closing_within(N_SPOTS as usize, &batch, 0);
        prop_assert!(is_acyclic(N_SPOTS, &without(&batch, &dropped)), "{:?} of {:?}", dropped, batch);
        if is_acyclic(N_SPOTS, &without(&batch, &[])) {
            prop_assert_eq!(dropped, Vec::<u32>::new());
        }
    }

    #[test]
    fn the_dropped_are_those_that_adding_one_by_one_refuses(batch in some_batch()) {
        prop_assert_eq!(closing_edges(N_SPOTS as usize, &batch), naive(N_SPOTS, &batch));
    }
}

/// Arcs as text, owner after the dash (`0>1-0`), without one for those that are there already.
fn check_closing(text: &str, wanted: &[u32]) {
    let number = |word: &str| word.parse::<u32>().unwrap();
    let arc = |word: &str| {
        let (arc, owner) = word.split_once('-').map_or((word, None), |(arc, owner)| (arc, Some(number(owner))));
        let (from, to) = arc.split_once('>').unwrap();
        BatchArc { from: number(from), to: number(to), owner }
    };
    let arcs: Vec<BatchArc> = text.split_whitespace().map(arc).collect();
    assert_eq!(closing_edges(10, &arcs), wanted, "{text}");
}

#[test]
fn the_last_edge_of_a_ring_is_the_one_that_closes_it() {
    check_closing("", &[]);
    check_closing("0>1-0 1>2-1 2>0-2", &[2]);
    check_closing("2>0-0 0>1-1 1>2-2", &[2]);
    check_closing("0>0-0", &[0]);
    check_closing("0>1 1>0-0", &[0]);
    check_closing("1>0-0 0>1", &[0]);
    check_closing("0>1-0 1>0-1 1>2-2 2>1-3", &[1, 3]);
    check_closing("0>1-0 1>0-1 1>0-2", &[1, 2]);
}

#[test]
fn a_long_chain_costs_no_stack_and_no_time() {
    const N: u32 = 100_000;
    let mut chain: Vec<BatchArc> = (1..N).map(|at| BatchArc { from: at - 1, to: at, owner: Some(at) }).collect();
    assert_eq!(closing_edges(N as usize, &chain), Vec::<u32>::new());
    chain.push(BatchArc { from: N - 1, to: 0, owner: Some(N) });
    assert_eq!(closing_edges(N as usize, &chain), vec![N]);
}

#[test]
fn a_long_ring_costs_no_more_whichever_way_it_is_written() {
    const N: u32 = 20_000;
    let ring = |arc: &dyn Fn(u32) -> (u32, u32)| {
        let batch: Vec<BatchArc> =
            (0..N).map(|at| (at, arc(at))).map(|(at, (from, to))| BatchArc { from, to, owner: Some(at) }).collect();
        assert_eq!(closing_edges(N as usize, &batch), vec![N - 1]);
    };
    ring(&|at| (at, (at + 1) % N));
    ring(&|at| ((at + 1) % N, at));
}

#[test]
fn a_tangle_of_many_rings_is_judged_in_time() {
    const N: u32 = 30_000;
    let mut dice = 1_u32;
    let mut roll = || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (dice >> 8) % N
    };
    let arcs: Vec<BatchArc> =
        (0..3 * N).map(|owner| BatchArc { from: roll(), to: roll(), owner: Some(owner) }).collect();
    let dropped: std::collections::BTreeSet<u32> = closing_edges(N as usize, &arcs).into_iter().collect();
    let kept: Vec<BatchArc> =
        arcs.iter().filter(|arc| arc.owner.is_some_and(|owner| !dropped.contains(&owner))).copied().collect();
    assert!(closing_within(N as usize, &kept, 0).is_empty(), "no ring is left");
    assert!(kept.len() > arcs.len() / 2, "most edges stay: {} of {}", kept.len(), arcs.len());
}
