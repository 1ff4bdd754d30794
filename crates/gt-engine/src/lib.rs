//! The town: finding and making it, its config, rigs, imports and health.
//!
//! Verbs that need more than the store (files, git, other programs) live here; what they decide on comes from
//! `gt-core`, what they remember goes through `gt-store`. Nothing here prints.

pub mod config;
pub mod doctor;
mod error;
pub mod git;
pub mod intake;
pub mod rigs;
mod town;
pub mod whole_file;

pub use error::{TownError, chain, unwritten, without_temporary_name};
pub use town::{CONFIG_FILE, Init, Town};
