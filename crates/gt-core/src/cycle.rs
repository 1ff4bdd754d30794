//! Cycles: which edge would make beads wait for each other for ever. // SPEC B5
//!
//! A bead waits for what blocks it, for what blocks its parent, and, through `waits-for`, for another
//! bead's children. All of that is one graph of `Spot`s; an edge is refused when it closes a ring in it.
//! Statuses do not matter: a closed bead can be reopened.

use std::collections::VecDeque;
use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::edge::EdgeType;

/// A place in the waiting graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spot<T> {
    Bead(T),
    /// "The children of": what a `waits-for` edge waits on.
    ChildrenOf(T),
}

impl<T> Spot<T> {
    pub fn bead(&self) -> &T {
        match self {
            Spot::Bead(bead) | Spot::ChildrenOf(bead) => bead,
        }
    }
}

impl Spot<u32> {
    /// Two numbers a bead: one for itself, one for its children.
    pub fn number(&self) -> u32 {
        match self {
            Spot::Bead(bead) => 2 * bead,
            Spot::ChildrenOf(bead) => 2 * bead + 1,
        }
    }
}

/// The waiting that one edge stands for.
pub fn arcs<T: Clone>(source: &T, target: &T, kind: &EdgeType) -> impl Iterator<Item = (Spot<T>, Spot<T>)> + use<T> {
    let direct = (Spot::Bead(source.clone()), Spot::Bead(target.clone()));
    let by_children = match kind {
        EdgeType::WaitsFor => Some((Spot::Bead(source.clone()), Spot::ChildrenOf(target.clone()))),
        EdgeType::ParentChild => Some((Spot::ChildrenOf(target.clone()), Spot::Bead(source.clone()))),
        _ => None,
    };
    [kind.touches_readiness().then_some(direct), by_children].into_iter().flatten()
}

/// The shortest way from one place to another, both ends included.
pub fn path<N: Eq + Hash + Clone, E>(
    from: &N,
    to: &N,
    mut next: impl FnMut(&N) -> Result<Vec<N>, E>,
) -> Result<Option<Vec<N>>, E> {
    let mut came_from: FxHashMap<N, N> = FxHashMap::default();
    let mut seen: FxHashSet<N> = FxHashSet::from_iter([from.clone()]);
    let mut queue = VecDeque::from([from.clone()]);
    while let Some(here) = queue.pop_front() {
        if here == *to {
            return Ok(Some(trace(here, &came_from)));
        }
        for there in next(&here)? {
            if seen.insert(there.clone()) {
                came_from.insert(there.clone(), here.clone());
                queue.push_back(there);
            }
        }
    }
    Ok(None)
}

fn trace<N: Eq + Hash + Clone>(end: N, came_from: &FxHashMap<N, N>) -> Vec<N> {
    let mut way = vec![end];
    while let Some(previous) = came_from.get(&way[way.len() - 1]) {
        way.push(previous.clone());
    }
    way.reverse();
    way
}

/// The beads of a ring, its first repeated at the end: `a → b → a`.
pub fn ring<T: Clone + PartialEq>(way: &[Spot<T>]) -> Vec<T> {
    let mut beads: Vec<T> =
        way.iter().filter(|spot| matches!(spot, Spot::Bead(_))).map(|spot| spot.bead().clone()).collect();
    if beads.len() == 1 || beads.first() != beads.last() {
        beads.extend(beads.first().cloned());
    }
    beads
}

/// A ring in words; the middle of a long one is only counted.
pub fn show(ring: &[String]) -> String {
    const ENDS: usize = 6;
    if ring.len() <= 2 * ENDS + 1 {
        return ring.join(" → ");
    }
    let (start, end) = (&ring[..ENDS], &ring[ring.len() - ENDS..]);
    format!("{} → … {} more … → {}", start.join(" → "), ring.len() - 2 * ENDS, end.join(" → "))
}

/// One edge of a batch; `None` as owner marks what is there already and stays.
#[derive(Debug, Clone, Copy)]
pub struct BatchArc {
    pub from: u32,
    pub to: u32,
    pub owner: Option<u32>,
}

