//! The binary as its users meet it: real processes, real git, real files. One test binary.

/// Where the agents of these tests run.
mod place {
    pub(crate) fn config(_town: &std::path::Path) -> String {
        "runtime = \"process\"\n".to_owned()
    }
    /// Whether somebody but the keeper knows how a run ended.
    pub(crate) const KEEPS_STATUS: bool = false;
    /// Agents live on when their keeper is killed.
    pub(crate) const OUTLIVES_KEEPER: bool = true;
    /// What a run leaves behind in its own group is ended by the keeper.
    pub(crate) const HANGS_UP: bool = false;
    /// Whether all that was printed is kept.
    pub(crate) const KEEPS_ALL: bool = true;
    /// As many beads as are many here.
    pub(crate) const MANY: usize = 200;
    /// How often a point is passed, at most, before somebody is killed there.
    pub(crate) const TIMES: usize = 3;
    /// What the product has of its patience, in percent: here all.
    pub(crate) const PATIENCE: u8 = 100;
}

#[path = "it/fleet.rs"]
mod fleet;
#[path = "it/town.rs"]
mod town;

#[path = "it/agents.rs"]
mod agents;
#[path = "it/agreement.rs"]
mod agreement;
#[path = "it/bad_agents.rs"]
mod bad_agents;
#[path = "it/bd.rs"]
mod bd;
#[path = "it/beads.rs"]
mod beads;
#[path = "it/caps.rs"]
mod caps;
#[path = "it/channels.rs"]
mod channels;
#[path = "it/config.rs"]
mod config;
#[path = "it/convoy/launching.rs"]
mod convoy_launching;
#[path = "it/convoy/pictures.rs"]
mod convoy_pictures;
#[path = "it/convoy/staging.rs"]
mod convoy_staging;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/crash/anywhere.rs"]
mod crash_anywhere;
#[path = "it/cron.rs"]
mod cron;
#[path = "it/crowd.rs"]
mod crowd;
#[path = "it/deleted.rs"]
mod deleted;
#[path = "it/demo.rs"]
mod demo;
#[path = "it/disk.rs"]
mod disk;
#[path = "it/dispatch.rs"]
mod dispatch;
#[path = "it/exec.rs"]
mod exec;
#[path = "it/feeding.rs"]
mod feeding;
#[path = "it/formulas.rs"]
mod formulas;
#[path = "it/full_store.rs"]
mod full_store;
#[path = "it/health.rs"]
mod health;
#[path = "it/import.rs"]
mod import;
#[path = "it/init.rs"]
mod init;
#[path = "it/lazy.rs"]
mod lazy;
#[path = "it/logs.rs"]
mod logs;
#[path = "it/merging.rs"]
mod merging;
#[path = "it/missing_programs.rs"]
mod missing_programs;
#[path = "it/moments.rs"]
mod moments;
#[path = "it/promises.rs"]
mod promises;
#[path = "it/recovery.rs"]
mod recovery;
#[path = "it/refinery/mod.rs"]
mod refinery;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/rigs.rs"]
mod rigs;
#[path = "it/seed000.rs"]
mod seed000;
#[path = "it/seed002.rs"]
mod seed002;
#[path = "it/server.rs"]
mod server;
#[path = "it/sessions/table.rs"]
mod sessions_table;
#[path = "it/sessions/talk.rs"]
mod sessions_talk;
#[path = "it/sessions/trouble.rs"]
mod sessions_trouble;
#[path = "it/surface.rs"]
mod surface;
#[path = "it/switches.rs"]
mod switches;
#[path = "it/tutorial.rs"]
mod tutorial;
#[path = "it/unrecorded.rs"]
mod unrecorded;
#[path = "it/upgrade.rs"]
mod upgrade;
#[path = "it/workers.rs"]
mod workers;
