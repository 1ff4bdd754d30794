//! People: they make, link, close, reopen, sling, stop, pause, park and edit at random, and expect clear answers.

use std::cell::RefCell;

use fastrand::Rng;
use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::rig::RigState;
use gt_core::run::{Outcome, StopOrder};
use gt_core::status::Status;
use gt_store::{BeadPatch, ConvoyWish, NewBead, Sling, Stamp, Store, StoreError, View};
use jiff::{SignedDuration, Timestamp};

use crate::knobs::{AGENTS, RIGS};
use crate::part::Part;
use crate::processes::Errand;
use crate::stage::{Stage, rig};

/// How many commands run at once.
pub const COMMANDS_MAX: usize = 4;

/// What a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Create,
    Link,
    Unlink,
    Close,
    Reopen,
    Update,
    Delete,
    Sling,
    Queue,
    Retry,
    Clear,
    Pause,
    SetRig,
    Stop,
    Run,
    SpoilConfig,
    Configure,
}

/// Every deed, and how often it is done in an average town.
const DEEDS: [(Deed, u32); 17] = [
    (Deed::Create, 12),
    (Deed::Link, 8),
    (Deed::Unlink, 8),
    (Deed::Close, 5),
    (Deed::Reopen, 6),
    (Deed::Update, 8),
    (Deed::Delete, 4),
    (Deed::Sling, 36),
    (Deed::Queue, 12),
    (Deed::Retry, 5),
    (Deed::Clear, 6),
    (Deed::Pause, 4),
    (Deed::SetRig, 4),
    (Deed::Stop, 6),
    (Deed::Run, 4),
    (Deed::SpoilConfig, 2),
    (Deed::Configure, 5),
];

pub struct People {
    beads: Vec<String>,
    last: RefCell<Option<String>>,
    /// How many beads this town gets: with few, everything happens to the same ones.
    n_beads_max: usize,
    /// Once in so many slings somebody uses force.
    force: u32,
    /// The habits of this town: deeds, as often as they are done here.
    habits: Vec<Deed>,
}

impl People {
    pub fn new(rng: &mut Rng) -> People {
        // Some things have to be done in any town, or nothing would happen in it.
        let mut habits = [Deed::Create, Deed::Sling, Deed::Configure].repeat(4);
        for (deed, weight) in DEEDS {
            let times = [0, 1, 1, 1, 4][rng.usize(0..5)];
            habits.extend(std::iter::repeat_n(deed, (weight * times) as usize));
        }
        People {
            beads: Vec::new(),
            last: RefCell::default(),
            n_beads_max: rng.usize(1..13),
            force: [0, 6, 2][rng.usize(0..3)],
            habits,
        }
    }
}

impl Part for People {
    fn weight(&self, _stage: &Stage) -> u32 {
        14
    }

    fn act(&mut self, stage: &mut Stage) {
        let before = stage.store.last_event().unwrap_or_default();
        let deed = self.next_deed(stage);
        if let Err(error) = self.deed(stage, deed) {
            expect_clear_refusal(stage, &format!("{deed:?}"), before, &error);
        }
    }

    /// Everything that only waits for a person is put right.
    fn tidy(&mut self, stage: &mut Stage) {
        self.beads.iter().for_each(|bead| set_free(stage, bead));
    }

    fn heal(&mut self, stage: &mut Stage) {
        let stamp = stage.stamp("healer");
        for (name, prefix) in RIGS {
            if stage.store.rig(name).is_err() {
                let rig = rig(name, prefix, &stage.ground.town);
                stage.store.add_rig(&rig, &stamp).expect("the rig is new");
            }
            for event in [EventType::RigUndocked, EventType::RigUnparked] {
                stage.store.set_rig_state(name, RigState::Active, event, &stamp).expect("the rig is there");
            }
        }
        stage.store.resume(&stamp).expect("nothing is wrong any more");
        let knobs = stage.world().lock().draw_peaceful_knobs();
        stage.configure(knobs);
    }
}

impl People {
    /// Whatever the habits: a config that cannot be read is mended soon.
    fn next_deed(&self, stage: &Stage) -> Deed {
        let is_spoilt = stage.settings.last().is_some_and(|setting| setting.knobs.is_none());
        let mut world = stage.world().lock();
        if is_spoilt && world.chance(4) {
            return Deed::Configure;
        }
        world.pick(&self.habits).unwrap_or(Deed::Create)
    }

