//! The binary with its agents in terminals: what holds for plain processes holds there too. One test binary.

/// Where the agents of these tests run.
mod place {
    pub(crate) fn config(_town: &std::path::Path) -> String {
        "runtime = \"tmux\"\n".to_owned()
    }
    /// tmux knows how a run ended, also after its keeper was killed; it has to be asked, which takes a moment.
    pub(crate) const KEEPS_STATUS: bool = true;
    /// Agents live on when their keeper is killed.
    pub(crate) const OUTLIVES_KEEPER: bool = true;
    /// What a run leaves behind in its own group goes with its terminal.
    pub(crate) const HANGS_UP: bool = true;
    /// The log holds what was on the screen, and so many lines before.
    pub(crate) const KEEPS_ALL: bool = false;
    /// As many beads as are many here; more are tried where agents are processes.
    pub(crate) const MANY: usize = 60;
    /// How often a point is passed, at most, before a process is killed there: more is tried where agents are processes.
    pub(crate) const TIMES: usize = 1;
    /// What the product has of its patience, in percent: all of it is waited for where agents are processes.
    pub(crate) const PATIENCE: u8 = 20;
}

#[path = "it/fleet.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod fleet;
#[path = "it/town.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "other tests use the rest of it")]
mod town;

#[path = "it/bad_agents.rs"]
mod bad_agents;
#[path = "it/caps.rs"]
mod caps;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/deleted.rs"]
mod deleted;
#[path = "terminal/screens.rs"]
mod screens;
