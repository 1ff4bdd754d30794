//! The binary with its agents in terminals: what holds for plain processes holds there too. One test binary.

/// Where the agents of these tests run.
mod place {
    pub(crate) const CONFIG: &str = "runtime = \"tmux\"\n";
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
#[path = "it/crowd.rs"]
mod crowd;
#[path = "terminal/screens.rs"]
mod screens;
