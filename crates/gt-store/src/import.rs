//! Taking in a file of beads: one transaction, whatever its size. // SPEC B2, B5
//!
//! The file is read and judged before (`gt-core::jsonl`); here its beads meet those that are there.
//! Order: decide which lines count, drop edges that close cycles, bring every node into the ledger, link,
//! and only then write each new row once, with its final counts.

mod tracking;

use gt_core::bead::Bead;
use gt_core::cycle::{self, BatchArc};
use gt_core::edge::EdgeType;
use gt_core::event::EventType;
use gt_core::readiness::Facts;
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::beads::{self, next_key};
use crate::dispatch::{feed, landing, merges};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};
use crate::{events, links, query, rigs};

/// A bead of the file; of several with one id the last counts.
#[derive(Debug, Clone)]
pub struct ImportBead {
    pub line: usize,
    pub bead: Box<Bead>,
}

#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Binds every bead of the file to this rig.
    pub rig: Option<String>,
    /// Takes the file's word even where the town's bead is newer.
    pub overwrite: bool,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    /// Beads that were changed here after the file was written: left as they are.
    pub kept_newer: Vec<String>,
    pub duplicates: usize,
    /// `source → target` of edges left out because they close a cycle.
    pub dropped_edges: Vec<(String, String)>,
    /// Edges to beads that are neither in the file nor in the town.
    pub dangling: usize,
}

impl Store {
    /// Imports beads, all or none; `progress` hears how many of them are done.
    pub fn import(
        &mut self,
        beads: Vec<ImportBead>,
        options: &ImportOptions,
        stamp: &Stamp,
        mut progress: impl FnMut(usize),
    ) -> std::result::Result<ImportReport, StoreError> {
        self.write(stamp, |tx| {
            if let Some(rig) = &options.rig {
                rigs::require(tx, rig)?;
            }
            let mut report = ImportReport::default();
            let mut intake = Intake::sort(tx, beads, options, &mut report)?;
            intake.judge_edges(tx, &mut report)?;
            intake.write(tx, stamp, &mut report, &mut progress)?;
            // What was imported exports as it was; the next sweep feeds and lands.
            feed::forget(tx)?;
            landing::forget(tx)?;
            Ok(report)
        })
    }
}

/// One bead that will be written.
struct Incoming {
    key: Key,
    bead: Box<Bead>,
    /// As it is now; `None` for a new one.
    before: Option<Bead>,
    /// The town's version is newer, and stays.
    kept: bool,
    /// Something about it has to be written; known once its edges are judged.
    is_changed: bool,
}

struct Intake {
    incoming: Vec<Incoming>,
}

impl Intake {
    /// Decides what happens to each line: last of an id wins, unchanged ones rest, newer ones here are kept.
    fn sort(
        tx: &Connection,
        beads: Vec<ImportBead>,
        options: &ImportOptions,
        report: &mut ImportReport,
    ) -> Result<Intake> {
        let n_lines = beads.len();
        let beads = last_of_each(beads);
        report.duplicates = n_lines - beads.len();
        let mut intake = Intake { incoming: Vec::with_capacity(beads.len()) };
        let mut next = next_key(tx)?;
        let is_empty_town = next == 1;
        for ImportBead { mut bead, .. } in beads {
            tidy(&mut bead);
            let present = if is_empty_town { None } else { rows::key_of(tx, &bead.id)? };
            let before = present.map(|key| rows::load(tx, key)).transpose()?;
            let bound_before = before.as_ref().and_then(|before| before.rig.clone());
            bead.rig = options.rig.clone().or(bead.rig).or(bound_before);
            let key = present.unwrap_or(next);
            next += Key::from(present.is_none());
            intake.incoming.push(Incoming { key, bead, before, kept: false, is_changed: true });
        }
        intake.keep_newer(options, report);
        Ok(intake)
    }