/// Which owners' edges close a ring when a batch is added in order; without them the graph has none.
///
/// Linear while there are no rings. Inside a ring's component each edge is tried on its own, for as long as that is
/// affordable; in a tangle beyond that the edges are judged by one order of all beads, which may drop a few more.
pub fn closing_edges(n_spots: usize, arcs: &[BatchArc]) -> Vec<u32> {
    closing_within(n_spots, arcs, STEPS_MAX)
}

/// How many steps may be spent on trying edges one by one: well under a second.
const STEPS_MAX: usize = 1_000_000;

fn closing_within(n_spots: usize, arcs: &[BatchArc], steps_max: usize) -> Vec<u32> {
    let component = components(n_spots, arcs);
    let mut inner: Vec<&BatchArc> =
        arcs.iter().filter(|arc| component[arc.from as usize] == component[arc.to as usize]).collect();
    inner.sort_by_key(|arc| arc.owner);
    let mut accepted = Accepted::default();
    let mut dropped = Vec::new();
    for group in inner.chunk_by(|a, b| a.owner == b.owner && a.owner.is_some()) {
        let closes = group.iter().any(|arc| arc.owner.is_some() && accepted.reaches(arc.to, arc.from));
        if accepted.n_steps > steps_max {
            return closing_by_order(n_spots, &inner);
        }
        if closes {
            dropped.extend(group[0].owner);
        } else {
            for arc in group {
                accepted.add(arc.from, arc.to);
            }
        }
    }
    dropped
}

/// Puts all spots in one order and drops what leads backwards in it; what is there already leads forwards.
fn closing_by_order(n_spots: usize, inner: &[&BatchArc]) -> Vec<u32> {
    let all: Vec<BatchArc> = inner.iter().map(|arc| **arc).collect();
    let fixed: Vec<BatchArc> = all.iter().filter(|arc| arc.owner.is_none()).copied().collect();
    let leads_on = |places: &[u32], arc: &BatchArc| places[arc.from as usize] < places[arc.to as usize];
    let mut places = order(n_spots, &all);
    if fixed.iter().any(|arc| !leads_on(&places, arc)) {
        places = order(n_spots, &fixed);
    }
    let mut dropped: Vec<u32> = all.iter().filter(|arc| !leads_on(&places, arc)).filter_map(|arc| arc.owner).collect();
    dropped.dedup();
    dropped
}

/// A place for each spot, before all that it waits for: depth first, so that only arcs that close a ring lead back.
fn order(n_spots: usize, arcs: &[BatchArc]) -> Vec<u32> {
    let (starts, targets) = adjacency(n_spots, arcs);
    let mut places = vec![UNSEEN; n_spots];
    let mut next_place = n_spots as u32;
    let mut entered = vec![false; n_spots];
    for root in 0..n_spots {
        let mut calls: Vec<(usize, u32)> = Vec::new();
        if !std::mem::replace(&mut entered[root], true) {
            calls.push((root, starts[root]));
        }
        while let Some((spot, at)) = calls.last_mut() {
            if *at == starts[*spot + 1] {
                next_place -= 1;
                places[*spot] = next_place;
                calls.pop();
                continue;
            }
            let there = targets[*at as usize] as usize;
            *at += 1;
            if !std::mem::replace(&mut entered[there], true) {
                calls.push((there, starts[there]));
            }
        }
    }
    places
}

/// The arcs taken so far, to be walked either way.
#[derive(Default)]
struct Accepted {
    after: FxHashMap<u32, Vec<u32>>,
    before: FxHashMap<u32, Vec<u32>>,
    /// Steps taken in all searches so far.
    n_steps: usize,
}

impl Accepted {
    fn add(&mut self, from: u32, to: u32) {
        self.after.entry(from).or_default().push(to);
        self.before.entry(to).or_default().push(from);
    }

