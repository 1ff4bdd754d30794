//! Tests of replies: whole, as they are seen live, and how much of the context window they leave.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::agent::{Told, Usage};

/// The reply after these lines, what was seen live, and what fills the context window.
fn told(vendor: Vendor, lines: &[Value]) -> String {
    let mut told = Told::default();
    let mut live = String::new();
    for line in lines {
        told.hear_line(vendor, &line.to_string(), Timestamp::UNIX_EPOCH);
        live.extend(speech(vendor, &line.to_string()));
    }
    format!("{:?}, live {live:?}, context {:?}", told.reply(), told.context_tokens())
}

fn stages(vendor: Vendor, lines: &[Value]) -> String {
    (1..=lines.len()).map(|n| told(vendor, &lines[..n])).collect::<Vec<_>>().join("\n")
}

fn claude(id: &str, part: &Value) -> Value {
    let usage = json!({ "input_tokens": 2, "cache_read_input_tokens": 10, "output_tokens": 4 });
    json!({ "type": "assistant", "parent_tool_use_id": null,
        "message": { "id": id, "content": [part], "usage": usage } })
}

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

#[test]
fn claude_replies_what_its_result_says_or_else_what_it_wrote_last() {
    let piece = json!({ "type": "stream_event", "parent_tool_use_id": null,
        "event": { "type": "content_block_delta", "delta": { "type": "text_delta", "text": "Let me" } } });
    let mut helper = claude("h1", &text("I am only a helper."));
    helper["parent_tool_use_id"] = json!("t1");
    helper["message"]["usage"]["input_tokens"] = json!(9000);
    let results = json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1" }] } });
    let usage = json!({ "input_tokens": 400, "output_tokens": 40 });
    let lines = [
        piece,
        claude("m1", &text("Let me look.\n")),
        claude("m1", &json!({ "type": "tool_use", "id": "t1", "name": "Task" })),
        helper,
        results,
        claude("m2", &text("It is\n  here:")),
        claude("m2", &text("and there.")),
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "and there.", "usage": usage }),
    ];
    insta::assert_snapshot!(stages(Vendor::Claude, &lines), @r#"
    None, live "", context None
    Some("Let me look."), live "Let me look.\n\n", context Some(16)
    Some("Let me look."), live "Let me look.\n\n", context Some(16)
    Some("Let me look."), live "Let me look.\n\n", context Some(16)
    Some("Let me look."), live "Let me look.\n\n", context Some(16)
    Some("It is\n  here:"), live "Let me look.\n\nIt is\n  here:\n\n", context Some(16)
    Some("It is\n  here:\n\nand there."), live "Let me look.\n\nIt is\n  here:\n\nand there.\n\n", context Some(16)
    Some("and there."), live "Let me look.\n\nIt is\n  here:\n\nand there.\n\n", context Some(16)
    "#);
}

#[test]
fn what_claude_says_of_a_failure_is_no_reply() {
    let refused = json!({ "type": "assistant", "error": "rate_limit", "message": { "content": [text("Your limit")] } });
    let failed = json!({ "type": "result", "subtype": "success", "is_error": true, "result": "API Error" });
    let lost = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
        "errors": ["No conversation found with session ID: 1"] });
    let silent = json!({ "type": "result", "subtype": "success", "is_error": false, "result": "" });
    let cases = [
        vec![refused, failed.clone()],
        vec![lost.clone()],
        vec![claude("m", &text("Half a")), failed],
        vec![claude("m", &text("All of it.")), silent],
    ];
    let shown: Vec<String> = cases.iter().map(|lines| told(Vendor::Claude, lines)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    None, live "", context None
    None, live "", context None
    Some("Half a"), live "Half a\n\n", context Some(16)
    Some("All of it."), live "All of it.\n\n", context Some(16)
    "#);
    let mut told = Told::default();
    told.hear_line(Vendor::Claude, &lost.to_string(), Timestamp::UNIX_EPOCH);
    assert_eq!(told.failure().expect("it failed").message, "No conversation found with session ID: 1");
}

