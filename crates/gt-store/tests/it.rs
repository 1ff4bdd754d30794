//! The store's tests: verbs, readiness, import. One binary, real SQLite, in memory or in a temporary directory.

#[path = "it/exercise/claims.rs"]
mod claims;
#[path = "it/exercise/edges.rs"]
mod edges;
#[path = "it/exercise/events.rs"]
mod events;
#[path = "it/exercise.rs"]
mod exercise;
#[path = "it/import.rs"]
mod import;
#[path = "it/import/cycles.rs"]
mod import_cycles;
#[path = "it/exercise/inspection.rs"]
mod inspection;
#[path = "it/exercise/lists.rs"]
mod lists;
#[path = "it/exercise/moves.rs"]
mod moves;
#[path = "it/random.rs"]
mod random;
#[path = "it/exercise/rigs.rs"]
mod rigs;
#[path = "it/schema.rs"]
mod schema;
#[path = "it/semantics.rs"]
mod semantics;
#[path = "it/semantics/time.rs"]
mod semantics_time;
#[path = "it/town.rs"]
mod town;
