//! A machine that is short of something: its load, memory and disk change by chance, and its budget runs out.
//!
//! Owns the figures over time, the gauge by which processes read them, and the part that changes them. What must hold
//! meanwhile is `judge`.

pub mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use gt_engine::surroundings::{Figures, Gauge};
use jiff::tz::{Offset, TimeZone};

use crate::part::Part;
use crate::stage::Stage;
use crate::world::{Pid, Shared};

const MB: u64 = 1_000_000;
/// Readings older than this before the last one are no longer what a process goes by.
const READING_HOLDS: Duration = Duration::from_secs(1);
/// Once in so many times the machine changes while somebody takes long to measure it.
const HASTE: u32 = 2;

/// The guards and the budget of a config. Zero means: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuardKnobs {
    pub load: u32,
    pub memory_mb: u64,
    pub disk_mb: u64,
    pub agents: usize,
    pub budget_cents: u32,
}

impl GuardKnobs {
    pub fn draw(rng: &mut Rng) -> GuardKnobs {
        GuardKnobs {
            load: [0, 2, 4][rng.usize(0..3)],
            memory_mb: [0, 500][rng.usize(0..2)],
            disk_mb: [0, 1000][rng.usize(0..2)],
            agents: [0, 1, 2, 3][rng.usize(0..4)],
            budget_cents: [0, 0, 3, 10][rng.usize(0..4)],
        }
    }

    /// A budget with which everything is done in a few days.
    pub fn peaceful(rng: &mut Rng) -> GuardKnobs {
        GuardKnobs { budget_cents: [0, 10, 30][rng.usize(0..3)], ..GuardKnobs::draw(rng) }
    }

    /// Millionths of a dollar that a day may cost.
    pub fn budget(self) -> Option<i64> {
        (self.budget_cents > 0).then(|| i64::from(self.budget_cents) * 10_000)
    }

    pub fn to_toml(self) -> String {
        let GuardKnobs { load, memory_mb, disk_mb, agents, budget_cents } = self;
        format!(
            "guards.load_per_core = {load}\nguards.max_agents = {agents}\nguards.free_memory = \"{memory_mb} MB\"\nguards.free_disk = \"{disk_mb} MB\"\nbudget.daily = {}.{:02}\n",
            budget_cents / 100,
            budget_cents % 100
        )
    }

    /// The codes of the guards that these figures trip.
    pub fn tripped(self, figures: &Figures) -> Vec<&'static str> {
        let is_short = |free: Option<u64>, least_mb: u64| free.is_some_and(|free| free < least_mb * MB);
        let is_busy = figures.load_per_core.is_some_and(|load| self.load > 0 && load > f64::from(self.load));
        let all = [
            ("guard-load", is_busy),
            ("guard-memory", is_short(figures.free_memory, self.memory_mb)),
            ("guard-disk", is_short(figures.free_disk, self.disk_mb)),
        ];
        all.into_iter().filter(|(_, is_tripped)| *is_tripped).map(|(code, _)| code).collect()
    }
}

/// What a process has read, and when.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub at: Duration,
    pub figures: Figures,
}

/// The machine of a town.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Whether configs have guards at all.
    pub is_watched: bool,
    pub zone: TimeZone,
    /// How it is from when on, in order.
    plan: Vec<(Duration, Figures)>,
    /// Once in so many times to measure it takes its time.
    slow: u32,
    slow_for: Range<Duration>,
    /// What processes go by.
    pub readings: BTreeMap<Pid, Vec<Reading>>,
    /// Who has moved since the judge looked.
    pub moved: Vec<Pid>,
    /// What runs have told of their cost, in millionths of a dollar.
    pub prices: BTreeMap<String, i64>,
    /// Those of them that have told it in the healed world.
    pub priced_in_peace: BTreeSet<String>,
    is_healed: bool,
}

impl Default for Machine {
    /// It is well, and nothing is asked of it.
    fn default() -> Machine {
        Machine {
            is_watched: false,
            zone: TimeZone::UTC,
            plan: vec![(Duration::ZERO, well())],
            slow: 0,
            slow_for: Duration::from_millis(100)..Duration::from_millis(2_500),
            readings: BTreeMap::new(),
            moved: Vec::new(),
            prices: BTreeMap::new(),
            priced_in_peace: BTreeSet::new(),
            is_healed: false,
        }
    }
}

impl Machine {
    /// A machine that is short of things, in a zone in which midnight comes soon, or in one that people live in.
    pub fn draw(rng: &mut Rng) -> Machine {
        let zones = ["Asia/Kolkata", "America/New_York", "Pacific/Auckland"];
        let zone = if rng.u32(0..4) == 0 {
            TimeZone::get(zones[rng.usize(0..zones.len())]).expect("it is known")
        } else {
            TimeZone::fixed(Offset::from_seconds(86_400 - rng.i32(300..7_200)).expect("it is less than a day"))
        };
        Machine { is_watched: true, zone, slow: [0, 1, 2, 8][rng.usize(0..4)], ..Machine::default() }
    }

    /// A machine that is busy until some time or from then on, and takes so long to be measured each time.
    pub fn changing(at: Duration, is_busy_first: bool, slow_for: Duration) -> Machine {
        let busy = Figures { load_per_core: Some(99.0), ..well() };
        let (first, then) = if is_busy_first { (busy, well()) } else { (well(), busy) };
        let slow_for = slow_for..slow_for + Duration::from_millis(1);
        Machine {
            is_watched: true,
            plan: vec![(Duration::ZERO, first), (at, then)],
            slow: 1,
            slow_for,
            ..Machine::default()
        }
    }

