//! The nemesis: injects faults at random moments, and takes them back.
//!
//! Owns: which faults there are, how often each comes, and when it ends. What each does is `nemesis/faults.rs`.

mod dirt;
mod faults;
mod person;
mod stale_lock;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::dirt::Dirt;
pub(crate) use self::person::Committed;
use self::stale_lock::StaleLock;
use crate::chance;
use crate::clock::{self, Micros};
use crate::daemon::Daemon;
use crate::evidence::Watch;
use crate::load::Load;
use crate::options::{Options, Runtime};
use crate::pause::{End, pause};
use crate::receiver::Receiver;
use crate::tally::Tally;
use crate::town::Town;

/// Every fault: its name, and how often it comes compared to the others.
const FAULTS: [(Fault, &str, u32); 20] = [
    (Fault::KillDaemon, "kill-daemon", 4),
    (Fault::KillKeeper, "kill-keeper", 4),
    (Fault::KillBoth, "kill-daemon-and-keeper", 3),
    (Fault::KillStarting, "kill-keeper-while-it-starts-a-run", 3),
    (Fault::KillAgent, "kill-agent", 4),
    (Fault::KillTurn, "kill-turn", 3),
    (Fault::KillSlot, "kill-slot", 2),
    (Fault::KillTmux, "kill-tmux", 1),
    (Fault::KillGit, "kill-git", 5),
    (Fault::StopDaemon, "stop-daemon", 2),
    (Fault::StopKeeper, "stop-keeper", 2),
    (Fault::StopAgent, "stop-agent", 3),
    (Fault::BreakConfig, "break-config", 3),
    (Fault::LockGit, "lock-git", 3),
    (Fault::LockIndex, "lock-index", 1),
    (Fault::MoveTarget, "move-target", 5),
    (Fault::DirtyCheckout, "dirty-checkout", 6),
    (Fault::FillDisk, "fill-disk", 3),
    (Fault::BreakReceiver, "break-receiver", 4),
    (Fault::CutCommands, "cut-commands", 4),
];

/// When something could not be taken back, on a full disk for example, it is tried again after this time.
const AGAIN: Duration = Duration::from_millis(100);
/// How long that may take in the end.
const MEND_MAX: Duration = Duration::from_mins(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillDaemon,
    KillKeeper,
    KillBoth,
    KillStarting,
    KillAgent,
    KillTurn,
    KillSlot,
    KillTmux,
    KillGit,
    StopDaemon,
    StopKeeper,
    StopAgent,
    BreakConfig,
    LockGit,
    LockIndex,
    MoveTarget,
    DirtyCheckout,
    FillDisk,
    BreakReceiver,
    CutCommands,
}

/// The name of a fault, if there is one of this name.
pub(crate) fn known_fault(name: &str) -> Result<String, String> {
    let names: Vec<&str> = FAULTS.iter().map(|(_, name, _)| *name).collect();
    if names.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("there is no fault `{name}`; there are {}", names.join(", ")))
    }
}

/// What takes a fault back.
#[derive(Debug)]
enum Remedy {
    Continue { pid: i32 },
    RestoreConfig,
    RemoveLock(StaleLock),
    PutAway(Dirt),
    EmptyDisk,
    MendReceiver,
}

/// What the nemesis did that the judge must know.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// Runs whose process was killed, written down before the signal was sent.
    pub(crate) killed_runs: BTreeSet<String>,
    pub(crate) commits: Vec<Committed>,
    /// What happened to files of a person that were not committed.
    pub(crate) damages: Vec<String>,
    /// When the disk was full, from and to.
    pub(crate) full_disks: Vec<(Micros, Micros)>,
    /// A line for each fault, for the record.
    pub(crate) diary: Vec<String>,
}

/// Whom the faults befall.
#[derive(Debug)]
pub(crate) struct Targets {
    pub(crate) town: Arc<Town>,
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) load: Arc<Load>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) tally: Arc<Tally>,
}

