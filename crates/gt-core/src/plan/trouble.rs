//! Trouble: what is nobody's fault and passes. What it is with, how long it holds, and how it is said. // SPEC D5

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::text::one_line;
use crate::time;

/// Something that is nobody's fault and passes: a missing tool, a rate limit, a full disk. // SPEC D5
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub until: Timestamp,
    pub reason: String,
}

/// What the trouble is with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleOf {
    Town,
    Agent(String),
    /// The program of an agent, which is missing.
    Program(String),
    Rig(String),
}

impl TroubleOf {
    /// As it is stored.
    pub fn key(&self) -> String {
        match self {
            TroubleOf::Town => String::new(),
            TroubleOf::Agent(name) => format!("agent {name}"),
            TroubleOf::Program(agent) => format!("program {agent}"),
            TroubleOf::Rig(name) => format!("rig {name}"),
        }
    }

    pub fn parse(key: &str) -> TroubleOf {
        match key.split_once(' ') {
            Some(("agent", name)) => TroubleOf::Agent(name.to_owned()),
            Some(("program", agent)) => TroubleOf::Program(agent.to_owned()),
            Some(("rig", name)) => TroubleOf::Rig(name.to_owned()),
            _ => TroubleOf::Town,
        }
    }

    /// How long nothing is tried after so many tries in a row that were in vain: each time twice as long. // SPEC D5
    pub fn hold(&self, tries: i64) -> SignedDuration {
        let first = match self {
            TroubleOf::Program(_) => SignedDuration::from_mins(1),
            TroubleOf::Town | TroubleOf::Agent(_) | TroubleOf::Rig(_) => SignedDuration::from_secs(30),
        };
        let doublings = u32::try_from(tries - 1).unwrap_or(0).min(10);
        (first * (1 << doublings)).min(LONGEST_HOLD)
    }

    /// What it is in words, for the people who wait for it.
    pub fn sentence(&self, trouble: &Trouble, now: Timestamp) -> String {
        let (when, why) = (time::until(trouble.until, now), one_line(&trouble.reason));
        let what = match self {
            // The reason names the agent.
            TroubleOf::Program(_) => String::new(),
            of => format!("{of} is held up: "),
        };
        format!("{what}{why}; next try {when}, or at once with `gt scheduler resume`")
    }
}

impl fmt::Display for TroubleOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TroubleOf::Town => f.write_str("dispatch"),
            TroubleOf::Agent(name) => write!(f, "agent `{}`", one_line(name)),
            TroubleOf::Program(agent) => write!(f, "the program of agent `{}`", one_line(agent)),
            TroubleOf::Rig(name) => write!(f, "rig {name}"),
        }
    }
}

/// A trouble whose time has come, and that may not be over: one start is tried for all that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// How often in a row it was tried in vain.
    pub tries: i64,
    pub reason: String,
}

impl Trial {
    /// How the others are held while one is tried.
    pub fn hold(&self, of: &TroubleOf, now: Timestamp) -> Trouble {
        Trouble { until: now + of.hold(self.tries + 1), reason: self.reason.clone() }
    }
}

/// The longest time after which something that is missing is looked for again.
pub const LONGEST_HOLD: SignedDuration = SignedDuration::from_mins(15);

/// Something without which a start would be in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub of: TroubleOf,
    pub reason: String,
}

/// What is held up when an agent reaches a limit: the account that a sling named, else the agent with all its accounts.
pub fn account_of(agent: &str, account: Option<&str>) -> String {
    account.map_or_else(|| agent.to_owned(), |account| format!("{agent}@{account}"))
}
