//! The world around the town's processes: time, chance, who lives, who has the turn, whom a wake-up reaches.
//!
//! Everything here is shared by the strands and touched by one of them at a time. What it decides comes from the seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use gt_engine::daemon::Cause;
use jiff::{SignedDuration, Timestamp};

use crate::couriers::Posting;
use crate::faults::Faults;
use crate::git::GitWorld;
use crate::knobs::Knobs;
use crate::model::Unable;
use crate::recipes::Recipes;
use crate::shortage::{GuardKnobs, Machine};
use crate::silence::Sign;
use crate::telegram::server::Server;

/// When every simulation begins.
const EPOCH: &str = "2026-06-01T00:00:00Z";

/// A number for a process that is never used again.
pub type Pid = u32;

/// The world, as each of its inhabitants holds it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<World>>);

/// Work that a process has left to a thread of its own.
pub struct Aside {
    pub owner: Pid,
    pub work: Box<dyn FnOnce() + Send>,
}

/// What looks at the store after each commit of a process, before any other can move.
pub type Witness = Arc<Mutex<dyn FnMut(Pid) + Send>>;

/// A process of the town.
#[derive(Default)]
pub struct Process {
    /// Where causes reach it, if it is a daemon.
    pub mail: Option<Sender<Cause>>,
    /// Whether something has come since it last looked.
    pub has_mail: bool,
    /// Whether it hears of writes to the store and the config.
    pub is_listening: bool,
    pub is_daemon: bool,
    /// Whether it delivers answers, and hears of writes to the store.
    pub is_courier: bool,
    /// Since when it can have read the config: its birth, or for a daemon when it last woke up.
    pub reads_since: usize,
}

/// A worktree as git would keep it.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub branch: String,
    pub unsaved: Option<String>,
}

pub struct World {
    pub rng: Rng,
    pub faults: Faults,
    /// How many steps the simulation has made.
    pub step: usize,
    uptime: Duration,
    start: Timestamp,
    /// What people have done to the clock, and how often.
    clock_error: SignedDuration,
    pub n_clock_jumps: u32,
    n_runs: u32,
    n_pids: Pid,
    pub processes: BTreeMap<Pid, Process>,
    pub turn: Option<Pid>,
    /// Who holds the daemon's lock.
    pub town: Option<Pid>,
    /// Whom a wake-up by name reaches: whoever has asked for it last.
    pub bell: Option<Pid>,
    /// Threads that move by themselves, with the process that each is of.
    pub threads: BTreeMap<Pid, Pid>,
    /// Processes that die by themselves, each after so many more boundaries.
    pub doomed: BTreeMap<Pid, u32>,
    /// Processes that have just died, at whatever a thread of theirs was.
    pub dying: Vec<Pid>,
    pub git: GitWorld,
    pub asides: VecDeque<Aside>,
    pub places: BTreeMap<PathBuf, Place>,
    /// Who has missed news of an end and has not been told so.
    pub owed_news: BTreeSet<Pid>,
    /// Whether those who listen have heard already of what is being written.
    pub is_foretold: bool,
    /// Who has started what since the judge looked.
    pub starts: Vec<(Pid, String)>,
    /// Which runs were told to stop since, and which ends were acknowledged.
    pub stops: Vec<String>,
    pub acknowledged: Vec<String>,
    /// Runs that have said that they cannot work, and what their end must be.
    pub unable: BTreeMap<String, Unable>,
    /// Runs that went with the place they ran in, as far as that is not forgotten.
    pub lost: BTreeMap<String, bool>,
    /// The last sign of life of each run that leaves any.
    pub signs: BTreeMap<String, Sign>,
    /// What each process has read of them.
    pub read_signs: BTreeMap<Pid, BTreeMap<String, Sign>>,
    /// Runs that somebody has just found to be silent for too long.
    pub found_silent: Vec<String>,
    /// Runs that were interrupted and have not answered it; and what of it the judge has not seen.
    pub pokes: Vec<String>,
    pub interrupts: Vec<String>,
    /// Convoys that somebody has launched to the end, and in which step they were opened.
    pub launched: Vec<(String, usize)>,
    /// Who has moved last.
    pub mover: Option<Pid>,
    /// When the clock was set last.
    pub set_at: Duration,
    /// When the config file changed last, by the clock of then.
    pub config_changed_at: Timestamp,
    pub machine: Machine,
    pub recipes: Recipes,
    /// What people write into every config of this town besides.
    pub config_besides: String,
    pub witness: Option<Witness>,
    /// What was posted to receivers since the judge looked.
    pub posts: Vec<Posting>,
    /// Where people write to a bot, it and what they have written.
    pub bot: Server,
    /// Processes that deliver answers.
    pub couriers: BTreeSet<Pid>,
    /// What must not be, seen by those who are not the judge.
    pub violations: Vec<String>,
    /// What has happened, if somebody wants to know.
    pub story: Option<Vec<String>>,
}

