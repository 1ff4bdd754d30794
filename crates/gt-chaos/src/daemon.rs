//! Keeps a daemon running: starts one, and another when it was killed, at once or after a while.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock::{self, Micros};
use crate::pause::End;
use crate::town::Town;

/// Looks at the daemon this often.
const LOOK: Duration = Duration::from_millis(20);
/// Time before a daemon that ended by itself is started again.
const RESPITE: Duration = Duration::from_millis(500);

/// A daemon that ended though nobody had killed it.
#[derive(Debug, Clone)]
pub(crate) struct SelfEnd {
    pub(crate) at: Micros,
    pub(crate) status: String,
}

#[derive(Debug, Default)]
struct State {
    child: Option<Child>,
    restart_at: Option<Instant>,
    was_killed: bool,
    self_ends: Vec<SelfEnd>,
}

/// Whoever starts the daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    state: Mutex<State>,
    over: End,
    town: Arc<Town>,
}

impl Daemon {
    pub(crate) fn start(town: &Arc<Town>) -> (Arc<Daemon>, JoinHandle<()>) {
        let daemon = Arc::new(Daemon { state: Mutex::default(), over: End::default(), town: Arc::clone(town) });
        let watched = Arc::clone(&daemon);
        (daemon, thread::spawn(move || watched.watch()))
    }

    fn watch(&self) {
        while !self.over.wait(LOOK) {
            self.look();
        }
        if let Some(mut child) = self.lock().child.take() {
            child.kill().unwrap_or_default();
            child.wait().ok();
        }
    }

    fn look(&self) {
        let mut state = self.lock();
        let ended = state.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        if let Some(status) = ended {
            state.child = None;
            if !state.was_killed {
                state.self_ends.push(SelfEnd { at: clock::now(), status: status.to_string() });
                state.restart_at = Some(Instant::now() + RESPITE);
            }
            state.was_killed = false;
        }
        let is_due = state.restart_at.is_none_or(|at| Instant::now() >= at);
        if state.child.is_none() && is_due {
            state.child = self.spawn();
            state.restart_at = Some(Instant::now() + RESPITE);
        }
    }

    fn spawn(&self) -> Option<Child> {
        let log = open_log(&self.town)?;
        let errors = log.try_clone().ok()?;
        let mut command = self.town.gt(&["daemon", "run"]);
        command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().ok()
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.lock().child.as_ref().map(|child| child.id() as i32)
    }

    /// Kills it; another one starts after this time.
    pub(crate) fn kill(&self, restart_after: Duration) -> bool {
        let mut state = self.lock();
        state.restart_at = Some(Instant::now() + restart_after);
        state.was_killed = state.child.is_some();
        state.child.as_mut().is_some_and(|child| child.kill().is_ok())
    }

    /// Has one start now if none runs.
    pub(crate) fn heal(&self) {
        self.lock().restart_at = None;
    }

    pub(crate) fn self_ends(&self) -> Vec<SelfEnd> {
        self.lock().self_ends.clone()
    }

    /// Kills it for good.
    pub(crate) fn end(&self) {
        self.over.declare();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all daemons of the town say.
pub(crate) fn log_path(town: &Town) -> PathBuf {
    town.evidence.join("daemon.log")
}

fn open_log(town: &Town) -> Option<File> {
    OpenOptions::new().create(true).append(true).open(log_path(town)).ok()
}
