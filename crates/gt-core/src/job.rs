//! Jobs: work that the clock brings. What becomes of each slot, when a failure is tried again, when a job is given up.
//! // SPEC K1–K4
//!
//! A *slot* is a time at which a job is to run; a *fire* is what became of it. Owns the rules, in values; expressions are
//! `cron`, remembering jobs is the store's, running them a turn like any other.

mod refusal;
mod slots;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::refusal::BadJob;
pub use self::slots::{Backlog, CATCH_UP_MAX, Fate, RECORDS_MAX, Watch, fates};
use crate::agent::FailureClass;
use crate::cron::Expr;
use crate::run::Outcome;
use crate::text::misleads;

/// Longest name of a job.
pub const NAME_CHARS_MAX: usize = 100;
/// Shortest distance between two slots.
pub const EVERY_MIN: SignedDuration = SignedDuration::from_secs(1);
/// Longest, so that no sum of times overflows.
pub const EVERY_MAX: SignedDuration = SignedDuration::from_hours(24 * 3660);
/// What a clock that was set back may be behind what is known to have fired; a clock further back was wrong before.
pub const SET_BACK_MAX: SignedDuration = SignedDuration::from_hours(3);

/// When a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Once.
    At(Timestamp),
    /// At a fixed distance, counted from `anchor` however late a run was.
    Every {
        span: SignedDuration,
        anchor: Timestamp,
    },
    Cron(Expr),
    /// One that is stored, and that nobody can read: it has no slots.
    Broken {
        kind: String,
        text: String,
    },
}

impl Schedule {
    /// The word for its kind.
    pub fn kind(&self) -> &str {
        match self {
            Schedule::At(_) => "at",
            Schedule::Every { .. } => "every",
            Schedule::Cron(_) => "cron",
            Schedule::Broken { kind, .. } => kind,
        }
    }

    /// Reads what the store keeps: the kind, its text, and where counting begins.
    pub fn parse(kind: &str, text: &str, anchor: Timestamp) -> Schedule {
        let known = match kind {
            "at" => text.parse().map(Schedule::At).ok(),
            "every" => text.parse().ok().and_then(|span| every(SignedDuration::from_micros(span), anchor).ok()),
            "cron" => Expr::parse(text).map(Schedule::Cron).ok(),
            _ => None,
        };
        known.unwrap_or_else(|| Schedule::Broken { kind: kind.to_owned(), text: text.to_owned() })
    }

    /// What the store keeps of it, besides its kind.
    pub fn text(&self) -> String {
        match self {
            Schedule::At(at) => at.to_string(),
            Schedule::Every { span, .. } => span.as_micros().to_string(),
            Schedule::Cron(expr) => expr.to_string(),
            Schedule::Broken { text, .. } => text.clone(),
        }
    }

    /// How a person would say it.
    pub fn words(&self) -> String {
        match self {
            Schedule::Every { span, .. } => format!("{span:#}"),
            other => other.text(),
        }
    }

    /// The first slot after a time.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Schedule::At(at) => Some(*at).filter(|at| *at > after),
            Schedule::Every { span, anchor } => next_of(*span, *anchor, after),
            Schedule::Cron(expr) => expr.next(after, zone),
            Schedule::Broken { .. } => None,
        }
    }
}

/// A schedule of fixed distances, if they are sensible.
pub fn every(span: SignedDuration, anchor: Timestamp) -> Result<Schedule, BadSchedule> {
    match span {
        span if span < EVERY_MIN => Err(BadSchedule::TooOften),
        span if span > EVERY_MAX => Err(BadSchedule::TooRare),
        span => Ok(Schedule::Every { span, anchor }),
    }
}

