//! Anthropic's messages: what the script says, in the words that Claude Code reads.

use serde_json::{Value, json};

use crate::TOKENS;
use crate::http::Reply;
use crate::script::Answer;

/// The tool with which Claude Code runs a shell command.
const SHELL: &str = "Bash";

/// Whether the agent can run commands here. What it asks for itself on the side, such as a title, comes without tools.
pub(crate) fn is_work(question: &Value) -> bool {
    let tools = question["tools"].as_array();
    tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == SHELL))
}

/// How many commands were run in this conversation so far.
pub(crate) fn n_run(question: &Value) -> usize {
    let messages = question["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").count()
}

/// The answer to a question; `id` differs from answer to answer, `now` is in seconds.
pub(crate) fn reply(answer: &Answer, question: &Value, id: &str, now: u64) -> Reply {
    match answer {
        Answer::Shell(command) | Answer::Escalate(command) => message(question, id, &shell(command, id)),
        Answer::Text(text) => message(question, id, &Said::Text(text.clone())),
        Answer::Hang | Answer::Cut => message(question, id, &Said::Text(String::new())),
        Answer::Limit(seconds) => limit(now, *seconds),
        Answer::Overloaded => error(529, "overloaded_error", "Overloaded"),
        Answer::Unauthorised => error(401, "authentication_error", "invalid x-api-key"),
    }
}

/// How many tokens a question has, for an agent that wants to know beforehand.
pub(crate) fn count() -> Reply {
    Reply::json(200, &json!({ "input_tokens": TOKENS.0 }))
}

enum Said {
    Text(String),
    Call { id: String, input: Value },
}

fn shell(command: &str, id: &str) -> Said {
    Said::Call { id: format!("toolu_{id}"), input: json!({ "command": command, "description": "Do the work" }) }
}

fn message(question: &Value, id: &str, said: &Said) -> Reply {
    if question["stream"] == true { Reply::events(&stream(question, id, said)) } else { whole(question, id, said) }
}

fn stream(question: &Value, id: &str, said: &Said) -> Vec<Value> {
    let (block, delta) = match said {
        Said::Text(text) => (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text })),
        Said::Call { id, input } => (
            json!({ "type": "tool_use", "id": id, "name": SHELL, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
        ),
    };
    vec![
        json!({ "type": "message_start", "message": envelope(question, id, &json!([]), &Value::Null) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason(said), "stop_sequence": null },
                "usage": { "output_tokens": TOKENS.1 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn whole(question: &Value, id: &str, said: &Said) -> Reply {
    let content = match said {
        Said::Text(text) => json!([{ "type": "text", "text": text }]),
        Said::Call { id, input } => json!([{ "type": "tool_use", "id": id, "name": SHELL, "input": input }]),
    };
    Reply::json(200, &envelope(question, id, &content, &stop_reason(said)))
}

fn envelope(question: &Value, id: &str, content: &Value, stop_reason: &Value) -> Value {
    json!({ "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": question["model"],
            "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": { "input_tokens": TOKENS.0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                       "output_tokens": TOKENS.1 } })
}

fn stop_reason(said: &Said) -> Value {
    match said {
        Said::Text(_) => json!("end_turn"),
        Said::Call { .. } => json!("tool_use"),
    }
}

fn limit(now: u64, seconds: u64) -> Reply {
    let resets_at = (now + seconds).to_string();
    error(429, "rate_limit_error", "This request would exceed your account's rate limit.")
        .with("retry-after", &seconds.to_string())
        .with("anthropic-ratelimit-unified-status", "rejected")
        .with("anthropic-ratelimit-unified-reset", &resets_at)
        .with("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .with("anthropic-ratelimit-unified-5h-status", "rejected")
        .with("anthropic-ratelimit-unified-5h-reset", &resets_at)
        .with("anthropic-ratelimit-unified-5h-utilization", "1.0")
}

fn error(status: u16, kind: &str, message: &str) -> Reply {
    Reply::json(status, &json!({ "type": "error", "error": { "type": kind, "message": message } }))
}
