//! A town of sessions: the same world of crashes, faults and clocks that jump, with messages instead of beads.
//!
//! People send and stop, agents answer in every way they can, and after the chaos the healed town must answer all that was
//! acknowledged. What must become of a message is in `queue`, what must hold after each commit in `judge`.

mod answerers;
mod book;
mod config;
pub(crate) mod deliveries;
pub(crate) mod judge;
mod queue;
mod speakers;

use std::sync::{Arc, Mutex, PoisonError};

use self::answerers::Answerers;
use self::book::Shared as SharedBook;
use self::config::Talk;
use self::deliveries::Couriers;
use self::judge::Judge;
use self::speakers::Speakers;
use crate::part::Part;
use crate::play::Play;
use crate::sim::{Failure, Plan};
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};
use crate::world::Pid;

/// The web hook by which answers go out.
const CHANNEL: &str = "post";
/// Those whom people write to; and those whom only agents ask.
const SESSIONS: [&str; 4] = ["dm:ann", "dm:ben", "group:ops", "group:dev"];
const NESTED: [&str; 2] = ["sub:one", "group:sub"];
/// A world that has not come to rest after so many rounds never will.
const ROUNDS_MAX: usize = 8_000;

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub n_runs: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Conversations::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    sim.talking.end(&sim.play.stage);
    let story = sim.play.stage.world().lock().story.take().unwrap_or_default();
    match verdict {
        Ok(()) => Ok(Report { n_runs: sim.talking.n_runs(), story }),
        Err(what) => Err(Box::new(Failure { plan, step: sim.play.stage.world().lock().step, what, story })),
    }
}

/// What sessions bring into a town: a judge of their own, and those who talk and answer.
pub struct Talking {
    judge: Arc<Mutex<Judge>>,
}

impl Talking {
    /// Configures a town for them, and has the judge look after each commit.
    pub fn begin(stage: &mut Stage) -> (Talking, Vec<Box<dyn Part>>) {
        let book = SharedBook::default();
        let judge = Arc::new(Mutex::new(Judge::new(stage, book.clone())));
        let (talk, knobs) = {
            let mut world = stage.world().lock();
            (Talk::draw(&mut world.rng), world.draw_knobs())
        };
        speakers::configure(stage, &book, &talk, knobs);
        {
            let mut world = stage.world().lock();
            world.faults.bad_receiver = world.rng.u32(0..5);
        }
        let (watching, world) = (Arc::clone(&judge), stage.world().clone());
        stage.world().lock().witness = Some(Arc::new(Mutex::new(move |pid: Pid| {
            let read_since = world.lock().processes.get(&pid).map_or(0, |process| process.reads_since);
            if let Err(what) = lock(&watching).after_commit(read_since) {
                world.violation(what);
            }
        })));
        let parts: Vec<Box<dyn Part>> =
            vec![Box::new(Couriers(CHANNEL)), Box::new(Speakers::new(book.clone())), Box::new(Answerers::new(book))];
        (Talking { judge }, parts)
    }

    pub fn look(&self, stage: &mut Stage) -> Result<(), String> {
        lock(&self.judge).look(stage)
    }

    pub fn check_no_stall(&self, stage: &Stage) -> Result<(), String> {
        lock(&self.judge).check_no_stall(stage)
    }

    pub fn is_anything_to_come(&self) -> Result<bool, String> {
        lock(&self.judge).is_anything_to_come()
    }

    pub fn conclude(&self) -> Result<(), String> {
        lock(&self.judge).conclude()
    }

    pub fn n_runs(&self) -> usize {
        lock(&self.judge).n_runs()
    }

    /// The judge knows this world, which would live for ever.
    pub fn end(&self, stage: &Stage) {
        stage.world().lock().witness = None;
    }
}

struct Conversations {
    plan: Plan,
    play: Play,
    talking: Talking,
}

fn lock(judge: &Mutex<Judge>) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversations {
    fn new(plan: Plan) -> Conversations {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        let (talking, own) = Talking::begin(&mut stage);
        let mut parts: Vec<Box<dyn Part>> = vec![Box::new(Trouble), Box::new(Hours)];
        parts.extend(own);
        Conversations { plan, play: Play { stage, parts }, talking }
    }

    fn chaos(&mut self) -> Result<(), String> {
        let talking = &self.talking;
        self.play.chaos(self.plan.n_steps, |stage| talking.look(stage))
    }

    /// Nothing goes wrong any more: all that was acknowledged comes to its end, and what is sent then is answered.
    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        self.talking.look(&mut self.play.stage)?;
        self.rest()?;
        self.play.tidy();
        self.rest()?;
        self.talking.conclude()
    }

    /// Lets everybody work until nothing happens any more.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let talking = &self.talking;
            self.play.round(|stage| talking.look(stage))?;
            talking.check_no_stall(&self.play.stage)?;
            if !talking.is_anything_to_come()? {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever, and something is still to come".to_owned());
            }
        }
        Err("the town does not come to rest".to_owned())
    }
}
