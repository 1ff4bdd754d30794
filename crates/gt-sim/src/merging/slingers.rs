//! People who make work, and who steer the refinery: they sling, close, delete, drop, retry, pause and resume.

use gt_core::bead::Bead;
use gt_core::merge::MergeState;
use gt_store::{BeadPatch, Merge, NewBead, Sling, StoreError};

use super::tools::{commit_to, root_of};
use super::{TARGETS, stamp};
use crate::knobs::{Knobs, RIGS};
use crate::part::Part;
use crate::people::{command, expect_clear_refusal, set_free, sling_of};
use crate::processes::Errand;
use crate::stage::Stage;

const BEADS_MAX: usize = 14;

#[derive(Debug)]
pub(super) struct Slingers {
    beads: Vec<String>,
    /// The rigs of this town that get work: with one, more comes together there.
    prefixes: Vec<&'static str>,
}

impl Part for Slingers {
    fn weight(&self, _stage: &Stage) -> u32 {
        10
    }

    fn act(&mut self, stage: &mut Stage) {
        let before = stage.store.last_event().unwrap_or_default();
        let deed = stage.world().lock().rng.u32(0..34);
        if let Err(error) = self.deed(stage, deed) {
            expect_clear_refusal(stage, &format!("deed {deed}"), before, &error);
        }
    }

    /// What was wanted from here on gets done under settings that let it.
    fn heal(&mut self, stage: &mut Stage) {
        let merging = stage.in_force().and_then(|setting| setting.knobs.clone()).and_then(|knobs| knobs.merging);
        let knobs = Knobs::peaceful(&mut stage.world().lock().rng);
        let knobs = Knobs { town: 3, batch: 0, cooldown: 1, breaker_reset: 10, spawn_delay: 0, per_second: 0, ..knobs };
        stage.configure(Knobs {
            merging,
            max_run: 0,
            stall_after: 100_000,
            rigs: [0, 0],
            agents: [0, 0],
            host: 0,
            ..knobs
        });
        let by = stamp(stage);
        stage.store.resume(&by).expect("nothing is wrong any more");
    }

    fn tidy(&mut self, stage: &mut Stage) {
        let by = stamp(stage);
        stage.store.resume_refinery(None, &by).expect("nothing is wrong any more");
        let beads = stage.store.merges(true).expect("nothing is wrong any more");
        let of_it = |merge: Merge| [Some(merge.bead), merge.rework].into_iter().flatten();
        let mut beads: Vec<String> = beads.into_iter().flat_map(of_it).collect();
        beads.extend(self.beads.iter().cloned());
        beads.sort();
        beads.dedup();
        let live: Vec<String> = live_merges(stage).into_iter().map(|merge| merge.bead).collect();
        for bead in beads.iter().filter(|bead| !live.contains(bead)) {
            set_free(stage, bead);
        }
    }
}

fn live_merges(stage: &mut Stage) -> Vec<Merge> {
    stage.store.merges(false).unwrap_or_default()
}

impl Slingers {
    pub(super) fn new(stage: &Stage) -> Slingers {
        let mut world = stage.world().lock();
        let mut prefixes: Vec<&str> = RIGS.iter().map(|(_, prefix)| *prefix).collect();
        if world.rng.bool() {
            prefixes = world.pick(&prefixes).into_iter().collect();
        }
        Slingers { beads: Vec::new(), prefixes }
    }

    fn deed(&mut self, stage: &mut Stage, deed: u32) -> Result<(), StoreError> {
        match deed {
            0..8 | 17 => self.create(stage),
            8..14 => {
                self.sling(stage);
                Ok(())
            }
            14..16 => steer(stage),
            16 => self.close_or_delete(stage),
            18 => self.update(stage),
            19..22 => {
                command(stage, Errand::Refine);
                Ok(())
            }
            22..24 => retry(stage),
            24 => drop_one(stage),
            25 => {
                toggle(stage);
                Ok(())
            }
            26 => {
                let by = stamp(stage);
                let bead = self.any(stage);
                stage.store.retry(&bead, &by).map(drop)
            }
            27 => {
                let by = stamp(stage);
                let bead = self.any(stage);
                stage.store.reopen_beads(&[bead], &by).map(drop)
            }
            28..30 => Self::decide_against_one(stage),
            30..33 => help_one(stage),
            _ => Ok(()),
        }
    }

    fn any(&self, stage: &mut Stage) -> String {
        let mut all = self.beads.clone();
        all.extend(stage.store.merges(true).unwrap_or_default().into_iter().filter_map(|merge| merge.rework));
        stage.world().lock().pick(&all).unwrap_or_else(|| "gt-none".to_owned())
    }

