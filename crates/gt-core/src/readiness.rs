//! The one readiness predicate of the product, and its judge. // SPEC B3, B4
//!
//! A `Node` is what readiness knows of a bead: facts that people change, and counts that follow from its
//! neighbours. The store keeps the counts up to date as facts change; `solve` works them out from nothing.

use jiff::Timestamp;

use crate::bead::Bead;
use crate::edge::{EdgeType, Gate};
use crate::status::{self, Status};

/// What a bead itself contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub status: Status,
    pub merged: bool,
    pub pinned: bool,
    pub ephemeral: bool,
    pub bookkeeping: bool,
    pub defer_until: Option<Timestamp>,
}

impl Facts {
    pub fn of(bead: &Bead) -> Facts {
        Facts {
            status: bead.status.clone(),
            merged: bead.is_merged(),
            pinned: bead.is_pinned(),
            ephemeral: bead.is_wisp(),
            bookkeeping: status::is_bookkeeping(bead.issue_type.as_deref()),
            defer_until: bead.defer_until,
        }
    }
}

/// How many children a bead has, and in what state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Children {
    /// Every child, deleted ones included.
    pub total: i64,
    pub active: i64,
    pub closed: i64,
    pub deleted: i64,
}

impl Children {
    pub fn add(&mut self, other: Children, times: i64) {
        self.total += other.total * times;
        self.active += other.active * times;
        self.closed += other.closed * times;
        self.deleted += other.deleted * times;
    }

    /// Whether there are any, deleted ones left out.
    pub fn exist(&self) -> bool {
        self.total > self.deleted
    }
}

/// A bead in the graph: its facts and what follows from its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub facts: Facts,
    pub children: Children,
    /// Outgoing edges that hold this bead back now.
    pub holding: i64,
    /// Parents that are blocked now.
    pub blocked_parents: i64,
    /// The latest future deferral, its own or a parent's, as of the last write.
    pub wake_at: Option<Timestamp>,
}

/// How a bead stands towards being worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    Ready,
    /// Ready but for a time that has not come.
    Deferred,
    Blocked,
    /// Active, but not waiting to be taken: somebody has it, it is pinned, or it is no work.
    Held,
    /// Closed, pinned or deleted.
    Done,
}

impl Standing {
    pub const ALL: [Standing; 5] =
        [Standing::Ready, Standing::Deferred, Standing::Blocked, Standing::Held, Standing::Done];

    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Ready => "ready",
            Standing::Deferred => "deferred",
            Standing::Blocked => "blocked",
            Standing::Held => "held",
            Standing::Done => "done",
        }
    }
}

impl Node {
    /// A bead without neighbours.
    pub fn alone(facts: Facts, now: Timestamp) -> Node {
        let wake_at = facts.defer_until.filter(|at| *at > now);
        Node { facts, children: Children::default(), holding: 0, blocked_parents: 0, wake_at }
    }

    pub fn is_active(&self) -> bool {
        self.facts.status.is_active()
    }

    pub fn is_blocked(&self) -> bool {
        self.is_active() && self.holding + self.blocked_parents > 0
    }

    /// The predicate. // SPEC B4
    pub fn standing(&self) -> Standing {
        if !self.is_active() {
            Standing::Done
        } else if self.is_blocked() {
            Standing::Blocked
        } else if !self.could_be_ready() {
            Standing::Held
        } else if self.wake_at.is_some() {
            Standing::Deferred
        } else {
            Standing::Ready
        }
    }

    /// The same at a later time: a deferral that has run out no longer counts.
    pub fn standing_at(&self, now: Timestamp) -> Standing {
        match self.standing() {
            Standing::Deferred if self.wake_at.is_some_and(|at| at <= now) => Standing::Ready,
            standing => standing,
        }
    }

    /// Whether only blockers and deferrals stand between this bead and being ready.
    pub(crate) fn could_be_ready(&self) -> bool {
        let facts = &self.facts;
        facts.status == Status::Open && !facts.pinned && !facts.ephemeral && !facts.bookkeeping
    }

    /// Whether an edge of this kind to this bead holds its source back. // SPEC B3
    pub fn holds(&self, kind: &EdgeType, gate: Gate) -> bool {
        match kind {
            EdgeType::Blocks | EdgeType::ConditionalBlocks => self.is_active(),
            EdgeType::WaitsFor => self.holds_waiters(gate),
            // Deleted work will never be merged; waiting for it would last for ever.
            EdgeType::MergeBlocks => !self.facts.merged && self.facts.status != Status::Tombstone,
            EdgeType::ParentChild | EdgeType::Other(_) => false,
        }
    }

    /// Whether it holds back otherwise than `other` does, for some kind of edge.
    pub fn holds_unlike(&self, other: &Node) -> bool {
        let gates = [Gate::AllChildren, Gate::AnyChildren];
        self.is_active() != other.is_active()
            || self.holds(&EdgeType::MergeBlocks, Gate::AllChildren)
                != other.holds(&EdgeType::MergeBlocks, Gate::AllChildren)
            || gates.into_iter().any(|gate| self.holds_waiters(gate) != other.holds_waiters(gate))
    }

    fn holds_waiters(&self, gate: Gate) -> bool {
        if !self.children.exist() {
            return self.is_active();
        }
        let opened_early = gate == Gate::AnyChildren && self.children.closed > 0;
        self.children.active > 0 && !opened_early
    }

    /// What this bead adds to its parent's counts.
    pub fn as_child(&self) -> Children {
        Children {
            total: 1,
            active: i64::from(self.is_active()),
            closed: i64::from(self.facts.status == Status::Closed),
            deleted: i64::from(self.facts.status == Status::Tombstone),
        }
    }
}

/// An edge between two nodes of a `solve`.
#[derive(Debug, Clone)]
pub struct Arc {
    pub source: usize,
    pub target: usize,
    pub kind: EdgeType,
    pub gate: Gate,
}

/// Works out every count from nothing but facts and edges. Edges to beads that do not exist are left out by the caller.
pub fn solve(facts: Vec<Facts>, arcs: &[Arc], now: Timestamp) -> Vec<Node> {
    let mut nodes: Vec<Node> = facts.into_iter().map(|facts| Node::alone(facts, now)).collect();
    let mut children_of: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for arc in arcs.iter().filter(|arc| arc.kind == EdgeType::ParentChild) {
        children_of[arc.target].push(arc.source);
        let child = nodes[arc.source].as_child();
        nodes[arc.target].children.add(child, 1);
        let deferral = nodes[arc.target].facts.defer_until.filter(|at| *at > now);
        nodes[arc.source].wake_at = nodes[arc.source].wake_at.max(deferral);
    }
    for arc in arcs {
        nodes[arc.source].holding += i64::from(nodes[arc.target].holds(&arc.kind, arc.gate));
    }
    let mut blocked: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].is_blocked()).collect();
    while let Some(parent) = blocked.pop() {
        for child in children_of[parent].iter().copied() {
            let was_blocked = nodes[child].is_blocked();
            nodes[child].blocked_parents += 1;
            if !was_blocked && nodes[child].is_blocked() {
                blocked.push(child);
            }
        }
    }
    nodes
}

#[cfg(test)]
mod tests;
