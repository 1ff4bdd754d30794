//! Why a job is not taken, changed or run: one sentence each, and what to type instead.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadJob {
    #[error("`{name}` cannot name a job: {why}")]
    Name { name: String, why: &'static str },
    #[error("there is already a job `{name}`")]
    Exists { name: String },
    #[error("the job `{name}` would never run: {why}")]
    NeverRuns { name: String, why: String },
    /// One that is known, and has no time to come.
    #[error("the job `{name}` would never run: {why}")]
    NoneLeft { name: String, why: String, is_once: bool },
    #[error("the job `{name}` runs right now")]
    Runs { name: String },
    #[error("the agent `{agent}` is busy")]
    AgentBusy { agent: String },
    #[error("`{name}` is a heartbeat, which the config makes")]
    IsHeartbeat { name: String },
}

impl BadJob {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            BadJob::Name { .. } => "for example `nightly-report`".to_owned(),
            BadJob::Exists { name } => format!(
                "see it with `gt cron show {name}`, change it with `gt cron edit {name}`, or choose another name"
            ),
            BadJob::NeverRuns { .. } => "look first with `gt cron next EXPR --tz ZONE`".to_owned(),
            BadJob::NoneLeft { name, is_once: true, .. } => format!(
                "give it another time with `gt cron edit {name} --at TIME`, or run it now with `gt cron run {name}`"
            ),
            BadJob::NoneLeft { name, .. } => format!("give it another schedule with `gt cron edit {name} --cron EXPR`"),
            BadJob::Runs { name } => format!("see it with `gt cron runs {name}`"),
            BadJob::AgentBusy { .. } => "see `gt status`, and try again when it is done".to_owned(),
            BadJob::IsHeartbeat { .. } => {
                "see `gt heartbeat --help`; change it with `gt config set heartbeat.…`".to_owned()
            }
        }
    }
}
