//! One simulation: a town, so many steps of chaos, then peace, in which everything must come to rest.

use std::fmt;
use std::time::Duration;

use crate::agents::Agents;
use crate::coverage::Coverage;
use crate::imports::Imports;
use crate::judge::Judge;
use crate::owners::Owners;
use crate::part::Part;
use crate::people::People;
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};

/// How often a process moves, beside the parts.
const MOVES_WEIGHT: u32 = 60;
/// Everybody is given this long to notice what happened before they are said to sleep.
const NOTICE: Duration = Duration::from_millis(50);
/// A world that has not come to rest after so many rounds never will.
const ROUNDS_MAX: usize = 8_000;
/// How many moves lie between two rounds at the most.
const MOVES_MAX: usize = 20_000;

/// What is to be simulated.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub n_steps: usize,
    pub on_disk: bool,
    /// Whether the story is wanted.
    pub tells: bool,
}

/// A seed that found something.
#[derive(Debug, Clone)]
pub struct Failure {
    pub plan: Plan,
    pub step: usize,
    pub what: String,
    pub story: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, n_steps, on_disk, .. } = self.plan;
        let disk = if on_disk { " --disk" } else { "" };
        write!(
            f,
            "seed {seed}, step {}: {} — repeat with `cargo xtask sim --seed {seed} --steps {n_steps}{disk}`",
            self.step, self.what
        )
    }
}

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub coverage: Coverage,
    pub n_runs: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Sim::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    match verdict {
        Ok(()) => Ok(sim.report()),
        Err(what) => Err(Box::new(sim.failure(what))),
    }
}

struct Sim {
    plan: Plan,
    stage: Stage,
    judge: Judge,
    parts: Vec<Box<dyn Part>>,
}

impl Sim {
    fn new(plan: Plan) -> Sim {
        let stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        let judge = Judge::new(&stage);
        let people = People::new(&mut stage.world().lock().rng);
        let owners = Owners::new(&mut stage.world().lock().rng);
        let imports = Imports::new(&mut stage.world().lock().rng);
        let parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(people),
            Box::new(owners),
            Box::new(Agents::default()),
            Box::new(imports),
        ];
        Sim { plan, stage, judge, parts }
    }

    fn report(self) -> Report {
        let story = self.stage.world().lock().story.take().unwrap_or_default();
        Report { n_runs: self.judge.model.claimed.len(), story, coverage: self.judge.coverage }
    }

    fn failure(self, what: String) -> Failure {
        let mut world = self.stage.world().lock();
        Failure { plan: self.plan, step: world.step, what, story: world.story.take().unwrap_or_default() }
    }

    /// Anything can happen.
    fn chaos(&mut self) -> Result<(), String> {
        for step in 0..self.plan.n_steps {
            self.stage.world().lock().step = step;
            self.stage.reads_since = None;
            self.step();
            self.judge.look(&mut self.stage)?;
        }
        Ok(())
    }

    fn step(&mut self) {
        let ready = self.stage.ready_strands();
        let moves = if ready.is_empty() { 0 } else { MOVES_WEIGHT };
        let weights: Vec<u32> = self.parts.iter().map(|part| part.weight(&self.stage)).collect();
        let (mut at, who) = {
            let mut world = self.stage.world().lock();
            (world.rng.u32(0..weights.iter().sum::<u32>() + moves), world.pick(&ready))
        };
        for (part, weight) in self.parts.iter_mut().zip(weights) {
            if at < weight {
                return part.act(&mut self.stage);
            }
            at -= weight;
        }
        let is_aside = self.stage.world().lock().rng.u32(0..4) == 0;
        if is_aside && self.stage.step_aside() {
            return;
        }
        if let Some(pid) = who {
            self.stage.step_strand(pid);
        }
    }

    /// Nothing goes wrong any more: the town comes to rest by itself, and once people have had their say all is done.
    fn peace(&mut self) -> Result<(), String> {
        self.stage.world().lock().step += 1;
        for part in &mut self.parts {
            part.heal(&mut self.stage);
        }
        self.judge.look(&mut self.stage)?;
        let forecast = self.judge.forecast()?;
        self.rest()?;
        self.judge.check_rest(&self.stage)?;
        self.judge.check_forecast(&self.stage, &forecast)?;
        for part in &mut self.parts {
            part.tidy(&mut self.stage);
        }
        self.rest()?;
        self.judge.check_rest(&self.stage)?;
        self.judge.check_all_done()
    }

    /// Lets everybody work until nothing happens any more.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            self.exhaust()?;
            self.stage.world().lock().pass(NOTICE);
            self.exhaust()?;
            self.judge.check_no_stall(&self.stage)?;
            self.judge.check_ends(&self.stage)?;
            if !self.judge.is_anything_to_come(&self.stage)? {
                return Ok(());
            }
            let Some(next) = self.stage.next_wake() else {
                return Err("everybody sleeps for ever, and something is still to come".to_owned());
            };
            let mut world = self.stage.world().lock();
            let span = next.saturating_sub(world.uptime());
            world.pass(span);
        }
        Err("the town does not come to rest".to_owned())
    }

    /// Everything that is due at this moment.
    fn exhaust(&mut self) -> Result<(), String> {
        for _ in 0..MOVES_MAX {
            self.stage.reads_since = None;
            self.stage.world().lock().step += 1;
            let ready = self.stage.ready_strands();
            let mover = self.stage.world().lock().pick(&ready);
            let has_moved = match mover {
                Some(pid) => {
                    self.stage.step_strand(pid);
                    true
                }
                None if self.stage.step_aside() => true,
                None if self.stage.n_daemons() == 0 => {
                    self.stage.launch(crate::processes::Errand::Daemon);
                    true
                }
                None => self.parts.iter_mut().any(|part| part.work(&mut self.stage)),
            };
            self.judge.look(&mut self.stage)?;
            if !has_moved {
                return Ok(());
            }
        }
        Err("somebody is busy for ever".to_owned())
    }
}
