//! What the engine sees of the world: its clock, its turns, its waits, its worktrees, and the gate of its store.
//!
//! Every boundary is here: at each one a strand may stop, be refused or die.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_engine::daemon::Cause;
use gt_engine::lock::Held;
use gt_engine::surroundings::{Gauge, Git, PassedTree, Surroundings, Worktrees};
use gt_engine::{Town, TownError};
use gt_runtime::StartError;
use gt_runtime::worktree::WorktreeError;
use gt_store::{Gate, Moment, Store, StoreError};
use jiff::Timestamp;

use crate::medium::Medium;
use crate::processes::ring_after_commit;
use crate::shortage::SimGauge;
use crate::strand::{self, Halt};
use crate::world::{Aside, Pid, Place, Shared, World};

/// The surroundings of one process.
#[derive(Clone)]
pub struct Around {
    pub world: Shared,
    pub pid: Pid,
    pub medium: Medium,
    /// The trees that passed their gates in this process.
    pub passed: Arc<Mutex<VecDeque<PassedTree>>>,
    /// Whether its store is never interrupted.
    pub is_steady: bool,
}

impl Around {
    /// A place at which everything can happen to a process.
    pub fn boundary(&self) {
        let (dies, halts) = {
            let mut world = self.world.lock();
            let (death, halt) = (world.faults.death, world.faults.halt);
            (world.chance(death) || world.is_doomed(self.pid), world.chance(halt))
        };
        if dies {
            self.world.tell(|| format!("process {} dies", self.pid));
            self.die();
        }
        if halts {
            strand::halt(Halt::Between);
        }
    }

    /// Ends this process on the spot, whichever of its threads it is that stands here.
    pub fn die(&self) -> ! {
        self.world.lock().dying.push(self.pid);
        strand::die()
    }

    /// A daemon that wakes up looks at the config before it does anything by it.
    fn wake(&self) {
        let mut world = self.world.lock();
        let step = world.step;
        if let Some(process) = world.processes.get_mut(&self.pid).filter(|process| process.is_daemon) {
            process.reads_since = step;
        }
    }

    /// Waits until this process is the one daemon of the town; where the lock does not hold, it is one of them.
    pub fn take_town(&self) -> TownHeld {
        loop {
            {
                let mut world = self.world.lock();
                if world.town.is_none() || world.faults.two_daemons {
                    world.town = Some(self.pid);
                    return TownHeld(self.clone());
                }
            }
            strand::halt(Halt::WantsTown);
        }
    }

    /// The gate of this process's store.
    pub fn gate(&self) -> Gate {
        let around = self.clone();
        Box::new(move |moment| around.pass(moment))
    }

    fn pass(&self, moment: Moment) -> Result<(), StoreError> {
        match moment {
            Moment::Reading | Moment::Writing => self.boundary(),
            // Inside a transaction nobody else can move; but this one can die.
            Moment::Committing => {
                let mut world = self.world.lock();
                let death = world.faults.death;
                if world.chance(death) {
                    drop(world);
                    self.world.tell(|| format!("process {} dies before its commit", self.pid));
                    self.die();
                }
            }
            Moment::Committed => {}
        }
        let verdict = weigh(&mut self.world.lock(), moment);
        if let Err(error) = &verdict {
            self.world.tell(|| format!("process {}: {error}", self.pid));
        }
        verdict?;
        if moment == Moment::Committed {
            self.world.note_commit(self.pid);
            self.boundary();
        }
        Ok(())
    }
}

/// What the store's file does to a transaction, whoever makes it.
pub fn weigh(world: &mut World, moment: Moment) -> Result<(), StoreError> {
    match moment {
        Moment::Reading | Moment::Committed => return Ok(()),
        Moment::Writing => {
            let delay = world.faults.delay;
            if world.chance(delay) {
                let seconds = world.rng.u64(1..40);
                world.pass(Duration::from_secs(seconds));
            }
        }
        // The file is written before the commit can be seen, and that is what others hear.
        Moment::Committing if world.is_foretold => {}
        Moment::Committing => world.post_all(|| Cause::StoreWritten),
    }
    let refusal = world.faults.refusal;
    if !world.chance(refusal) {
        return Ok(());
    }
    let code = if world.rng.bool() { SQLITE_FULL } else { SQLITE_BUSY };
    Err(StoreError::of_sqlite_code(code, Path::new("town.db")))
}

const SQLITE_BUSY: i32 = 5;
const SQLITE_FULL: i32 = 13;

/// The daemon's lock, held.
pub struct TownHeld(Around);

impl Drop for TownHeld {
    fn drop(&mut self) {
        let mut world = self.0.world.lock();
        if world.town == Some(self.0.pid) {
            world.town = None;
        }
    }
}

/// The turn, held.
struct TurnHeld(Around);

impl Drop for TurnHeld {
    fn drop(&mut self) {
        let mut world = self.0.world.lock();
        if world.turn == Some(self.0.pid) {
            world.turn = None;
        }
    }
}

impl Surroundings for Around {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn uptime(&self) -> Duration {
        self.world.lock().uptime()
    }

    fn changed_at(&self, _file: &Path) -> Option<Timestamp> {
        Some(self.world.lock().config_changed_at)
    }

    fn new_run(&self) -> String {
        self.world.lock().new_run()
    }

    fn own_process(&self) -> String {
        self.pid.to_string()
    }

    fn is_alive(&self, process: &str) -> bool {
        process.parse().is_ok_and(|pid: Pid| self.world.lock().processes.contains_key(&pid))
    }

