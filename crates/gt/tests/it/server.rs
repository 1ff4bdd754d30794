//! The HTTP server of a real daemon: who may ask, sessions as JSON and as events, chat completions. // SPEC L6, U3

#[path = "server/caller.rs"]
pub(crate) mod caller;

#[path = "server/chat.rs"]
mod chat;
#[path = "server/doors.rs"]
mod doors;
#[path = "server/floods.rs"]
mod floods;
#[path = "server/talking.rs"]
mod talking;