    fn deed(&mut self, stage: &mut Stage, deed: Deed) -> Result<(), StoreError> {
        match deed {
            Deed::Create => self.create(stage),
            Deed::Link => self.link(stage),
            Deed::Unlink => self.unlink(stage),
            Deed::Close => self.close(stage),
            Deed::Reopen => self.reopen(stage),
            Deed::Update => self.update(stage),
            Deed::Delete => self.delete(stage),
            Deed::Sling => {
                let sling = self.draw_sling(stage);
                let errand = {
                    let mut world = stage.world().lock();
                    if world.recipes.is_used { world.draw_request(sling) } else { Errand::Sling(Box::new(sling)) }
                };
                command(stage, errand);
                Ok(())
            }
            Deed::Queue => self.queue(stage),
            Deed::Retry => self.retry(stage),
            Deed::Clear => self.clear(stage),
            Deed::Pause => pause(stage),
            Deed::SetRig => set_rig(stage),
            Deed::Stop => stop(stage),
            Deed::Run => {
                command(stage, Errand::Run);
                Ok(())
            }
            Deed::SpoilConfig => {
                stage.spoil_config();
                Ok(())
            }
            Deed::Configure => {
                let (knobs, by_hand) = {
                    let mut world = stage.world().lock();
                    (world.draw_knobs(), world.chance(2))
                };
                if by_hand {
                    stage.edit_config(knobs);
                } else {
                    stage.configure(knobs);
                }
                Ok(())
            }
        }
    }

    /// Any bead, but rather the one that was meant last: people come back to what they have just done.
    fn any(&self, stage: &Stage) -> String {
        let mut world = stage.world().lock();
        let last = self.last.borrow().clone().filter(|_| world.chance(2));
        let picked = last.or_else(|| world.pick(&self.beads));
        self.last.borrow_mut().clone_from(&picked);
        picked.unwrap_or_else(|| "gt-none".to_owned())
    }

    /// A bead that is closed, or is not, where one is found in a few tries: people seldom ask for what makes no sense.
    fn any_that(&self, stage: &mut Stage, is_closed: bool) -> String {
        let mut id = self.any(stage);
        for _ in 0..4 {
            if stage.store.bead(&id).is_ok_and(|view| view.bead.status.is_terminal() == is_closed) {
                break;
            }
            id = self.any(stage);
        }
        id
    }

    fn create(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        if self.beads.len() >= self.n_beads_max {
            return self.reopen(stage);
        }
        let (prefix, has_parent, priority) = {
            let mut world = stage.world().lock();
            (RIGS[world.rng.usize(0..RIGS.len())].1, world.rng.u32(0..6) == 0, world.rng.i64(0..5))
        };
        let parent = has_parent.then(|| self.any(stage));
        let mut bead = Bead::new("", format!("Work {}", self.beads.len()));
        bead.issue_type = Some("task".to_owned());
        bead.priority = priority;
        let new = NewBead { prefix: prefix.to_owned(), parent, bead };
        let id = stage.store.create_bead(&new, &stage.stamp("ann"))?;
        stage.world().tell(|| format!("ann creates {id}"));
        self.beads.push(id);
        Ok(())
    }

    fn link(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        const KINDS: [&str; 4] = ["blocks", "blocks", "parent-child", "related"];
        let (source, target) = (self.any(stage), self.any(stage));
        let kind = KINDS[stage.world().lock().rng.usize(0..KINDS.len())];
        let edge = Edge::new(&target, EdgeType::parse(kind));
        let stamp = stage.stamp("ann");
        stage.store.add_edge(&source, &edge, &stamp)?;
        stage.world().tell(|| format!("ann links {source} {kind} {target}"));
        Ok(())
    }

    fn unlink(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let source = self.any(stage);
        let edges = stage.store.bead(&source).map(|view| view.bead.edges).unwrap_or_default();
        let picked = stage.world().lock().pick(&edges).map(|edge| edge.target);
        let target = picked.unwrap_or_else(|| self.any(stage));
        let stamp = stage.stamp("ann");
        stage.store.remove_edges(&source, &target, None, &stamp).map(drop)
    }

    fn close(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        let stamp = stage.stamp("ann");
        stage.store.close_beads(std::slice::from_ref(&bead), None, &stamp)?;
        stage.world().tell(|| format!("ann closes {bead}"));
        expect_status(stage, &bead, true);
        Ok(())
    }

