//! Towns in which all of it happens at once: beads, convoys, formulas, guards and a budget, sessions and jobs, under one daemon.
//!
//! Each brings its parts and its judge. Of jobs only what holds beside others is judged: the shares of guards and budget, and
//! that the town comes to rest once they are gone.

use crate::agents::Agents;
use crate::conversations::Talking;
use crate::imports::Imports;
use crate::jobs::{Hands, Timers};
use crate::judge::Judge;
use crate::owners::Owners;
use crate::part::Part;
use crate::people::People;
use crate::play::Play;
use crate::recipes::{self, Cooks};
use crate::shortage::{Machine, Shortage};
use crate::sim::{Failure, Plan, Report};
use crate::stage::{RunKind, Stage};
use crate::trouble::{Hours, Trouble};

/// A world that has not come to rest after so many rounds never will.
const ROUNDS_MAX: usize = 12_000;
/// The jobs that people have here.
const JOBS: [&str; 3] = ["a", "b", "c"];

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Everything::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    sim.talking.end(&sim.play.stage);
    let (step, story) = {
        let mut world = sim.play.stage.world().lock();
        (world.step, world.story.take().unwrap_or_default())
    };
    match verdict {
        Ok(()) => {
            let n_runs = sim.play.stage.ground.runtime.started().len();
            Ok(Report { n_runs, story, coverage: sim.judge.coverage })
        }
        Err(what) => Err(Box::new(Failure { plan, step, what, story })),
    }
}

struct Everything {
    plan: Plan,
    play: Play,
    judge: Judge,
    talking: Talking,
}

impl Everything {
    fn new(plan: Plan) -> Everything {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        {
            let mut world = stage.world().lock();
            if world.rng.bool() {
                world.machine = Machine::draw(&mut world.rng);
            }
        }
        recipes::begin(&mut stage);
        let judge = Judge::new(&stage);
        let (talking, talkers) = Talking::begin(&mut stage);
        let (people, owners, imports) = {
            let mut world = stage.world().lock();
            (People::new(&mut world.rng), Owners::new(&mut world.rng), Imports::new(&mut world.rng))
        };
        let mut parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(people),
            Box::new(owners),
            Box::new(Agents::default()),
            Box::new(imports),
            Box::new(Cooks),
            Box::new(Clocks),
            Box::new(Hands::default()),
        ];
        parts.extend(talkers);
        if stage.world().lock().machine.is_watched {
            parts.push(Box::new(Shortage));
        }
        Everything { plan, play: Play { stage, parts }, judge, talking }
    }

    fn chaos(&mut self) -> Result<(), String> {
        let Everything { judge, talking, .. } = self;
        self.play.chaos(self.plan.n_steps, |stage| judge.look(stage).and_then(|()| talking.look(stage)))
    }

    /// Nothing goes wrong any more: everything is done, answered and delivered.
    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        self.look()?;
        let forecast = self.judge.forecast()?;
        self.rest()?;
        self.judge.check_rest(&self.play.stage)?;
        self.judge.check_forecast(&self.play.stage, &forecast)?;
        self.play.tidy();
        self.rest()?;
        self.judge.check_rest(&self.play.stage)?;
        self.judge.check_all_done()?;
        self.talking.conclude()
    }

    fn look(&mut self) -> Result<(), String> {
        self.judge.look(&mut self.play.stage)?;
        self.talking.look(&mut self.play.stage)
    }

    /// Lets everybody work until nothing happens any more.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let Everything { judge, talking, .. } = self;
            self.play.round(|stage| judge.look(stage).and_then(|()| talking.look(stage)))?;
            let stage = &self.play.stage;
            self.judge.check_no_stall(stage)?;
            self.judge.check_ends(stage)?;
            self.talking.check_no_stall(stage)?;
            if !self.judge.is_anything_to_come(stage)? && !self.talking.is_anything_to_come()? {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever, and something is still to come".to_owned());
            }
        }
        let running = [RunKind::Bead, RunKind::Turn, RunKind::Job].map(|kind| self.play.stage.running(kind));
        Err(format!("the town does not come to rest; there run {running:?}"))
    }
}

/// People who have jobs, until all is well: then these are gone, or time would never come to rest.
struct Clocks;

impl Part for Clocks {
    fn weight(&self, stage: &Stage) -> u32 {
        Timers.weight(stage) / 2
    }

    fn act(&mut self, stage: &mut Stage) {
        Timers.act(stage);
    }

    fn heal(&mut self, stage: &mut Stage) {
        let stamp = stage.stamp("ann");
        for name in JOBS {
            stage.store.remove_job(name, &stamp).map(drop).unwrap_or_default();
        }
    }
}
