//! The stream of Claude Code (`-p --output-format stream-json --verbose`).
//!
//! Whether a turn failed is told by `is_error` and `api_error_status`; its `subtype` says `success` all the same. A message
//! is told once for each of its parts, each time with the same usage. What its helpers say (`parent_tool_use_id`) is neither
//! its reply nor in its context. Pieces of parts (`--include-partial-messages`) come beside the whole ones, and are passed over.

use jiff::Timestamp;
use serde_json::Value;

use super::reply::paragraph;
use super::{Fact, Failure, FailureClass, Need, Usage, micros, name, number, text, words};

pub(super) fn facts(line: &Value) -> Vec<Fact> {
    match (line.get("type").and_then(Value::as_str), line.get("subtype").and_then(Value::as_str)) {
        (Some("system"), Some("init")) => conversation(line).into_iter().chain([Fact::Working]).collect(),
        (Some("system"), Some("api_retry")) => retry(line),
        (Some("assistant"), _) => assistant(line),
        (Some("user"), _) => tool_results(line).chain([Fact::Working]).collect(),
        (Some("rate_limit_event"), _) => limit(line),
        (Some("control_request"), _) if asks_for_a_tool(line) => vec![Fact::Waiting(Need::Approval)],
        (Some("result"), _) => result(line),
        _ => Vec::new(),
    }
}

fn conversation(line: &Value) -> Option<Fact> {
    name(line, "session_id").map(Fact::Conversation)
}

/// It tries again by itself; but a login does not mend itself.
fn retry(line: &Value) -> Vec<Fact> {
    let failure = named_failure(line, "error", "its model refuses it, and it tries again");
    vec![if matches!(failure.class, FailureClass::Auth | FailureClass::Billing) {
        Fact::Failed(failure)
    } else {
        Fact::Failing(failure)
    }]
}

/// A failure whose class is a word of its own.
pub(super) fn named_failure(line: &Value, key: &str, otherwise: &str) -> Failure {
    let word = text(line, key).unwrap_or_default();
    let status = number(line, "error_status");
    let class = match word.as_str() {
        "" | "unknown" => words::class_of_status(status).unwrap_or(FailureClass::Other),
        word => words::class_of_code(word),
    };
    let message = if word.is_empty() { otherwise.to_owned() } else { format!("{otherwise} ({word})") };
    Failure { class, message, until: None }
}

fn parts(line: &Value) -> impl Iterator<Item = &Value> {
    let content = line.get("message").and_then(|message| message.get("content"));
    content.and_then(Value::as_array).into_iter().flatten()
}

fn is_part(part: &Value, kind: &str) -> bool {
    part.get("type").and_then(Value::as_str) == Some(kind)
}

fn assistant(line: &Value) -> Vec<Fact> {
    if line.get("error").is_some_and(Value::is_string) {
        let words = parts(line).find_map(|part| text(part, "text"));
        let failure = named_failure(line, "error", words.as_deref().unwrap_or("its model refused it"));
        return vec![Fact::Failing(failure)];
    }
    let mut facts = vec![Fact::Working];
    for part in parts(line) {
        if is_part(part, "tool_use") {
            facts.extend(name(part, "id").map(Fact::ToolOpened));
        }
        if !is_helpers(line) {
            facts.extend(words_of(part));
        }
    }
    facts.extend(step(line));
    facts
}

/// What a part adds to the reply.
fn words_of(part: &Value) -> Option<Fact> {
    match part.get("type").and_then(Value::as_str) {
        Some("text") => paragraph(part, "text"),
        Some("tool_use") => Some(Fact::SaidAll),
        _ => None,
    }
}

fn is_helpers(line: &Value) -> bool {
    line.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null())
}

/// What one message of the model has used.
pub(super) fn step(line: &Value) -> Vec<Fact> {
    let Some(message) = line.get("message") else { return Vec::new() };
    let Some((id, usage)) = name(message, "id").zip(message.get("usage").map(usage)) else { return Vec::new() };
    let context = Some(usage.tokens()).filter(|tokens| *tokens > 0 && !is_helpers(line)).map(Fact::Context);
    [Fact::Step(id, usage)].into_iter().chain(context).collect()
}

fn tool_results(line: &Value) -> impl Iterator<Item = Fact> {
    let results = parts(line).filter(|part| is_part(part, "tool_result"));
    results.filter_map(|part| name(part, "tool_use_id")).map(Fact::ToolClosed)
}

fn limit(line: &Value) -> Vec<Fact> {
    let Some(info) = line.get("rate_limit_info") else { return Vec::new() };
    let is_rejected = info.get("status").and_then(Value::as_str) == Some("rejected");
    let is_paid_beyond = info.get("isUsingOverage").and_then(Value::as_bool) == Some(true);
    if !is_rejected || is_paid_beyond {
        return Vec::new();
    }
    let until = info.get("resetsAt").and_then(Value::as_i64).and_then(|at| Timestamp::from_second(at).ok());
    let message = "its account has reached its limit".to_owned();
    vec![Fact::Failing(Failure { class: FailureClass::RateLimit, message, until }), Fact::Waiting(Need::Limit)]
}

fn asks_for_a_tool(line: &Value) -> bool {
    line.get("request").and_then(|request| request.get("subtype")).and_then(Value::as_str) == Some("can_use_tool")
}

fn result(line: &Value) -> Vec<Fact> {
    let cost = Usage { cost_micros: micros(line, "total_cost_usd"), ..Usage::default() };
    let total = line.get("usage").map(usage).unwrap_or_default().most(cost);
    let mut facts: Vec<Fact> = conversation(line).into_iter().chain([Fact::Total(total)]).collect();
    let subtype = line.get("subtype").and_then(Value::as_str).unwrap_or_default();
    let is_error = line.get("is_error").and_then(Value::as_bool) == Some(true) || subtype.starts_with("error");
    if !is_error {
        let reply = line.get("result").and_then(Value::as_str).filter(|reply| !reply.trim().is_empty());
        facts.extend(reply.map(|reply| Fact::Replied(reply.to_owned())));
        facts.push(Fact::TurnOver);
        return facts;
    }
    let first_error = || line.get("errors")?.get(0)?.as_str().map(super::message);
    let words = text(line, "result").or_else(first_error).filter(|words| !words.is_empty());
    let words = words.unwrap_or_else(|| super::message(if subtype.is_empty() { "it failed" } else { subtype }));
    let class = words::class_of_status(number(line, "api_error_status")).unwrap_or_else(|| words::class(&words));
    facts.push(Fact::Failed(Failure { class, message: words, until: None }));
    facts
}

/// What was read from the cache and what was put there is told apart from the rest.
fn usage(usage: &Value) -> Usage {
    let cached = number(usage, "cache_read_input_tokens");
    let fresh = number(usage, "input_tokens").saturating_add(number(usage, "cache_creation_input_tokens"));
    Usage {
        tokens_in: fresh.saturating_add(cached),
        tokens_out: number(usage, "output_tokens"),
        tokens_cached: cached,
        cost_micros: 0,
    }
}
