//! The stream of opencode (`opencode run --format json`). Each step tells what it alone has used.

use jiff::Timestamp;
use serde_json::Value;

use super::{Fact, Usage, micros, name, number, words};

pub(super) fn facts(line: &Value, at: Timestamp) -> Vec<Fact> {
    let own = match line.get("type").and_then(Value::as_str) {
        Some("step_start" | "text" | "reasoning" | "tool_use") => vec![Fact::Working],
        Some("step_finish") => step(line.get("part").unwrap_or(&Value::Null)),
        Some("error") => vec![Fact::Failed(words::failure(&error_words(line), at))],
        _ => return Vec::new(),
    };
    name(line, "sessionID").map(Fact::Conversation).into_iter().chain(own).collect()
}

/// A step after which it calls tools is followed by another.
fn step(part: &Value) -> Vec<Fact> {
    let is_last = part.get("reason").and_then(Value::as_str) == Some("stop");
    let used = name(part, "id").map(|id| Fact::Step(id, usage(part)));
    used.into_iter().chain([if is_last { Fact::TurnOver } else { Fact::Working }]).collect()
}

fn usage(part: &Value) -> Usage {
    let tokens = part.get("tokens").unwrap_or(&Value::Null);
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    let cached = number(cache, "read");
    let fresh = number(tokens, "input").saturating_add(number(cache, "write"));
    Usage {
        tokens_in: fresh.saturating_add(cached),
        tokens_out: number(tokens, "output").saturating_add(number(tokens, "reasoning")),
        tokens_cached: cached,
        cost_micros: micros(part, "cost"),
    }
}

fn error_words(line: &Value) -> String {
    let error = line.get("error").unwrap_or(&Value::Null);
    let data = error.get("data").unwrap_or(&Value::Null);
    let message = data.get("message").or_else(|| error.get("message")).and_then(Value::as_str);
    let name = error.get("name").and_then(Value::as_str).unwrap_or("it failed");
    let status = data.get("statusCode").and_then(Value::as_u64).map(|code| format!(" ({code})")).unwrap_or_default();
    format!("{}{status}", message.unwrap_or(name))
}
