//! Convoys of a file that would track each other: none of them could ever land. // SPEC B5, C4

use gt_core::cycle::{self, BatchArc};
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Incoming, Intake};
use crate::error::Result;
use crate::links;

/// Which edges of which incoming beads close a ring of convoys; what is in the town already stays.
pub(super) fn closing(tx: &Connection, intake: &Intake) -> Result<Vec<(usize, usize)>> {
    let mut graph = Tracking::default();
    for (at, Incoming { bead, before, .. }) in intake.incoming.iter().enumerate() {
        if bead.issue_type.as_deref() != Some("convoy") {
            continue;
        }
        let stored: FxHashSet<&str> = before
            .iter()
            .flat_map(|before| &before.edges)
            .filter(|edge| edge.kind.as_str() == links::TRACKS)
            .map(|edge| edge.target.as_str())
            .collect();
        for (edge_at, edge) in bead.edges.iter().enumerate().filter(|(_, edge)| edge.kind.as_str() == links::TRACKS) {
            let is_new = !stored.contains(edge.target.as_str());
            graph.push(&bead.id, &edge.target, is_new.then_some((at, edge_at)));
        }
    }
    if graph.arcs.is_empty() {
        return Ok(Vec::new());
    }
    graph.add_outside(tx, intake)?;
    let owners = cycle::closing_edges(graph.numbers.len(), &graph.arcs);
    Ok(owners.into_iter().map(|owner| graph.owners[owner as usize]).collect())
}

/// Who tracks whom, by number.
#[derive(Default)]
struct Tracking {
    numbers: FxHashMap<String, u32>,
    arcs: Vec<BatchArc>,
    /// Which edge of which incoming bead an owner number stands for.
    owners: Vec<(usize, usize)>,
    /// Beads whose own edges are still to be looked at.
    open: Vec<String>,
}

impl Tracking {
    fn push(&mut self, source: &str, target: &str, owner: Option<(usize, usize)>) {
        let (from, to) = (self.number(source), self.number(target));
        let number = owner.map(|_| self.owners.len() as u32);
        self.owners.extend(owner);
        self.arcs.push(BatchArc { from, to, owner: number });
    }

    /// A bead that is met for the first time is looked at later.
    fn number(&mut self, id: &str) -> u32 {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(id.to_owned(), number);
        self.open.push(id.to_owned());
        number
    }

    /// Follows stored edges from what the file's convoys track; those of the file's own beads are replaced by it.
    fn add_outside(&mut self, tx: &Connection, intake: &Intake) -> Result<()> {
        let ours: FxHashSet<&str> = intake.incoming.iter().map(|one| one.bead.id.as_str()).collect();
        while let Some(id) = self.open.pop() {
            if ours.contains(id.as_str()) {
                continue;
            }
            for target in links::tracked_by_convoy(tx, &id)? {
                self.push(&id, &target, None);
            }
        }
        Ok(())
    }
}
