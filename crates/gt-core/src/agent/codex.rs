//! The stream of Codex (`codex exec --json`). Its usage counts from the beginning of the thread.

use jiff::Timestamp;
use serde_json::Value;

use super::reply::paragraph;
use super::{Fact, Usage, name, number, words};

pub(super) fn facts(line: &Value, at: Timestamp) -> Vec<Fact> {
    let item = |fact: fn(String) -> Fact| {
        let item = line.get("item").filter(|item| item.get("type").and_then(Value::as_str) != Some("error"))?;
        name(item, "id").map(fact)
    };
    match line.get("type").and_then(Value::as_str) {
        Some("thread.started") => {
            name(line, "thread_id").map(Fact::Conversation).into_iter().chain([Fact::Working]).collect()
        }
        Some("turn.started" | "item.updated") => vec![Fact::Working],
        Some("item.started") => [Fact::Working].into_iter().chain(item(Fact::ToolOpened)).collect(),
        // An item that is an error is a warning: what fails ends the turn.
        Some("item.completed") => {
            item(Fact::ToolClosed).into_iter().flat_map(|closed| [Fact::Working, closed]).chain(message(line)).collect()
        }
        Some("turn.completed") => vec![Fact::Total(line.get("usage").map(usage).unwrap_or_default()), Fact::TurnOver],
        Some("turn.failed") => vec![Fact::Failed(words::failure(error_words(line), at))],
        Some("error") => vec![Fact::Failing(words::failure(error_words(line), at))],
        _ => Vec::new(),
    }
}

/// The last message that it writes is its reply.
fn message(line: &Value) -> impl Iterator<Item = Fact> {
    let item = line.get("item").filter(|item| item.get("type").and_then(Value::as_str) == Some("agent_message"));
    let said = item.and_then(|item| paragraph(item, "text"));
    said.into_iter().flat_map(|said| [Fact::SaidAll, said])
}

fn error_words(line: &Value) -> &str {
    let inner = line.get("error").and_then(|error| error.get("message")).or_else(|| line.get("message"));
    inner.and_then(Value::as_str).unwrap_or("it failed")
}

pub(super) fn usage(usage: &Value) -> Usage {
    Usage {
        tokens_in: number(usage, "input_tokens"),
        tokens_out: number(usage, "output_tokens"),
        tokens_cached: number(usage, "cached_input_tokens"),
        cost_micros: 0,
    }
}
