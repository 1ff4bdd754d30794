//! Headless agents as processes of this machine, kept by one keeper per town.
//!
//! The keeper ([`keep`]) is the parent of all agents and outlives whoever asked for them; [`ProcessRuntime`] speaks to
//! it over a socket in the keeper's directory and starts it when it is not there. See `docs/decisions/0004-dispatch.md`.

mod client;
mod door;
pub(crate) mod group;
mod keeper;
pub(crate) mod table;
mod watcher;
pub mod wire;

pub use client::ProcessRuntime;
pub use keeper::{is_file_name, keep};
pub use table::{Entry, parse_stat};
