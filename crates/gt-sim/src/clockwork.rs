//! A town of jobs: the same world of crashes, faults and clocks that jump, with jobs instead of beads. // SPEC K2–K4
//!
//! Apart from the other simulation, because time itself is the work here: nothing ever comes to rest. After the chaos the
//! clock goes on until it is past all that it ever showed, and then for some more, in which each slot must fire in time. Three
//! things still happen then, one by one and while everybody sleeps, so that what must follow from each is known: the clock is
//! set forward, it is set back, and nobody runs the town for a while. In the end every slot of those jobs that nobody touched
//! must have its records, whatever happened.

mod book;
mod judge;
mod slots;

use gt_engine::daemon::Cause;
use jiff::{SignedDuration, Timestamp};

use self::judge::Judge;
use crate::jobs::{Clockmaker, Hands, Timers};
use crate::part::Part;
use crate::play::Play;
use crate::sim::{Failure, Plan};
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};
use crate::world::Pid;

/// By then whoever runs the town has noticed that all is well again.
const HEALED: SignedDuration = SignedDuration::from_mins(2);
/// For so long nothing happens but what is to.
const CALM: SignedDuration = SignedDuration::from_mins(12);
const ROUNDS_MAX: usize = 60_000;

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub n_fires: usize,
    pub n_missed: usize,
    pub n_starts: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Clockwork::new(plan);
    match sim.chaos().and_then(|()| sim.peace()) {
        Ok(report) => Ok(Report { story: sim.take_story(), ..report }),
        Err(what) => {
            let step = sim.play.stage.world().lock().step;
            Err(Box::new(Failure { plan, step, what, story: sim.take_story() }))
        }
    }
}

/// What happens in peace, to the clock or to whoever watches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incident {
    Ahead,
    Back,
    Down,
}

struct Clockwork {
    plan: Plan,
    play: Play,
    judge: Judge,
}

impl Clockwork {
    fn new(plan: Plan) -> Clockwork {
        let stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        stage.world().lock().faults.no_daemon = false;
        let judge = Judge::new(&stage);
        let tells = stage.world().lock().rng.bool();
        let parts: Vec<Box<dyn Part>> = vec![
            Box::new(Trouble),
            Box::new(Hours),
            Box::new(Timers),
            Box::new(Hands::default()),
            Box::new(Clockmaker { tells }),
        ];
        Clockwork { plan, play: Play { stage, parts }, judge }
    }

    fn take_story(&self) -> Vec<String> {
        self.play.stage.world().lock().story.take().unwrap_or_default()
    }

    fn now(&self) -> Timestamp {
        self.play.stage.world().now()
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &mut self.judge;
        self.play.chaos(self.plan.n_steps, |stage| judge.look(stage))
    }

    /// Nothing goes wrong any more: each slot comes in time, and all that has fired comes to an end.
    fn peace(&mut self) -> Result<Report, String> {
        self.play.heal();
        self.judge.look(&mut self.play.stage)?;
        let healed = self.judge.latest + HEALED;
        let mut calm_until = healed + CALM;
        for incident in self.draw_incidents() {
            self.go_on(healed, |sim| sim.is_time_for(incident, calm_until))?;
            self.befall(incident)?;
            calm_until = self.judge.latest.max(self.now()) + CALM;
        }
        self.go_on(healed, |sim| Ok(sim.now() > calm_until))?;
        self.play.tidy();
        self.go_on(healed, |sim| Ok(sim.now() > calm_until + CALM))?;
        self.judge.conclude(&self.play.stage, healed)
    }

    /// Time passes, with all that is due in it, until it is time for something else.
    fn go_on(
        &mut self,
        healed: Timestamp,
        mut is_time: impl FnMut(&mut Clockwork) -> Result<bool, String>,
    ) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            self.round(healed)?;
            if is_time(self)? {
                return Ok(());
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever".to_owned());
            }
        }
        Err("time does not pass".to_owned())
    }

    /// Everything that is due by now.
    fn round(&mut self, healed: Timestamp) -> Result<(), String> {
        let judge = &mut self.judge;
        self.play.round(|stage| judge.look(stage))?;
        self.judge.check_no_stall(&self.play.stage)?;
        if self.now() > healed { self.judge.look_in_peace(&self.play.stage) } else { Ok(()) }
    }

    /// Each of them, in an order that is drawn.
    fn draw_incidents(&self) -> Vec<Incident> {
        let mut incidents = vec![Incident::Ahead, Incident::Back, Incident::Down];
        self.play.stage.world().lock().rng.shuffle(&mut incidents);
        incidents
    }

    /// Whether all is calm; a clock is set back while something waits to be tried again, if that comes soon.
    fn is_time_for(&mut self, incident: Incident, calm_until: Timestamp) -> Result<bool, String> {
        let now = self.now();
        let is_patient = incident == Incident::Back && now < calm_until + CALM;
        Ok(now > calm_until && (!is_patient || self.judge.is_any_waiting()?))
    }

    fn befall(&mut self, incident: Incident) -> Result<(), String> {
        let from = self.now();
        let span = {
            let mut world = self.play.stage.world().lock();
            SignedDuration::from_secs([30, 200, 3700][world.rng.usize(0..3)] + world.rng.i64(0..60))
        };
        self.play.stage.world().tell(|| format!("in peace: {incident:?} for {span:#}"));
        match incident {
            Incident::Ahead => self.set_clock(span),
            Incident::Back => self.set_clock(-span),
            Incident::Down => self.stay_away(span),
        }
        if incident == Incident::Back {
            self.judge.note_set_back(self.play.stage.world().lock().uptime());
            return Ok(());
        }
        self.judge.note_gap(from, self.now())
    }

    fn set_clock(&self, by: SignedDuration) {
        let mut world = self.play.stage.world().lock();
        world.shift_clock(by);
        world.post_all(|| Cause::ClockSet);
    }

    /// Nobody runs the town.
    fn stay_away(&mut self, span: SignedDuration) {
        let stage = &mut self.play.stage;
        for pid in stage.strands.keys().copied().collect::<Vec<Pid>>() {
            stage.kill(pid);
        }
        stage.world().lock().pass(span.unsigned_abs());
    }
}
