//! The simulated world that tries to break the town, and the fuzzing of what strangers' bytes reach.
//!
//! Everything that decides or remembers is the real thing; what is replaced is what lies around it.

pub mod agents;
pub mod around;
pub mod beats;
pub mod clockwork;
pub mod conversations;
pub mod convoys;
pub mod couriers;
pub mod coverage;
pub mod everything;
pub mod faults;
pub mod fleet;
pub mod fuzz;
pub mod git;
pub mod hunger;
pub mod imports;
pub mod jobs;
pub mod judge;
pub mod knobs;
pub mod letters;
pub mod medium;
pub mod merging;
pub mod model;
pub mod owners;
pub mod part;
pub mod people;
pub mod play;
pub mod processes;
pub mod recipes;
pub mod scenario;
pub mod shortage;
pub mod silence;
pub mod sim;
pub mod stage;
pub mod strand;
pub mod telegram;
pub mod trouble;
pub mod world;
