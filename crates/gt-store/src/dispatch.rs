//! Dispatch as the store remembers it: contexts, claims, runs, polecats, holds. (docs/decisions/0004)
//!
//! Each verb is one transaction. What may start is decided by `gt_core::plan`; starting it is the engine's.

pub(crate) mod alarms;
pub(crate) mod check;
pub(crate) mod claim;
pub(crate) mod contexts;
pub(crate) mod convoys;
pub(crate) mod deacon;
pub(crate) mod feed;
pub(crate) mod hooks;
pub(crate) mod landing;
pub(crate) mod merges;
pub(crate) mod outlook;
pub(crate) mod polecats;
pub(crate) mod records;
pub(crate) mod reports;
pub(crate) mod runs;
pub(crate) mod scene;
pub(crate) mod scheduler;
pub(crate) mod sling;
pub(crate) mod staging;
pub(crate) mod steps;
pub(crate) mod tellings;
pub(crate) mod troubles;
pub(crate) mod unfinished;
pub(crate) mod witness;