impl Shared {
    pub fn new(seed: u64, tells: bool) -> Shared {
        let mut rng = Rng::with_seed(seed);
        let faults = Faults::draw(&mut rng);
        Shared(Arc::new(Mutex::new(World {
            rng,
            faults,
            step: 0,
            uptime: Duration::ZERO,
            start: EPOCH.parse().expect("it is a time"),
            clock_error: SignedDuration::ZERO,
            n_clock_jumps: 0,
            n_runs: 0,
            n_pids: 0,
            processes: BTreeMap::new(),
            turn: None,
            town: None,
            bell: None,
            threads: BTreeMap::new(),
            doomed: BTreeMap::new(),
            dying: Vec::new(),
            git: GitWorld::default(),
            asides: VecDeque::new(),
            places: BTreeMap::new(),
            owed_news: BTreeSet::new(),
            is_foretold: false,
            starts: Vec::new(),
            stops: Vec::new(),
            acknowledged: Vec::new(),
            unable: BTreeMap::new(),
            lost: BTreeMap::new(),
            signs: BTreeMap::new(),
            read_signs: BTreeMap::new(),
            found_silent: Vec::new(),
            pokes: Vec::new(),
            interrupts: Vec::new(),
            launched: Vec::new(),
            mover: None,
            set_at: Duration::ZERO,
            config_changed_at: EPOCH.parse().expect("it is a time"),
            machine: Machine::default(),
            recipes: Recipes::default(),
            config_besides: String::new(),
            witness: None,
            posts: Vec::new(),
            bot: Server::default(),
            couriers: BTreeSet::new(),
            violations: Vec::new(),
            story: tells.then(Vec::new),
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Timestamp {
        self.lock().now()
    }

    /// Adds to the story; the words are only made if somebody listens.
    pub fn tell(&self, words: impl FnOnce() -> String) {
        let mut world = self.lock();
        let (step, now) = (world.step, world.now());
        if let Some(story) = &mut world.story {
            story.push(format!("{step:>4} {now} {}", words()));
        }
    }

    /// A process has committed something.
    pub fn note_commit(&self, pid: Pid) {
        let witness = self.lock().witness.clone();
        if let Some(witness) = witness {
            (witness.lock().unwrap_or_else(PoisonError::into_inner))(pid);
        }
    }

    pub fn violation(&self, what: String) {
        self.lock().violations.push(what);
    }
}

impl World {
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.uptime).unwrap_or(SignedDuration::MAX) + self.clock_error;
        gt_core::time::truncate(self.start + since)
    }

    pub fn uptime(&self) -> Duration {
        self.uptime
    }

    pub fn pass(&mut self, span: Duration) {
        self.uptime += span;
    }

    /// Sets the clock forward or back.
    pub fn shift_clock(&mut self, by: SignedDuration) {
        self.clock_error += by;
        self.note_jump();
    }

    /// The clock is right again.
    pub fn mend_clock(&mut self) {
        self.clock_error = SignedDuration::ZERO;
        self.note_jump();
    }

    fn note_jump(&mut self) {
        self.n_clock_jumps += 1;
        self.set_at = self.uptime;
    }

    /// An agent has printed something; with `is_excused`, that it has reason to be silent from now on.
    pub fn give_sign(&mut self, run: &str, is_excused: bool) {
        let sign = Sign { at: self.now(), uptime: self.uptime, is_excused };
        self.signs.insert(run.to_owned(), sign);
    }

    pub fn new_run(&mut self) -> String {
        self.n_runs += 1;
        format!("run-{:05}", self.n_runs)
    }

    pub fn new_pid(&mut self) -> Pid {
        self.n_pids += 1;
        self.n_pids
    }

    pub fn bear(&mut self, is_daemon: bool) -> Pid {
        let pid = self.new_pid();
        self.processes.insert(pid, Process { is_daemon, reads_since: self.step, ..Process::default() });
        pid
    }

    /// Whether the time of a process has come.
    pub fn is_doomed(&mut self, pid: Pid) -> bool {
        let Some(n_left) = self.doomed.get_mut(&pid) else { return false };
        *n_left = n_left.saturating_sub(1);
        *n_left == 0
    }

    /// A process is gone, with all that the kernel takes back from it.
    pub fn bury(&mut self, pid: Pid) {
        self.processes.remove(&pid);
        self.doomed.remove(&pid);
        self.asides.retain(|aside| aside.owner != pid);
        if self.turn == Some(pid) {
            self.turn = None;
        }
        if self.town == Some(pid) {
            self.town = None;
        }
    }

    pub fn post(&mut self, to: Pid, cause: Cause) {
        if let Some(process) = self.processes.get_mut(&to)
            && let Some(mail) = &process.mail
        {
            process.has_mail |= mail.send(cause).is_ok();
        }
    }

    /// Everybody who watches the town's files hears of it.
    pub fn post_all(&mut self, cause: impl Fn() -> Cause) {
        let listening: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, process)| process.is_listening || process.is_courier)
            .map(|(pid, _)| *pid)
            .collect();
        for pid in listening {
            self.post(pid, cause());
        }
    }

    /// A config as people write it in this town.
    pub fn draw_knobs(&mut self) -> Knobs {
        let mut knobs = Knobs { more: self.config_besides.clone(), ..Knobs::draw(&mut self.rng) };
        if self.machine.is_watched {
            knobs.guards = GuardKnobs::draw(&mut self.rng);
        }
        knobs
    }

    /// One under which everything gets done.
    pub fn draw_peaceful_knobs(&mut self) -> Knobs {
        let mut knobs = Knobs { more: self.config_besides.clone(), ..Knobs::peaceful(&mut self.rng) };
        if self.machine.is_watched {
            knobs.guards = GuardKnobs::peaceful(&mut self.rng);
        }
        knobs
    }

    /// Something happens once in so many times; never with zero.
    pub fn chance(&mut self, one_in: u32) -> bool {
        one_in > 0 && self.rng.u32(0..one_in) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.rng.usize(0..from.len())].clone())
    }
}
