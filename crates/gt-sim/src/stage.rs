//! The stage: the town with all who act on it, and the ways to let one of them make a move.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gt_core::rig::{Rig, RigState};
use gt_engine::Town;
use gt_engine::config::{Config, digest};
use gt_engine::daemon::Cause;
use gt_engine::in_force;
use gt_engine::settings::Settings;
use gt_runtime::simulated::SimulatedRuntime;
use gt_store::{Stamp, Store, StoreError};
use tempfile::TempDir;

use crate::around::weigh;
use crate::knobs::{Knobs, RIGS, replace};
use crate::medium::Medium;
use crate::processes::{Errand, Ground, ring_after_commit};
use crate::shortage::SimGauge;
use crate::strand::{Halt, Strand};
use crate::world::{Aside, Pid, Shared};

/// The config as people have left it.
#[derive(Debug, Clone)]
pub struct Setting {
    /// `None`: it cannot be read.
    pub knobs: Option<Knobs>,
    text: String,
    /// Since which step it has been in force; `None`: it is not yet, or never was.
    pub in_force: Option<usize>,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    Bead,
    /// A turn of a session.
    Turn,
    Job,
}

pub struct Stage {
    pub ground: Ground,
    pub strands: BTreeMap<Pid, Strand>,
    /// The store as people's and agents' commands open it.
    pub store: Store,
    pub settings: Vec<Setting>,
    /// The store without its faults, for whoever looks on and for what must be there from the start.
    kept: Store,
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
            let rig = rig(name, prefix, &town);
            std::fs::create_dir_all(&rig.path).expect("the town's directory can be written");
            store.add_rig(&rig, &stamp).expect("the rig is new");
        }
        let knobs = Knobs::draw(&mut world.lock().rng);
        let kept = medium.open().expect("nothing is wrong yet");
        let gate_world = world.clone();
        store.set_gate(Box::new(move |moment| weigh(&mut gate_world.lock(), moment)));
        ring_after_commit(&world, &mut store);
        let runtime = SimulatedRuntime::default();
        runtime.ignore_stops(true);
        let mut stage = Stage {
            ground: Ground { world, town, medium, runtime },
            strands: BTreeMap::new(),
            store,
            settings: Vec::new(),
            kept,
            reads_since: None,
            _dir: dir,
        };
        stage.configure(knobs);
        stage
    }

    pub fn world(&self) -> &Shared {
        &self.ground.world
    }

    /// The store without its faults.
    pub fn look(&mut self) -> &mut Store {
        &mut self.kept
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

    /// What a run is for, by what its process was told.
    pub fn kind_of(&self, run: &str) -> Option<RunKind> {
        let env = self.ground.runtime.launch(run)?.env;
        let has = |name: &str| env.iter().any(|(known, _)| known == name);
        Some(match () {
            () if has("GT_JOB") => RunKind::Job,
            () if has("GT_BEAD") => RunKind::Bead,
            () => RunKind::Turn,
        })
    }

    /// The runs of a kind that run.
    pub fn running(&self, kind: RunKind) -> Vec<String> {
        let mut running = self.ground.runtime.running();
        running.retain(|run| self.kind_of(run) == Some(kind));
        running
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
        {
            let mut world = self.ground.world.lock();
            world.mover = Some(pid);
            if world.machine.is_watched {
                world.machine.moved.push(pid);
            }
        }
        let Some(strand) = self.strands.get_mut(&pid) else { return };
        let end = strand.go_on();
        if let Some(end) = end {
            self.strands.remove(&pid);
            if let Err(why) = end {
                self.world().violation(why);
            }
            self.end_process(pid);
        }
        let dying = std::mem::take(&mut self.world().lock().dying);
        for pid in dying {
            self.end_process(pid);
        }
        self.note_in_force();
    }

    /// Kills a process where it stands.
    pub fn kill(&mut self, pid: Pid) {
        if let Some(strand) = self.strands.remove(&pid) {
            self.world().tell(|| format!("process {pid} is killed"));
            strand.kill();
            self.end_process(pid);
        }
    }

    /// A thread tells its process that it has ended; a process takes all its threads with it.
    fn end_process(&mut self, pid: Pid) {
        let owner = self.world().lock().threads.remove(&pid);
        if let Some(owner) = owner {
            if let Some(process) = self.world().lock().processes.get_mut(&owner) {
                process.has_mail = true;
            }
            return;
        }
        let is_its = |(thread, owner): (&Pid, &Pid)| (*owner == pid).then_some(*thread);
        let threads: Vec<Pid> = self.world().lock().threads.iter().filter_map(is_its).collect();
        for one in threads.into_iter().chain([pid]) {
            if let Some(strand) = self.strands.remove(&one) {
                strand.kill();
            }
            self.world().lock().threads.remove(&one);
        }
        self.world().lock().bury(pid);
    }

    /// Does a piece of work that a process has left to a thread; says whether there was one.
    pub fn step_aside(&mut self) -> bool {
        let aside = self.world().lock().asides.pop_front();
        let Some(aside) = aside else { return false };
        if self.world().lock().git.is_used() {
            self.launch_thread(aside);
            return true;
        }
        (aside.work)();
        if let Some(process) = self.world().lock().processes.get_mut(&aside.owner) {
            process.has_mail = true;
        }
        self.note_in_force();
        true
    }

    /// Lets such a piece of work move by itself, with whatever can happen in between.
    fn launch_thread(&mut self, aside: Aside) {
        let thread = {
            let mut world = self.ground.world.lock();
            let thread = world.new_pid();
            world.threads.insert(thread, aside.owner);
            thread
        };
        let strand = Strand::new(move |_| {
            (aside.work)();
            Ok(())
        });
        self.strands.insert(thread, strand);
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

    /// People change the config by `gt config`: it counts at once, and whoever watches the file hears of it.
    pub fn configure(&mut self, knobs: Knobs) {
        self.write_config(knobs);
        let (text, stamp) = (self.settings.last().map(|last| last.text.clone()), self.stamp("people"));
        in_force::keep_at_once(&self.ground.town, &mut self.kept, &text.unwrap_or_default(), &stamp)
            .expect("it is written without faults");
        self.note_in_force();
        self.tell_config();
    }

    /// People edit the file: what drops caps counts after a while.
    pub fn edit_config(&mut self, knobs: Knobs) {
        self.write_config(knobs);
        self.tell_config();
    }

    /// The file is changed; nobody has heard of it yet.
    pub fn write_config(&mut self, knobs: Knobs) {
        self.replace_config(knobs.to_toml(), Some(knobs));
    }

    pub fn tell_config(&self) {
        self.world().lock().post_all(|| Cause::ConfigWritten);
    }

    /// People break the config.
    pub fn spoil_config(&mut self) {
        let is_empty = self.world().lock().chance(2);
        self.replace_config(if is_empty { "" } else { "scheduler = [\n" }.to_owned(), None);
        self.tell_config();
    }

    fn replace_config(&mut self, text: String, knobs: Option<Knobs>) {
        replace(&self.ground.town.config_path(), &text);
        {
            let mut world = self.ground.world.lock();
            world.config_changed_at = world.now();
        }
        self.world().tell(|| format!("the config is now {knobs:?}"));
        self.settings.push(Setting { knobs, text, in_force: None });
    }

    /// Notes which of the configs is in force by now.
    fn note_in_force(&mut self) {
        if self.settings.last().is_none_or(|last| last.in_force.is_some()) {
            return;
        }
        let kept = self.kept.kept_config().expect("it is looked at without faults");
        let is_kept = |setting: &Setting| kept.as_ref().is_some_and(|kept| kept.digest == digest(&setting.text));
        let step = self.ground.world.lock().step;
        let known = self.settings.iter().rposition(|setting| setting.in_force.is_some());
        if let Some(at) = self.settings.iter().rposition(is_kept).filter(|at| Some(*at) > known) {
            self.settings[at].in_force = Some(step);
        }
    }

    /// The config in force.
    pub fn in_force(&self) -> Option<&Setting> {
        self.settings.iter().rfind(|setting| setting.in_force.is_some())
    }

    /// What commands of people go by.
    pub fn settings_in_force(&self) -> Settings {
        let text = self.in_force().map(|setting| setting.text.as_str()).unwrap_or_default();
        let gauge = Arc::new(SimGauge { world: self.world().clone(), pid: None });
        Settings::on(gauge, Config::parse(text).expect("only what can be read is in force"))
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
        path: town.root().join(name).display().to_string(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    }
}
