//! One simulation: a town, so many steps of chaos, then peace, in which everything must come to rest.

use std::fmt;

use crate::agents::Agents;
use crate::beats;
use crate::clockwork;
use crate::conversations;
use crate::coverage::Coverage;
use crate::everything;
use crate::imports::Imports;
use crate::judge::Judge;
use crate::merging;
use crate::owners::Owners;
use crate::part::Part;
use crate::people::People;
use crate::play::Play;
use crate::recipes::{self, Cooks};
use crate::shortage::{Machine, Shortage};
use crate::stage::Stage;
use crate::telegram;
use crate::trouble::{Hours, Trouble};

/// A world that has not come to rest after so many rounds never will.
const ROUNDS_MAX: usize = 8_000;

/// What is to be simulated.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub n_steps: usize,
    pub on_disk: bool,
    /// Whether the story is wanted.
    pub tells: bool,
    pub towns: Towns,
}

/// What the simulated towns have to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Towns {
    #[default]
    Beads,
    /// Beads, on a machine that is short of something and with a budget.
    Guards,
    /// Beads that are done by formulas, some of them step by step.
    Formulas,
    /// Scheduled jobs, with clocks that jump.
    Jobs,
    /// Sessions, with deliveries.
    Sessions,
    /// Heartbeats, with lists, hours and alerts.
    Beats,
    /// People who write to a bot.
    Telegram,
    /// Beads, formulas, guards, sessions and jobs in one town.
    Everything,
    /// Polecats that commit, a refinery, and a simulated git.
    Merging,
}

impl Towns {
    pub const ALL: [Towns; 9] = [
        Towns::Beads,
        Towns::Guards,
        Towns::Formulas,
        Towns::Jobs,
        Towns::Sessions,
        Towns::Beats,
        Towns::Telegram,
        Towns::Merging,
        Towns::Everything,
    ];

    /// The option of `cargo xtask sim` that chooses them.
    pub fn flag(self) -> Option<&'static str> {
        match self {
            Towns::Beads => None,
            Towns::Guards => Some("--guards"),
            Towns::Formulas => Some("--formulas"),
            Towns::Jobs => Some("--jobs"),
            Towns::Sessions => Some("--sessions"),
            Towns::Beats => Some("--beats"),
            Towns::Telegram => Some("--telegram"),
            Towns::Everything => Some("--everything"),
            Towns::Merging => Some("--merging"),
        }
    }

    pub fn by_flag(flag: &str) -> Option<Towns> {
        Towns::ALL.into_iter().find(|towns| towns.flag() == Some(flag))
    }
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
        let Plan { seed, n_steps, on_disk, towns, .. } = self.plan;
        let disk = if on_disk { " --disk" } else { "" };
        let towns = towns.flag().map(|flag| format!(" {flag}")).unwrap_or_default();
        write!(
            f,
            "seed {seed}, step {}: {} — repeat with `cargo xtask sim --seed {seed} --steps {n_steps}{disk}{towns}`",
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
    match plan.towns {
        Towns::Beads | Towns::Guards | Towns::Formulas => run_beads(plan),
        Towns::Jobs => {
            let clockwork::Report { n_starts, story, .. } = clockwork::run(plan)?;
            Ok(Report { n_runs: n_starts, story, coverage: Coverage::default() })
        }
        Towns::Beats => {
            let beats::Report { n_fires, story } = beats::run(plan)?;
            Ok(Report { n_runs: n_fires, story, coverage: Coverage::default() })
        }
        Towns::Telegram => {
            let telegram::Report { n_updates, story } = telegram::run(plan)?;
            Ok(Report { n_runs: n_updates, story, coverage: Coverage::default() })
        }
        Towns::Everything => everything::run(plan),
        Towns::Merging => merging::run(plan),
        Towns::Sessions => {
            let conversations::Report { n_runs, story } = conversations::run(plan)?;
            Ok(Report { n_runs, story, coverage: Coverage::default() })
        }
    }
}

fn run_beads(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Sim::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    match verdict {
        Ok(()) => Ok(sim.report()),
        Err(what) => Err(Box::new(sim.failure(what))),
    }
}

/// People write guards and budgets into their config, and the machine can be short of something.
fn watch_machine(stage: &mut Stage) {
    let knobs = {
        let mut world = stage.world().lock();
        world.machine = Machine::draw(&mut world.rng);
        world.draw_knobs()
    };
    stage.configure(knobs);
}

struct Sim {
    plan: Plan,
    play: Play,
    judge: Judge,
}

impl Sim {
    fn new(plan: Plan) -> Sim {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        if plan.towns == Towns::Guards {
            watch_machine(&mut stage);
        }
        if plan.towns == Towns::Formulas {
            recipes::begin(&mut stage);
        }
        let judge = Judge::new(&stage);
        let people = People::new(&mut stage.world().lock().rng);
        let owners = Owners::new(&mut stage.world().lock().rng);
        let imports = Imports::new(&mut stage.world().lock().rng);
        let mut parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(people),
            Box::new(owners),
            Box::new(Agents::default()),
            Box::new(imports),
        ];
        if stage.world().lock().machine.is_watched {
            parts.push(Box::new(Shortage));
        }
        if stage.world().lock().recipes.is_used {
            parts.push(Box::new(Cooks));
        }
        Sim { plan, play: Play { stage, parts }, judge }
    }

    fn report(self) -> Report {
        let story = self.play.stage.world().lock().story.take().unwrap_or_default();
        Report { n_runs: self.judge.model.claimed.len(), story, coverage: self.judge.coverage }
    }

    fn failure(self, what: String) -> Failure {
        let mut world = self.play.stage.world().lock();
        Failure { plan: self.plan, step: world.step, what, story: world.story.take().unwrap_or_default() }
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &mut self.judge;
        self.play.chaos(self.plan.n_steps, |stage| judge.look(stage))
    }

    /// Nothing goes wrong any more: the town comes to rest by itself, and once people have had their say all is done.
    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        self.judge.look(&mut self.play.stage)?;
        let forecast = self.judge.forecast()?;
        self.rest()?;
        self.judge.check_rest(&self.play.stage)?;
        self.judge.check_forecast(&self.play.stage, &forecast)?;
        self.play.tidy();
        self.rest()?;
        self.judge.check_rest(&self.play.stage)?;
        self.judge.check_all_done()
    }

    /// Lets everybody work until nothing happens any more.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let judge = &mut self.judge;
            self.play.round(|stage| judge.look(stage))?;
            self.judge.check_no_stall(&self.play.stage)?;
            self.judge.check_ends(&self.play.stage)?;
            if !self.judge.is_anything_to_come(&self.play.stage)? {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever, and something is still to come".to_owned());
            }
        }
        Err("the town does not come to rest".to_owned())
    }
}
