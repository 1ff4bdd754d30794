//! The stage: the town with all who act on it, and the ways to let one of them make a move.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::rig::{Rig, RigState};
use gt_engine::Town;
use gt_engine::daemon::Cause;
use gt_runtime::simulated::SimulatedRuntime;
use gt_store::{Stamp, Store, StoreError};
use tempfile::TempDir;

use crate::around::weigh;
use crate::knobs::{Knobs, RIGS, replace};
use crate::medium::Medium;
use crate::processes::{Errand, Ground, ring_after_commit};
use crate::strand::{Halt, Strand};
use crate::world::{Pid, Shared};

/// The config as people have left it, since a step.
#[derive(Debug, Clone)]
pub struct Setting {
    pub since: usize,
    /// `None`: it cannot be read.
    pub knobs: Option<Knobs>,
}

pub struct Stage {
    pub ground: Ground,
    pub strands: BTreeMap<Pid, Strand>,
    /// The store as people's and agents' commands open it.
    pub store: Store,
    pub settings: Vec<Setting>,
    /// Since when whoever made the last move can have read the config by which it did.
    pub reads_since: Option<usize>,
    _dir: TempDir,
}

impl Stage {
    pub fn set(seed: u64, on_disk: bool, tells: bool) -> Stage {
        let world = Shared::new(seed, tells);
        let dir = new_dir(on_disk);
        let stamp = Stamp::new(world.now(), "founder");
        let (town, _) = Town::init(dir.path(), &stamp).expect("the directory is empty");
        std::fs::create_dir_all(town.logs_dir()).expect("the town's directory can be written");
        let medium = if on_disk { Medium::Disk(town.store_path()) } else { Medium::memory() };
        let mut store = medium.open().expect("nothing is wrong yet");
        for (name, prefix) in RIGS {
            store.add_rig(&rig(name, prefix, &town), &stamp).expect("the rig is new");
        }
        let knobs = Knobs::draw(&mut world.lock().rng);
        knobs.write(&town.config_path());
        let gate_world = world.clone();
        store.set_gate(Box::new(move |moment| weigh(&mut gate_world.lock(), moment)));
        ring_after_commit(&world, &mut store);
        let runtime = SimulatedRuntime::default();
        runtime.ignore_stops(true);
        Stage {
            ground: Ground { world, town, medium, runtime },
            strands: BTreeMap::new(),
            store,
            settings: vec![Setting { since: 0, knobs: Some(knobs) }],
            reads_since: None,
            _dir: dir,
        }
    }

    pub fn world(&self) -> &Shared {
        &self.ground.world
    }

    pub fn stamp(&self, who: &str) -> Stamp {
        Stamp::new(self.world().now(), who)
    }

    pub fn launch(&mut self, errand: Errand) -> Pid {
        let (pid, strand) = self.ground.launch(errand);
        self.strands.insert(pid, strand);
        pid
    }

    pub fn n_daemons(&self) -> usize {
        self.world().lock().processes.values().filter(|process| process.is_daemon).count()
    }

    /// Whether somebody hears of it when an agent ends.
    pub fn is_watched(&self) -> bool {
        self.world().lock().processes.values().any(|process| process.is_listening)
    }

    /// Who could move now.
    pub fn ready_strands(&self) -> Vec<Pid> {
        let world = self.world().lock();
        let can_move = |pid: &Pid, strand: &Strand| match strand.halted_at() {
            Halt::Between => true,
            Halt::WantsTurn => world.turn.is_none() || world.faults.broken_turn,
            Halt::WantsTown => world.town.is_none() || world.faults.two_daemons,
            Halt::Idle { until } => {
                until.is_some_and(|until| world.uptime() >= until)
                    || world.processes.get(pid).is_some_and(|process| process.has_mail)
            }
        };
        self.strands.iter().filter(|(pid, strand)| can_move(pid, strand)).map(|(pid, _)| *pid).collect()
    }

    /// Lets a process move to where it stops next.
    pub fn step_strand(&mut self, pid: Pid) {
        let reads_since = self.world().lock().processes.get(&pid).map(|process| process.reads_since);
        self.reads_since = reads_since;
        self.world().lock().mover = Some(pid);
        let Some(strand) = self.strands.get_mut(&pid) else { return };
        let end = strand.go_on();
        if let Some(end) = end {
            self.strands.remove(&pid);
            self.world().lock().bury(pid);
            if let Err(why) = end {
                self.world().violation(why);
            }
        }
    }

    /// Kills a process where it stands.
    pub fn kill(&mut self, pid: Pid) {
        if let Some(strand) = self.strands.remove(&pid) {
            self.world().tell(|| format!("process {pid} is killed"));
            strand.kill();
            self.world().lock().bury(pid);
        }
    }

    /// Does a piece of work that a process has left to a thread; says whether there was one.
    pub fn step_aside(&mut self) -> bool {
        let aside = self.world().lock().asides.pop_front();
        let Some(aside) = aside else { return false };
        (aside.work)();
        if let Some(process) = self.world().lock().processes.get_mut(&aside.owner) {
            process.has_mail = true;
        }
        true
    }

    /// Writes something that is heard of before it can be seen: whoever listens looks, sees nothing and sleeps on.
    pub fn foretold<T>(&mut self, write: impl FnOnce(&mut Stage) -> T) -> T {
        self.world().lock().post_all(|| Cause::StoreWritten);
        while let Some(pid) = self.ready_strands().first().copied() {
            self.step_strand(pid);
        }
        self.world().lock().is_foretold = true;
        let answer = write(self);
        self.world().lock().is_foretold = false;
        answer
    }

    /// When the next process wakes up by itself.
    pub fn next_wake(&self) -> Option<Duration> {
        let idle = self.strands.values().filter_map(|strand| match strand.halted_at() {
            Halt::Idle { until } => until,
            _ => None,
        });
        idle.min()
    }

    /// People change the config, and whoever watches it hears of that.
    pub fn configure(&mut self, knobs: Knobs) {
        self.write_config(knobs);
        self.tell_config();
    }

    /// The config is changed; nobody has heard of it yet.
    pub fn write_config(&mut self, knobs: Knobs) {
        knobs.write(&self.ground.town.config_path());
        self.note_config(Some(knobs));
    }

    pub fn tell_config(&self) {
        self.world().lock().post_all(|| Cause::ConfigWritten);
    }

    /// People break the config.
    pub fn spoil_config(&mut self) {
        replace(&self.ground.town.config_path(), "scheduler = [\n");
        self.note_config(None);
        self.tell_config();
    }

    fn note_config(&mut self, knobs: Option<Knobs>) {
        let since = self.ground.world.lock().step;
        self.settings.push(Setting { since, knobs });
        self.world().tell(|| format!("the config is now {:?}", self.settings.last().and_then(|s| s.knobs.as_ref())));
    }

    /// Whether a command of a person or an agent was refused for a reason that lies in the world, not in the command.
    pub fn is_outage(error: &StoreError) -> bool {
        matches!(error, StoreError::Full { .. } | StoreError::Busy { .. })
    }
}

/// Memory where the machine offers it, since nobody keeps the town.
fn new_dir(on_disk: bool) -> TempDir {
    let in_memory = (!on_disk).then(|| TempDir::with_prefix_in("gt-sim-", "/dev/shm").ok()).flatten();
    in_memory.unwrap_or_else(|| TempDir::with_prefix("gt-sim-").expect("a temporary directory can be made"))
}

pub fn rig(name: &str, prefix: &str, town: &Town) -> Rig {
    Rig {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        path: town.root().display().to_string(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    }
}
