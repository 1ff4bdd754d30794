//! The record that an agent on a screen keeps of its own conversation, a file whose place its hooks tell.
//!
//! Hooks say what the agent does; this says what they do not: what it has used, and of Codex that its turn has failed.

use jiff::Timestamp;
use serde_json::Value;

use super::{Fact, Vendor, claude, codex, words};

/// What a line says, and when it was written.
pub(super) fn facts(vendor: Vendor, line: &Value, now: Timestamp) -> (Vec<Fact>, Timestamp) {
    let at = line.get("timestamp").and_then(Value::as_str).and_then(crate::time::parse).unwrap_or(now);
    let facts = match vendor {
        Vendor::Claude => claude::step(line),
        Vendor::Codex => line.get("payload").map(|payload| codex_facts(payload, at)).unwrap_or_default(),
        Vendor::Gemini | Vendor::Opencode => Vec::new(),
    };
    (facts, at)
}

fn codex_facts(payload: &Value, at: Timestamp) -> Vec<Fact> {
    match payload.get("type").and_then(Value::as_str) {
        Some("token_count") => {
            let total = payload.get("info").and_then(|info| info.get("total_token_usage"));
            total.map(|total| Fact::Total(codex::usage(total))).into_iter().collect()
        }
        // A turn that ends well is told by a hook.
        Some("task_complete") => {
            let said = payload.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
            said.map(|said| Fact::Failed(words::failure(said, at))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
