//! Sling contexts: the record of one scheduled bead. // SPEC D1, seed 000 "Context Fields"
//!
//! The fields, how they read as JSON, and why a context closes. Where they are kept is the store's business.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bead::Bead;
use crate::edge::{Edge, EdgeType};
use crate::status::Status;
use crate::time;

pub const LABEL: &str = "gt:sling-context";
pub const VERSION: u32 = 1;
const TITLE_CHARS_MAX: usize = 200;

/// How the work of a bead was asked to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SlingFields {
    pub version: u32,
    pub work_bead_id: String,
    pub target_rig: String,
    /// None named, and not raw: its rig's default, as it is when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// `key=value`, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vars: Option<String>,
    pub enqueued_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convoy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub no_merge: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub hook_raw_bead: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub owned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Asked for by `gt queue`: where the scheduler has no cap, the queue's limits hold.
    #[serde(skip_serializing_if = "is_false")]
    pub queued: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub dispatch_failures: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The lines of a context's variables, blank ones left out.
pub fn split_vars(vars: &str) -> impl Iterator<Item = &str> {
    vars.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Where a context is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextState {
    Open,
    /// A run has it and is being started.
    Claimed,
    Closed,
}

impl ContextState {
    pub fn as_str(self) -> &'static str {
        match self {
            ContextState::Open => "open",
            ContextState::Claimed => "claimed",
            ContextState::Closed => "closed",
        }
    }

    pub fn parse(word: &str) -> Option<ContextState> {
        [ContextState::Open, ContextState::Claimed, ContextState::Closed]
            .into_iter()
            .find(|state| state.as_str() == word)
    }

    /// The status under which it shows as a bead.
    pub fn status(self) -> Status {
        match self {
            ContextState::Open => Status::Open,
            ContextState::Claimed => Status::Hooked,
            ContextState::Closed => Status::Closed,
        }
    }
}

/// Why a context closes. // SPEC D7
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    Dispatched,
    CircuitBroken,
    Cleared,
    InvalidContext,
    StaleWorkBead,
}

impl CloseReason {
    pub const ALL: [CloseReason; 5] = [
        CloseReason::Dispatched,
        CloseReason::CircuitBroken,
        CloseReason::Cleared,
        CloseReason::InvalidContext,
        CloseReason::StaleWorkBead,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            CloseReason::Dispatched => "dispatched",
            CloseReason::CircuitBroken => "circuit-broken",
            CloseReason::Cleared => "cleared",
            CloseReason::InvalidContext => "invalid-context",
            CloseReason::StaleWorkBead => "stale-work-bead",
        }
    }
}

/// A context as a reader of beads sees it: ephemeral, labelled, tracking its work.
#[derive(Debug, Clone)]
pub struct ContextBead<'a> {
    pub id: &'a str,
    pub work_title: &'a str,
    pub state: ContextState,
    pub fields: &'a SlingFields,
    pub enqueued_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub close_reason: Option<&'a str>,
}

impl ContextBead<'_> {
    pub fn to_bead(&self) -> Bead {
        let title: String = format!("sling-context: {}", self.work_title).chars().take(TITLE_CHARS_MAX).collect();
        let mut bead = Bead::new(self.id, title);
        bead.issue_type = Some("task".to_owned());
        bead.status = self.state.status();
        bead.rig = Some(self.fields.target_rig.clone());
        bead.created_at = Some(self.enqueued_at);
        bead.updated_at = Some(self.closed_at.unwrap_or(self.enqueued_at));
        bead.closed_at = self.closed_at;
        bead.labels = vec![LABEL.to_owned()];
        bead.edges = vec![Edge::new(&self.fields.work_bead_id, EdgeType::parse("tracks"))];
        bead.set_flag("ephemeral", true);
        bead.body.put("description", &json(self.fields));
        if let Some(reason) = self.close_reason {
            bead.body.put("close_reason", reason);
        }
        bead
    }
}

/// The fields as they are stored and shown.
pub fn json(fields: &SlingFields) -> String {
    serde_json::to_string(fields).expect("texts and numbers always have a JSON form")
}

/// Reads stored fields; the error says what is wrong with them.
pub fn parse(text: &str) -> Result<SlingFields, String> {
    let fields: SlingFields = serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
    if fields.version != VERSION {
        return Err(format!("its version is {}, and this gt knows {VERSION}", fields.version));
    }
    if fields.work_bead_id.is_empty() || fields.target_rig.is_empty() {
        return Err("it names no bead or no rig".to_owned());
    }
    if time::parse(&fields.enqueued_at).is_none() {
        return Err("it does not say when it was made".to_owned());
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
