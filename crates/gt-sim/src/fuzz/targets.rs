//! Every target. A new one is a file here, its two lines below, and a folder of stored inputs.

mod agent_events;
mod config;
mod cron;
mod exec;
mod fields;
mod formula;
mod heartbeat;
mod job;
mod jsonl;
mod keeper;
mod output;
mod session_names;
mod units;
mod when;
mod words;

use super::Target;

/// In the order in which they are searched.
pub const ALL: &[Target] = &[
    agent_events::TARGET,
    config::TARGET,
    cron::TARGET,
    exec::TARGET,
    fields::TARGET,
    formula::TARGET,
    heartbeat::TARGET,
    job::TARGET,
    jsonl::TARGET,
    keeper::TARGET,
    output::TARGET,
    session_names::TARGET,
    units::TARGET,
    when::TARGET,
    words::TARGET,
];
