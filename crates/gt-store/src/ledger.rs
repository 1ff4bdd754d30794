//! Maintained readiness: one transaction's view of the graph, kept in step as facts and edges change.
//!
//! Nodes are read once, changed in memory, and written once by `flush`. A change is followed to exactly the
//! beads it touches: sources of blocking edges, children, parents, and on from those whose blocked state flips.
//! The judge is `check`, which works everything out anew. (docs/decisions/0002)

use std::collections::hash_map;
use std::rc::Rc;

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType, Gate, gate_of};
use gt_core::readiness::{Facts, Node, Standing};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::rows::{self, Key, SELECT_NODE, micros};

/// A transaction wakes at most this many sleepers; the ready query does not rely on it.
const WAKE_MAX: i64 = 1000;

const INSERT_EDGE: &str = "INSERT OR IGNORE INTO edge (source, target, type, extra) VALUES (?1, ?2, ?3, ?4)";

pub(crate) struct Ledger<'tx> {
    tx: &'tx Connection,
    now: Timestamp,
    entries: FxHashMap<Key, Entry>,
    /// Beads whose rows are not written yet.
    adopted: FxHashMap<Rc<str>, Key>,
    /// Changes whose consequences have not been followed yet.
    work: Vec<Change>,
    select_node: Option<CachedStatement<'tx>>,
    insert_edge: Option<CachedStatement<'tx>>,
}

struct Entry {
    id: Rc<str>,
    node: Node,
    /// As stored; `None` for a bead whose row is not written yet.
    stored: Option<Standing>,
    dirty: bool,
}

struct Change {
    key: Key,
    before: Node,
    after: Node,
}

/// An incoming edge that readiness looks at.
struct Incoming {
    source: Key,
    kind: EdgeType,
}

