//! The engine's tests from outside: towns in directories of their own, with real git.

#[path = "it/merging.rs"]
mod merging;
#[path = "it/requests.rs"]
mod requests;
#[path = "it/yard.rs"]
mod yard;
