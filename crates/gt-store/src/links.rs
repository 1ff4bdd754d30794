//! Adding and removing dependencies, and the search for the cycle an edge would close: of waiting, or of convoys that track
//! each other. // SPEC B3, B5

use gt_core::cycle::{self, Spot};
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::refusal::Refusal;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::beads::{self, Changed};
use crate::error::{Result, StoreError};
use crate::events;
use crate::ledger::Ledger;
use crate::query;
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};

impl Store {
    /// Makes `source` depend on the edge's target, which must exist. Says `false` when it already does, just so.
    pub fn add_edge(&mut self, source: &str, edge: &Edge, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, source)?;
            query::require(tx, &edge.target)?;
            if rows::edges_of(tx, key)?.iter().any(|present| same(present, edge)) {
                return Ok(false);
            }
            refuse_cycle(tx, source, edge)?;
            let mut ledger = Ledger::new(tx, stamp.now);
            ledger.link(key, &with_origin(edge, stamp))?;
            ledger.flush()?;
            beads::touch(tx, key, stamp)?;
            events::append(tx, stamp, EventType::BeadLinked, Some(source), &edge_data(edge))?;
            Ok(true)
        })
    }

    /// Removes the dependency of `source` on `target`: of one type, or of every type.
    pub fn remove_edges(
        &mut self,
        source: &str,
        target: &str,
        kind: Option<&EdgeType>,
        stamp: &Stamp,
    ) -> std::result::Result<Changed, StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, source)?;
            let edges = rows::edges_of(tx, key)?;
            let doomed: Vec<&Edge> = edges
                .iter()
                .filter(|edge| edge.target == target && kind.is_none_or(|kind| edge.kind == *kind))
                .collect();
            if doomed.is_empty() {
                let (source_id, target) = (source.to_owned(), target.to_owned());
                return Err(Refusal::NoSuchEdge { source_id, target }.into());
            }
            let mut ledger = Ledger::new(tx, stamp.now);
            for edge in &doomed {
                ledger.unlink(key, &edge.target, &edge.kind)?;
                events::append(tx, stamp, EventType::BeadUnlinked, Some(source), &edge_data(edge))?;
            }
            beads::touch(tx, key, stamp)?;
            Ok(Changed { beads: vec![source.to_owned()], became_ready: ledger.flush()? })
        })
    }
}

fn same(present: &Edge, wanted: &Edge) -> bool {
    present.target == wanted.target && present.kind == wanted.kind && present.gate() == wanted.gate()
}

/// The edge with who made it and when.
pub(crate) fn with_origin(edge: &Edge, stamp: &Stamp) -> Edge {
    let mut edge = edge.clone();
    if edge.extra.get("created_at").is_none() {
        edge.extra.put("created_at", &gt_core::time::format(stamp.now));
        edge.extra.put("created_by", &stamp.actor);
    }
    edge
}

pub(crate) fn edge_data(edge: &Edge) -> serde_json::Value {
    json!({ "target": edge.target, "type": edge.kind.as_str() })
}

/// Refuses an edge that would make beads wait for each other for ever.
pub(crate) fn refuse_cycle(tx: &Connection, source: &str, edge: &Edge) -> Result<()> {
    if source == edge.target {
        return Err(Refusal::SelfEdge { id: source.to_owned() }.into());
    }
    for (from, to) in cycle::arcs(&source.to_owned(), &edge.target, &edge.kind) {
        if let Some(way) = cycle::path(&to, &from, |spot| next_spots(tx, spot))? {
            let mut ring = vec![from];
            ring.extend(way);
            return Err(Refusal::Cycle { ring: cycle::ring(&ring) }.into());
        }
    }
    refuse_tracking_cycle(tx, source, edge)
}

/// Refuses an edge by which convoys would wait for each other to land.
fn refuse_tracking_cycle(tx: &Connection, source: &str, edge: &Edge) -> Result<()> {
    let is_convoy = |id: &str| -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM bead WHERE id = ?1 AND issue_type = 'convoy')";
        Ok(tx.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
    };
    if edge.kind.as_str() != TRACKS || !is_convoy(&edge.target)? || !is_convoy(source)? {
        return Ok(());
    }
    match cycle::path(&edge.target, &source.to_owned(), |id| tracked_by_convoy(tx, id))? {
        None => Ok(()),
        Some(way) => Err(Refusal::Cycle { ring: [vec![source.to_owned()], way].concat() }.into()),
    }
}

/// The type of the edges from a convoy to what it tracks.
pub(crate) const TRACKS: &str = "tracks";

/// What a convoy waits for before it lands; nothing for what is none.
pub(crate) fn tracked_by_convoy(tx: &Connection, id: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached(
        "SELECT edge.target FROM bead JOIN edge ON edge.source = bead.key AND edge.type = 'tracks'
         WHERE bead.id = ?1 AND bead.issue_type = 'convoy'",
    )?;
    Ok(query.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// What a place in the waiting graph waits for.
fn next_spots(tx: &Connection, spot: &Spot<String>) -> Result<Vec<Spot<String>>> {
    match spot {
        Spot::Bead(id) => {
            let Some(key) = rows::key_of(tx, id)? else { return Ok(Vec::new()) };
            Ok(waits_of(tx, key)?
                .into_iter()
                .flat_map(|(target, kind)| cycle::arcs(id, &target, &kind))
                .filter(|(from, _)| from == spot)
                .map(|(_, to)| to)
                .collect())
        }
        Spot::ChildrenOf(id) => Ok(children_of(tx, id)?.into_iter().map(Spot::Bead).collect()),
    }
}

/// Outgoing edges that readiness looks at, without their details.
pub(crate) fn waits_of(tx: &Connection, key: Key) -> Result<Vec<(String, EdgeType)>> {
    let mut query = tx.prepare_cached("SELECT target, type FROM edge WHERE source = ?1")?;
    let edges = query.query_map(params![key], |row| Ok((row.get(0)?, EdgeType::parse(row.get_ref(1)?.as_str()?))))?;
    let mut edges: Vec<(String, EdgeType)> = edges.collect::<rusqlite::Result<_>>()?;
    edges.retain(|(_, kind)| kind.touches_readiness());
    Ok(edges)
}

/// Every edge through which waiting leads on from a bead: its own, and those of its children to it.
pub(crate) fn waits_around(tx: &Connection, id: &str) -> Result<Vec<(String, String, EdgeType)>> {
    // A bead that is not there has no edges of its own, but it may have children already.
    let own = rows::key_of(tx, id)?.map_or(Ok(Vec::new()), |key| waits_of(tx, key))?;
    let own = own.into_iter().map(|(target, kind)| (id.to_owned(), target, kind));
    let children = children_of(tx, id)?.into_iter().map(|child| (child, id.to_owned(), EdgeType::ParentChild));
    Ok(own.chain(children).collect())
}

fn children_of(tx: &Connection, id: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.id FROM edge JOIN bead ON key = source WHERE target = ?1 AND type = 'parent-child'",
    )?;
    Ok(query.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
