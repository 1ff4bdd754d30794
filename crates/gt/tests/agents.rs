//! Real Claude Code and Codex at real work, through the real binary, with a scripted model instead of the vendors'.
//!
//! Built with the feature `real-agents` only, which `cargo xtask test --with-agents` sets: without agents there is nothing to
//! look at, and a test that has not looked must not pass. `docs/real-agents.md` tells more.

/// Where agents run unless a test says otherwise.
mod place {
    pub(crate) fn config(_town: &std::path::Path) -> String {
        "runtime = \"process\"\n".to_owned()
    }
}

#[allow(dead_code, reason = "written for `it.rs`, which uses more of it")]
#[path = "it/fleet.rs"]
mod fleet;
#[allow(dead_code, unused_imports, unused_macros, reason = "written for `it.rs`, which uses more of it")]
#[path = "it/town.rs"]
mod town;

#[allow(dead_code, reason = "written for `it.rs`, which uses more of it")]
#[path = "it/server/caller.rs"]
mod caller;

#[path = "agents/cli.rs"]
mod cli;
#[path = "agents/workshop.rs"]
mod workshop;

#[path = "agents/faults.rs"]
mod faults;
#[path = "agents/openai.rs"]
mod openai;
#[path = "agents/terminal.rs"]
mod terminal;
#[path = "agents/turns.rs"]
mod turns;
#[path = "agents/work.rs"]
mod work;