#[test]
fn codex_replies_with_its_last_message() {
    let item = |id: &str, kind: &str, text: &str| json!({ "type": "item.completed", "item": { "id": id, "type": kind, "text": text } });
    let lines = [
        json!({ "type": "thread.started", "thread_id": "th" }),
        item("i0", "error", "no metadata"),
        item("i1", "reasoning", "hm"),
        item("i2", "agent_message", "I run it."),
        item("i3", "command_execution", "ran"),
        item("i4", "agent_message", "It ran.\nWell."),
        json!({ "type": "turn.completed",
            "usage": { "input_tokens": 200, "cached_input_tokens": 50, "output_tokens": 40 } }),
    ];
    insta::assert_snapshot!(stages(Vendor::Codex, &lines[2..]), @r#"
    None, live "", context None
    Some("I run it."), live "I run it.\n\n", context None
    Some("I run it."), live "I run it.\n\n", context None
    Some("It ran.\nWell."), live "I run it.\n\nIt ran.\nWell.\n\n", context None
    Some("It ran.\nWell."), live "I run it.\n\nIt ran.\nWell.\n\n", context Some(240)
    "#);
    assert!(told(Vendor::Codex, &lines[..2]).starts_with("None, live \"\""));
}

#[test]
fn gemini_replies_in_pieces_that_follow_each_other() {
    let said = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": text, "delta": true });
    let lines = [
        said("user", "Where is it?"),
        said("assistant", "Let me "),
        said("assistant", "see.\n"),
        json!({ "type": "tool_use", "tool_id": "t" }),
        json!({ "type": "tool_result", "tool_id": "t", "status": "success" }),
        said("assistant", "It is "),
        said("assistant", "here.\n"),
        json!({ "type": "result", "status": "success", "stats": { "input_tokens": 9, "output_tokens": 2, "cached": 4 } }),
    ];
    insta::assert_snapshot!(stages(Vendor::Gemini, &lines), @r#"
    None, live "", context None
    Some("Let me"), live "Let me ", context None
    Some("Let me see."), live "Let me see.\n", context None
    Some("Let me see."), live "Let me see.\n", context None
    Some("Let me see."), live "Let me see.\n", context None
    Some("It is"), live "Let me see.\nIt is ", context None
    Some("It is here."), live "Let me see.\nIt is here.\n", context None
    Some("It is here."), live "Let me see.\nIt is here.\n", context Some(11)
    "#);
}

#[test]
fn opencode_replies_with_the_texts_of_its_last_step() {
    let part = |kind: &str, part: Value| json!({ "type": kind, "sessionID": "o", "part": part });
    let finish = |id: &str, reason: &str, n: u64| {
        let tokens = json!({ "input": n, "output": 1, "reasoning": 1, "cache": { "read": 7, "write": 0 } });
        part("step_finish", json!({ "id": id, "reason": reason, "tokens": tokens }))
    };
    let lines = [
        part("step_start", json!({})),
        part("text", text("Let me see.")),
        part("tool_use", json!({ "tool": "bash" })),
        finish("a", "tool-calls", 5),
        part("step_start", json!({})),
        part("reasoning", text("hm")),
        part("text", text("It is")),
        part("text", text("here.")),
        finish("b", "stop", 8),
    ];
    insta::assert_snapshot!(stages(Vendor::Opencode, &lines), @r#"
    None, live "", context None
    Some("Let me see."), live "Let me see.\n\n", context None
    Some("Let me see."), live "Let me see.\n\n", context None
    Some("Let me see."), live "Let me see.\n\n", context Some(14)
    Some("Let me see."), live "Let me see.\n\n", context Some(14)
    Some("Let me see."), live "Let me see.\n\n", context Some(14)
    Some("It is"), live "Let me see.\n\nIt is\n\n", context Some(14)
    Some("It is\n\nhere."), live "Let me see.\n\nIt is\n\nhere.\n\n", context Some(14)
    Some("It is\n\nhere."), live "Let me see.\n\nIt is\n\nhere.\n\n", context Some(17)
    "#);
}

#[test]
fn a_reply_without_end_is_cut_between_characters_and_says_so() {
    let mut told = Told::default();
    // Three bytes each, so that the bound lies within one.
    let line = json!({ "type": "message", "role": "assistant", "content": "€".repeat(100_000) }).to_string();
    for _ in 0..10 {
        told.hear_line(Vendor::Gemini, &line, Timestamp::UNIX_EPOCH);
    }
    let reply = told.reply().expect("it has said something");
    let (kept, note) = reply.split_once("\n\n").expect("there is a note");
    assert!(kept.len() <= REPLY_BYTES_MAX && kept.len() > REPLY_BYTES_MAX - 3, "{} bytes", kept.len());
    assert!(kept.chars().all(|c| c == '€'));
    assert_eq!(note, "[cut here: the reply is longer than 1 MiB]");
    told.hear_line(Vendor::Gemini, r#"{"type":"tool_use"}"#, Timestamp::UNIX_EPOCH);
    told.hear_line(Vendor::Gemini, r#"{"type":"message","role":"assistant","content":"Anew."}"#, Timestamp::UNIX_EPOCH);
    assert_eq!(told.reply(), Some("Anew."));
}

#[test]
fn a_line_that_is_no_speech_adds_nothing() {
    let too_long = json!({ "type": "message", "role": "assistant", "content": "x".repeat(2_000_000) }).to_string();
    for line in ["", "plain words", "{", "{}", "[1]", r#"{"type":"text","part":{"text":7}}"#, &too_long] {
        assert!(
            Vendor::ALL.into_iter().all(|vendor| speech(vendor, line).is_none()),
            "{}",
            &line[..line.len().min(80)]
        );
    }
}

#[test]
fn what_was_used_before_is_taken_off() {
    let sum = |tokens_in: u64, tokens_out: u64| Usage { tokens_in, tokens_out, ..Usage::default() };
    assert_eq!(sum(300, 60).since(sum(200, 40)), sum(100, 20));
    assert_eq!(sum(100, 20).since(sum(200, 40)), sum(0, 0), "the conversation began anew");
    assert_eq!(Vendor::ALL.map(Vendor::counts_conversations), [false, true, false, false]);
}
