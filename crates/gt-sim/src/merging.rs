//! A town of merging: the same world of crashes and faults, with polecats that commit, a refinery, and a simulated git. // SPEC M1, M2
//!
//! After the chaos nothing goes wrong any more, and what only people can mend stays as it is: everything else must be merged,
//! returned or held with a reason that is right. Then people mend it, and everything must be merged.

mod book;
mod forge;
mod judge;
mod polecats;
mod rest;
mod slingers;
mod strangers;
mod tools;

use std::time::Duration;

use fastrand::Rng;
use gt_store::Stamp;

use self::judge::Judge;
use self::polecats::Polecats;
use self::slingers::Slingers;
use self::strangers::Strangers;
use crate::git::{Author, Checkout, GitWorld, Head, Origin, Repository, Tree, here, there};
use crate::knobs::{Knobs, MergeKnobs, RIGS};
use crate::part::Part;
use crate::play::Play;
use crate::processes::Errand;
use crate::sim::{Failure, Plan, Report};
use crate::stage::{Stage, rig};
use crate::trouble::{Hours, Trouble};

/// The branches that work is merged into.
pub const TARGETS: [&str; 2] = ["main", "release"];
/// The files that everybody changes.
pub const FILES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// After so long everything has come as far as it can by itself.
const CALM: Duration = Duration::from_mins(10);
/// It takes many moves until work is at a target, so there are so many times more than elsewhere.
const CHAOS: usize = 2;
/// So often people see to what only they can mend.
const TIDIED_MAX: usize = 4;
/// So often a `gt refinery run` comes in the healed world when somebody wakes up, and it has come to its end by so many boundaries.
const DOOMED_ONE_IN: u32 = 8;
const DOOMED_AFTER_MAX: u32 = 60;
const ROUNDS_MAX: usize = 20_000;

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut town = Town::new(plan);
    let verdict = town.chaos().and_then(|()| town.peace());
    let mut world = town.play.stage.world().lock();
    let (story, step) = (world.story.take().unwrap_or_default(), world.step);
    drop(world);
    match verdict {
        Ok(()) => Ok(Report { n_runs: town.judge.n_landed(), story, ..Report::default() }),
        Err(what) => Err(Box::new(Failure { plan, step, what, story })),
    }
}

struct Town {
    plan: Plan,
    play: Play,
    judge: Judge,
}

impl Town {
    fn new(plan: Plan) -> Town {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        found(&mut stage);
        let judge = Judge::new(&stage);
        let parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(Slingers::new(&stage)),
            Box::new(Polecats::default()),
            Box::new(Strangers::new(&stage)),
        ];
        Town { plan, play: Play { stage, parts }, judge }
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &mut self.judge;
        self.play.chaos(CHAOS * self.plan.n_steps, |stage| judge.look(stage))
    }

    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        self.calm()?;
        self.judge.check_settled(&mut self.play.stage)?;
        self.play.stage.world().tell(|| "people mend what only they can".to_owned());
        let mut is_done = Ok(());
        // What comes back while all is tidied up is left to people once more.
        for _ in 0..TIDIED_MAX {
            self.play.tidy();
            self.calm()?;
            is_done = self.judge.check_all_done(&mut self.play.stage);
            if is_done.is_ok() {
                break;
            }
        }
        is_done
    }

    /// Just when a target is tried again, somebody else comes first, and may be killed at it: that wakes nobody.
    fn merge_and_die(&mut self) {
        let (comes, n_boundaries) = {
            let mut world = self.play.stage.world().lock();
            (world.rng.u32(0..DOOMED_ONE_IN) == 0, world.rng.u32(1..DOOMED_AFTER_MAX))
        };
        if comes {
            let pid = self.play.stage.launch(Errand::Refine);
            self.play.stage.world().lock().doomed.insert(pid, n_boundaries);
        }
    }

    /// Time passes, with all that is due in it.
    fn calm(&mut self) -> Result<(), String> {
        let until = self.play.stage.world().lock().uptime() + CALM;
        for _ in 0..ROUNDS_MAX {
            let judge = &mut self.judge;
            self.play.round(|stage| judge.look(stage))?;
            self.judge.check_no_stall(&mut self.play.stage)?;
            if self.play.stage.world().lock().uptime() >= until {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever".to_owned());
            }
            self.merge_and_die();
        }
        Err("time does not pass".to_owned())
    }
}

/// Settings under which much work comes together.
fn busy(knobs: Knobs, rng: &mut Rng) -> Knobs {
    Knobs {
        town: [3, 5][rng.usize(0..2)],
        rigs: [0, 0],
        agents: [0, 0],
        host: 0,
        batch: 0,
        spawn_delay: 0,
        per_second: 0,
        cooldown: 0,
        breaker_reset: 10,
        ..knobs
    }
}

/// Gives the rigs their repositories, and the config what is to be said of merging.
fn found(stage: &mut Stage) {
    let (mut knobs, mut git) = {
        let mut guard = stage.world().lock();
        let world = &mut *guard;
        world.faults.draw_merging(&mut world.rng);
        world.faults.no_daemon = false;
        world.faults.executing = 0;
        let merging = MergeKnobs::draw(&mut world.rng);
        let mut knobs =
            Knobs { merging: Some(merging), max_run: 0, stall_after: 100_000, ..Knobs::draw(&mut world.rng) };
        if world.rng.u32(0..4) != 0 {
            knobs = busy(knobs, &mut world.rng);
        }
        (knobs, GitWorld::default())
    };
    for (n, (name, prefix)) in RIGS.into_iter().enumerate() {
        let (is_bare, has_origin) = {
            let mut world = stage.world().lock();
            (world.rng.u32(0..4) == 0, world.rng.u32(0..4) != 0)
        };
        if let Some(merging) = &mut knobs.merging {
            merging.asks[n] &= has_origin; // there is nowhere else to ask
        }
        let root = std::path::PathBuf::from(rig(name, prefix, &stage.ground.town).path);
        let first: Tree = FILES.iter().map(|file| ((*file).to_owned(), "text-0".to_owned())).collect();
        let id = git.objects.add(&[], first.clone(), "begin", Author::Person, 0);
        let mut repository = Repository::default();
        for target in TARGETS {
            repository.set_branch(target, &id, false);
            if has_origin {
                repository.refs.insert(there(target), id.clone());
            }
        }
        if has_origin {
            let refs = TARGETS.iter().map(|target| (here(target), id.clone())).collect();
            repository.origin = Some(Origin { refs, ..Origin::default() });
        }
        if !is_bare {
            repository.checkouts.insert(root.clone(), Checkout::new(Head::Branch(TARGETS[0].to_owned()), &first));
        }
        git.repositories.insert(root, repository);
    }
    stage.world().lock().git = git;
    stage.configure(knobs);
}

/// Whoever does what people do here.
fn stamp(stage: &Stage) -> Stamp {
    stage.stamp("ann")
}