    /// A bead changed here after the file's version was written stays; only its binding follows the options.
    fn keep_newer(&mut self, options: &ImportOptions, report: &mut ImportReport) {
        if options.overwrite {
            return;
        }
        for incoming in &mut self.incoming {
            let Some(before) = incoming.before.as_ref().filter(|before| before.updated_at > incoming.bead.updated_at)
            else {
                continue;
            };
            report.kept_newer.push(incoming.bead.id.clone());
            incoming.kept = true;
            *incoming.bead = Bead { rig: incoming.bead.rig.take(), ..before.clone() };
        }
    }

    /// Leaves out edges that would close a cycle, in the order of the file; counts those that lead nowhere.
    fn judge_edges(&mut self, tx: &Connection, report: &mut ImportReport) -> Result<()> {
        for Incoming { bead, .. } in &mut self.incoming {
            let Bead { id, edges, .. } = bead.as_mut();
            let n_before = edges.len();
            edges.retain(|edge| edge.target != *id);
            report.dropped_edges.extend((edges.len()..n_before).map(|_| (id.clone(), id.clone())));
        }
        let graph = WaitGraph::of(tx, self)?;
        report.dangling = graph.n_dangling;
        let mut dropped = graph.closing();
        dropped.extend(tracking::closing(tx, self)?);
        dropped.sort_unstable();
        for (incoming, at) in dropped.into_iter().rev() {
            let bead = &mut self.incoming[incoming].bead;
            let edge = bead.edges.remove(at);
            report.dropped_edges.push((bead.id.clone(), edge.target));
        }
        report.dropped_edges.sort_unstable();
        for Incoming { bead, before, is_changed, .. } in &mut self.incoming {
            *is_changed = before.as_ref().is_none_or(|before| !is_same(before, bead));
        }
        Ok(())
    }

    fn write(
        &self,
        tx: &Connection,
        stamp: &Stamp,
        report: &mut ImportReport,
        progress: &mut impl FnMut(usize),
    ) -> Result<()> {
        let mut ledger = Ledger::new(tx, stamp.now);
        ledger.reserve(self.incoming.len());
        self.bring_in_new(tx, &mut ledger)?;
        for incoming in &self.incoming {
            incoming.rewrite_old(tx, &mut ledger)?;
        }
        // Parents last: until then nothing that becomes blocked has children to tell.
        for is_parent in [false, true] {
            for Incoming { key, bead, before, .. } in &self.incoming {
                link_new(&mut ledger, *key, before.as_ref(), bead, is_parent)?;
            }
        }
        // Now every count is final.
        let (mut inserter, mut log) = (rows::Inserter::new(tx)?, events::Log::new(tx)?);
        for (n_done, incoming) in self.incoming.iter().enumerate() {
            if incoming.before.is_none() {
                inserter.insert(incoming.key, &incoming.bead, ledger.node(incoming.key)?)?;
            }
            if let Some(event) = incoming.event(report) {
                log.append(stamp, event, Some(&incoming.bead.id), r#"{"imported":true}"#)?;
            }
            progress(n_done + 1);
        }
        ledger.flush()?;
        self.incoming.iter().try_for_each(|incoming| incoming.leave_refinery(tx, stamp))
    }

    /// Takes every new bead into the ledger, and lets the edges take effect that have been waiting for it.
    fn bring_in_new(&self, tx: &Connection, ledger: &mut Ledger<'_>) -> Result<()> {
        let new = || self.incoming.iter().filter(|incoming| incoming.before.is_none());
        for Incoming { key, bead, .. } in new() {
            ledger.adopt(*key, &bead.id, Facts::of(bead));
        }
        if query::has_edges(tx)? {
            for Incoming { key, .. } in new() {
                ledger.resolve_incoming(*key)?;
            }
        }
        Ok(())
    }
}

impl Incoming {
    /// Writes a bead that was here before, and takes out the edges it no longer has.
    fn rewrite_old(&self, tx: &Connection, ledger: &mut Ledger<'_>) -> Result<()> {
        let Some(before) = self.before.as_ref().filter(|_| self.is_changed) else { return Ok(()) };
        if !gt_core::defect!("imported-links-stay") {
            unlink_gone(ledger, self.key, before, &self.bead)?;
        }
        ledger.rewrite(self.key, &self.bead)?;
        rows::replace_labels(tx, self.key, &self.bead.labels)?;
        rows::replace_comments(tx, self.key, &self.bead.comments)
    }