    fn create(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        if self.beads.len() < BEADS_MAX {
            let prefix = stage.world().lock().pick(&self.prefixes).unwrap_or(RIGS[0].1).to_owned();
            let mut bead = Bead::new("", format!("Work {}", self.beads.len()));
            bead.issue_type = Some("task".to_owned());
            let by = stamp(stage);
            let id = stage.store.create_bead(&NewBead { prefix, parent: None, bead }, &by)?;
            self.beads.push(id);
        }
        self.sling(stage);
        Ok(())
    }

    fn sling(&mut self, stage: &mut Stage) {
        let bead = self.any(stage);
        let mut sling: Sling = sling_of(vec![bead]);
        {
            let mut world = stage.world().lock();
            let how = world.rng.u32(0..12);
            let merge = [None, None, None, Some("direct"), Some("mr"), Some("mr")];
            sling.fields.merge = merge[world.rng.usize(0..merge.len())].map(str::to_owned);
            sling.fields.no_merge = how == 1;
            sling.fields.base_branch = (how > 8).then(|| TARGETS[1].to_owned());
        }
        command(stage, Errand::Sling(Box::new(sling)));
    }

    fn close_or_delete(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        end_one(stage, bead)
    }

    /// Its bead is closed or deleted, while its work waits or is at its gates.
    fn decide_against_one(stage: &mut Stage) -> Result<(), StoreError> {
        let live = stage.store.merges(false)?;
        let picked = stage.world().lock().pick(&live);
        let Some(Merge { bead, .. }) = picked else { return Ok(()) };
        end_one(stage, bead)
    }

    /// Somebody takes a bead.
    fn update(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let (bead, by) = (self.any(stage), stamp(stage));
        let patch = BeadPatch { assignee: Some(Some("eve".to_owned())), ..BeadPatch::default() };
        stage.store.update_bead(&bead, &patch, &by).map(drop)
    }
}

fn end_one(stage: &mut Stage, bead: String) -> Result<(), StoreError> {
    let by = stamp(stage);
    let closes = stage.world().lock().rng.bool();
    stage.world().tell(|| format!("ann {} {bead}", if closes { "closes" } else { "deletes" }));
    if closes {
        stage.store.close_beads(&[bead], None, &by).map(drop)
    } else {
        stage.store.delete_beads(&[bead], None, &by).map(drop)
    }
}

fn steer(stage: &mut Stage) -> Result<(), StoreError> {
    let by = stamp(stage);
    let (pauses, one) = {
        let mut world = stage.world().lock();
        (world.rng.u32(0..3) == 0, world.rng.usize(0..3))
    };
    let rig = RIGS.get(one).map(|(name, _)| *name);
    stage.world().tell(|| format!("ann {} the refinery of {rig:?}", if pauses { "pauses" } else { "resumes" }));
    if pauses {
        stage.store.pause_refinery(rig, None, &by).map(drop)
    } else {
        stage.store.resume_refinery(rig, &by).map(drop)
    }
}

fn retry(stage: &mut Stage) -> Result<(), StoreError> {
    let mut over = stage.store.merges(true)?;
    over.retain(|merge| !merge.state.is_live());
    let picked = stage.world().lock().pick(&over);
    if let Some(merge) = picked {
        command(stage, Errand::RetryMerge(merge.id));
    }
    Ok(())
}

/// A person takes a merge out of the line, helps with its branch, and puts it in line again: its worker may be at its gates.
fn help_one(stage: &mut Stage) -> Result<(), StoreError> {
    let merges = stage.store.merges(true)?.into_iter().filter(|merge| merge.state != MergeState::Merged);
    let picked = stage.world().lock().pick(&merges.collect::<Vec<_>>());
    let Some(merge) = picked else { return Ok(()) };
    let (by, root) = (stamp(stage), root_of(stage, &merge.rig));
    if merge.state.is_live() {
        stage.store.drop_merge(&merge.id, "needs help", &by)?;
    }
    let helped = commit_to(&mut stage.world().lock(), &root, &merge.branch);
    stage.world().tell(|| format!("ann helps with {}: {helped:?}", merge.id));
    command(stage, Errand::RetryMerge(merge.id));
    Ok(())
}

fn drop_one(stage: &mut Stage) -> Result<(), StoreError> {
    let live = stage.store.merges(false)?;
    let picked = stage.world().lock().pick(&live);
    let Some(merge) = picked else { return Ok(()) };
    let by = stamp(stage);
    stage.world().tell(|| format!("ann drops {}", merge.id));
    stage.store.drop_merge(&merge.id, "not wanted", &by)
}

/// Pushing is switched on or off, or batches get another size.
fn toggle(stage: &mut Stage) {
    let Some(mut knobs) = stage.in_force().and_then(|setting| setting.knobs.clone()) else { return };
    if let Some(merging) = &mut knobs.merging {
        let mut world = stage.world().lock();
        let one = world.rng.usize(0..2);
        if world.rng.bool() {
            merging.push[one] = !merging.push[one];
        } else {
            merging.batch = [1, 2, 20][world.rng.usize(0..3)];
        }
    }
    stage.configure(knobs);
}
