//! Who brings files of beads: they export what is there, change it elsewhere, and import it while the town works. // SPEC B2
//!
//! An import feeds and lands nothing by itself, so that what was imported exports as it was; the sweep does.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::jsonl::{self, Line};
use gt_core::status::Status;
use gt_engine::TownError;
use gt_engine::intake;
use gt_store::{Filter, ImportOptions, ImportReport, StoreError};

use crate::knobs::RIGS;
use crate::part::Part;
use crate::people::{expect_clear_refusal, set_free};
use crate::stage::Stage;

/// How many beads come from elsewhere at the most.
const NEW_MAX: usize = 3;

pub struct Imports {
    weight: u32,
    /// Beads as they were at some time, a line each.
    exported: Vec<String>,
    /// Beads that come from elsewhere.
    new: Vec<String>,
}

impl Imports {
    pub fn new(rng: &mut Rng) -> Imports {
        Imports { weight: [0, 0, 1, 3][rng.usize(0..4)], exported: Vec::new(), new: Vec::new() }
    }
}

impl Part for Imports {
    fn weight(&self, _stage: &Stage) -> u32 {
        self.weight
    }

    fn act(&mut self, stage: &mut Stage) {
        let before = stage.store.last_event().unwrap_or_default();
        let is_export = stage.world().lock().chance(3);
        let answer = if is_export { self.export(stage) } else { self.import(stage) };
        if let Err(error) = answer {
            expect_clear_refusal(stage, "Import", before, &error);
        }
    }

    /// The last import before the peace: what it frees is for the daemon to find.
    fn heal(&mut self, stage: &mut Stage) {
        if self.weight > 0 {
            self.import(stage).expect("nothing is wrong any more");
        }
    }

    fn tidy(&mut self, stage: &mut Stage) {
        self.new.iter().for_each(|bead| set_free(stage, bead));
    }
}

impl Imports {
    fn export(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        self.exported = tasks(stage)?.iter().map(jsonl::to_line).collect();
        Ok(())
    }

    fn import(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let is_old = stage.world().lock().chance(4);
        let lines = if is_old { self.exported.clone() } else { self.changed(stage)? };
        let options = ImportOptions { rig: None, overwrite: stage.world().lock().chance(2) };
        let file = intake::read(lines.join("\n").as_bytes(), |_| {});
        let stamp = stage.stamp("dan");
        match intake::import(&mut stage.store, file, &options, &stamp, |_| {}) {
            Ok((_, report)) => {
                stage.world().tell(|| format!("dan imports {} lines: {report:?}", lines.len()));
                expect_taken(stage, &lines, &report);
            }
            Err(TownError::Store(error)) => return Err(error),
            Err(error) => stage.world().violation(format!("an import met {error}")),
        }
        Ok(())
    }

    /// Some beads as they are, but finished, opened again, or linked otherwise; and now and then a new one.
    fn changed(&mut self, stage: &mut Stage) -> Result<Vec<String>, StoreError> {
        let tasks = tasks(stage)?;
        let now = stage.world().now();
        let mut world = stage.world().lock();
        let ids: Vec<String> = tasks.iter().map(|bead| bead.id.clone()).collect();
        let n = world.rng.usize(1..4);
        let mut lines: Vec<Bead> = (0..n).filter_map(|_| world.pick(&tasks)).collect();
        if self.new.len() < NEW_MAX && world.chance(3) {
            let prefix = RIGS[world.rng.usize(0..RIGS.len())].1;
            let id = format!("{prefix}-in{}", self.new.len());
            let mut bead = Bead::new(&id, "Work from elsewhere");
            bead.issue_type = Some("task".to_owned());
            self.new.push(id);
            lines.push(bead);
        }
        for bead in &mut lines {
            // The log does not say how a bead is that comes from elsewhere; here they come open.
            let is_new = bead.created_at.is_none();
            match world.rng.u32(0..5) {
                0 | 1 if !is_new => bead.set_status(Status::Closed, now),
                2 => {
                    bead.set_status(Status::Open, now);
                    bead.assignee = None;
                }
                3 => bead.edges.clear(),
                _ => bead.edges.extend(world.pick(&ids).map(|id| Edge::new(id, EdgeType::Blocks))),
            }
            bead.updated_at = Some(now);
        }
        Ok(lines.iter().map(jsonl::to_line).collect())
    }
}

/// What was acknowledged is so: the last word of the file on each bead that was not newer here.
fn expect_taken(stage: &mut Stage, lines: &[String], report: &ImportReport) {
    let targets = |bead: &Bead| bead.edges.iter().map(|edge| edge.target.clone()).collect::<BTreeSet<_>>();
    let said: BTreeMap<String, Bead> = lines.iter().filter_map(|line| parse(line)).collect();
    for (id, bead) in said.iter().filter(|(id, _)| !report.kept_newer.contains(id)) {
        let Ok(view) = stage.store.bead(id) else { continue };
        let is_linked = !report.dropped_edges.is_empty() || targets(&view.bead) == targets(bead);
        if view.bead.status != bead.status || !is_linked {
            stage.world().violation(format!("{bead:?} was imported, and is {:?}", view.bead));
        }
    }
}

fn parse(line: &str) -> Option<(String, Bead)> {
    match jsonl::parse_line(line) {
        Ok(Line::Bead { bead, .. }) => Some((bead.id.clone(), *bead)),
        _ => None,
    }
}

/// All that can be worked on, done or not.
fn tasks(stage: &mut Stage) -> Result<Vec<Bead>, StoreError> {
    let filter = Filter { all: true, issue_type: Some("task".to_owned()), ..Filter::default() };
    Ok(stage.store.list(&filter, 0)?.beads.into_iter().map(|view| view.bead).collect())
}
