//! A bead's status and type words, and which of them mean what.
//!
//! Unknown words are kept as they are (a real file may hold any), so nothing here can fail.

use std::fmt;

/// Where a bead is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    Open,
    InProgress,
    Hooked,
    Blocked,
    Deferred,
    Pinned,
    Closed,
    Tombstone,
    /// Any other word; counts as active.
    Custom(String),
}

impl Status {
    /// The statuses a person can give a bead by name, in the order they are shown.
    pub const NAMED: [Status; 8] = [
        Status::Open,
        Status::InProgress,
        Status::Hooked,
        Status::Blocked,
        Status::Deferred,
        Status::Pinned,
        Status::Closed,
        Status::Tombstone,
    ];

    pub fn parse(word: &str) -> Status {
        match word {
            "open" => Status::Open,
            "in_progress" => Status::InProgress,
            "hooked" => Status::Hooked,
            "blocked" => Status::Blocked,
            "deferred" => Status::Deferred,
            "pinned" => Status::Pinned,
            "closed" => Status::Closed,
            "tombstone" => Status::Tombstone,
            other => Status::Custom(other.to_owned()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Status::Open => "open",
            Status::InProgress => "in_progress",
            Status::Hooked => "hooked",
            Status::Blocked => "blocked",
            Status::Deferred => "deferred",
            Status::Pinned => "pinned",
            Status::Closed => "closed",
            Status::Tombstone => "tombstone",
            Status::Custom(word) => word,
        }
    }

    /// Whether the bead no longer holds anything back. Pinning acts like closing.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Status::Closed | Status::Pinned | Status::Tombstone)
    }

    pub fn is_active(&self) -> bool {
        !self.is_terminal()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Types a person may give a bead.
pub const TYPES: [&str; 12] = [
    "task",
    "bug",
    "feature",
    "chore",
    "epic",
    "decision",
    "spike",
    "story",
    "milestone",
    "message",
    "molecule",
    "gate",
];

/// Types that keep the books and are never work by themselves. // SPEC B4
const BOOKKEEPING: [&str; 9] =
    ["convoy", "event", "merge-request", "gate", "molecule", "message", "agent", "role", "rig"];

/// Types that dispatch takes; a bead without a type is one of them. // SPEC B4
const SLINGABLE: [&str; 4] = ["task", "bug", "feature", "chore"];

pub fn is_bookkeeping(issue_type: Option<&str>) -> bool {
    issue_type.is_some_and(|word| BOOKKEEPING.contains(&word))
}

pub fn is_slingable(issue_type: Option<&str>) -> bool {
    issue_type.is_none_or(|word| SLINGABLE.contains(&word))
}

/// The full word for a short spelling that people use.
pub fn unalias_type(word: &str) -> &str {
    match word {
        "enhancement" | "feat" => "feature",
        "dec" | "adr" => "decision",
        other => other,
    }
}

#[cfg(test)]
mod tests;
