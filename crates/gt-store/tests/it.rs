//! The store's tests: verbs, readiness, import. One binary, real SQLite, in memory or in a temporary directory.

#[path = "it/exercise.rs"]
mod exercise;
#[path = "it/import.rs"]
mod import;
#[path = "it/random.rs"]
mod random;
#[path = "it/schema.rs"]
mod schema;
#[path = "it/semantics.rs"]
mod semantics;
#[path = "it/town.rs"]
mod town;
