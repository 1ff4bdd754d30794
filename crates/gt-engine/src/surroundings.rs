//! What a process of the town has around it: time, who it is, the turn to pass, other threads, places to work in.
//!
//! The real one is `Machine`. The simulation brings its own, so nothing else in the engine reads a clock for a decision,
//! waits or starts a thread on the way from cause to effect. (DESIGN decision 9) Files under the town's own directory
//! are not part of it; they are read and written directly.

mod gauge;
mod git;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use gt_runtime::worktree::WorktreeError;
use gt_runtime::{StartError, program};
use gt_store::Store;
use jiff::Timestamp;

pub use self::gauge::{Figures, Gauge, ThisMachine};
pub use self::git::{Bench, Command, Git, PassedTree, RealGit};
use crate::error::TownError;
use crate::lock::{Held, Lock};
use crate::process_id;
use crate::signs;
use crate::town::Town;
use crate::wait;

/// Worktrees that are made, or looked at, at once.
const PREPARE_THREADS: usize = 4;

/// What lies around a process.
pub trait Surroundings: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Time that only goes forward, whatever is done to the clock.
    fn uptime(&self) -> Duration;

    /// When a file changed last: written, renamed or replaced. `None`: that cannot be told.
    fn changed_at(&self, file: &Path) -> Option<Timestamp>;

    fn new_run(&self) -> String;

    /// This process, as it stands in the runs that it claims.
    fn own_process(&self) -> String;

    /// Whether the process that is called so still lives.
    fn is_alive(&self, process: &str) -> bool;

    /// Whether a daemon runs the town.
    fn has_daemon(&self, town: &Town) -> bool;

    /// Waits for the right to pass: passes exclude each other.
    fn take_turn(&self, town: &Town) -> Result<Held, TownError>;

    /// Lets `look` wait, for as long as it is told, until it says that there is something; no longer than `most`.
    fn wait(&self, most: Option<Duration>, look: &mut dyn FnMut(Option<Duration>) -> bool);

    /// Does something that nobody waits for.
    fn aside(&self, work: Box<dyn FnOnce() + Send>);

    /// How many worktrees are made, or looked at, at once.
    fn n_threads(&self) -> usize;

    fn worktrees(&self) -> &dyn Worktrees;

    /// What merging asks of git.
    fn git(&self) -> &dyn Git;

    /// How the machine is.
    fn gauge(&self) -> Arc<dyn Gauge> {
        ThisMachine::gauge()
    }

    /// The town's store, for a thread that has none.
    fn open_store(&self, town: &Town) -> Result<Store, TownError> {
        town.open_store()
    }

    /// Whether a program can be executed, looked up in a `PATH` where it is only a name.
    fn find_program(&self, name: &str, path: &str) -> Result<(), StartError>;

    /// When these runs last gave a sign of life, as far as anybody can tell. Only those that seem to be silent since then
    /// have to be looked for everywhere.
    fn last_signs(&self, town: &Town, runs: &[&str], silent_before: Timestamp) -> BTreeMap<String, Timestamp>;
}

/// What git does for polecats.
pub trait Worktrees: Send + Sync {
    fn prepare(&self, repository: &Path, path: &Path, branch: &str, base: &str) -> Result<(), WorktreeError>;

    /// Whether there is a worktree.
    fn is_there(&self, path: &Path) -> bool;

    /// The branch that is checked out in it.
    fn branch(&self, path: &Path) -> Option<String>;

    /// Sees to it that a branch has the commits that are checked out in it, where that loses none.
    fn bring_along(&self, _path: &Path, _branch: &str) {}

    /// What would be lost with it.
    fn unsaved(&self, path: &Path) -> Option<String>;

    /// Keeps what is not committed in it, as a commit and as a patch; says whether there is one now.
    fn salvage(&self, tree: &Path, run: &str, patch: &Path) -> bool;

    /// Whether there is a git that can be asked about more than this.
    fn has_git(&self) -> bool {
        false
    }

    /// Leaves a text in a file of a worktree, below a directory that git is told to overlook; where it cannot be, nothing is left.
    fn leave(&self, _repository: &Path, _tree: &Path, _dir: &str, _file: &str, _text: &str) {}
}

/// The next message, if one comes in time.
pub fn receive<T>(
    around: &dyn Surroundings,
    messages: &Receiver<T>,
    most: Option<Duration>,
) -> Result<T, RecvTimeoutError> {
    let mut answer = Err(RecvTimeoutError::Timeout);
    around.wait(most, &mut |span| {
        answer = match span {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(span) => messages.recv_timeout(span),
        };
        !matches!(answer, Err(RecvTimeoutError::Timeout))
    });
    answer
}

/// Waits for a while.
pub fn pause(around: &dyn Surroundings, span: Duration) {
    around.wait(Some(span), &mut |span| {
        wait::pause(span.unwrap_or_default());
        false
    });
}

/// Does something for each, several at a time where there are threads; the answers stand in the same order.
pub fn for_each<T: Send, R: Send>(
    around: &dyn Surroundings,
    all: Vec<T>,
    one: impl Fn(T) -> R + Copy + Send + Sync,
) -> Vec<R> {
    if all.len() < 2 || around.n_threads() < 2 {
        return all.into_iter().map(one).collect();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares(all, around.n_threads())
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().map(one).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("what is done here does not panic")).collect()
    })
}

/// As many parts as there are threads for.
pub fn shares<T>(all: Vec<T>, n_threads: usize) -> Vec<Vec<T>> {
    let share = all.len().div_ceil(n_threads).max(1);
    let mut rest = all.into_iter();
    let next = || {
        let share: Vec<T> = rest.by_ref().take(share).collect();
        (!share.is_empty()).then_some(share)
    };
    std::iter::from_fn(next).collect()
}

/// This machine.
#[derive(Debug)]
pub struct Machine {
    since: Instant,
}

impl Machine {
    pub fn here() -> Arc<dyn Surroundings> {
        Arc::new(Machine { since: Instant::now() })
    }
}

impl Surroundings for Machine {
    fn now(&self) -> Timestamp {
        gt_core::time::truncate(Timestamp::now())
    }

    fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    fn changed_at(&self, file: &Path) -> Option<Timestamp> {
        let metadata = fs::metadata(file).ok()?;
        let nanoseconds = i32::try_from(metadata.ctime_nsec()).ok()?;
        Timestamp::new(metadata.ctime(), nanoseconds).ok().map(gt_core::time::truncate)
    }

    fn new_run(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }

    fn own_process(&self) -> String {
        process_id::own()
    }

    fn is_alive(&self, process: &str) -> bool {
        process_id::is_alive(process)
    }

    fn has_daemon(&self, town: &Town) -> bool {
        matches!(Lock::Daemon.holder(town), Ok(Some(_)))
    }

    fn take_turn(&self, town: &Town) -> Result<Held, TownError> {
        Lock::Pass.take(town)
    }

    fn wait(&self, most: Option<Duration>, look: &mut dyn FnMut(Option<Duration>) -> bool) {
        look(most);
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(work);
    }

    fn n_threads(&self) -> usize {
        PREPARE_THREADS
    }

    fn worktrees(&self) -> &dyn Worktrees {
        &RealGit
    }

    fn git(&self) -> &dyn Git {
        &RealGit
    }

    fn find_program(&self, name: &str, path: &str) -> Result<(), StartError> {
        program::probe(name, path)
    }

    fn last_signs(&self, town: &Town, runs: &[&str], silent_before: Timestamp) -> BTreeMap<String, Timestamp> {
        signs::last_signs(town, runs, silent_before)
    }
}