    fn reopen(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any_that(stage, true);
        let stamp = stage.stamp("ann");
        stage.store.reopen_beads(std::slice::from_ref(&bead), &stamp)?;
        stage.world().tell(|| format!("ann reopens {bead}"));
        expect_status(stage, &bead, false);
        Ok(())
    }

    fn update(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        let stamp = stage.stamp("ann");
        let (what, number) = {
            let mut world = stage.world().lock();
            (world.rng.u32(0..7), world.rng.i64(0..600))
        };
        let until = stamp.now + SignedDuration::from_secs(number);
        let patch = match what {
            0 => BeadPatch { defer_until: Some(Some(until)), ..BeadPatch::default() },
            1 => BeadPatch { priority: Some(number % 5), ..BeadPatch::default() },
            2 => BeadPatch { assignee: Some(Some("eve".to_owned())), ..BeadPatch::default() },
            3 => BeadPatch { assignee: Some(None), ..BeadPatch::default() },
            4 => BeadPatch { status: Some(Status::Blocked), ..BeadPatch::default() },
            // As a worker of another town would leave it.
            5 => BeadPatch { status: Some(Status::InProgress), ..BeadPatch::default() },
            _ => BeadPatch { status: Some(Status::Open), assignee: Some(None), ..BeadPatch::default() },
        };
        stage.store.update_bead(&bead, &patch, &stamp)?;
        stage.world().tell(|| format!("ann updates {bead} ({what})"));
        Ok(())
    }

    fn delete(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        let stamp = stage.stamp("ann");
        stage.store.delete_beads(std::slice::from_ref(&bead), None, &stamp)?;
        stage.world().tell(|| format!("ann deletes {bead}"));
        Ok(())
    }

    /// Some beads, in some way.
    fn draw_sling(&self, stage: &mut Stage) -> Sling {
        let mut beads = vec![self.any_that(stage, false)];
        let (n_more, force, agent) = {
            let mut world = stage.world().lock();
            (world.rng.u32(0..12), world.chance(self.force), world.rng.u32(0..5))
        };
        if n_more > 9 {
            beads.extend((0..n_more - 8).map(|_| self.any(stage)));
        }
        let mut sling = Sling { force, is_batch: beads.len() > 1, ..sling_of(beads) };
        sling.fields.agent = (agent == 0).then(|| AGENTS[1].to_owned());
        sling
    }

    /// `gt queue`: scheduling never changes a work bead, unless by force.
    fn queue(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let mut sling = self.draw_sling(stage);
        sling.fields.queued = true;
        let stamp = stage.stamp("ann");
        let look = |store: &mut Store| sling.beads.iter().map(|id| store.bead(id).ok()).collect::<Vec<_>>();
        let before = look(&mut stage.store);
        let answer = stage.store.sling(&sling, None, &stamp);
        let is_same = before.iter().flatten().map(work_of).eq(look(&mut stage.store).iter().flatten().map(work_of));
        if !is_same && !sling.force {
            stage.world().violation(format!("scheduling changed one of {:?}", sling.beads));
        }
        answer.map(drop)
    }

    fn retry(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        let stamp = stage.stamp("ann");
        stage.store.retry(&bead, &stamp)?;
        stage.world().tell(|| format!("ann retries {bead}"));
        Ok(())
    }

    fn clear(&mut self, stage: &mut Stage) -> Result<(), StoreError> {
        let bead = self.any(stage);
        let is_all = stage.world().lock().rng.u32(0..4) == 0;
        let stamp = stage.stamp("ann");
        stage.store.clear_contexts((!is_all).then_some(bead.as_str()), &stamp)?;
        stage.world().tell(|| format!("ann clears {}", if is_all { "everything" } else { &bead }));
        Ok(())
    }
}

/// Puts right all of a bead that only waits for a person, and has it worked on.
pub fn set_free(stage: &mut Stage, bead: &str) {
    let stamp = stage.stamp("tidy");
    let Ok(view) = stage.store.bead(bead) else { return };
    if matches!(view.bead.status, Status::Closed | Status::Tombstone) {
        return;
    }
    if stage.store.runs_of(bead).is_ok_and(|runs| !runs.iter().any(gt_store::Run::is_live)) {
        let patch = BeadPatch {
            status: Some(Status::Open),
            assignee: Some(None),
            defer_until: Some(None),
            ..BeadPatch::default()
        };
        stage.store.update_bead(bead, &patch, &stamp).expect("a person may do this");
    }
    stage.foretold(|stage| sling_again(stage, bead, &stamp));
}

