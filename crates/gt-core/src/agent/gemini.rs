//! The stream of Gemini CLI (`-p --output-format stream-json`).

use jiff::Timestamp;
use serde_json::Value;

use super::reply::piece;
use super::{Fact, Usage, name, number, words};

pub(super) fn facts(line: &Value, at: Timestamp) -> Vec<Fact> {
    let word = |key: &str| line.get(key).and_then(Value::as_str);
    let working = |fact: Option<Fact>| [Fact::Working].into_iter().chain(fact).collect();
    match word("type") {
        Some("init") => working(name(line, "session_id").map(Fact::Conversation)),
        Some("message") if word("role") == Some("assistant") => working(piece(line, "content")),
        Some("tool_use") => {
            [Fact::Working, Fact::SaidAll].into_iter().chain(name(line, "tool_id").map(Fact::ToolOpened)).collect()
        }
        Some("tool_result") => working(name(line, "tool_id").map(Fact::ToolClosed)),
        Some("error") if word("severity") != Some("warning") => {
            vec![Fact::Failing(words::failure(word("message").unwrap_or("it failed"), at))]
        }
        Some("result") => result(line, at),
        _ => Vec::new(),
    }
}

fn result(line: &Value, at: Timestamp) -> Vec<Fact> {
    let total = line.get("stats").map(usage).unwrap_or_default();
    let end = if line.get("status").and_then(Value::as_str) == Some("error") {
        let error = line.get("error");
        let word = |key: &str| error.and_then(|error| error.get(key)).and_then(Value::as_str).unwrap_or_default();
        let words = format!("{} {}", word("type"), word("message"));
        let words = if words.trim().is_empty() { "it failed" } else { words.trim() };
        Fact::Failed(words::failure(words, at))
    } else {
        Fact::TurnOver
    };
    vec![Fact::Total(total), end]
}

fn usage(stats: &Value) -> Usage {
    Usage {
        tokens_in: number(stats, "input_tokens"),
        tokens_out: number(stats, "output_tokens"),
        tokens_cached: number(stats, "cached"),
        cost_micros: 0,
    }
}
