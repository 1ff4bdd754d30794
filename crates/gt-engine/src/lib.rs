//! The town: finding and making it, its config, rigs, imports and health.
//!
//! Verbs that need more than the store (files, git, other programs) live here; what they decide on comes from
//! `gt-core`, what they remember goes through `gt-store`. Nothing here prints.

pub mod agents;
mod backoff;
pub mod channels;
mod clock;
pub mod config;
pub mod crash;
pub mod daemon;
pub mod dispatch;
pub mod doctor;
pub mod done;
mod error;
pub mod formulas;
pub mod git;
pub mod in_force;
pub mod intake;
pub mod jobs;
mod kept_texts;
pub mod lock;
pub mod logs;
pub mod news;
pub mod notify;
pub mod once;
pub mod pace;
pub mod patrol;
pub mod places;
pub mod process_id;
pub mod prompt;
pub mod refinery;
pub mod rigs;
pub mod salvaged;
pub mod settings;
pub mod signs;
pub mod sling;
pub mod surroundings;
pub mod talk;
pub mod tidy;
mod town;
pub mod wait;
pub mod wake;
mod web;
pub mod whole_file;
mod worktrees;

pub use error::{TownError, chain, unwritten, without_temporary_name};
pub use town::{CONFIG_FILE, Init, Town};