/// A refusal has a text and changes nothing.
pub fn expect_clear_refusal(stage: &mut Stage, deed: &str, before: i64, error: &StoreError) {
    let is_known = matches!(error, StoreError::Refused(_) | StoreError::NoBead { .. } | StoreError::NoRig { .. });
    if !is_known && !Stage::is_outage(error) {
        stage.world().violation(format!("{deed} met {error:?}"));
    }
    if error.to_string().trim().is_empty() {
        stage.world().violation(format!("{deed} was refused without a word"));
    }
    if stage.store.last_event().is_ok_and(|after| after != before) {
        stage.world().violation(format!("{deed} was refused and changed something: {error}"));
    }
}

/// What was acknowledged is so.
fn expect_status(stage: &mut Stage, bead: &str, is_closed: bool) {
    let status = stage.store.bead(bead).map(|view| view.bead.status);
    if !status.is_ok_and(|status| (status == Status::Closed) == is_closed) {
        stage.world().violation(format!("what was acknowledged of {bead} is not so"));
    }
}

fn sling_again(stage: &mut Stage, bead: &str, stamp: &Stamp) {
    if stage.store.retry(bead, stamp).is_err() {
        // Refused where it runs: then nothing is to be done.
        let sling = Sling { convoy: ConvoyWish::No, ..sling_of(vec![bead.to_owned()]) };
        stage.store.sling(&sling, None, stamp).map(drop).unwrap_or_default();
    }
}

/// What a bead is, apart from who tracks it.
fn work_of(view: &View) -> (String, Option<String>, Option<Timestamp>) {
    (view.bead.status.as_str().to_owned(), view.bead.assignee.clone(), view.bead.updated_at)
}

pub fn sling_of(beads: Vec<String>) -> Sling {
    Sling {
        beads,
        rig: None,
        fields: SlingFields::default(),
        force: false,
        convoy: ConvoyWish::Auto { title: None },
        is_batch: false,
        prescriptions: std::collections::BTreeMap::new(),
    }
}

/// Starts a command, if there are not too many.
pub fn command(stage: &mut Stage, errand: Errand) {
    if stage.strands.len() < COMMANDS_MAX + stage.n_daemons() {
        stage.launch(errand);
    }
}

fn pause(stage: &mut Stage) -> Result<(), StoreError> {
    let stamp = stage.stamp("ann");
    let is_pause = stage.world().lock().rng.u32(0..3) == 0;
    if is_pause {
        stage.store.pause(Some("lunch"), &stamp)?;
    } else {
        stage.store.resume(&stamp)?;
    }
    if stage.store.scheduler_state(stamp.now)?.pause.is_some() != is_pause {
        stage.world().violation("what was acknowledged of the pause is not so".to_owned());
    }
    Ok(())
}

fn set_rig(stage: &mut Stage) -> Result<(), StoreError> {
    let stamp = stage.stamp("ann");
    let (at, what) = {
        let mut world = stage.world().lock();
        (world.rng.usize(0..RIGS.len()), world.rng.u32(0..12))
    };
    let (name, prefix) = RIGS[at];
    let (to, event) = match what {
        0 => (RigState::Parked, EventType::RigParked),
        1 => (RigState::Docked, EventType::RigDocked),
        2 => return stage.store.remove_rig(name, true, &stamp),
        _ if stage.store.rig(name).is_err() => {
            return stage.store.add_rig(&rig(name, prefix, &stage.ground.town), &stamp);
        }
        4..8 => (RigState::Active, EventType::RigUndocked),
        _ => (RigState::Active, EventType::RigUnparked),
    };
    stage.store.set_rig_state(name, to, event, &stamp).map(drop)
}

/// `gt polecat stop`: the order by hand, and a process that sees to it.
fn stop(stage: &mut Stage) -> Result<(), StoreError> {
    let works = |run: &&gt_store::Run| !run.bead.is_empty();
    let live: Vec<String> = stage.store.live_runs()?.iter().filter(works).map(|run| run.id.clone()).collect();
    let picked = stage.world().lock().pick(&live);
    let Some(run) = picked else { return Ok(()) };
    let Stamp { now: at, .. } = stage.stamp("ann");
    let order = StopOrder { at, by: "ann".to_owned(), outcome: Outcome::Stopped, reason: "ann stopped it".to_owned() };
    let stamp = stage.stamp("ann");
    stage.store.order_stop(&run, &order, &stamp)?;
    stage.world().tell(|| format!("ann stops {run}"));
    command(stage, Errand::SeeStopped(run));
    Ok(())
}
