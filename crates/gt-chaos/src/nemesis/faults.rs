//! What each fault does, and what takes it back.

use std::fs::{self, File};
use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{AGAIN, Fault, Nemesis, Remedy, StaleLock};
use crate::clock;
use crate::evidence::Script;
use crate::pause::pause;
use crate::processes::{self, Entry, signal};
use crate::receiver::Mode;
use crate::town::RIGS;

/// How long the nemesis waits for a process to kill.
const HUNT: Duration = Duration::from_secs(1);
/// Locks that a killed git leaves behind, and that the refinery removes.
const LOCKS: [&str; 3] = ["HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"];

impl Nemesis {
    /// Returns what was done, if there was anything to do it to.
    pub(super) fn apply(&mut self, fault: Fault) -> Option<String> {
        match fault {
            Fault::KillDaemon => self.kill_daemon(),
            Fault::KillKeeper => self.kill_keeper(),
            Fault::KillBoth => {
                // Either may die first.
                let done = if self.rng.bool() {
                    [self.kill_daemon(), self.kill_keeper()]
                } else {
                    [self.kill_keeper(), self.kill_daemon()]
                };
                let done: Vec<String> = done.into_iter().flatten().collect();
                (!done.is_empty()).then(|| done.join(", "))
            }
            Fault::KillStarting => self.kill_starting(),
            Fault::KillAgent => self.kill_run(Script::Agent),
            Fault::KillTurn => self.kill_run(Script::Turn),
            Fault::KillSlot => self.kill_run(Script::Slot),
            Fault::KillTmux => self.kill_tmux(),
            Fault::KillGit => self.kill_git(),
            Fault::StopDaemon => {
                let pid = self.targets.daemon.pid()?;
                self.stop(pid)
            }
            Fault::StopKeeper => {
                let keeper = self.keepers().first()?.pid;
                self.stop(keeper)
            }
            Fault::StopAgent => {
                let agents = self.targets.watch.alive(Script::Agent);
                let (pid, _) = self.rng.choice(agents)?;
                self.stop(pid)
            }
            Fault::BreakConfig => self.break_config(),
            Fault::LockGit => self.lock_git(),
            Fault::LockIndex => self.lock_index(),
            Fault::MoveTarget => {
                let rig = RIGS[self.rng.usize(..RIGS.len())];
                self.commit_as_person(rig)
            }
            Fault::DirtyCheckout => {
                let dirt = self.dirty_checkout()?;
                let (what, span) = (dirt.describe(), self.span(500, 8000));
                self.later(span, Remedy::PutAway(dirt));
                Some(format!("{what}, for {span:?}"))
            }
            Fault::FillDisk => self.fill_disk(),
            Fault::BreakReceiver => Some(self.break_receiver()),
            Fault::CutCommands => {
                let n = self.rng.usize(1..5);
                self.targets.load.cut(n);
                Some(format!("the next {n}"))
            }
        }
    }

    pub(super) fn remedy(&mut self, remedy: Remedy) {
        match remedy {
            Remedy::Continue { pid } => {
                signal(pid, Signal::CONT);
            }
            Remedy::RestoreConfig => {
                if self.targets.town.restore_config().is_err() {
                    self.later(AGAIN, Remedy::RestoreConfig);
                    return;
                }
                self.is_config_broken = false;
            }
            Remedy::RemoveLock(lock) => lock.remove(),
            Remedy::PutAway(mut dirt) => match dirt.damage() {
                // Left as it is, for whoever looks into it.
                Some(damage) => self.note(|deeds| deeds.damages.push(damage)),
                None if dirt.is_put_away() => {}
                None => self.later(AGAIN, Remedy::PutAway(dirt)),
            },
            Remedy::EmptyDisk => {
                fs::remove_file(self.targets.town.filler()).ok();
                let since = self.full_since.take();
                self.note(|deeds| deeds.full_disks.extend(since.map(|since| (since, clock::now()))));
            }
            Remedy::MendReceiver => self.targets.receiver.set_mode(Mode::Fine),
        }
    }

    fn kill_daemon(&mut self) -> Option<String> {
        let restart_after = if self.rng.bool() { Duration::ZERO } else { self.span(0, 4000) };
        let pid = self.targets.daemon.pid()?;
        self.targets.daemon.kill(restart_after).then(|| format!("daemon {pid}, back in {restart_after:?}"))
    }

    fn kill_keeper(&mut self) -> Option<String> {
        let keepers = self.keepers();
        let killed: Vec<String> = keepers.iter().filter(|keeper| signal(keeper.pid, Signal::KILL)).map(name).collect();
        (!killed.is_empty()).then(|| format!("keeper {}", killed.join(", ")))
    }

    /// Kills the keeper, and sometimes the daemon, as soon as the log of a new run appears: before its start is known.
    fn kill_starting(&mut self) -> Option<String> {
        let logs = self.targets.town.root.join(".gt/logs");
        let changed = || fs::metadata(&logs).and_then(|logs| logs.modified()).ok();
        let keepers = self.keepers();
        let with_daemon = self.rng.bool();
        let (before, deadline) = (changed(), Instant::now() + HUNT);
        while changed() == before {
            if Instant::now() > deadline {
                return None;
            }
            pause(Duration::from_millis(1));
        }
        let is_killed = keepers.iter().any(|keeper| signal(keeper.pid, Signal::KILL));
        let daemon = if with_daemon { self.kill_daemon() } else { None };
        is_killed.then(|| format!("keeper, {}", daemon.unwrap_or_else(|| "not the daemon".to_owned())))
    }

