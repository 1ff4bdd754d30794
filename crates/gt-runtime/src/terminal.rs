//! The terminals of a town: a tmux server of its own, in which the keeper starts runs and into which people can look.
//!
//! Owns what keeper and commands both know (the server's name, how to say something to tmux, how the pane of a run is
//! found) and what commands do with a terminal. Starting and ending runs in it is the keeper's. Nothing here touches the
//! user's own tmux server, and nothing goes by the name of a session: names are for people, runs are found by their id.

mod ask;
mod listing;
mod quote;
mod server;

pub use ask::{Sent, TerminalError, attach_command, capture, is_installed, last_output, send, version};
pub(crate) use listing::{LIST_FORMAT, START_FORMAT};
pub use listing::{Pane, PaneState};
pub use quote::quoted;
pub(crate) use server::KEEPER_SESSION;
pub use server::Server;
