//! One integration binary: each module drives one promise of the simulation.

#[path = "it/clocks.rs"]
mod clocks;

#[path = "it/config.rs"]
mod config;
#[path = "it/failing_store.rs"]
mod failing_store;

#[path = "it/found.rs"]
mod found;

#[path = "it/guards.rs"]
mod guards;

#[path = "it/seeds.rs"]
mod seeds;

#[path = "it/races.rs"]
mod races;

#[path = "it/fuzz.rs"]
mod fuzz;

#[path = "it/git.rs"]
mod git;