    fn keepers(&self) -> Vec<Entry> {
        let keeper = self.targets.town.keeper();
        processes::all().into_iter().filter(|entry| entry.is_keeper_of(&keeper)).collect()
    }

    /// Kills the process of a run, as the kernel does when memory is short.
    fn kill_run(&mut self, script: Script) -> Option<String> {
        let deadline = Instant::now() + HUNT;
        loop {
            let alive = self.targets.watch.alive(script);
            if let Some((pid, run)) = self.rng.choice(alive) {
                self.note(|deeds| deeds.killed_runs.insert(run.clone()));
                return signal(pid, Signal::KILL).then(|| format!("{script:?} {pid} of run {run}"));
            }
            if Instant::now() > deadline {
                return None;
            }
            pause(Duration::from_millis(10));
        }
    }

    /// All agents in its terminals are hung up on.
    fn kill_tmux(&mut self) -> Option<String> {
        let token = self.targets.town.token.clone();
        let server =
            processes::all().into_iter().find(|entry| entry.name == "tmux: server" && entry.is_tmux_of(&token))?;
        for (_, run) in self.targets.watch.alive(Script::Agent) {
            self.note(|deeds| deeds.killed_runs.insert(run));
        }
        signal(server.pid, Signal::KILL).then(|| format!("tmux server {}", server.pid))
    }

    /// Hunts for a git that a `gt` of the town has started: in a merge, or while a worktree is made.
    fn kill_git(&mut self) -> Option<String> {
        let token = self.targets.town.token.clone();
        let is_ours = |entry: &Entry| {
            entry.name == "git"
                && Entry::of(entry.parent).is_some_and(|parent| parent.name == "gt")
                && entry.variable("HOME").is_some_and(|home| home.contains(&token))
        };
        let deadline = Instant::now() + HUNT;
        while Instant::now() < deadline {
            let gits: Vec<Entry> = processes::all().into_iter().filter(is_ours).collect();
            if let Some(git) = self.rng.choice(gits) {
                let words = git.words().join(" ");
                if signal(git.pid, Signal::KILL) {
                    return Some(words);
                }
            }
            pause(Duration::from_millis(3));
        }
        None
    }

    fn stop(&mut self, pid: i32) -> Option<String> {
        let span = self.span(100, 4000);
        signal(pid, Signal::STOP).then(|| {
            self.later(span, Remedy::Continue { pid });
            format!("process {pid} for {span:?}")
        })
    }

    /// As an editor, a full disk or a slip of the hand leaves a file, for a few seconds.
    fn break_config(&mut self) -> Option<String> {
        if self.is_config_broken {
            return None;
        }
        let town = std::sync::Arc::clone(&self.targets.town);
        let config = town.config();
        let (bytes, how) = match self.rng.u32(..4) {
            0 => (String::new(), "empty".to_owned()),
            1 => (format!("{config}\n]] this is not TOML [[\n"), "not TOML".to_owned()),
            2 => ("[scheduler]\n".to_owned(), "one line".to_owned()),
            _ => {
                let end = self.rng.usize(..config.len());
                let end = (0..=end).rev().find(|end| config.is_char_boundary(*end)).unwrap_or(0);
                (config[..end].to_owned(), format!("cut at byte {end}"))
            }
        };
        fs::write(town.config_path(), bytes).ok()?;
        self.is_config_broken = true;
        let span = self.span(200, 4000);
        self.later(span, Remedy::RestoreConfig);
        Some(format!("{how} for {span:?}"))
    }

    fn lock_git(&mut self) -> Option<String> {
        let rig = RIGS[self.rng.usize(..RIGS.len())];
        let lock = self.targets.town.rig(rig).join(".git").join(LOCKS[self.rng.usize(..LOCKS.len())]);
        File::options().write(true).create_new(true).open(&lock).ok()?;
        Some(lock.display().to_string())
    }

    /// The lock of a person's own index, which nobody else removes.
    fn lock_index(&mut self) -> Option<String> {
        let lock = StaleLock::place(&self.targets.town.rig(RIGS[0]).join(".git/index.lock"))?;
        let span = self.span(200, 3000);
        self.later(span, Remedy::RemoveLock(lock));
        Some(format!("for {span:?}"))
    }

    fn fill_disk(&mut self) -> Option<String> {
        if self.full_since.is_some() {
            return None;
        }
        let mut file = File::create(self.targets.town.filler()).ok()?;
        self.full_since = Some(clock::now());
        let mut n_bytes = 0;
        for size in [1 << 20, 4096, 1] {
            let block = vec![0x5a; size];
            while file.write_all(&block).is_ok() {
                n_bytes += size;
            }
        }
        let span = self.span(200, 5000);
        self.later(span, Remedy::EmptyDisk);
        Some(format!("{n_bytes} bytes for {span:?}"))
    }

    fn break_receiver(&mut self) -> String {
        let span = self.span(500, 5000);
        let mode = match self.rng.u32(..3) {
            0 => Mode::Fails,
            1 => Mode::Hangs(self.span(500, 12_000)),
            _ => Mode::Forgets,
        };
        self.targets.receiver.set_mode(mode);
        self.later(span, Remedy::MendReceiver);
        format!("{mode:?} for {span:?}")
    }
}

fn name(entry: &Entry) -> String {
    entry.pid.to_string()
}