    pub fn at(&self, uptime: Duration) -> Figures {
        self.plan.iter().rfind(|(from, _)| *from <= uptime).map_or_else(well, |(_, figures)| *figures)
    }

    /// When it changed last before this.
    pub fn changed_at(&self, uptime: Duration) -> Duration {
        self.plan.iter().rfind(|(from, _)| *from <= uptime).map_or(Duration::ZERO, |(from, _)| *from)
    }

    /// Whether it changes after this.
    pub fn changes_after(&self, uptime: Duration) -> bool {
        self.plan.last().is_some_and(|(from, _)| *from > uptime)
    }

    fn change(&mut self, from: Duration, figures: Figures) {
        self.plan.retain(|(known, _)| *known < from);
        self.plan.push((from, figures));
    }

    /// The next change comes now at the latest.
    fn hasten(&mut self, now: Duration) {
        if let Some((from, _)) = self.plan.iter_mut().find(|(from, _)| *from > now) {
            *from = now;
        }
    }

    /// What a process reads; it goes by that for a while.
    fn read(&mut self, pid: Pid, at: Duration) -> Figures {
        let figures = self.at(at);
        self.readings.entry(pid).or_default().push(Reading { at, figures });
        figures
    }

    /// Forgets what those who have moved do not go by any more.
    pub fn forget_old_readings(&mut self) {
        for pid in self.moved.drain(..) {
            if let Some(readings) = self.readings.get_mut(&pid)
                && let Some(last) = readings.last().map(|last| last.at)
            {
                readings.retain(|reading| reading.at + READING_HOLDS >= last);
            }
        }
    }

    pub fn note_price(&mut self, run: &str, dollars: f64) {
        let price = self.prices.entry(run.to_owned()).or_default();
        *price = (*price).max((dollars * 1e6).round() as i64);
        if self.is_healed {
            self.priced_in_peace.insert(run.to_owned());
        }
    }
}

fn well() -> Figures {
    Figures { load_per_core: Some(0.5), free_memory: Some(8_000 * MB), free_disk: Some(50_000 * MB) }
}

fn draw_figures(rng: &mut Rng) -> Figures {
    if rng.u32(0..3) == 0 {
        return well();
    }
    let size = |mb: u64| (mb > 0).then_some(mb * MB);
    Figures {
        load_per_core: [None, Some(0.5), Some(2.0), Some(2.1), Some(4.0), Some(7.5)][rng.usize(0..6)],
        free_memory: size([0, 100, 499, 500, 8_000][rng.usize(0..5)]),
        free_disk: size([0, 10, 999, 1_000, 50_000][rng.usize(0..5)]),
    }
}

/// The gauge as a process has it; without one, as those have it who only look on.
pub struct SimGauge {
    pub world: Shared,
    pub pid: Option<Pid>,
}

impl fmt::Debug for SimGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimGauge of {:?}", self.pid)
    }
}

impl Gauge for SimGauge {
    fn uptime(&self) -> Duration {
        self.world.lock().uptime()
    }

    fn measure(&self, _: &Path) -> Figures {
        let mut world = self.world.lock();
        let now = world.uptime();
        let Some(pid) = self.pid.filter(|_| world.machine.is_watched) else { return world.machine.at(now) };
        let figures = world.machine.read(pid, now);
        let slow = world.machine.slow;
        if world.chance(slow) {
            let Range { start, end } = world.machine.slow_for.clone();
            let span = world.rng.u64(start.as_millis() as u64..end.as_millis() as u64);
            world.pass(Duration::from_millis(span));
            // What was measured may be over before it is known.
            if world.chance(HASTE) {
                let now = world.uptime();
                world.machine.hasten(now);
            }
        }
        figures
    }

    fn zone(&self) -> TimeZone {
        self.world.lock().machine.zone.clone()
    }
}

/// The machine becomes short of something, and well again.
pub struct Shortage;

impl Part for Shortage {
    fn weight(&self, _: &Stage) -> u32 {
        6
    }

    fn act(&mut self, stage: &mut Stage) {
        let mut world = stage.world().lock();
        let from = world.uptime() + Duration::from_millis([0, 0, 500, 3_000, 20_000][world.rng.usize(0..5)]);
        let figures = draw_figures(&mut world.rng);
        world.machine.change(from, figures);
        drop(world);
        stage.world().tell(|| format!("from {from:?} on the machine is {figures:?}"));
    }

    /// It goes on for a while, and then the machine is well.
    fn heal(&mut self, stage: &mut Stage) {
        stage.world().lock().machine.is_healed = true;
        go_on_for_a_while(stage);
    }

    fn tidy(&mut self, stage: &mut Stage) {
        go_on_for_a_while(stage);
    }
}

fn go_on_for_a_while(stage: &mut Stage) {
    let plan = {
        let mut world = stage.world().lock();
        let n_changes = world.rng.u32(0..12);
        let mut from = world.uptime();
        for _ in 0..n_changes {
            let figures = draw_figures(&mut world.rng);
            world.machine.change(from, figures);
            from += Duration::from_millis(world.rng.u64(1_000..90_000));
        }
        world.machine.change(from, well());
        world.machine.plan.clone()
    };
    stage.world().tell(|| format!("the machine will be {plan:?}"));
}