impl<'tx> Ledger<'tx> {
    pub(crate) fn new(tx: &'tx Connection, now: Timestamp) -> Ledger<'tx> {
        Ledger {
            tx,
            now,
            entries: FxHashMap::default(),
            adopted: FxHashMap::default(),
            work: Vec::new(),
            select_node: None,
            insert_edge: None,
        }
    }

    /// Makes room for so many beads at once.
    pub(crate) fn reserve(&mut self, n_beads: usize) {
        self.entries.reserve(n_beads);
        self.adopted.reserve(n_beads);
    }

    pub(crate) fn node(&mut self, key: Key) -> Result<&Node> {
        Ok(&self.entry(key)?.node)
    }

    fn entry(&mut self, key: Key) -> Result<&mut Entry> {
        match self.entries.entry(key) {
            hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            hash_map::Entry::Vacant(place) => {
                let (id, node) =
                    held(&mut self.select_node, self.tx, SELECT_NODE)?.query_row([key], rows::node_from_row)?;
                let stored = Some(node.standing());
                Ok(place.insert(Entry { id: id.into(), node, stored, dirty: false }))
            }
        }
    }

    /// Takes in a bead whose row the caller will insert after all edges are known.
    pub(crate) fn adopt(&mut self, key: Key, id: &str, facts: Facts) {
        let node = Node::alone(facts, self.now);
        let id: Rc<str> = id.into();
        self.adopted.insert(Rc::clone(&id), key);
        self.entries.insert(key, Entry { id, node, stored: None, dirty: false });
    }

    /// Says that the rows of all adopted beads have been written, as their nodes were then.
    pub(crate) fn settle_adopted(&mut self) {
        for key in std::mem::take(&mut self.adopted).into_values() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.stored = Some(entry.node.standing());
            }
        }
    }

    /// Lets edges that were waiting for this id to exist take effect.
    pub(crate) fn resolve_incoming(&mut self, key: Key) -> Result<()> {
        let id = self.entry(key)?.id.clone();
        // Children last: a new child changes what `waits-for` edges see, and those must have been counted by then.
        let (children, others): (Vec<_>, Vec<_>) =
            self.incoming(&id)?.into_iter().partition(|incoming| incoming.kind == EdgeType::ParentChild);
        for Incoming { source, kind } in others.into_iter().chain(children) {
            let gate = self.gate(source, &id, &kind)?;
            self.attach(source, key, &kind, gate, 1)?;
        }
        self.follow()
    }

    /// Writes a bead's own row and follows what that changes.
    pub(crate) fn rewrite(&mut self, key: Key, bead: &Bead) -> Result<()> {
        self.entry(key)?; // as it was, before the row changes
        rows::update(self.tx, key, bead)?;
        self.set_facts(key, Facts::of(bead))
    }

    fn set_facts(&mut self, key: Key, facts: Facts) -> Result<()> {
        let deferral_changed = self.node(key)?.facts.defer_until != facts.defer_until;
        self.change(key, |node| node.facts = facts)?;
        if deferral_changed {
            self.rewake(key)?;
            let id = self.entry(key)?.id.clone();
            for child in self.children(&id)? {
                self.rewake(child)?;
            }
        }
        self.follow()
    }

    /// Adds or replaces an edge. Cycles are the caller's to refuse.
    pub(crate) fn link(&mut self, source: Key, edge: &Edge) -> Result<()> {
        let target = if edge.kind.touches_readiness() { self.key(&edge.target)? } else { None };
        let row = params![source, edge.target, edge.kind.as_str(), edge.extra.to_json()];
        let inserted = held(&mut self.insert_edge, self.tx, INSERT_EDGE)?.execute(row)?;
        if inserted == 0 {
            // Same ends and type, other details: the gate may have changed, so it leaves and comes back.
            self.unlink(source, &edge.target, &edge.kind)?;
            return self.link(source, edge);
        }
        if let Some(target) = target {
            self.attach(source, target, &edge.kind, edge.gate(), 1)?;
        }
        self.follow()
    }

    /// Removes an edge; `false` when there was none.
    pub(crate) fn unlink(&mut self, source: Key, target: &str, kind: &EdgeType) -> Result<bool> {
        let gate = self.gate(source, target, kind)?;
        let removed = self
            .tx
            .prepare_cached("DELETE FROM edge WHERE source = ?1 AND target = ?2 AND type = ?3")?
            .execute(params![source, target, kind.as_str()])?;
        if removed == 0 {
            return Ok(false);
        }
        if let Some(target) = self.key(target)? {
            self.attach(source, target, kind, gate, -1)?;
            if *kind == EdgeType::ParentChild {
                self.rewake(source)?;
            }
        }
        self.follow()?;
        Ok(true)
    }

    /// Writes what changed, and returns the ids of the beads that became ready.
    pub(crate) fn flush(mut self) -> Result<Vec<String>> {
        let now = self.now;
        let mut keys: Vec<Key> = self.entries.iter().filter(|(_, entry)| entry.dirty).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        let mut writer = rows::CountsWriter::new(self.tx)?;
        let mut became_ready = Vec::new();
        for key in keys {
            let entry = self.entries.get_mut(&key).expect("the key came from the map");
            entry.node.wake_at = entry.node.wake_at.filter(|at| *at > now);
            let Some(stored) = entry.stored else { continue };
            writer.write(key, &entry.node)?;
            if entry.node.standing() == Standing::Ready && stored != Standing::Ready {
                became_ready.push(entry.id.to_string());
            }
        }
        Ok(became_ready)
    }

    /// The effect of an edge coming (+1) or going (-1).
    fn attach(&mut self, source: Key, target: Key, kind: &EdgeType, gate: Gate, sign: i64) -> Result<()> {
        match kind {
            EdgeType::Other(_) => Ok(()),
            EdgeType::ParentChild => self.attach_child(source, target, sign),
            _ => {
                if self.node(target)?.holds(kind, gate) {
                    self.change(source, |node| node.holding += sign)?;
                }
                Ok(())
            }
        }
    }

    fn attach_child(&mut self, child: Key, parent: Key, sign: i64) -> Result<()> {
        let counts = self.node(child)?.as_child();
        // Read before the parent's own change is followed: what it then causes reaches the child by itself.
        let parent_node = self.node(parent)?;
        let (parent_blocked, deferral) = (parent_node.is_blocked(), parent_node.facts.defer_until);
        self.change(parent, |node| node.children.add(counts, sign))?;
        if parent_blocked {
            self.change(child, |node| node.blocked_parents += sign)?;
        }
        if sign > 0 {
            let deferral = deferral.filter(|at| *at > self.now);
            self.change(child, |node| node.wake_at = node.wake_at.max(deferral))?;
        }
        Ok(())
    }

    /// Changes a node and queues the change to be followed.
    fn change(&mut self, key: Key, edit: impl FnOnce(&mut Node)) -> Result<()> {
        let entry = self.entry(key)?;
        let before = entry.node.clone();
        edit(&mut entry.node);
        if entry.node == before {
            return Ok(());
        }
        entry.dirty = true;
        let after = entry.node.clone();
        self.work.push(Change { key, before, after });
        Ok(())
    }

    fn follow(&mut self) -> Result<()> {
        while let Some(change) = self.work.pop() {
            self.follow_one(&change)?;
        }
        Ok(())
    }

    fn follow_one(&mut self, Change { key, before, after }: &Change) -> Result<()> {
        let as_target = after.holds_unlike(before);
        let flipped = i64::from(after.is_blocked()) - i64::from(before.is_blocked());
        if as_target || (flipped != 0 && after.children.total > 0) {
            let id = self.entry(*key)?.id.clone();
            for Incoming { source, kind } in self.incoming(&id)? {
                let delta = if kind == EdgeType::ParentChild {
                    flipped
                } else if as_target {
                    let gate = self.gate(source, &id, &kind)?;
                    i64::from(after.holds(&kind, gate)) - i64::from(before.holds(&kind, gate))
                } else {
                    0
                };
                match kind {
                    _ if delta == 0 => {}
                    EdgeType::ParentChild => self.change(source, |node| node.blocked_parents += delta)?,
                    _ if delta < 0 && gt_core::defect!("close-frees-nobody") => {}
                    _ if delta > 0 && gt_core::defect!("reopened-blocker-ignored") => {}
                    _ => self.change(source, |node| node.holding += delta)?,
                }
            }
        }
        if before.as_child() != after.as_child() {
            for parent in self.parents(*key)? {
                self.change(parent, |node| {
                    node.children.add(before.as_child(), -1);
                    node.children.add(after.as_child(), 1);
                })?;
            }
        }
        Ok(())
    }

    /// Works out anew until when a bead is deferred, by itself or by a parent.
    fn rewake(&mut self, key: Key) -> Result<()> {
        let mut wake_at = self.node(key)?.facts.defer_until;
        for parent in self.parents(key)? {
            wake_at = wake_at.max(self.node(parent)?.facts.defer_until);
        }
        let wake_at = wake_at.filter(|at| *at > self.now);
        self.change(key, |node| node.wake_at = wake_at)
    }

    fn incoming(&self, id: &str) -> Result<Vec<Incoming>> {
        let mut query = self.tx.prepare_cached(
            "SELECT source, type FROM edge WHERE target = ?1
             AND type IN ('blocks', 'conditional-blocks', 'waits-for', 'merge-blocks', 'parent-child')",
        )?;
        let incoming = query.query_map([id], |row| {
            Ok(Incoming { source: row.get(0)?, kind: EdgeType::parse(row.get_ref(1)?.as_str()?) })
        })?;
        Ok(incoming.collect::<rusqlite::Result<_>>()?)
    }

    fn children(&self, id: &str) -> Result<Vec<Key>> {
        let mut query =
            self.tx.prepare_cached("SELECT source FROM edge WHERE target = ?1 AND type = 'parent-child'")?;
        Ok(query.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn parents(&self, key: Key) -> Result<Vec<Key>> {
        let mut query =
            self.tx.prepare_cached("SELECT target FROM edge WHERE source = ?1 AND type = 'parent-child'")?;
        let ids: Vec<String> = query.query_map([key], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let mut keys = Vec::with_capacity(ids.len());
        for id in ids {
            keys.extend(self.key(&id)?);
        }
        Ok(keys)
    }

    /// The key of a bead, whether its row is written or not.
    pub(crate) fn key(&self, id: &str) -> Result<Option<Key>> {
        match self.adopted.get(id) {
            Some(key) => Ok(Some(*key)),
            None => rows::key_of(self.tx, id),
        }
    }

    fn gate(&self, source: Key, target: &str, kind: &EdgeType) -> Result<Gate> {
        if *kind != EdgeType::WaitsFor {
            return Ok(Gate::AllChildren);
        }
        let mut query = self
            .tx
            .prepare_cached("SELECT extra FROM edge WHERE source = ?1 AND target = ?2 AND type = 'waits-for'")?;
        let mut rows = query.query(params![source, target])?;
        match rows.next()? {
            Some(row) => Ok(gate_of(&rows::fields(&row.get::<_, String>(0)?, "an edge")?)),
            None => Ok(Gate::AllChildren),
        }
    }
}

/// A statement that stays prepared for as long as the ledger lives: a change may touch many thousand beads.
fn held<'a, 'tx>(
    place: &'a mut Option<CachedStatement<'tx>>,
    tx: &'tx Connection,
    sql: &str,
) -> Result<&'a mut CachedStatement<'tx>> {
    match place {
        Some(statement) => Ok(statement),
        None => Ok(place.insert(tx.prepare_cached(sql)?)),
    }
}

/// Whether somebody's deferral has ended and is not noted yet.
pub(crate) fn is_any_due(tx: &Connection, now: Timestamp) -> Result<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM bead INDEXED BY bead_by_wake WHERE standing = 'deferred' AND wake_at <= ?1)";
    Ok(tx.prepare_cached(sql)?.query_row([micros(now)], |row| row.get(0))?)
}

/// Settles deferrals that have run out, so that the ready query finds their beads in the index.
pub(crate) fn wake_due(tx: &Connection, now: Timestamp) -> Result<()> {
    let mut query = tx.prepare_cached(
        "SELECT key FROM bead INDEXED BY bead_by_wake WHERE standing = 'deferred' AND wake_at <= ?1 LIMIT ?2",
    )?;
    let due: Vec<Key> =
        query.query_map(params![micros(now), WAKE_MAX], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    if due.is_empty() || gt_core::defect!("deferral-never-ends") {
        return Ok(());
    }
    let mut ledger = Ledger::new(tx, now);
    for key in due {
        ledger.rewake(key)?;
    }
    ledger.follow()?;
    ledger.flush()?;
    Ok(())
}