    /// Searches from both ends in turn, and ends with the shorter search: one end of a new arc is mostly a fresh spot.
    fn reaches(&mut self, from: u32, to: u32) -> bool {
        let (mut ahead, mut behind) = (Search::from(from), Search::from(to));
        if from == to {
            return true;
        }
        while let (Some(next), Some(previous)) = (ahead.step(&self.after), behind.step(&self.before)) {
            self.n_steps += 1;
            if behind.seen.contains(&next) || ahead.seen.contains(&previous) {
                return true;
            }
        }
        false
    }
}

struct Search {
    seen: FxHashSet<u32>,
    open: VecDeque<u32>,
}

impl Search {
    fn from(start: u32) -> Search {
        Search { seen: FxHashSet::from_iter([start]), open: VecDeque::from([start]) }
    }

    /// Visits one more spot and returns it; `None` when there is none left.
    fn step(&mut self, arcs: &FxHashMap<u32, Vec<u32>>) -> Option<u32> {
        let here = self.open.pop_front()?;
        for there in arcs.get(&here).into_iter().flatten() {
            if self.seen.insert(*there) {
                self.open.push_back(*there);
            }
        }
        Some(here)
    }
}

/// The strongly connected component of each spot (Tarjan, without recursion).
fn components(n_spots: usize, arcs: &[BatchArc]) -> Vec<u32> {
    let (starts, targets) = adjacency(n_spots, arcs);
    let mut search = Tarjan::new(n_spots);
    for root in 0..n_spots as u32 {
        search.visit(root, &starts, &targets);
    }
    search.component
}

/// Successors of all spots in one array: those of `v` are `targets[starts[v]..starts[v + 1]]`.
fn adjacency(n_spots: usize, arcs: &[BatchArc]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; n_spots + 1];
    for arc in arcs {
        starts[arc.from as usize + 1] += 1;
    }
    for at in 0..n_spots {
        starts[at + 1] += starts[at];
    }
    let mut fill = starts.clone();
    let mut targets = vec![0_u32; arcs.len()];
    for arc in arcs {
        let at = &mut fill[arc.from as usize];
        targets[*at as usize] = arc.to;
        *at += 1;
    }
    (starts, targets)
}

const UNSEEN: u32 = u32::MAX;

struct Tarjan {
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    stack: Vec<u32>,
    n_seen: u32,
    n_components: u32,
}

impl Tarjan {
    fn new(n_spots: usize) -> Tarjan {
        Tarjan {
            index: vec![UNSEEN; n_spots],
            low: vec![0; n_spots],
            component: vec![UNSEEN; n_spots],
            stack: Vec::new(),
            n_seen: 0,
            n_components: 0,
        }
    }

    fn visit(&mut self, root: u32, starts: &[u32], targets: &[u32]) {
        if self.index[root as usize] != UNSEEN {
            return;
        }
        let mut calls = vec![(root, starts[root as usize])];
        self.enter(root);
        while let Some((spot, at)) = calls.last_mut() {
            let here = *spot as usize;
            if *at == starts[here + 1] {
                calls.pop();
                self.leave(here as u32, calls.last().map(|(caller, _)| *caller));
                continue;
            }
            let there = targets[*at as usize];
            *at += 1;
            if self.index[there as usize] == UNSEEN {
                self.enter(there);
                calls.push((there, starts[there as usize]));
            } else if self.component[there as usize] == UNSEEN {
                self.low[here] = self.low[here].min(self.index[there as usize]);
            }
        }
    }

    fn enter(&mut self, spot: u32) {
        self.index[spot as usize] = self.n_seen;
        self.low[spot as usize] = self.n_seen;
        self.n_seen += 1;
        self.stack.push(spot);
    }

    fn leave(&mut self, spot: u32, caller: Option<u32>) {
        if let Some(caller) = caller {
            self.low[caller as usize] = self.low[caller as usize].min(self.low[spot as usize]);
        }
        if self.low[spot as usize] != self.index[spot as usize] {
            return;
        }
        while let Some(member) = self.stack.pop() {
            self.component[member as usize] = self.n_components;
            if member == spot {
                break;
            }
        }
        self.n_components += 1;
    }
}

#[cfg(test)]
mod tests;
