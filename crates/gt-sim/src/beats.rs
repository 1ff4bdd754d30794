//! A town of heartbeats: the same world of crashes, faults and clocks that jump, in which agents are woken to look after lists. // SPEC H1, H2
//!
//! As in towns of jobs time never comes to rest. After the chaos the clock goes on, and people still do one thing after the
//! other while everybody sleeps. At last each heart beats every few hours for more than a day and has the same to tell each time, so
//! that it is told once in 24 hours.

mod answers;
mod book;
mod check;
mod config;
mod folk;
mod hands;
mod history;
mod judge;
mod lists;

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use self::book::Shared as SharedBook;
use self::config::Pulse;
use self::folk::Folk;
pub(crate) use self::hands::Hands;
use self::judge::Judge;
use crate::conversations::deliveries::Couriers;
use crate::jobs::Clockmaker;
use crate::knobs::Knobs;
use crate::part::Part;
use crate::play::Play;
use crate::sim::{Failure, Plan};
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};
use crate::world::Pid;

/// The agents: the first one looks after the town's list, the other one after its own.
const AGENTS: [&str; 2] = ["ada", "bob"];
/// Where people talk to them.
const SESSIONS: [&str; 2] = ["dm:ann", "group:ops"];
/// The web hook by which alerts go out.
const CHANNEL: &str = "post";

/// By then whoever runs the town has noticed that all is well again.
const HEALED: SignedDuration = SignedDuration::from_mins(2);
/// For so long nothing happens but what is to, after each thing that people do.
const CALM: SignedDuration = SignedDuration::from_mins(4);
/// So many things people do in peace.
const DEEDS: usize = 12;
/// How often each heart beats at last, and for how long.
const SLOW: SignedDuration = SignedDuration::from_hours(5);
const DAY: SignedDuration = SignedDuration::from_hours(31);
const ROUNDS_MAX: usize = 60_000;

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub n_fires: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Beats::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    let story = {
        let mut world = sim.play.stage.world().lock();
        world.witness = None; // it knows this world, which would live for ever
        world.story.take().unwrap_or_default()
    };
    match verdict {
        Ok(()) => Ok(Report { n_fires: lock(&sim.judge).n_fires(), story }),
        Err(what) => Err(Box::new(Failure { plan, step: sim.play.stage.world().lock().step, what, story })),
    }
}

struct Beats {
    plan: Plan,
    play: Play,
    judge: Arc<Mutex<Judge>>,
}

fn lock(judge: &Mutex<Judge>) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the people stand among the parts.
const FOLK: usize = 4;

impl Beats {
    fn new(plan: Plan) -> Beats {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        stage.world().lock().faults.no_daemon = false;
        let (pulse, knobs, failures_max, tells) = {
            let mut world = stage.world().lock();
            world.faults.bad_receiver = world.rng.u32(0..5);
            let failures_max = world.rng.u32(1..4);
            let knobs = Knobs { max_run: 0, ..Knobs::draw(&mut world.rng) };
            (Pulse::draw(&mut world.rng), knobs, failures_max, world.rng.bool())
        };
        let book = SharedBook::new(pulse.clone());
        let folk = Folk::new(book.clone(), failures_max);
        folk.configure(&mut stage, pulse, knobs);
        let judge = Arc::new(Mutex::new(Judge::new(&stage, book.clone(), failures_max.into())));
        let (watching, world) = (Arc::clone(&judge), stage.world().clone());
        stage.world().lock().witness = Some(Arc::new(Mutex::new(move |pid: Pid| {
            let (read_since, step, now) = {
                let world = world.lock();
                (world.processes.get(&pid).map_or(0, |process| process.reads_since), world.step, world.now())
            };
            if let Err(what) = lock(&watching).after_commit(read_since, step, now) {
                world.violation(what);
            }
        })));
        let parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(Clockmaker { tells }),
            Box::new(Couriers(CHANNEL)),
            Box::new(folk),
            Box::new(Hands::new(Some(book))),
        ];
        Beats { plan, play: Play { stage, parts }, judge }
    }

    fn now(&self) -> Timestamp {
        self.play.stage.world().now()
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &self.judge;
        self.play.chaos(self.plan.n_steps, |stage| lock(judge).look(stage))
    }

    /// Nothing goes wrong any more: hearts beat in time, and what they have to tell arrives.
    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        lock(&self.judge).look(&mut self.play.stage)?;
        // What a clock that was ahead has done is over when it is past that.
        let latest = lock(&self.judge).latest.max(self.now()) + HEALED;
        self.go_on_until(latest)?;
        lock(&self.judge).is_peace = true;
        for _ in 0..DEEDS {
            self.go_on_until(self.now() + CALM)?;
            self.play.parts[FOLK].act(&mut self.play.stage);
            lock(&self.judge).look(&mut self.play.stage)?;
        }
        self.play.tidy();
        lock(&self.judge).look(&mut self.play.stage)?;
        self.go_on_until(self.now() + DAY)?;
        lock(&self.judge).conclude(&mut self.play.stage)
    }

    /// Time passes, with all that is due in it.
    fn go_on_until(&mut self, until: Timestamp) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let judge = &self.judge;
            self.play.round(|stage| lock(judge).look(stage))?;
            lock(judge).check_no_stall(&mut self.play.stage)?;
            if self.now() > until {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever".to_owned());
            }
        }
        Err("time does not pass".to_owned())
    }
}