    /// What the file has closed is not merged any more.
    fn leave_refinery(&self, tx: &Connection, stamp: &Stamp) -> Result<()> {
        let Some(before) = self.before.as_ref().filter(|_| self.is_changed) else { return Ok(()) };
        merges::follow(tx, self.key, &self.bead.id, beads::update_event(before, &self.bead), stamp)
    }

    /// Counts the bead in the report, and says which event it is.
    fn event(&self, report: &mut ImportReport) -> Option<EventType> {
        match &self.before {
            None => {
                report.created += 1;
                Some(EventType::BeadCreated)
            }
            Some(before) if self.is_changed => {
                report.updated += 1;
                Some(beads::update_event(before, &self.bead))
            }
            Some(_) => {
                report.unchanged += usize::from(!self.kept);
                None
            }
        }
    }
}

/// The last line of each id, at the place of that line.
fn last_of_each(beads: Vec<ImportBead>) -> Vec<ImportBead> {
    let last: FxHashMap<&str, usize> = beads.iter().enumerate().map(|(at, one)| (one.bead.id.as_str(), at)).collect();
    let is_last: Vec<bool> = beads.iter().enumerate().map(|(at, one)| last[one.bead.id.as_str()] == at).collect();
    beads.into_iter().zip(is_last).filter(|(_, is_last)| *is_last).map(|(one, _)| one).collect()
}

/// Takes out what a bead says twice: of edges with the same ends and type the last counts.
fn tidy(bead: &mut Bead) {
    keep_first(&mut bead.labels, Clone::clone);
    bead.edges.reverse();
    keep_first(&mut bead.edges, |edge| (edge.target.clone(), edge.kind.clone()));
    bead.edges.reverse();
}

/// Keeps the first of those that are the same; most lists are too short to be worth a look.
fn keep_first<T, K: Eq + std::hash::Hash>(list: &mut Vec<T>, what: impl Fn(&T) -> K) {
    if list.len() > 1 {
        let mut seen = FxHashSet::default();
        list.retain(|item| seen.insert(what(item)));
    }
}

fn unlink_gone(ledger: &mut Ledger<'_>, key: Key, before: &Bead, after: &Bead) -> Result<()> {
    let kept: FxHashSet<_> = after.edges.iter().map(|edge| (&edge.target, &edge.kind)).collect();
    for edge in before.edges.iter().filter(|edge| !kept.contains(&(&edge.target, &edge.kind))) {
        ledger.unlink(key, &edge.target, &edge.kind)?;
    }
    Ok(())
}

fn link_new(ledger: &mut Ledger<'_>, key: Key, before: Option<&Bead>, after: &Bead, is_parent: bool) -> Result<()> {
    let before = before.map_or(&[][..], |before| &before.edges);
    let present: FxHashMap<_, _> = before.iter().map(|edge| ((&edge.target, &edge.kind), edge)).collect();
    let wanted = after.edges.iter().filter(|edge| (edge.kind == EdgeType::ParentChild) == is_parent);
    for edge in wanted.filter(|edge| present.get(&(&edge.target, &edge.kind)) != Some(edge)) {
        ledger.link(key, edge)?;
    }
    Ok(())
}

/// Whether a bead of the file says just what is there, its edges in any order.
fn is_same(before: &Bead, after: &Bead) -> bool {
    let sorted = |bead: &Bead| {
        let mut bead = bead.clone();
        bead.edges.sort_by(|a, b| (&a.target, a.kind.as_str()).cmp(&(&b.target, b.kind.as_str())));
        bead
    };
    sorted(before) == sorted(after)
}

/// The waiting graph of the file's beads and of all that they wait for outside it.
struct WaitGraph<'a> {
    /// Beads by number: those of the file as they come, then others as they are met.
    numbers: FxHashMap<&'a str, u32>,
    met: FxHashMap<String, u32>,
    arcs: Vec<BatchArc>,
    /// Which edge of which incoming bead an owner number stands for.
    owners: Vec<(usize, usize)>,
    /// Beads whose stored edges are still to be looked at, and all that ever were.
    open: Vec<String>,
    seen: FxHashSet<String>,
    /// Edges of the file to beads that are nowhere.
    n_dangling: usize,
}