fn next_of(span: SignedDuration, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    // The microsecond in which an instant lies; jiff rounds those before 1970 up.
    let micros = |at: Timestamp| at.as_nanosecond().div_euclid(1_000);
    let (span, anchor, after) = (span.as_micros(), micros(anchor), micros(after));
    // Never at the anchor itself: that is when the job was made.
    let n = ((after - anchor).div_euclid(span) + 1).max(1);
    Timestamp::from_microsecond(i64::try_from(anchor + n * span).ok()?).ok()
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadSchedule {
    #[error("a job runs once a second at the most")]
    TooOften,
    #[error("a job runs once in ten years at the least")]
    TooRare,
}

/// What becomes of slots that came while nobody ran the town. // SPEC K3
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    Skip,
    /// The newest of them runs late, if it is not too late.
    #[default]
    Once,
    /// They run one after another.
    All,
}

impl Missed {
    pub const ALL: [Missed; 3] = [Missed::Skip, Missed::Once, Missed::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Missed::Skip => "skip",
            Missed::Once => "once",
            Missed::All => "all",
        }
    }

    pub fn parse(word: &str) -> Option<Missed> {
        Missed::ALL.into_iter().find(|missed| missed.as_str() == word)
    }
}

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    Active,
    /// Somebody has paused it.
    Paused,
    /// It has failed too often, or can never run again.
    Disabled,
}

impl JobState {
    pub const ALL: [JobState; 3] = [JobState::Active, JobState::Paused, JobState::Disabled];

    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Active => "active",
            JobState::Paused => "paused",
            JobState::Disabled => "disabled",
        }
    }

    pub fn parse(word: &str) -> Option<JobState> {
        JobState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// What became of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FireStatus {
    /// It waits for its lane, runs, or waits to be tried again.
    Running,
    Ok,
    Failed,
    Timeout,
    Cancelled,
    Missed,
    Skipped,
}

impl FireStatus {
    pub const ALL: [FireStatus; 7] = [
        FireStatus::Running,
        FireStatus::Ok,
        FireStatus::Failed,
        FireStatus::Timeout,
        FireStatus::Cancelled,
        FireStatus::Missed,
        FireStatus::Skipped,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FireStatus::Running => "running",
            FireStatus::Ok => "ok",
            FireStatus::Failed => "failed",
            FireStatus::Timeout => "timeout",
            FireStatus::Cancelled => "cancelled",
            FireStatus::Missed => "missed",
            FireStatus::Skipped => "skipped",
        }
    }

    pub fn parse(word: &str) -> Option<FireStatus> {
        FireStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the job has done badly.
    pub fn is_failure(self) -> bool {
        matches!(self, FireStatus::Failed | FireStatus::Timeout)
    }
}

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Asks an agent; in a session of the job's own, or in this one.
    Message {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Hands work to agents: the words of `gt sling`.
    Sling { words: Vec<String> },
    /// Runs a command of the shell.
    Run { command: String },
    /// Looks whether something needs attention.
    Heartbeat(Beat),
    /// One that is stored, and that nobody can read.
    #[serde(skip)]
    Broken(String),
}

/// How a heartbeat is made and judged, as the config says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    pub agent: String,
    /// `last`, `none`, or a channel, perhaps with a recipient: `NAME:WHO`.
    pub target: String,
    pub ack_max_chars: usize,
    /// The hours in which it may be, as the config has them: what was put off because of others is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
    /// The channels that there are: what is for any other would reach nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// What a turn starts instead of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Shell(String),
    /// This very program, with these words.
    Gt(Vec<String>),
}

impl Payload {
    /// Reads what the store keeps.
    pub fn parse(text: &str) -> Payload {
        serde_json::from_str(text).unwrap_or_else(|_| Payload::Broken(text.to_owned()))
    }

    /// What the store keeps.
    pub fn text(&self) -> String {
        match self {
            Payload::Broken(text) => text.clone(),
            known => serde_json::to_string(known).expect("texts and numbers can be written"),
        }
    }

