//! Every target. A new one is a file here, its two lines below, and a folder of stored inputs.

mod agent_events;
mod config;
mod exec;
mod fields;
mod formula;
mod jsonl;
mod keeper;
mod output;
mod session_names;
mod units;
mod words;

use super::Target;

/// In the order in which they are searched.
pub const ALL: &[Target] = &[
    agent_events::TARGET,
    config::TARGET,
    exec::TARGET,
    fields::TARGET,
    formula::TARGET,
    jsonl::TARGET,
    keeper::TARGET,
    output::TARGET,
    session_names::TARGET,
    units::TARGET,
    words::TARGET,
];