    fn has_daemon(&self, _town: &Town) -> bool {
        self.world.lock().town.is_some()
    }

    fn take_turn(&self, _town: &Town) -> Result<Held, TownError> {
        self.world.tell(|| format!("process {} wants the turn", self.pid));
        self.boundary();
        let mut waited = false;
        loop {
            {
                let mut world = self.world.lock();
                if world.turn.is_none() || world.faults.broken_turn {
                    world.turn = Some(self.pid);
                    return Ok(Held::by(TurnHeld(self.clone()), waited));
                }
            }
            waited = true;
            strand::halt(Halt::WantsTurn);
        }
    }

    fn wait(&self, most: Option<Duration>, look: &mut dyn FnMut(Option<Duration>) -> bool) {
        let until = most.map(|most| self.uptime() + most);
        loop {
            if let Some(process) = self.world.lock().processes.get_mut(&self.pid) {
                process.has_mail = false;
            }
            if look(Some(Duration::ZERO)) || until.is_some_and(|until| self.uptime() >= until) {
                return self.wake();
            }
            strand::halt(Halt::Idle { until });
        }
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>) {
        self.world.lock().asides.push_back(Aside { owner: self.pid, work });
    }

    fn n_threads(&self) -> usize {
        1
    }

    fn worktrees(&self) -> &dyn Worktrees {
        self
    }

    fn git(&self) -> &dyn Git {
        self
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(SimGauge { world: self.world.clone(), pid: Some(self.pid) })
    }

    fn open_store(&self, _: &Town) -> Result<Store, TownError> {
        let mut store = self.medium.open()?;
        if !self.is_steady {
            store.set_gate(self.gate());
        }
        ring_after_commit(&self.world, &mut store);
        Ok(store)
    }

    fn find_program(&self, name: &str, _: &str) -> Result<(), StartError> {
        let mut world = self.world.lock();
        let missing = world.faults.missing;
        if !world.chance(missing) {
            return Ok(());
        }
        drop(world);
        self.world.tell(|| format!("process {} does not find {name}", self.pid));
        Err(StartError::NoProgram { program: name.to_owned(), cause: "so it was drawn".to_owned() })
    }

    fn last_signs(&self, _: &Town, runs: &[&str], silent_before: Timestamp) -> BTreeMap<String, Timestamp> {
        self.world.tell(|| format!("process {} looks for signs of life", self.pid));
        let mut world = self.world.lock();
        let mut signs = BTreeMap::new();
        for run in runs {
            let sign = world.signs.get(*run).copied();
            let read = world.read_signs.entry(self.pid).or_default();
            read.remove(*run);
            if let Some(sign) = sign {
                read.insert((*run).to_owned(), sign);
                signs.insert((*run).to_owned(), sign.at);
            }
        }
        let is_silent = |(run, at): (&String, &Timestamp)| (*at <= silent_before).then(|| run.clone());
        world.found_silent = signs.iter().filter_map(is_silent).collect();
        let has_found = !world.found_silent.is_empty();
        drop(world);
        if has_found {
            self.boundary(); // whoever is silent may speak before that is answered
        }
        signs
    }
}

impl Worktrees for Around {
    fn prepare(&self, repository: &Path, path: &Path, branch: &str, base: &str) -> Result<(), WorktreeError> {
        self.world.tell(|| format!("process {} prepares {branch}", self.pid));
        let mut world = self.world.lock();
        if world.git.is_used() {
            std::fs::create_dir_all(path).expect("the town's directory can be written");
        }
        let bad_place = world.faults.bad_place;
        if world.chance(bad_place) {
            return Err(match world.rng.u32(0..3) {
                0 => WorktreeError::NoCommits { repository: repository.to_owned() },
                1 => WorktreeError::Git { doing: "make it".into(), said: "No space left on device".into() },
                _ => WorktreeError::NoBase { repository: repository.to_owned(), base: "main".into() },
            });
        }
        if world.git.is_used() {
            return world.git.prepare(repository, path, branch, base);
        }
        let place = world.places.entry(path.to_owned()).or_default();
        if place.unsaved.is_some() && place.branch != branch {
            return Err(WorktreeError::Dirty { path: path.to_owned() });
        }
        *place = Place { branch: branch.to_owned(), unsaved: place.unsaved.take() };
        Ok(())
    }

    fn is_there(&self, path: &Path) -> bool {
        let world = self.world.lock();
        world.places.contains_key(path) || world.git.root_of(path).is_some_and(|root| root != path)
    }

    fn branch(&self, path: &Path) -> Option<String> {
        let world = self.world.lock();
        let place = world.places.get(path).map(|place| place.branch.clone());
        place.or_else(|| world.git.branch(path))
    }

    fn unsaved(&self, path: &Path) -> Option<String> {
        let world = self.world.lock();
        if world.git.is_used() {
            return world.git.is_dirty(path).then(|| "it has uncommitted changes".to_owned());
        }
        world.places.get(path)?.unsaved.clone()
    }

    /// Where git is not simulated there are no files to make a patch of.
    fn salvage(&self, tree: &Path, run: &str, patch: &Path) -> bool {
        let is_used = self.world.lock().git.is_used();
        is_used && Git::salvage(self, tree, &format!("refs/gt/salvage/{run}"), patch).is_ok_and(|saved| saved.is_some())
    }

    fn has_git(&self) -> bool {
        self.world.lock().git.is_used()
    }
}