    /// The word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Payload::Message { .. } => "message",
            Payload::Sling { .. } => "sling",
            Payload::Run { .. } => "run",
            Payload::Heartbeat(_) => "heartbeat",
            Payload::Broken(_) => "unreadable",
        }
    }

    /// What is started for it, where that is no agent.
    pub fn command(&self) -> Option<Command> {
        match self {
            Payload::Message { .. } | Payload::Heartbeat(_) | Payload::Broken(_) => None,
            Payload::Run { command } => Some(Command::Shell(command.clone())),
            Payload::Sling { words } => Some(Command::Gt([&["sling".to_owned()], words.as_slice()].concat())),
        }
    }

    /// What it does, in a line.
    pub fn words(&self) -> String {
        match self {
            Payload::Message { text, .. } | Payload::Broken(text) => text.clone(),
            Payload::Sling { words } => format!("gt sling {}", words.join(" ")),
            Payload::Run { command } => command.clone(),
            Payload::Heartbeat(beat) => format!("heartbeat of {}", beat.agent),
        }
    }
}

/// Why a text cannot name a job.
pub fn flaw_of_name(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match name {
        "" => Some("it is empty"),
        name if name.chars().count() > NAME_CHARS_MAX => Some("it is longer than 100 characters"),
        name if name.contains(misleads) || !name.chars().all(is_plain) => {
            Some("it may hold letters, digits, `-`, `_` and `.` only")
        }
        name if !name.starts_with(char::is_alphanumeric) => Some("it must begin with a letter or a digit"),
        name if is_id(name) => Some("it looks like the id of a job"),
        _ => None,
    }
}

/// Whether a word is the id of a job: `job-12`.
pub fn is_id(word: &str) -> bool {
    word.strip_prefix("job-").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// How an attempt went wrong, as far as it matters for trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setback {
    /// How its run ended; `None`: it never ran.
    pub outcome: Option<Outcome>,
    pub class: Option<FailureClass>,
    pub exit_code: Option<i32>,
    /// Whether what ran was our own program, whose exit codes say what is wrong.
    pub is_gt: bool,
}

impl Setback {
    /// Whether the same thing, tried again soon, may go better. // SPEC K4
    pub fn is_worth_retrying(&self) -> bool {
        let is_lasting = matches!(self.class, Some(FailureClass::Auth | FailureClass::Billing | FailureClass::Context));
        match self.outcome {
            // Whoever has used up all its time would do so again, and hold up its lane.
            Some(Outcome::TimedOut) if crate::defect!("timeout-tried-again") => true,
            None | Some(Outcome::TimedOut | Outcome::Stopped) => false,
            Some(Outcome::Died | Outcome::Lost) if crate::defect!("killed-attempt-given-up") => false,
            _ if is_lasting => false,
            // Not a program, no such program, used wrongly: that stays so.
            Some(Outcome::Failed) if matches!(self.exit_code, Some(126 | 127)) => false,
            Some(Outcome::Failed) if self.is_gt => !matches!(self.exit_code, Some(1..=3)),
            Some(_) => true,
        }
    }
}

/// How long to wait before try number `n` (the first retry is 0) is made again: `min(2 s × 2^n, 30 s)`, a quarter more or
/// less. `chance` is between 0 and 1. // SPEC K4
pub fn retry_after(n: u32, chance: f64) -> SignedDuration {
    let whole = 2_i64.saturating_mul(1_i64.checked_shl(n).filter(|n| *n > 0).unwrap_or(i64::MAX)).min(30);
    let factor = 0.75 + 0.5 * chance.clamp(0.0, 1.0);
    SignedDuration::from_micros((whole as f64 * 1_000_000.0 * factor).round() as i64)
}

/// A number between 0 and 1 that differs from job to job and try to try, and is the same whenever it is asked for.
pub fn chance(job: i64, slot: Timestamp, attempt: i64) -> f64 {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = rustc_hash::FxHasher::default();
    (job, slot.as_microsecond(), attempt, 0x9e37_79b9_u32).hash(&mut hasher);
    // The upper bits are the better ones.
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
