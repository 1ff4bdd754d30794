//! What a hook of an agent is called with, and the line that is kept of it.
//!
//! Agents hand their hooks whole tool inputs and answers; of those only the few short fields are kept that say what the
//! agent does. The vendors' hooks are of one shape; where their names differ they do not clash.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::claude::named_failure;
use super::{Fact, Failure, Need, Vendor, message, name, text, words};

/// The fields that are kept.
const KEPT: [&str; 13] = [
    "hook_event_name",
    "type",
    "session_id",
    "thread-id",
    "tool_name",
    "tool_use_id",
    "notification_type",
    "error",
    "error_details",
    "last_assistant_message",
    "reason",
    "source",
    "agent_id",
];

/// Longest path that is kept.
const PATH_BYTES_MAX: usize = 1024;

/// One call of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub vendor: Vendor,
    pub at: Timestamp,
    fields: Map<String, Value>,
}

/// Reads what a hook was called with; `None`: it is none that we know the shape of.
pub fn read_hook(vendor: Vendor, given: &str, at: Timestamp) -> Option<Hook> {
    let Ok(Value::Object(given)) = serde_json::from_str::<Value>(given) else { return None };
    let kept =
        |key: &&str| given.get(*key).and_then(Value::as_str).map(|text| ((*key).to_owned(), json!(message(text))));
    let mut fields: Map<String, Value> = KEPT.iter().filter_map(kept).collect();
    if let Some(path) = record(&given) {
        fields.insert("transcript_path".to_owned(), json!(path));
    }
    let n_background = given.get("background_tasks").and_then(Value::as_array).map_or(0, Vec::len);
    if n_background > 0 {
        fields.insert("background".to_owned(), json!(n_background));
    }
    let hook = Hook { vendor, at, fields };
    (!hook.event().is_empty()).then_some(hook)
}

/// Where the agent keeps its record, as it tells when a conversation begins.
fn record(given: &Map<String, Value>) -> Option<&str> {
    let begins = given.get("hook_event_name").and_then(Value::as_str) == Some("SessionStart");
    let path = given.get("transcript_path").filter(|_| begins)?.as_str()?;
    (path.starts_with('/') && path.len() <= PATH_BYTES_MAX).then_some(path)
}

impl Hook {
    /// The file in which the agent itself records the conversation that begins here.
    pub fn record(&self) -> Option<&str> {
        self.fields.get("transcript_path").and_then(Value::as_str)
    }

    /// The line that is kept.
    pub fn to_line(&self) -> String {
        json!({ "at": crate::time::format(self.at), "vendor": self.vendor.as_str(), "hook": self.fields }).to_string()
    }

    /// Reads a line that was kept.
    pub fn parse(line: &str) -> Option<Hook> {
        let Ok(Value::Object(mut line)) = serde_json::from_str::<Value>(line) else { return None };
        let vendor = Vendor::parse(line.get("vendor")?.as_str()?)?;
        let at = crate::time::parse(line.get("at")?.as_str()?)?;
        let Some(Value::Object(fields)) = line.remove("hook") else { return None };
        Some(Hook { vendor, at: crate::time::truncate(at), fields })
    }

    /// Whether somebody should look at it now: it says more than that the agent goes on.
    pub fn decides(&self) -> bool {
        !matches!(self.event(), "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "BeforeTool" | "AfterTool")
            || self.facts().iter().any(|fact| matches!(fact, Fact::Waiting(_)))
    }

    fn event(&self) -> &str {
        let word = |key: &str| self.fields.get(key).and_then(Value::as_str);
        word("hook_event_name").or_else(|| word("type")).unwrap_or_default()
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        let fields = Value::Object(self.fields.clone());
        let conversation = name(&fields, "session_id").or_else(|| name(&fields, "thread-id")).map(Fact::Conversation);
        conversation.into_iter().chain(self.own_facts(&fields)).collect()
    }

    fn own_facts(&self, fields: &Value) -> Vec<Fact> {
        let word = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let tool = |fact: fn(String) -> Fact| name(fields, "tool_use_id").map(fact);
        match self.event() {
            "SessionStart" | "UserPromptSubmit" | "SubagentStart" | "SubagentStop" | "PreCompact" | "PostCompact"
            | "BeforeAgent" | "BeforeModel" | "AfterModel" | "PreCompress" => vec![Fact::Working],
            "PreToolUse" | "BeforeTool" => match word("tool_name") {
                "AskUserQuestion" => vec![Fact::Waiting(Need::Question)],
                "ExitPlanMode" => vec![Fact::Waiting(Need::Approval)],
                _ => [Fact::Working].into_iter().chain(tool(Fact::ToolOpened)).collect(),
            },
            "PostToolUse" | "PostToolUseFailure" | "AfterTool" => {
                [Fact::Working].into_iter().chain(tool(Fact::ToolClosed)).collect()
            }
            "PermissionRequest" => vec![Fact::Waiting(Need::Approval)],
            "Notification" => notification(word("notification_type")).into_iter().collect(),
            // What it left running in the background will wake it again.
            "Stop" if fields.get("background").is_some() => vec![Fact::Working],
            "Stop" | "AfterAgent" | "agent-turn-complete" => vec![Fact::TurnOver],
            "StopFailure" => {
                let said = text(fields, "last_assistant_message").or_else(|| text(fields, "error_details"));
                let said = said.unwrap_or_else(|| "its model refused it".to_owned());
                let until = words::until(&said, self.at);
                vec![Fact::Failed(Failure { until, ..named_failure(fields, "error", &said) })]
            }
            _ => Vec::new(),
        }
    }
}

/// That somebody has been idle for long is no news; and it is said while its helpers still work.
fn notification(kind: &str) -> Option<Fact> {
    match kind {
        "permission_prompt" | "ToolPermission" => Some(Fact::Waiting(Need::Approval)),
        "elicitation_dialog" | "agent_needs_input" => Some(Fact::Waiting(Need::Question)),
        _ => None,
    }
}
