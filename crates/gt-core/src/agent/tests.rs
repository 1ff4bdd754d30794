//! Tests of what lines mean, and that no line does harm.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// What is known after these lines of a stream, told in one line.
fn after(vendor: Vendor, lines: &[Value]) -> String {
    let mut told = Told::default();
    for (second, line) in lines.iter().enumerate() {
        told.hear_line(vendor, &line.to_string(), at(second as i64));
    }
    shown(&told)
}

fn after_hooks(vendor: Vendor, calls: &[Value]) -> String {
    let mut told = Told::default();
    for (second, call) in calls.iter().enumerate() {
        if let Some(hook) = read_hook(vendor, &call.to_string(), at(second as i64)) {
            let line = hook.to_line();
            assert_eq!(Hook::parse(&line).as_ref(), Some(&hook), "{line}");
            told.hear_hook(&hook);
        }
    }
    shown(&told)
}

fn shown(told: &Told) -> String {
    let activity = match told.activity() {
        None => "unknown".to_owned(),
        Some(Activity::Waiting(need)) => format!("waiting {}", need.as_str()),
        Some(activity) => activity.as_str().to_owned(),
    };
    let tool = if told.has_open_tool() { ", in a tool" } else { "" };
    let Usage { tokens_in, tokens_out, tokens_cached, cost_micros } = told.usage();
    let used = match told.usage() {
        usage if usage == Usage::default() => String::new(),
        _ => format!(", {tokens_in} in ({tokens_cached} cached), {tokens_out} out, {cost_micros} µ$"),
    };
    let failure = told.failure().map(|failure| {
        let until = failure.until.map(|until| format!(" until {}", until.as_second() - at(0).as_second()));
        format!(", {} `{}`{}", failure.class.as_str(), failure.message, until.unwrap_or_default())
    });
    let is_final = if told.final_failure().is_some() { " (final)" } else { "" };
    format!("{activity}{tool}{used}{}{is_final}", failure.unwrap_or_default())
}

fn claude_message(id: &str, part: &Value) -> Value {
    let usage = json!({ "input_tokens": 2, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 3, "output_tokens": 4 });
    json!({ "type": "assistant", "message": { "id": id, "content": [part], "usage": usage } })
}

