//! The judge of maintained readiness: works it all out from facts and edges, and compares. // DESIGN decision 2
//!
//! Slow on purpose (it reads everything): for tests and for `gt doctor`, never on the way to anything else.

use gt_core::cycle::{self, BatchArc};
use gt_core::edge::{EdgeType, gate_of};
use gt_core::event::EventType;
use gt_core::readiness::{Arc, Node, Standing, solve};
use jiff::Timestamp;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::error::{Result, StoreError};
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};
use crate::{dispatch, events};

/// A bead whose stored readiness is not what follows from its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    pub id: String,
    pub stored_standing: String,
    pub computed_standing: String,
    /// The counts behind them, for whoever has to find the fault.
    pub stored: String,
    pub computed: String,
}

/// What SQLite itself and the judge found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Complaints of SQLite's own integrity check; empty when the file is sound.
    pub damage: Vec<String>,
    pub disagreements: Vec<Disagreement>,
    /// Edges without which no beads would wait for each other for ever; empty when there is no ring.
    pub ring_edges: Vec<(String, String)>,
    /// What should not be between contexts, runs and polecats; empty when all is well.
    pub dispatch: Vec<String>,
    pub n_beads: usize,
}

impl Store {
    /// Checks the file and every bead's readiness.
    pub fn inspect(&mut self, now: Timestamp) -> std::result::Result<Inspection, StoreError> {
        self.read(|tx| {
            let damage = damage(tx)?;
            Ok(Inspection { damage, ..judge(tx, latest(tx, now)?)? })
        })
    }

    /// The same without the file, at the latest time that the clock has shown, for those who ask often.
    pub fn judge(&mut self, now: Timestamp) -> std::result::Result<Inspection, StoreError> {
        self.read(|tx| judge(tx, now))
    }

    /// Writes the computed readiness where the stored one differs; says how many beads were wrong.
    pub fn repair_readiness(&mut self, stamp: &Stamp) -> std::result::Result<usize, StoreError> {
        self.write(stamp, |tx| {
            let wrong = read_town(tx)?.compare(latest(tx, stamp.now)?);
            let mut writer = rows::CountsWriter::new(tx)?;
            for (key, node, _) in &wrong {
                writer.write(*key, node)?;
            }
            dispatch::check::mend_queue(tx)?;
            if !wrong.is_empty() {
                events::append(tx, stamp, EventType::ReadinessRepaired, None, &json!({ "beads": wrong.len() }))?;
            }
            Ok(wrong.len())
        })
    }
}

/// What has come due is not undone by setting the clock back: the latest time at which something happened.
fn latest(tx: &Connection, now: Timestamp) -> Result<Timestamp> {
    let last: Option<i64> = tx.query_row("SELECT max(ts) FROM event", [], |row| row.get(0))?;
    Ok(last.map_or(now, |last| now.max(rows::timestamp(last))))
}

fn judge(tx: &Connection, now: Timestamp) -> Result<Inspection> {
    let town = read_town(tx)?;
    let n_beads = town.keys.len();
    let ring_edges = ring_edges(tx)?;
    let disagreements = town.compare(now).into_iter().map(|(_, _, found)| found).collect();
    let dispatch = dispatch::check::complaints(tx)?;
    Ok(Inspection { damage: Vec::new(), disagreements, ring_edges, dispatch, n_beads })
}

fn damage(tx: &Connection) -> Result<Vec<String>> {
    let mut query = tx.prepare("PRAGMA integrity_check(20)")?;
    let mut lines: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    lines.retain(|line| line != "ok");
    Ok(lines)
}

