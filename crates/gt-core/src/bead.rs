//! A bead: the work item as the whole product sees it.
//!
//! Fields that something decides on are named here; every other field of the beads form stays in `body`,
//! word for word. Reading and writing the JSON forms is `jsonl`'s.

use jiff::Timestamp;

use crate::edge::Edge;
use crate::fields::Fields;
use crate::status::Status;
use crate::time;

/// Priority of a bead that names none.
pub const DEFAULT_PRIORITY: i64 = 2;

/// One work item with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bead {
    pub id: String,
    pub title: String,
    pub status: Status,
    /// 0 is the most urgent, 4 the least.
    pub priority: i64,
    /// `None` counts as a task.
    pub issue_type: Option<String>,
    pub assignee: Option<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub defer_until: Option<Timestamp>,
    /// Binds the bead to a rig, whatever its prefix says.
    pub rig: Option<String>,
    pub labels: Vec<String>,
    pub edges: Vec<Edge>,
    /// Each comment as its JSON object.
    pub comments: Vec<Fields>,
    /// Every other field, verbatim; also the original spelling of a time that we would write differently.
    pub body: Fields,
}

impl Bead {
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Bead {
        Bead {
            id: id.into(),
            title: title.into(),
            status: Status::Open,
            priority: DEFAULT_PRIORITY,
            issue_type: None,
            assignee: None,
            created_at: None,
            updated_at: None,
            closed_at: None,
            defer_until: None,
            rig: None,
            labels: Vec::new(),
            edges: Vec::new(),
            comments: Vec::new(),
            body: Fields::default(),
        }
    }

    /// The type, with `task` for a bead that names none.
    pub fn type_word(&self) -> &str {
        self.issue_type.as_deref().unwrap_or("task")
    }

    /// Whether the bead's work has reached its target branch. // SPEC B3, merge-blocks
    ///
    /// Beads has no field for it: its refinery closes with a reason that starts with "Merged in ".
    pub fn is_merged(&self) -> bool {
        self.status == Status::Closed
            && (self.body.get("merged_at").is_some_and(|raw| raw.get() != "null")
                || self.body.text("close_reason").is_some_and(|reason| reason.starts_with("Merged in ")))
    }

    /// Whether somebody keeps the bead out of the flow of work.
    pub fn is_pinned(&self) -> bool {
        self.flag("pinned")
    }

    /// Whether the bead is a short-lived record rather than work; older files say `wisp`.
    pub fn is_wisp(&self) -> bool {
        self.flag("ephemeral") || self.flag("wisp")
    }

    fn flag(&self, name: &str) -> bool {
        self.body.get(name).is_some_and(|raw| raw.get() == "true")
    }

    pub fn set_flag(&mut self, name: &str, on: bool) {
        if on {
            return self.body.put(name, &true);
        }
        self.body.remove(name);
        if name == "ephemeral" {
            self.body.remove("wisp");
        }
    }

    /// Moves the bead to another status and keeps the fields that follow from it in step.
    pub fn set_status(&mut self, status: Status, now: Timestamp) {
        if self.status == Status::Closed && status != Status::Closed {
            self.closed_at = None;
            for field in ["close_reason", "closed_by_session", "merged_at"] {
                self.body.remove(field);
            }
        }
        if status == Status::Closed && self.status != Status::Closed {
            self.closed_at = Some(now);
        }
        if status == Status::InProgress && self.body.get("started_at").is_none() {
            self.body.put("started_at", &time::format(now));
        }
        self.status = status;
    }
}

#[cfg(test)]
mod tests;
