//! The sequence of steps: what is needed comes first, and otherwise they stay as they are written.
//!
//! A step with children is begun, then come its children, then it has ended. Who needs it waits for its end; a child
//! that names its own parent waits for its beginning, which it does anyway.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::FxHashMap;

use super::Step;

/// A step in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) step: &'a Step,
    pub(super) parent: Option<&'a Step>,
    pub(super) depth: usize,
}

/// Steps that wait for each other, each for the next, the last for the first.
pub(super) type Circle = Vec<String>;

/// Sorts the steps, without those left out and all that lies in them; needs that name nobody count for nothing.
pub(super) fn order<'a>(steps: &'a [Step], left_out: &BTreeSet<&str>) -> Result<Vec<Placed<'a>>, Circle> {
    let mut graph = Graph::default();
    graph.add(steps, None, 0, left_out);
    graph.link();
    graph.sort()
}

/// Two points in time for each step: its beginning (even) and its end (odd).
#[derive(Default)]
struct Graph<'a> {
    placed: Vec<Placed<'a>>,
    parents: Vec<Option<usize>>,
    /// What comes after each point, and before it.
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

fn begin(step: usize) -> usize {
    2 * step
}

fn end(step: usize) -> usize {
    2 * step + 1
}

impl<'a> Graph<'a> {
    /// Recursion is as deep as steps may be nested.
    fn add(&mut self, steps: &'a [Step], parent: Option<usize>, depth: usize, left_out: &BTreeSet<&str>) {
        for step in steps.iter().filter(|step| !left_out.contains(step.id.as_str())) {
            let index = self.placed.len();
            self.placed.push(Placed { step, parent: parent.map(|parent| self.placed[parent].step), depth });
            self.parents.push(parent);
            self.add(&step.children, Some(index), depth + 1, left_out);
        }
    }

    fn link(&mut self) {
        let n_points = 2 * self.placed.len();
        (self.after, self.before) = (vec![Vec::new(); n_points], vec![Vec::new(); n_points]);
        let mut by_id: FxHashMap<&str, usize> = FxHashMap::default();
        for (index, placed) in self.placed.iter().enumerate() {
            by_id.entry(&placed.step.id).or_insert(index);
        }
        for index in 0..self.placed.len() {
            self.edge(begin(index), end(index));
            if let Some(parent) = self.parents[index] {
                self.edge(begin(parent), begin(index));
                self.edge(end(index), end(parent));
            }
            for need in self.placed[index].step.needs.iter().filter(|_| !crate::defect!("needs-ignored")) {
                if let Some(needed) = by_id.get(need.name.as_str()).copied() {
                    let from = if self.is_inside(index, needed) { begin(needed) } else { end(needed) };
                    self.edge(from, begin(index));
                }
            }
        }
    }

    fn edge(&mut self, earlier: usize, later: usize) {
        self.after[earlier].push(later);
        self.before[later].push(earlier);
    }

    /// Whether a step lies in another, however deep.
    fn is_inside(&self, step: usize, other: usize) -> bool {
        let mut at = self.parents[step];
        while let Some(parent) = at {
            if parent == other {
                return true;
            }
            at = self.parents[parent];
        }
        false
    }

    fn sort(&self) -> Result<Vec<Placed<'a>>, Circle> {
        let mut n_before: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let free = (0..n_before.len()).filter(|point| n_before[*point] == 0);
        let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
        let mut sorted = Vec::new();
        while let Some(Reverse(point)) = free.pop() {
            if point % 2 == 0 {
                sorted.push(self.placed[point / 2]);
            }
            for later in &self.after[point] {
                n_before[*later] -= 1;
                if n_before[*later] == 0 {
                    free.push(Reverse(*later));
                }
            }
        }
        if sorted.len() == self.placed.len() { Ok(sorted) } else { Err(self.circle(&n_before)) }
    }

    /// Follows what is waited for until it comes round.
    fn circle(&self, n_before: &[usize]) -> Circle {
        let is_stuck = |point: &usize| n_before[*point] > 0;
        let mut path: Vec<usize> = (0..n_before.len()).find(is_stuck).into_iter().collect();
        while let Some(last) = path.last() {
            // Whoever is stuck waits for somebody who is.
            let Some(next) = self.before[*last].iter().copied().find(is_stuck) else { break };
            if let Some(first) = path.iter().position(|point| *point == next) {
                path.drain(..first);
                break;
            }
            path.push(next);
        }
        let mut steps: Vec<usize> = path.into_iter().map(|point| point / 2).collect();
        steps.dedup();
        let least = (0..steps.len()).min_by_key(|at| steps[*at]).unwrap_or_default();
        steps.rotate_left(least);
        steps.dedup();
        if steps.len() > 1 && steps.first() == steps.last() {
            steps.pop();
        }
        steps.into_iter().map(|step| self.placed[step].step.id.clone()).collect()
    }
}