/// Looks for rings in the whole waiting graph, targets that do not exist included.
fn ring_edges(tx: &Connection) -> Result<Vec<(String, String)>> {
    let sql = "SELECT bead.id, target, type FROM edge JOIN bead ON key = source ORDER BY key";
    let mut query = tx.prepare_cached(sql)?;
    let mut rows = query.query([])?;
    let (mut numbers, mut arcs, mut edges) = (FxHashMap::default(), Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let (source, target, kind): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let next = numbers.len() as u32;
        let from = *numbers.entry(source.clone()).or_insert(next);
        let next = numbers.len() as u32;
        let to = *numbers.entry(target.clone()).or_insert(next);
        let owner = Some(edges.len() as u32);
        let waits = cycle::arcs(&from, &to, &EdgeType::parse(&kind));
        arcs.extend(waits.map(|(from, to)| BatchArc { from: from.number(), to: to.number(), owner }));
        edges.push((source, target));
    }
    let closing = cycle::closing_edges(2 * numbers.len(), &arcs);
    Ok(closing.into_iter().map(|owner| edges[owner as usize].clone()).collect())
}

struct Town {
    keys: Vec<Key>,
    ids: Vec<String>,
    stored: Vec<Node>,
    /// The standing column, which the ready query reads.
    standings: Vec<Option<String>>,
    arcs: Vec<Arc>,
}

fn read_town(tx: &Connection) -> Result<Town> {
    let (mut keys, mut ids, mut stored, mut standings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut query = tx.prepare_cached(rows::SELECT_ALL_NODES)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (id, node) = rows::node_from_row(row)?;
        keys.push(row.get("key")?);
        standings.push(row.get("standing")?);
        ids.push(id);
        stored.push(node);
    }
    let by_key: FxHashMap<Key, usize> = keys.iter().enumerate().map(|(at, key)| (*key, at)).collect();
    let by_id: FxHashMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let arcs = read_arcs(tx, &by_key, &by_id)?;
    drop(by_id);
    Ok(Town { keys, ids, stored, standings, arcs })
}

fn read_arcs(tx: &Connection, by_key: &FxHashMap<Key, usize>, by_id: &FxHashMap<&str, usize>) -> Result<Vec<Arc>> {
    let mut arcs = Vec::new();
    let mut query = tx.prepare_cached("SELECT source, target, type, extra FROM edge")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?));
        let kind = EdgeType::parse(text(2)?);
        let (source, target) = (by_key.get(&row.get(0)?), by_id.get(text(1)?));
        if let (Some(source), Some(target)) = (source, target)
            && kind.touches_readiness()
        {
            let gate = gate_of(&rows::fields(text(3)?, "an edge")?);
            arcs.push(Arc { source: *source, target: *target, kind, gate });
        }
    }
    Ok(arcs)
}

impl Town {
    fn compare(self, now: Timestamp) -> Vec<(Key, Node, Disagreement)> {
        let facts = self.stored.iter().map(|node| node.facts.clone()).collect();
        let computed = solve(facts, &self.arcs, now);
        let mut wrong = Vec::new();
        for (at, computed) in computed.into_iter().enumerate() {
            let (stored, column) = (&self.stored[at], self.standings[at].as_deref());
            let agrees = stored.holding == computed.holding
                && stored.blocked_parents == computed.blocked_parents
                && stored.children == computed.children
                && stored.standing_at(now) == computed.standing_at(now)
                && stored.wake_at.filter(|at| *at > now) == computed.wake_at
                && column == rows::standing_column(stored.standing());
            if !agrees {
                let found = Disagreement {
                    id: self.ids[at].clone(),
                    stored_standing: column.unwrap_or(Standing::Done.as_str()).to_owned(),
                    computed_standing: computed.standing().as_str().to_owned(),
                    stored: describe(stored),
                    computed: describe(&computed),
                };
                wrong.push((self.keys[at], computed, found));
            }
        }
        wrong
    }
}

fn describe(node: &Node) -> String {
    format!(
        "{} (holding {}, blocked parents {}, children {}/{}/{}/{})",
        node.standing().as_str(),
        node.holding,
        node.blocked_parents,
        node.children.total,
        node.children.active,
        node.children.closed,
        node.children.deleted
    )
}