#[test]
fn claude_works_calls_tools_and_ends_its_turn() {
    let init = json!({ "type": "system", "subtype": "init", "session_id": "s-1" });
    let call = claude_message("m1", &json!({ "type": "tool_use", "id": "t1", "name": "Bash" }));
    let answer = json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1" }] } });
    let result = json!({ "type": "result", "subtype": "success", "is_error": false, "total_cost_usd": 0.0021,
        "usage": { "input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 40 } });
    let lines = [init, call.clone(), call, answer, claude_message("m2", &json!({ "type": "text" })), result];
    let stages: Vec<String> = (1..=lines.len()).map(|n| after(Vendor::Claude, &lines[..n])).collect();
    insta::assert_snapshot!(stages.join("\n"), @r"
    working
    working, in a tool, 15 in (10 cached), 4 out, 0 µ$
    working, in a tool, 15 in (10 cached), 4 out, 0 µ$
    working, 15 in (10 cached), 4 out, 0 µ$
    working, 30 in (20 cached), 8 out, 0 µ$
    turn-over, 120 in (100 cached), 40 out, 2100 µ$
    ");
}

#[test]
fn claude_tells_its_limits_and_failures() {
    let rejected =
        json!({ "type": "rate_limit_event", "rate_limit_info": { "status": "rejected", "resetsAt": 1_800_003_600 } });
    let warned =
        json!({ "type": "rate_limit_event", "rate_limit_info": { "status": "allowed_warning", "resetsAt": 1 } });
    let beyond = json!({ "type": "rate_limit_event",
        "rate_limit_info": { "status": "rejected", "resetsAt": 1_800_003_600, "isUsingOverage": true } });
    let said = json!({ "type": "assistant", "error": "rate_limit",
        "message": { "model": "<synthetic>", "content": [{ "type": "text", "text": "You've hit your limit" }] } });
    let limited = json!({ "type": "result", "subtype": "success", "is_error": true, "api_error_status": 429,
        "terminal_reason": "completed", "result": "API Error: Request rejected (429) · slow down" });
    let vague = json!({ "type": "result", "subtype": "success", "is_error": true, "result": "API Error" });
    let retry = |error: &str| json!({ "type": "system", "subtype": "api_retry", "error": error, "attempt": 1 });
    let turns = json!({ "type": "result", "subtype": "error_max_turns", "is_error": true });
    let text = claude_message("m", &json!({ "type": "text" }));
    let cases = [
        vec![rejected.clone()],
        vec![warned],
        vec![beyond],
        vec![rejected.clone(), said, limited.clone()],
        vec![limited],
        vec![rejected.clone(), vague.clone()],
        vec![rejected, text.clone()],
        vec![retry("rate_limit")],
        vec![retry("overloaded"), text],
        vec![retry("authentication_failed")],
        vec![retry("billing_error")],
        vec![turns],
        vec![vague],
    ];
    let shown: Vec<String> = cases.iter().map(|lines| after(Vendor::Claude, lines)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    waiting limit, rate-limit `its account has reached its limit` until 3600
    unknown
    unknown
    turn-over, rate-limit `API Error: Request rejected (429) · slow down` until 3600 (final)
    turn-over, rate-limit `API Error: Request rejected (429) · slow down` (final)
    turn-over, rate-limit `its account has reached its limit` until 3600 (final)
    working, 15 in (10 cached), 4 out, 0 µ$
    unknown, rate-limit `its model refuses it, and it tries again (rate_limit)`
    working, 15 in (10 cached), 4 out, 0 µ$
    turn-over, auth `its model refuses it, and it tries again (authentication_failed)` (final)
    turn-over, billing `its model refuses it, and it tries again (billing_error)` (final)
    turn-over, other `error_max_turns` (final)
    turn-over, other `API Error` (final)
    ");
}

#[test]
fn codex_tells_the_whole_thread_and_its_warnings_are_no_failures() {
    let thread = json!({ "type": "thread.started", "thread_id": "th" });
    let warning =
        json!({ "type": "item.completed", "item": { "id": "i0", "type": "error", "message": "no metadata, 429" } });
    let begun = json!({ "type": "item.started", "item": { "id": "i1", "type": "command_execution" } });
    let done = json!({ "type": "item.completed", "item": { "id": "i1", "type": "command_execution", "exit_code": 0 } });
    let usage = |n: u64| json!({ "type": "turn.completed", "usage": { "input_tokens": n, "cached_input_tokens": 5, "output_tokens": 3 } });
    let failed = |words: &str| json!({ "type": "turn.failed", "error": { "message": words } });
    let limit = "You've hit your usage limit. Upgrade, or try again in 3 days 2 hours 5 minutes.";
    let cases = [
        vec![thread, warning],
        vec![begun.clone()],
        vec![begun, done, usage(100), usage(120)],
        vec![failed(limit)],
        vec![failed("unexpected status 401 Unauthorized")],
        vec![json!({ "type": "error", "message": "Reconnecting... 1/5" })],
        vec![failed("Your input exceeds the context window of this model.")],
    ];
    let shown: Vec<String> = cases.iter().map(|lines| after(Vendor::Codex, lines)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    working
    working, in a tool
    turn-over, 120 in (5 cached), 3 out, 0 µ$
    turn-over, rate-limit `You've hit your usage limit. Upgrade, or try again in 3 days 2 hours 5 minutes.` until 266700 (final)
    turn-over, auth `unexpected status 401 Unauthorized` (final)
    unknown, other `Reconnecting... 1/5`
    turn-over, context `Your input exceeds the context window of this model.` (final)
    ");
}

#[test]
fn gemini_and_opencode_tell_the_same_in_their_own_words() {
    let gemini = [
        json!({ "type": "init", "session_id": "g" }),
        json!({ "type": "tool_use", "tool_id": "t" }),
        json!({ "type": "tool_result", "tool_id": "t", "status": "success" }),
        json!({ "type": "result", "status": "success", "stats": { "input_tokens": 9, "output_tokens": 2, "cached": 4 } }),
    ];
    let quota = "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.";
    let exhausted = json!({ "type": "result", "status": "error", "error": { "type": "Error", "message": quota } });
    let step = |id: &str, reason: &str| {
        let tokens = json!({ "input": 5, "output": 1, "reasoning": 1, "cache": { "read": 7, "write": 0 } });
        json!({ "type": "step_finish", "sessionID": "o", "part": { "id": id, "reason": reason, "cost": 0.01, "tokens": tokens } })
    };
    let open = [step("a", "tool-calls"), step("a", "tool-calls"), step("b", "stop")];
    let refused = json!({ "type": "error", "sessionID": "o",
        "error": { "name": "APIError", "data": { "message": "slow down", "statusCode": 429 } } });
    let shown = [
        after(Vendor::Gemini, &gemini[..2]),
        after(Vendor::Gemini, &gemini),
        after(Vendor::Gemini, &[exhausted]),
        after(Vendor::Opencode, &open[..2]),
        after(Vendor::Opencode, &open),
        after(Vendor::Opencode, &[refused]),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r"
    working, in a tool
    turn-over, 9 in (4 cached), 2 out, 0 µ$
    turn-over, rate-limit `Error You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.` until 35 (final)
    working, 12 in (7 cached), 2 out, 10000 µ$
    turn-over, 24 in (14 cached), 4 out, 20000 µ$
    turn-over, rate-limit `slow down (429)` (final)
    ");
}

#[test]
fn a_hook_tells_what_its_agent_waits_for() {
    let call =
        |event: &str| json!({ "hook_event_name": event, "session_id": "s", "tool_use_id": "t", "tool_name": "Bash" });
    let note = |kind: &str| json!({ "hook_event_name": "Notification", "notification_type": kind });
    let fails = |error: &str| json!({ "hook_event_name": "StopFailure", "error": error, "error_details": "so it is" });
    let question = json!({ "hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion" });
    let busy = json!({ "hook_event_name": "Stop", "background_tasks": [{ "task_id": 1 }] });
    let cases: [(&str, Vec<Value>); 14] = [
        ("start", vec![call("SessionStart")]),
        ("tool", vec![call("PreToolUse")]),
        ("tool done", vec![call("PreToolUse"), call("PostToolUse")]),
        ("asks", vec![call("PreToolUse"), call("PermissionRequest")]),
        ("asks late", vec![note("permission_prompt")]),
        ("answered", vec![call("PermissionRequest"), call("PostToolUse")]),
        ("question", vec![question]),
        ("form", vec![note("elicitation_dialog")]),
        ("idle", vec![call("SessionStart"), note("idle_prompt")]),
        ("stop", vec![call("Stop")]),
        ("stop, busy", vec![busy]),
        ("limit", vec![fails("rate_limit")]),
        ("login", vec![fails("authentication_failed")]),
        ("unknown", vec![call("WorktreeCreate")]),
    ];
    let shown: Vec<String> =
        cases.iter().map(|(name, calls)| format!("{name}: {}", after_hooks(Vendor::Claude, calls))).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    start: working
    tool: working, in a tool
    tool done: working
    asks: waiting approval, in a tool
    asks late: waiting approval
    answered: working
    question: waiting question
    form: waiting question
    idle: working
    stop: waiting question
    stop, busy: working
    limit: waiting limit, rate-limit `so it is (rate_limit)` (final)
    login: waiting auth, auth `so it is (authentication_failed)` (final)
    unknown: unknown
    ");
    let turn = json!({ "type": "agent-turn-complete", "thread-id": "th", "last-assistant-message": "done" });
    assert_eq!(after_hooks(Vendor::Codex, &[turn]), "waiting question");
    let asks = json!({ "hook_event_name": "Notification", "notification_type": "ToolPermission" });
    assert_eq!(after_hooks(Vendor::Gemini, &[call("BeforeAgent"), asks]), "waiting approval");
}

#[test]
fn a_weaker_source_puts_in_doubt_and_never_decides() {
    let stop = read_hook(Vendor::Claude, r#"{"hook_event_name":"Stop"}"#, at(10)).expect("a hook");
    let late = read_hook(Vendor::Claude, r#"{"hook_event_name":"Stop"}"#, at(100)).expect("a hook");
    let mut told = Told::default();
    told.hear_line(Vendor::Claude, r#"{"type":"user"}"#, at(50));
    told.hear_hook(&stop);
    assert_eq!(told.activity(), Some(Activity::Working), "an older word of a weaker source is no news");
    told.hear_hook(&late);
    assert_eq!(told.activity(), None);
    told.hear_line(Vendor::Claude, r#"{"type":"user"}"#, at(101));
    assert_eq!((told.activity(), told.since()), (Some(Activity::Working), Some(at(101))));
}

#[test]
fn who_is_silent_from_the_start_asks_for_trust_until_it_speaks() {
    let mut told = Told::default();
    told.hear_silence(at(20));
    assert_eq!((told.activity(), told.since()), (Some(Activity::Waiting(Need::Trust)), Some(at(20))));
    told.hear_silence(at(30));
    assert_eq!(told.since(), Some(at(20)));
    told.hear_hook(&read_hook(Vendor::Claude, r#"{"hook_event_name":"SessionStart"}"#, at(40)).expect("a hook"));
    told.hear_silence(at(50));
    assert_eq!(told.activity(), Some(Activity::Working));
}

#[test]
fn a_record_tells_what_hooks_do_not() {
    let hear = |vendor: Vendor, lines: &[Value]| {
        let mut told = Told::default();
        told.hear_hook(&read_hook(vendor, r#"{"hook_event_name":"UserPromptSubmit"}"#, at(10)).expect("a hook"));
        for line in lines {
            told.hear_record(vendor, &line.to_string(), at(20));
        }
        told
    };
    let event = |second: i64, payload: Value| json!({ "timestamp": at(second).to_string(), "type": "event_msg", "payload": payload });
    let used = |n: u64| json!({ "type": "token_count", "info": { "total_token_usage": { "input_tokens": n, "cached_input_tokens": 1, "output_tokens": 2 } } });
    let over = |error: Value| json!({ "type": "task_complete", "last_agent_message": null, "error": error });
    let limit = over(
        json!({ "message": "You’ve hit your usage limit. Try again in 2 hours.", "codex_error_info": "usage_limit_exceeded" }),
    );
    let told = hear(Vendor::Codex, &[event(11, used(100)), event(12, used(200)), event(13, limit.clone())]);
    assert_eq!((told.usage().tokens_in, told.usage().tokens_out), (200, 2));
    assert_eq!((told.activity(), told.since()), (Some(Activity::Waiting(Need::Limit)), Some(at(13))));
    assert_eq!(told.failure().and_then(|failure| failure.until), Some(at(13 + 7200)));
    let well = hear(Vendor::Codex, &[event(13, over(Value::Null)), json!("no object"), json!({ "payload": 1 })]);
    assert_eq!(well.activity(), Some(Activity::Working), "a turn that ends well is told by a hook");
    let old = hear(Vendor::Codex, &[event(9, limit)]);
    assert_eq!(old.activity(), Some(Activity::Working), "it was asked again since then");
    let message = |id: &str| json!({ "type": "assistant", "message": { "id": id, "usage": { "input_tokens": 5, "output_tokens": 3 } } });
    let told = hear(Vendor::Claude, &[message("a"), message("a"), message("b"), json!({ "type": "user" })]);
    assert_eq!((told.usage().tokens_in, told.usage().tokens_out), (10, 6));
    assert_eq!(told.activity(), Some(Activity::Working));
}

#[test]
fn a_record_has_its_place_from_the_start_of_a_conversation() {
    let record = |event: &str, path: &str| {
        let given = json!({ "hook_event_name": event, "transcript_path": path }).to_string();
        let hook = read_hook(Vendor::Codex, &given, at(0)).expect("a hook");
        Hook::parse(&hook.to_line()).expect("a line of ours").record().map(str::to_owned)
    };
    assert_eq!(record("SessionStart", "/a/b.jsonl").as_deref(), Some("/a/b.jsonl"));
    assert_eq!(record("Stop", "/a/b.jsonl"), None);
    assert_eq!(record("SessionStart", "b.jsonl"), None);
    assert_eq!(record("SessionStart", &format!("/{}", "x".repeat(5000))), None);
}

#[test]
fn only_what_decides_something_calls_for_a_look() {
    let decides = |call: Value| read_hook(Vendor::Claude, &call.to_string(), at(0)).map(|hook| hook.decides());
    assert_eq!(decides(json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash" })), Some(false));
    assert_eq!(decides(json!({ "hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion" })), Some(true));
    assert_eq!(decides(json!({ "hook_event_name": "Stop" })), Some(true));
    assert_eq!(decides(json!({ "hook_event_name": "PermissionRequest" })), Some(true));
    assert_eq!(decides(json!({ "no": "hook" })), None);
}

#[test]
fn a_kept_line_is_short_whatever_the_hook_was_given() {
    let long = "x".repeat(2_000_000);
    let given =
        json!({ "hook_event_name": "PreToolUse", "tool_name": long, "tool_input": { "content": long }, "error": long });
    let line = read_hook(Vendor::Claude, &given.to_string(), at(0)).expect("a hook").to_line();
    assert!(line.len() < 4096, "{} bytes", line.len());
}

#[test]
fn what_agents_print_when_they_are_refused_has_a_class() {
    use FailureClass::{Auth, Billing, Context, Overloaded, RateLimit};
    let cases = [
        ("HTTP 429 Too Many Requests", RateLimit),
        ("HTTP 429", RateLimit),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: 7", RateLimit),
        ("Claude AI usage limit reached|1800000000", RateLimit),
        ("5-hour limit reached ∙ resets 3pm", RateLimit),
        ("You've hit your session limit · resets 8:40am (UTC)", RateLimit),
        ("You've hit your usage limit. Upgrade, or try again in 3 days.", RateLimit),
        ("stream disconnected before completion: Rate limit reached for gpt-5 in organization org-1", RateLimit),
        ("This request would exceed your account's rate limit.", RateLimit),
        ("API Error: Request rejected (429) · slow down", RateLimit),
        ("You exceeded your current quota, please check your plan and billing details.", RateLimit),
        ("Quota exceeded for metric: generate_content_requests", RateLimit),
        ("You have exhausted your daily quota on this model.", RateLimit),
        ("RESOURCE_EXHAUSTED", RateLimit),
        ("overloaded_error", Overloaded),
        ("API Error: Overloaded", Overloaded),
        ("API Error: 503 {\"type\":\"error\"}", Overloaded),
        ("API Error: 500 Internal server error", Overloaded),
        ("The model is overloaded. Please try again later.", Overloaded),
        ("Selected model is at capacity. Please try a different model.", Overloaded),
        ("unexpected status 503 Service Unavailable", Overloaded),
        ("Invalid API key · Please run /login", Auth),
        ("Not logged in · Please run /login", Auth),
        ("unexpected status 401 Unauthorized: Missing bearer or basic authentication in header", Auth),
        ("unexpected status 403 Forbidden", Auth),
        ("Failed to authenticate. API Error: 401 {\"type\":\"error\"}", Auth),
        ("[{\"error\":{\"code\":401,\"message\":\"no\"}}]", Auth),
        ("OAuth token has expired", Auth),
        ("API key not valid. Please pass a valid API key.", Auth),
        ("Your credit balance is too low", Billing),
        ("insufficient_quota", Billing),
        ("This API method requires billing to be enabled.", Billing),
        ("prompt is too long: 250000 tokens", Context),
        ("Codex ran out of room in the model's context window.", Context),
    ];
    for (text, class) in cases {
        assert_eq!(words::class(text), class, "{text}");
    }
}

#[test]
fn what_agents_write_about_their_work_has_none() {
    let prose = [
        "",
        "I wrote a test for 401 responses",
        "I wrote a test for HTTP 401 responses and error 429 handling",
        "the quota module has 503 lines, 402 of them comments",
        "the author was not found",
        "auth is done; next comes the authentication page and its OAuth token store",
        "unauthorized users see the login page, and so do those not logged in",
        "added a rate limit to the API and a usage limit per user",
        "the loop ended when its limit was reached",
        "the billing page is not finished",
        "an overloaded operator, in a room at capacity",
        "the context window of the editor",
        "build 4290 of 1429",
        "error 4290, status 1.429",
    ];
    for text in prose {
        assert_eq!(words::class(text), FailureClass::Other, "{text}");
    }
}

#[test]
fn who_has_lost_its_conversation_says_so() {
    let lost = [
        "No conversation found with session ID: 0198f3a0-1111-7abc-8def-0123456789ff",
        "Error: thread/resume: thread/resume failed: no rollout found for thread id 0198f3a0 (code -32600)",
        "Error resuming session: Invalid session identifier \"x\".",
        "Error: Session not found",
    ];
    assert!(lost.into_iter().all(is_lost_conversation));
    let other = ["", "no conversation", "I found no session", "Session not foundered"];
    assert!(!other.into_iter().any(is_lost_conversation));
}

#[test]
fn words_of_errors_name_a_time() {
    let until = |text: &str| words::until(text, at(0)).map(|until| until.as_second() - at(0).as_second());
    assert_eq!(until("usage limit reached|1800000060"), Some(60));
    assert_eq!(until("try again in 1 hour 5 minutes."), Some(3900));
    assert_eq!(until("retry in 34.07s."), Some(35));
    assert_eq!(until("come in 5 colours"), None);
    // It is 08:00.
    assert_eq!(until("You've hit your session limit · resets 8:40am (UTC)"), Some(40 * 60));
    assert_eq!(until("resets 3pm (UTC)"), Some(7 * 3600));
    assert_eq!(until("resets 7am (UTC)"), Some(23 * 3600));
    assert_eq!(until("resets 99999999999999999999am (UTC)"), None);
    assert_eq!(until("resets soon (UTC)"), None);
    assert_eq!(until("resets 8:40am (Europe/Berlin)"), None);
    assert_eq!(until("in 99999999999999999999 days"), Some(366 * 86_400));
}

#[test]
fn a_conversation_is_named_before_its_run_starts() {
    let run = "0198f3a0-1111-7abc-8def-0123456789ab";
    assert_eq!(conversation_of(run), run);
    let made = conversation_of("run-00001");
    assert_eq!((made.len(), &made[14..15]), (36, "8"));
    assert_eq!(conversation_of(&made), made, "it is a UUID");
    assert_ne!(made, conversation_of("run-00002"));
}

#[test]
fn words_come_back_as_what_they_were() {
    for need in Need::ALL {
        assert_eq!(Activity::parse("waiting", Some(need.as_str())), Some(Activity::Waiting(need)));
    }
    for activity in [Activity::Working, Activity::TurnOver] {
        assert_eq!(Activity::parse(activity.as_str(), None), Some(activity));
    }
    assert!(FailureClass::ALL.into_iter().all(|class| FailureClass::parse(class.as_str()) == Some(class)));
    assert!(Vendor::ALL.into_iter().all(|vendor| Vendor::parse(vendor.as_str()) == Some(vendor)));
}

const WORDS: &[&str] = &[
    "type",
    "result",
    "assistant",
    "error",
    "usage",
    "message",
    "content",
    "id",
    "part",
    "item",
    "turn.failed",
    "step_finish",
    "rate_limit_event",
    "rate_limit_info",
    "rejected",
    "status",
    "resetsAt",
    "hook_event_name",
    "Stop",
    "text",
    "role",
    "tool_use",
    "item.completed",
    "agent_message",
    "stream_event",
];

/// JSON such as vendors write, with words that mean something in places where they do not belong.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        prop::sample::select(WORDS).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let key = prop::sample::select(WORDS).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever strangers write: no panic, and what is used never becomes less.
    #[test]
    fn any_lines_are_taken_and_usage_only_grows(lines in prop::collection::vec(any_json(), 0..12)) {
        for vendor in Vendor::ALL {
            let mut told = Told::default();
            for (second, line) in lines.iter().enumerate() {
                let before = told.usage();
                told.hear_line(vendor, &line.to_string(), at(second as i64));
                told.hear_record(vendor, &line.to_string(), at(second as i64));
                if let Some(hook) = read_hook(vendor, &line.to_string(), at(second as i64)) {
                    prop_assert_eq!(Hook::parse(&hook.to_line()), Some(hook.clone()));
                    told.hear_hook(&hook);
                }
                prop_assert_eq!(told.usage().most(before), told.usage());
                prop_assert!(told.failure().is_none_or(|failure| !failure.message.is_empty()));
                let spoken = speech(vendor, &line.to_string());
                prop_assert!(spoken.is_none_or(|text| !text.is_empty() && told.reply().is_some() || text.trim().is_empty()));
            }
        }
    }

    /// Lines of which we know nothing change nothing.
    #[test]
    fn unknown_types_change_nothing(kind in "[a-z_]{1,12}x", rest in any_json()) {
        let line = json!({ "type": kind, "message": rest }).to_string();
        for vendor in Vendor::ALL {
            let mut told = Told::default();
            told.hear_line(vendor, &line, at(0));
            prop_assert_eq!(&told, &Told::default());
        }
    }
}
