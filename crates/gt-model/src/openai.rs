//! OpenAI's responses: what the script says, in the words that Codex reads.

use serde_json::{Value, json};

use crate::TOKENS;
use crate::http::Reply;
use crate::script::Answer;

/// The tool with which Codex runs a shell command.
const SHELL: &str = "exec_command";

/// Whether the agent can run commands here. What it asks for itself on the side, such as a title, comes without tools.
pub(crate) fn is_work(question: &Value) -> bool {
    let tools = question["tools"].as_array();
    tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == SHELL))
}

/// How many commands were run in this conversation so far.
pub(crate) fn n_run(question: &Value) -> usize {
    let items = question["input"].as_array().into_iter().flatten();
    items.filter(|item| item["type"] == "function_call_output").count()
}

/// The answer to a question; `id` differs from answer to answer, `now` is in seconds.
pub(crate) fn reply(answer: &Answer, id: &str, now: u64) -> Reply {
    match answer {
        Answer::Shell(command) => response(id, &call(id, &json!({ "cmd": command }))),
        Answer::Escalate(command) => response(id, &call(id, &escalated(command))),
        Answer::Text(text) => response(id, &message(id, text)),
        Answer::Hang | Answer::Cut => response(id, &message(id, "")),
        Answer::Limit(seconds) => limit(now, *seconds),
        Answer::Overloaded => error(503, &json!({ "code": "server_is_overloaded", "message": "Overloaded" })),
        Answer::Unauthorised => error(401, &json!({ "code": "invalid_api_key", "message": "Incorrect API key" })),
    }
}

/// There are no models to choose from.
pub(crate) fn models() -> Reply {
    Reply::json(200, &json!({ "object": "list", "data": [], "models": [] }))
}

fn escalated(command: &str) -> Value {
    json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "The work needs it" })
}

fn call(id: &str, arguments: &Value) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": SHELL,
            "arguments": arguments.to_string() })
}

fn message(id: &str, text: &str) -> Value {
    json!({ "type": "message", "id": format!("msg_{id}"), "role": "assistant",
            "content": [{ "type": "output_text", "text": text }] })
}

fn response(id: &str, item: &Value) -> Reply {
    let id = format!("resp_{id}");
    let usage = json!({ "input_tokens": TOKENS.0, "input_tokens_details": { "cached_tokens": 0 },
                        "output_tokens": TOKENS.1, "output_tokens_details": { "reasoning_tokens": 0 },
                        "total_tokens": TOKENS.0 + TOKENS.1 });
    Reply::events(&[
        json!({ "type": "response.created", "response": { "id": id } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": id, "usage": usage } }),
    ])
}

fn limit(now: u64, seconds: u64) -> Reply {
    let what = json!({ "type": "usage_limit_reached", "message": "The usage limit has been reached",
                       "plan_type": "plus", "resets_at": now + seconds, "resets_in_seconds": seconds });
    error(429, &what).with("retry-after", &seconds.to_string())
}

fn error(status: u16, what: &Value) -> Reply {
    Reply::json(status, &json!({ "error": what }))
}
