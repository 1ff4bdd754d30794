//! Doing: starting agents, seeing them end, stopping them; worktrees and merging.
//!
//! One trait for every place an agent can run in, so that the engine knows one way only. What to start and when is
//! decided elsewhere; what is remembered of it is the store's. Nothing here reads the town's store or config.

mod child;
pub mod exec;
mod git;
mod index;
mod memory;
pub mod merge;
pub mod patience;
pub mod process;
pub mod program;
pub mod simulated;
pub mod terminal;
mod whole_file;
pub mod worktree;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What to start for one run. The run id is its identity: it stands in the environment as `GT_RUN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub run: String,
    /// What people see: `prefix-polecat`.
    pub session: String,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    /// The whole environment, `GT_RUN` included.
    pub env: Vec<(String, String)>,
    /// Given on standard input. Without it that is the terminal, or closed where there is none.
    pub stdin: Option<String>,
    /// Where its output goes: as it comes, or from a terminal when the run has ended.
    pub log: PathBuf,
    /// Where it complains, apart from its output; without it, and in a terminal, into the log too.
    #[serde(default)]
    pub errors: Option<PathBuf>,
    pub place: Place,
}

/// What a run is started in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Nothing but the machine: input from a file, output to a file.
    #[default]
    Process,
    /// The same, and on this machine, wherever others are started.
    Here,
    /// A terminal of its own, which people can look at and type into.
    Terminal,
}

/// Something that runs, so exactly that it can be found again and never be taken for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    pub pid: u32,
    /// The kernel's start time of the process (clock ticks since boot): process numbers come again, this pair does not.
    pub birth: u64,
}

impl Handle {
    /// A run in another place: it is known by its run id, and no process of this machine is it.
    pub const ELSEWHERE: Handle = Handle { pid: 0, birth: 0 };

    /// Whether it is a process of this machine.
    pub fn is_here(&self) -> bool {
        *self != Self::ELSEWHERE
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// `None` when it was killed, or when nobody was there to see it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: Timestamp,
    /// Processes it left behind, which were ended with it.
    pub leftover: u32,
    /// Whether the place it ran in is gone and took it along: nothing that it did.
    #[serde(default)]
    pub is_lost: bool,
}

/// What a runtime knows of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sighting {
    /// A process of it lives, and cannot be told from others yet: it is just executing its program. Look again later.
    Starting,
    Running(Handle),
    Ended(Ending),
}

/// How gently to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// Interrupt what it does (SIGINT to the group, the interrupt key in a terminal), and leave the rest to it.
    Interrupt,
    /// Ask (SIGTERM to the group), and kill what is still there after a grace.
    Gently,
    /// Kill at once.
    Now,
}

/// Why a run was not started.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum StartError {
    /// The program is not there or cannot be executed: the agent's fault, not the bead's.
    #[error("cannot start `{program}`: {cause}")]
    NoProgram { program: String, cause: String },
    /// The machine has no room: nobody's fault.
    #[error("this machine cannot start more: {cause}")]
    NoRoom { cause: String },
    /// Anything else about this very start.
    #[error("{cause}")]
    Failed { cause: String },
    /// Nobody knows whether it runs; only looking can tell.
    #[error("nobody knows whether it was started: {cause}")]
    Unknown { cause: String },
}

#[derive(Debug, Error)]
pub enum RuntimeError {
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the keeper of this town's agents does not answer: {cause}")]
    NoKeeper { cause: String },
    /// About runs in other places: nobody can be asked, or the wrong one would be.
    #[error("{cause}")]
    Elsewhere { cause: String },
}

/// A run that the store believes to be alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub run: String,
    /// Known once the start was recorded.
    pub handle: Option<Handle>,
    /// Where its output goes, by which a process is found whose start was not recorded.
    #[serde(default)]
    pub log: Option<PathBuf>,
}

/// Called from a thread of the runtime whenever a run has ended, with its end; with nothing when something may have been
/// missed and the runtime should be surveyed.
pub type News = Box<dyn Fn(Option<(String, Ending)>) + Send>;

/// A message is JSON, which has no way to say every path; such a one is the town's, so all starts have it.
fn refuse_odd_paths(launches: &[Launch]) -> Option<Vec<Result<Handle, StartError>>> {
    let mut paths = launches.iter().flat_map(|launch| [&launch.dir, &launch.log].into_iter().chain(&launch.errors));
    let path = paths.find(|path| path.to_str().is_none())?;
    let cause = format!("{} is not UTF-8, so no agent can be started there", path.display());
    Some(vec![Err(StartError::Failed { cause }); launches.len()])
}

/// A place in which agents run.
pub trait Runtime {
    /// Starts runs, in order; one result each. A run that was started before is not started again.
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>>;

    /// Looks at what really lives. The answer holds every run of `known` that runs or has ended, and every other one
    /// that it keeps: running, or ended and not yet acknowledged. A known run that is not in it was never started.
    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError>;

    /// Stops a run; its end shows in a later survey. A run that is not there is fine.
    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError>;

    /// Forgets endings that have been recorded.
    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError>;

    /// From now on tells of every ending.
    fn watch(&mut self, news: News) -> Result<(), RuntimeError>;
}
