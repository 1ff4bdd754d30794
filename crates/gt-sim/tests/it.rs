//! One integration binary: each module drives one promise of the simulation.

#[path = "it/clocks.rs"]
mod clocks;

#[path = "it/found.rs"]
mod found;

#[path = "it/seeds.rs"]
mod seeds;

#[path = "it/races.rs"]
mod races;

#[path = "it/fuzz.rs"]
mod fuzz;
