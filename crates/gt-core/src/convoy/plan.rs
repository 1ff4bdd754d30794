//! What a convoy's graph comes to: waves, what waits for a person, what is wrong, what is odd. // SPEC C2, C3
//!
//! Pure and linear: one sweep over the beads and edges. Waves are worked out whenever somebody asks, never stored.

use super::findings::{self, Finding};
use super::graph::Graph;

/// At most so many of the beads that keep another one out of the waves are named.
pub const GATES_MAX: usize = 16;

/// What the beads were named by; an epic's tasks are expected to hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Epic,
    Tasks,
    Convoy,
}

/// A graph, planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Tasks by wave, in each by id.
    order: Vec<u32>,
    /// Where each wave starts in `order`, and where the last one ends.
    starts: Vec<u32>,
    /// By bead, from 1 on; 0 for what is in no wave.
    waves: Vec<u32>,
    pub gated: Vec<Gated>,
    pub errors: Vec<Finding>,
    pub warnings: Vec<Finding>,
}

/// A task that waits, itself or through others, for a bead that no agent will ever work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gated {
    pub bead: u32,
    /// The first of those beads.
    pub by: Vec<u32>,
}

impl Plan {
    pub fn n_waves(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// How many tasks are in waves.
    pub fn n_tasks(&self) -> usize {
        self.order.len()
    }

    /// The tasks of a wave, from 1 on.
    pub fn wave(&self, number: usize) -> &[u32] {
        &self.order[self.starts[number - 1] as usize..self.starts[number] as usize]
    }

    pub fn waves(&self) -> impl Iterator<Item = &[u32]> {
        (1..=self.n_waves()).map(|number| self.wave(number))
    }

    /// In which wave a bead is.
    pub fn wave_of(&self, bead: u32) -> Option<u32> {
        Some(self.waves[bead as usize]).filter(|wave| *wave > 0)
    }

    /// The number of the widest wave, the first of several, and how many tasks it has.
    pub fn widest(&self) -> Option<(usize, usize)> {
        let sizes = self.waves().map(<[u32]>::len).enumerate();
        sizes.max_by_key(|(at, size)| (*size, std::cmp::Reverse(*at))).map(|(at, size)| (at + 1, size))
    }

    /// Whether it can be launched at all.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }
}

/// Plans a graph.
pub fn plan(graph: &Graph, source: Source) -> Plan {
    let peeled = peel(graph);
    let gates = Gates::of(graph, &peeled);
    let mut plan = into_waves(graph, &peeled, &gates);
    plan.gated = gates.list(graph);
    plan.errors = findings::errors(graph, &rings(graph, &peeled));
    plan.warnings = findings::warnings(graph, &plan, source);
    plan
}

/// Tasks in an order in which none comes before what it waits for, and how deep each lies.
struct Peeled {
    order: Vec<u32>,
    /// From 1 on; 0 for what is no task, or is in or behind a ring.
    levels: Vec<u32>,
}

/// Kahn's algorithm over direct edges between tasks.
fn peel(graph: &Graph) -> Peeled {
    let is_task: Vec<bool> = graph.spots().iter().map(super::graph::Spot::is_task).collect();
    let mut waits_for: Vec<u32> = vec![0; graph.len()];
    let mut order = Vec::with_capacity(graph.len());
    let mut levels = vec![0; graph.len()];
    for at in graph.all().filter(|at| is_task[*at as usize]) {
        let n = graph.blockers(at).iter().filter(|blocker| is_task[**blocker as usize]).count() as u32;
        waits_for[at as usize] = n;
        if n == 0 {
            levels[at as usize] = 1;
            order.push(at);
        }
    }
    let mut next = 0;
    while next < order.len() {
        let at = order[next];
        next += 1;
        for dependent in graph.dependents(at).iter().copied().filter(|dependent| is_task[*dependent as usize]) {
            let left = &mut waits_for[dependent as usize];
            *left -= 1;
            if *left == 0 {
                levels[dependent as usize] = levels[at as usize] + 1;
                order.push(dependent);
            }
        }
    }
    Peeled { order, levels }
}

/// For each task the beads that it waits for and that no agent will ever work on. Sets are shared along a chain.
struct Gates {
    /// By bead, a place in `sets`, from 1 on; empty where nothing is gated.
    set_of: Vec<u32>,
    sets: Vec<Vec<u32>>,
}

impl Gates {
    fn of(graph: &Graph, peeled: &Peeled) -> Gates {
        let is_gate = |at: u32| !graph.spot(at).is_slingable && graph.spot(at).status.is_active();
        let mut gates = Gates { set_of: Vec::new(), sets: Vec::new() };
        for at in peeled.order.iter().copied() {
            let blockers = graph.blockers(at);
            let has_direct = blockers.iter().any(|blocker| is_gate(*blocker));
            let has_any = has_direct || blockers.iter().any(|blocker| gates.set(*blocker) > 0);
            if has_any {
                gates.set_of.resize(graph.len(), 0);
                let direct = blockers.iter().copied().filter(|blocker| is_gate(*blocker)).take(GATES_MAX).collect();
                gates.set_of[at as usize] = gates.union(direct, blockers);
            }
        }
        gates
    }

