//! The stream of opencode (`opencode run --format json`). Each step tells what it alone has used.

use jiff::Timestamp;
use serde_json::Value;

use super::reply::paragraph;
use super::{Fact, Failure, Usage, micros, name, number, words};

pub(super) fn facts(line: &Value, at: Timestamp) -> Vec<Fact> {
    let part = line.get("part").unwrap_or(&Value::Null);
    let own = match line.get("type").and_then(Value::as_str) {
        Some("reasoning") => vec![Fact::Working],
        Some("text") => [Fact::Working].into_iter().chain(paragraph(part, "text")).collect(),
        Some("step_start" | "tool_use") => vec![Fact::Working, Fact::SaidAll],
        Some("step_finish") => step(part),
        Some("error") => vec![Fact::Failed(failure(line, at))],
        _ => return Vec::new(),
    };
    name(line, "sessionID").map(Fact::Conversation).into_iter().chain(own).collect()
}

/// A step after which it calls tools is followed by another.
fn step(part: &Value) -> Vec<Fact> {
    let is_last = part.get("reason").and_then(Value::as_str) == Some("stop");
    let usage = usage(part);
    let used = name(part, "id").map(|id| Fact::Step(id, usage));
    let context = Some(usage.tokens()).filter(|tokens| *tokens > 0).map(Fact::Context);
    used.into_iter().chain(context).chain([if is_last { Fact::TurnOver } else { Fact::Working }]).collect()
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

/// Its status decides, where it tells one.
fn failure(line: &Value, at: Timestamp) -> Failure {
    let error = line.get("error").unwrap_or(&Value::Null);
    let data = error.get("data").unwrap_or(&Value::Null);
    let message = data.get("message").or_else(|| error.get("message")).and_then(Value::as_str);
    let message = message.or_else(|| error.get("name").and_then(Value::as_str)).unwrap_or("it failed");
    let Some(status) = data.get("statusCode").and_then(Value::as_u64) else { return words::failure(message, at) };
    let told = words::failure(&format!("{message} ({status})"), at);
    Failure { class: words::class_of_status(status).unwrap_or(told.class), ..told }
}
