//! The binary as its users meet it: real processes, real git, real files. One test binary.

#[path = "it/town.rs"]
mod town;

#[path = "it/beads.rs"]
mod beads;
#[path = "it/config.rs"]
mod config;
#[path = "it/crowd.rs"]
mod crowd;
#[path = "it/disk.rs"]
mod disk;
#[path = "it/health.rs"]
mod health;
#[path = "it/import.rs"]
mod import;
#[path = "it/init.rs"]
mod init;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/rigs.rs"]
mod rigs;
#[path = "it/surface.rs"]
mod surface;