impl<'a> WaitGraph<'a> {
    fn of(tx: &Connection, intake: &'a Intake) -> Result<WaitGraph<'a>> {
        let numbers = intake.incoming.iter().enumerate().map(|(at, one)| (one.bead.id.as_str(), at as u32)).collect();
        let mut graph = WaitGraph {
            numbers,
            met: FxHashMap::default(),
            arcs: Vec::new(),
            owners: Vec::new(),
            open: Vec::new(),
            seen: FxHashSet::default(),
            n_dangling: 0,
        };
        for (at, Incoming { bead, before, .. }) in intake.incoming.iter().enumerate() {
            let stored: FxHashSet<_> =
                before.iter().flat_map(|before| &before.edges).map(|edge| (&edge.target, &edge.kind)).collect();
            for (edge_at, edge) in bead.edges.iter().enumerate() {
                let target = graph.numbers.get(edge.target.as_str()).copied();
                let is_nowhere = target.is_none() && rows::key_of(tx, &edge.target)?.is_none();
                graph.n_dangling += usize::from(is_nowhere);
                if edge.kind.touches_readiness() {
                    // What is in the town already stays; it is the new edge that closes a cycle.
                    let is_new = !stored.contains(&(&edge.target, &edge.kind));
                    let owner = is_new.then_some(graph.owners.len() as u32);
                    graph.owners.extend(owner.map(|_| (at, edge_at)));
                    let target = target.unwrap_or_else(|| graph.number(&edge.target));
                    graph.push(at as u32, target, &edge.kind, owner);
                    graph.reach(&edge.target, &edge.kind);
                }
            }
        }
        // Without stored edges, what lies outside the file waits for nothing.
        if query::has_edges(tx)? {
            graph.add_outside(tx)?;
        }
        Ok(graph)
    }

    fn number(&mut self, id: &str) -> u32 {
        if let Some(number) = self.numbers.get(id).or_else(|| self.met.get(id)) {
            return *number;
        }
        let number = (self.numbers.len() + self.met.len()) as u32;
        self.met.insert(id.to_owned(), number);
        number
    }

    fn push(&mut self, source: u32, target: u32, kind: &EdgeType, owner: Option<u32>) {
        let arcs = cycle::arcs(&source, &target, kind);
        self.arcs.extend(arcs.map(|(from, to)| BatchArc { from: from.number(), to: to.number(), owner }));
    }

    /// Notes a bead to look at: one outside the file, or one whose children, perhaps outside, are waited for.
    fn reach(&mut self, target: &str, kind: &EdgeType) {
        let may_lead_out = *kind == EdgeType::WaitsFor || !self.numbers.contains_key(target);
        if may_lead_out && !self.seen.contains(target) {
            self.seen.insert(target.to_owned());
            self.open.push(target.to_owned());
        }
    }

    /// Follows stored edges from every bead the file reaches; edges of the file's own beads are replaced by it.
    fn add_outside(&mut self, tx: &Connection) -> Result<()> {
        while let Some(id) = self.open.pop() {
            for (source, target, kind) in links::waits_around(tx, &id)? {
                if self.numbers.contains_key(source.as_str()) {
                    continue;
                }
                let (from, to) = (self.number(&source), self.number(&target));
                self.push(from, to, &kind, None);
                self.reach(&source, &EdgeType::ParentChild);
                self.reach(&target, &kind);
            }
        }
        Ok(())
    }

    fn closing(&self) -> Vec<(usize, usize)> {
        let n_spots = 2 * (self.numbers.len() + self.met.len());
        let owners = cycle::closing_edges(n_spots, &self.arcs);
        let mut edges: Vec<(usize, usize)> = owners.into_iter().map(|owner| self.owners[owner as usize]).collect();
        edges.sort_unstable();
        edges
    }
}
