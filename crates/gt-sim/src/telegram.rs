//! A town that people write to by Telegram: the same world of crashes, faults and clocks that jump, with a simulated Bot API. // SPEC L6
//!
//! The poller and the deliverer are the real ones; what is replaced is the call of a method (`server`). People write to the bot
//! (`writers`), agents answer as in towns of heartbeats, and what must hold is in `judge`.

mod judge;
pub mod server;
mod writers;

use std::collections::VecDeque;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use gt_engine::channels::{Courier, Listener, Pause};
use gt_engine::settings::Settings;
use gt_engine::surroundings;
use gt_engine::{Town, TownError};
use gt_store::Store;

use self::judge::Judge;
use self::server::Line;
use self::writers::Writers;
use crate::around::Around;
use crate::beats::Hands;
use crate::jobs::Clockmaker;
use crate::part::Part;
use crate::play::Play;
use crate::processes::Errand;
use crate::sim::{Failure, Plan};
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};
use crate::world::Pid;

/// The channel by which people write, and answers go out.
pub const CHANNEL: &str = "tg";
/// A world that has not come to rest after so many rounds never will.
const ROUNDS_MAX: usize = 20_000;

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub n_updates: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Bot::new(plan);
    let verdict = sim.chaos().and_then(|()| sim.peace());
    let story = {
        let mut world = sim.play.stage.world().lock();
        world.witness = None; // it knows this world, which would live for ever
        world.story.take().unwrap_or_default()
    };
    let n_updates = sim.play.stage.world().lock().bot.n_updates();
    match verdict {
        Ok(()) => Ok(Report { n_updates, story }),
        Err(what) => Err(Box::new(Failure { plan, step: sim.play.stage.world().lock().step, what, story })),
    }
}

struct Bot {
    plan: Plan,
    play: Play,
    judge: Arc<Mutex<Judge>>,
}

fn lock(judge: &Mutex<Judge>) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bot {
    fn new(plan: Plan) -> Bot {
        let mut stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        stage.world().lock().faults.no_daemon = false;
        writers::configure(&mut stage);
        let tells = {
            let mut world = stage.world().lock();
            let world = &mut *world;
            world.bot.draw_faults(&mut world.rng);
            world.rng.bool()
        };
        let judge = Arc::new(Mutex::new(Judge::new(&stage)));
        let (watching, world) = (Arc::clone(&judge), stage.world().clone());
        stage.world().lock().witness = Some(Arc::new(Mutex::new(move |_: Pid| {
            if let Err(what) = lock(&watching).after_commit(&world) {
                world.violation(what);
            }
        })));
        let parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(Clockmaker { tells }),
            Box::new(Threads),
            Box::new(Writers::default()),
            Box::new(Hands::new(None)),
        ];
        Bot { plan, play: Play { stage, parts }, judge }
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &self.judge;
        self.play.chaos(self.plan.n_steps, |stage| lock(judge).look(stage))
    }

    /// Nothing goes wrong any more: what was written is read and answered, and so is what is written then.
    fn peace(&mut self) -> Result<(), String> {
        self.play.heal();
        self.play.stage.world().lock().bot.heal();
        lock(&self.judge).look(&mut self.play.stage)?;
        self.rest()?;
        self.play.tidy();
        self.rest()?;
        lock(&self.judge).conclude(&mut self.play.stage)
    }

    /// Lets everybody work until all is read and answered.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let judge = &self.judge;
            self.play.round(|stage| lock(judge).look(stage))?;
            if !lock(judge).is_anything_to_come(&mut self.play.stage)? {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever, and something is still to come".to_owned());
            }
        }
        let why = lock(&self.judge).what_is_to_come(&mut self.play.stage)?;
        Err(format!("the town does not come to rest: {why}"))
    }
}

/// What reads and what delivers: there is one of each, as long as it lives.
struct Threads;

impl Threads {
    fn see_to_it(stage: &mut Stage) -> bool {
        let alive: VecDeque<Pid> = stage.strands.keys().copied().collect();
        let (listens, delivers) = stage.world().lock().bot.threads;
        let is_there = |pid: Option<Pid>| pid.is_some_and(|pid| alive.contains(&pid));
        if !is_there(listens) {
            let pid = stage.launch(Errand::Listen(CHANNEL));
            stage.world().lock().bot.threads.0 = Some(pid);
        }
        if !is_there(delivers) {
            let pid = stage.launch(Errand::DeliverByBot(CHANNEL));
            stage.world().lock().bot.threads.1 = Some(pid);
        }
        !is_there(listens) || !is_there(delivers)
    }
}

impl Part for Threads {
    fn weight(&self, _stage: &Stage) -> u32 {
        4
    }

    fn act(&mut self, stage: &mut Stage) {
        Threads::see_to_it(stage);
    }

    fn heal(&mut self, _stage: &mut Stage) {}

    fn work(&mut self, stage: &mut Stage) -> bool {
        Threads::see_to_it(stage)
    }
}

/// Reads what people write, until it is killed.
pub fn listen(around: &Around, town: &Town, mut store: Store, channel: &str) -> Result<(), TownError> {
    let settings = Arc::new(Settings::load(town, &mut store, around)?);
    drop(store);
    let line = Box::new(Line::new(around.clone()));
    let mut listener = match Listener::by(line, channel, town, &settings, Arc::new(around.clone())) {
        Ok(listener) => listener,
        Err(flaw) => {
            around.world.violation(format!("the channel {channel} does not run: {flaw}"));
            return Ok(());
        }
    };
    loop {
        if let Some(span) = listener.round() {
            surroundings::pause(around, span);
        }
    }
}

/// Delivers what is due, and waits for more, until it is killed.
pub fn deliver(around: &Around, town: &Town, mut store: Store, channel: &str) -> Result<(), TownError> {
    let settings = Arc::new(Settings::load(town, &mut store, around)?);
    let (sender, causes) = mpsc::channel();
    if let Some(process) = around.world.lock().processes.get_mut(&around.pid) {
        (process.mail, process.is_courier) = (Some(sender.clone()), true);
    }
    let line = Box::new(Line::new(around.clone()));
    let mut courier = match Courier::by_bot(line, channel, store, town, &settings, Arc::new(around.clone())) {
        Ok(courier) => courier,
        Err(flaw) => {
            around.world.violation(format!("the channel {channel} does not run: {flaw}"));
            return Ok(());
        }
    };
    loop {
        match courier.round() {
            Pause::Until(span) => drop(surroundings::receive(around, &causes, span)),
            Pause::Rest(span) => surroundings::pause(around, span),
        }
    }
}
