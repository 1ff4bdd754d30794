//! What should happen: beads, dependencies, readiness, ids, the plan, reasons.
//!
//! Nothing here reads a clock, a file, a database or an environment variable: time and randomness are
//! arguments, answers are values. Everything that decides lives here; remembering is `gt-store`'s.

pub mod agent;
pub mod bead;
pub mod context;
pub mod convoy;
pub mod cron;
pub mod cycle;
pub mod defect;
pub mod edge;
pub mod event;
pub mod explain;
pub mod fields;
pub mod formula;
pub mod heartbeat;
pub mod id;
pub mod job;
pub mod jsonl;
pub mod lane;
pub mod merge;
pub mod names;
pub mod near;
pub mod notice;
pub mod output;
pub mod plan;
pub mod readiness;
pub mod refusal;
pub mod rig;
pub mod run;
pub mod session;
pub mod status;
pub mod text;
pub mod time;
pub mod when;
pub mod witness;
