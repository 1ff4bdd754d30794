//! A slow judge of readiness: SPEC B3 and B4 read sentence by sentence, repeated until nothing changes.
//!
//! It shares no counting with the code it judges; only facts and edges come in.

use super::*;

pub(super) fn blocked(facts: &[Facts], arcs: &[Arc]) -> Vec<bool> {
    let mut blocked = vec![false; facts.len()];
    loop {
        let before = blocked.clone();
        for bead in 0..facts.len() {
            blocked[bead] = is_active(&facts[bead]) && is_held(bead, facts, arcs, &before);
        }
        if blocked == before {
            return blocked;
        }
    }
}

fn is_held(bead: usize, facts: &[Facts], arcs: &[Arc], blocked: &[bool]) -> bool {
    let mut out = arcs.iter().filter(|arc| arc.source == bead);
    out.any(|arc| match arc.kind.as_str() {
        "blocks" | "conditional-blocks" => is_active(&facts[arc.target]),
        "merge-blocks" => facts[arc.target].status.as_str() != "tombstone" && !facts[arc.target].merged,
        "waits-for" => waits(arc, facts, arcs),
        "parent-child" => blocked[arc.target],
        _ => false,
    })
}

/// Blocked while it has an active child, or, without children, while it is active itself.
fn waits(arc: &Arc, facts: &[Facts], arcs: &[Arc]) -> bool {
    let children: Vec<&Facts> = arcs
        .iter()
        .filter(|edge| edge.kind.as_str() == "parent-child" && edge.target == arc.target)
        .map(|edge| &facts[edge.source])
        .filter(|child| child.status.as_str() != "tombstone")
        .collect();
    if children.is_empty() {
        return is_active(&facts[arc.target]);
    }
    let first_closed = children.iter().any(|child| child.status.as_str() == "closed");
    if arc.gate == Gate::AnyChildren && first_closed {
        return false;
    }
    children.iter().any(|child| is_active(child))
}

pub(super) fn ready(facts: &[Facts], arcs: &[Arc], now: Timestamp) -> Vec<bool> {
    let blocked = blocked(facts, arcs);
    let is_deferred = |bead: usize| facts[bead].defer_until.is_some_and(|until| until > now);
    let is_ready = |bead: usize| {
        let mut parents = arcs.iter().filter(|arc| arc.source == bead && arc.kind.as_str() == "parent-child");
        facts[bead].status.as_str() == "open"
            && !blocked[bead]
            && !facts[bead].pinned
            && !facts[bead].ephemeral
            && !facts[bead].bookkeeping
            && !is_deferred(bead)
            && !parents.any(|arc| is_deferred(arc.target))
    };
    (0..facts.len()).map(is_ready).collect()
}

fn is_active(facts: &Facts) -> bool {
    !["closed", "pinned", "tombstone"].contains(&facts.status.as_str())
}