#[derive(Debug)]
pub(crate) struct Nemesis {
    targets: Targets,
    seed: u64,
    rng: fastrand::Rng,
    faults: Vec<(Fault, &'static str, u32)>,
    remedies: Vec<(Instant, Remedy)>,
    deeds: Arc<Mutex<Deeds>>,
    n_commits: usize,
    n_files: usize,
    is_config_broken: bool,
    /// Since when the disk is full.
    full_since: Option<Micros>,
}

impl Nemesis {
    pub(crate) fn new(options: &Options, targets: Targets) -> Nemesis {
        let is_meant = |fault: Fault, name: &str| {
            let is_possible = match fault {
                Fault::KillTmux => options.runtime == Runtime::Tmux,
                Fault::FillDisk => options.disk.is_some(),
                _ => true,
            };
            is_possible && (options.only.is_empty() || options.only.iter().any(|only| only == name))
        };
        Nemesis {
            targets,
            seed: options.seed,
            rng: chance::stream(options.seed, 0),
            faults: FAULTS.into_iter().filter(|(fault, name, _)| is_meant(*fault, name)).collect(),
            remedies: Vec::new(),
            deeds: Arc::default(),
            n_commits: 0,
            n_files: 0,
            is_config_broken: false,
            full_since: None,
        }
    }

    pub(crate) fn deeds(&self) -> Arc<Mutex<Deeds>> {
        Arc::clone(&self.deeds)
    }

    /// Injects faults until the time is over, then takes back all that still hold.
    pub(crate) fn rage(mut self, over: &End) {
        for n in 0.. {
            // Whether a fault finds a target is up to the machine; the next choice must not depend on it.
            self.rng = chance::stream(self.seed, n);
            let next = Instant::now() + Duration::from_millis(self.rng.u64(200..2000));
            if let Some((fault, name, _)) = self.choose() {
                self.inject(fault, name);
            }
            while Instant::now() < next {
                self.mend(Instant::now());
                if over.wait(Duration::from_millis(20)) {
                    self.mend_all();
                    return;
                }
            }
        }
    }

    fn choose(&mut self) -> Option<(Fault, &'static str, u32)> {
        let total: u32 = self.faults.iter().map(|(_, _, weight)| weight).sum();
        let mut at = if total == 0 { return None } else { self.rng.u32(..total) };
        self.faults.iter().copied().find(|(_, _, weight)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        })
    }

    fn inject(&mut self, fault: Fault, name: &'static str) {
        let at = clock::shown(clock::now());
        let what = self.apply(fault);
        let tally = Arc::clone(&self.targets.tally);
        match &what {
            Some(_) => {
                tally.one(name);
                tally.one("faults that hit a target");
            }
            None => tally.one("faults without a target"),
        }
        self.note(|deeds| deeds.diary.push(format!("{at} {name}: {}", what.unwrap_or_else(|| "no target".to_owned()))));
    }

    /// Takes a fault back after a while.
    fn later(&mut self, span: Duration, remedy: Remedy) {
        self.remedies.push((Instant::now() + span, remedy));
    }

    fn mend(&mut self, now: Instant) {
        let (due, rest) = std::mem::take(&mut self.remedies).into_iter().partition(|(at, _)| *at <= now);
        self.remedies = rest;
        let due: Vec<(Instant, Remedy)> = due;
        for (_, remedy) in due {
            self.remedy(remedy);
        }
    }

    fn mend_all(&mut self) {
        self.targets.load.cut(0);
        // It clears away locks that keep a person from putting files away.
        self.targets.daemon.heal();
        let deadline = Instant::now() + MEND_MAX;
        while !self.remedies.is_empty() && Instant::now() < deadline {
            for (_, remedy) in std::mem::take(&mut self.remedies) {
                self.remedy(remedy);
            }
            pause(AGAIN);
        }
    }

    fn note<T>(&self, change: impl FnOnce(&mut Deeds) -> T) -> T {
        change(&mut self.deeds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn span(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(self.rng.u64(from_ms..to_ms))
    }
}