    fn set(&self, at: u32) -> u32 {
        self.set_of.get(at as usize).copied().unwrap_or(0)
    }

    /// The first gates of all: a task's own and those of what it waits for. Most inherit one set as it is.
    fn union(&mut self, own: Vec<u32>, blockers: &[u32]) -> u32 {
        let mut inherited: Vec<u32> = blockers.iter().map(|at| self.set(*at)).filter(|set| *set > 0).collect();
        inherited.sort_unstable();
        inherited.dedup();
        if let ([only], []) = (inherited.as_slice(), own.as_slice()) {
            return *only;
        }
        let mut all = own;
        for set in inherited {
            all.extend(&self.sets[set as usize - 1]);
            all.sort_unstable();
            all.dedup();
            all.truncate(GATES_MAX);
        }
        self.sets.push(all);
        self.sets.len() as u32
    }

    fn list(&self, graph: &Graph) -> Vec<Gated> {
        let gated = graph.all().filter(|at| self.set(*at) > 0);
        gated.map(|bead| Gated { bead, by: self.sets[self.set(bead) as usize - 1].clone() }).collect()
    }
}

/// Sorts what is free of gates by wave; the numbers are in the order of ids already.
fn into_waves(graph: &Graph, peeled: &Peeled, gates: &Gates) -> Plan {
    let wave_of = |at: u32| if gates.set(at) > 0 { 0 } else { peeled.levels[at as usize] };
    let waves: Vec<u32> = graph.all().map(wave_of).collect();
    // What is free of gates waits only for such, so no wave below another one is empty.
    let n_waves = waves.iter().copied().max().unwrap_or(0) as usize;
    let mut starts = vec![0_u32; n_waves + 1];
    for wave in waves.iter().filter(|wave| **wave > 0) {
        starts[*wave as usize] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut order = vec![0; starts[n_waves] as usize];
    for at in graph.all() {
        if let Some(wave) = waves[at as usize].checked_sub(1) {
            let place = &mut next[wave as usize];
            order[*place as usize] = at;
            *place += 1;
        }
    }
    Plan { order, starts, waves, ..Plan::default() }
}

/// Rings among what could not be peeled, each from its first bead on, without repeating it; no two share a bead.
fn rings(graph: &Graph, peeled: &Peeled) -> Vec<Vec<u32>> {
    let n_tasks = graph.spots().iter().filter(|spot| spot.is_task()).count();
    if peeled.order.len() == n_tasks {
        return Vec::new();
    }
    let is_left = |at: u32| graph.spot(at).is_task() && peeled.levels[at as usize] == 0;
    let mut walk = Walk { places: vec![Place::Unseen; graph.len()], way: Vec::new() };
    graph.all().filter(|at| is_left(*at)).flat_map(|at| walk.from(graph, at, &is_left)).collect()
}

/// Where a depth-first walk has met a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Unseen,
    OnTheWay { at: u32 },
    Done,
}

struct Walk {
    places: Vec<Place>,
    /// Beads on the way, and how many of their blockers have been followed.
    way: Vec<(u32, u32)>,
}

impl Walk {
    fn from(&mut self, graph: &Graph, start: u32, is_left: &impl Fn(u32) -> bool) -> Vec<Vec<u32>> {
        let mut found = Vec::new();
        self.enter(start);
        while let Some((at, n_followed)) = self.way.last_mut() {
            let next = graph.blockers(*at).get(*n_followed as usize).copied();
            *n_followed += 1;
            match next {
                None => self.leave(),
                Some(next) if !is_left(next) => {}
                Some(next) => match self.places[next as usize] {
                    Place::Unseen => self.enter(next),
                    Place::Done => {}
                    Place::OnTheWay { at } => found.push(self.close(at as usize)),
                },
            }
        }
        found
    }

    fn enter(&mut self, bead: u32) {
        if self.places[bead as usize] == Place::Unseen {
            self.places[bead as usize] = Place::OnTheWay { at: self.way.len() as u32 };
            self.way.push((bead, 0));
        }
    }

    fn leave(&mut self) {
        if let Some((bead, _)) = self.way.pop() {
            self.places[bead as usize] = Place::Done;
        }
    }

    /// The ring that ends here; its beads are done with, so that each ring is told once.
    fn close(&mut self, at: usize) -> Vec<u32> {
        let ring: Vec<u32> = self.way.drain(at..).map(|(bead, _)| bead).collect();
        for bead in &ring {
            self.places[*bead as usize] = Place::Done;
        }
        let first = ring.iter().enumerate().min_by_key(|(_, bead)| **bead).map_or(0, |(place, _)| place);
        ring[first..].iter().chain(&ring[..first]).copied().collect()
    }
}

#[cfg(test)]
mod tests;
