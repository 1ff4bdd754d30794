//! Chat completions, as a client of OpenAI's asks for them. The real one asks in `tests/agents`.

use serde_json::{Value, json};

use super::caller::{ECHOES, Event, Place, WAITS};

const CHAT: &str = "/v1/chat/completions";

/// An agent that remembers: it prints lines as Claude Code does, names its conversation and what it has used.
const REMEMBERS: &str = r#"
printf '{"type":"system","subtype":"init","session_id":"c-1"}\n'
text=$(printf 'I was told: %s' "$said" | sed ':a;N;$!ba;s/\n/\\n/g')
printf '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":5,"output_tokens":2}}}\n' "$text"
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"c-1","result":"%s","usage":{"input_tokens":5,"output_tokens":2}}\n' "$text"
"#;

fn question(text: &str) -> Value {
    json!({ "model": "gasworks", "messages": [{ "role": "user", "content": text }] })
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("no content in {answer}"))
}

/// The pieces of a streamed answer, put together.
fn spoken(events: &[Event]) -> String {
    let pieces = events.iter().filter(|event| event.data != "[DONE]").map(Event::json);
    pieces.filter_map(|piece| piece["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_question_is_answered_whole_or_bit_by_bit() {
    let place = Place::new(WAITS);
    let caller = place.caller();
    let mut ask = question("one");
    ask["stream"] = json!(true);
    ask["stream_options"] = json!({ "include_usage": true });
    let mut stream = caller.open("POST", CHAT, "", &ask.to_string());
    let role = stream.next().expect("it begins").json();
    assert_eq!((&role["object"], &role["model"]), (&json!("chat.completion.chunk"), &json!("gasworks")));
    assert_eq!(role["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    // The agent has not ended yet, and is heard.
    let piece = stream.next().expect("it goes on").json();
    assert_eq!((&piece["choices"][0]["delta"], &piece["usage"]), (&json!({ "content": "You" }), &json!(null)));
    place.fleet.open_gate("gate");
    let rest = stream.rest();
    let [.., finish, usage, done] = rest.as_slice() else { panic!("{rest:?}") };
    assert_eq!(spoken(&rest), " said: one");
    assert_eq!(finish.json()["choices"][0]["finish_reason"], "stop");
    assert_eq!((&usage.json()["choices"], &usage.json()["usage"]["total_tokens"]), (&json!([]), &json!(0)));
    assert_eq!(done.data, "[DONE]");
    let whole = place.post(CHAT, &question("two")).ok(200);
    assert_eq!((&whole["object"], content(&whole)), (&json!("chat.completion"), "You said: two"));
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    // Each question without a session has one of its own.
    let sessions = place.get("/v1/sessions").ok(200);
    let keys: Vec<&str> = sessions.as_array().expect("a list").iter().filter_map(|one| one["key"].as_str()).collect();
    assert!(keys.len() == 2 && keys.iter().all(|key| key.starts_with("http:chat-")), "{keys:?}");
}

#[test]
fn models_are_the_agents_that_take_turns() {
    let place = Place::new("printf '%s' mine");
    let listed = place.get("/v1/models").ok(200);
    let names: Vec<&str> =
        listed["data"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(names.starts_with(&["gasworks", "scripted"]) && names.contains(&"claude"), "{names:?}");
    assert_eq!(place.get("/v1/models/scripted").ok(200)["object"], "model");
    assert_eq!(place.get("/v1/models/gpt-9").error(404), "model_not_found");
    let mut ask = question("x");
    ask["model"] = json!("scripted");
    assert_eq!(content(&place.post(CHAT, &ask).ok(200)), "mine");
    ask["model"] = json!("gpt-9");
    let reply = place.post(CHAT, &ask);
    assert_eq!(reply.error(404), "model_not_found");
    let error = &reply.json()["error"];
    assert_eq!((&error["type"], &error["param"]), (&json!("invalid_request_error"), &json!("model")));
}

#[test]
fn who_remembers_is_told_what_is_new_and_who_does_not_is_told_everything() {
    let place = Place::with(REMEMBERS, &[("agents.scripted.speaks", "claude")]);
    let talk = |user: Option<&str>| {
        json!({ "model": "gasworks", "user": user, "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "One?" },
            { "role": "assistant", "content": "1" },
            { "role": "user", "content": [{ "type": "text", "text": "Two?" }] },
        ] })
    };
    let all = "I was told: This was said before:\n\n[system]\nBe brief.\n\n[user]\nOne?\n\n[assistant]\n1\n\nNow answer this:\n\nTwo?";
    let first = place.post(CHAT, &talk(Some("eva"))).ok(200);
    assert_eq!(content(&first), all);
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 });
    assert_eq!(first["usage"], usage);
    assert_eq!(content(&place.post(CHAT, &talk(Some("eva"))).ok(200)), "I was told: Two?");
    assert_eq!(content(&place.post(CHAT, &talk(None)).ok(200)), all, "a session of its own");
    assert_eq!(place.get("/v1/sessions/http:eva/turns").ok(200).as_array().map(Vec::len), Some(2));
    let caller = place.caller();
    let head = "X-Gasworks-Session: http:eva\r\n";
    assert_eq!(content(&caller.call("POST", CHAT, head, talk(None).to_string()).ok(200)), "I was told: Two?");
    // Bit by bit it is the same text, with what it has cost.
    let mut ask = talk(Some("eva"));
    ask["stream"] = json!(true);
    ask["stream_options"] = json!({ "include_usage": true });
    let events = caller.open("POST", CHAT, "", &ask.to_string()).rest();
    assert_eq!(spoken(&events), "I was told: Two?");
    assert_eq!(events[events.len() - 2].json()["usage"], usage);
}

#[test]
fn what_is_no_question_is_refused() {
    let place = Place::new(ECHOES);
    let image =
        json!([{ "type": "text", "text": "What is it?" }, { "type": "image_url", "image_url": { "url": "data:," } }]);
    for (ask, code) in [
        (json!({ "model": "gasworks" }), "usage"),
        (json!({ "model": "gasworks", "messages": [] }), "usage"),
        (json!({ "model": "gasworks", "messages": [{ "role": "assistant", "content": "x" }] }), "usage"),
        (json!({ "model": "gasworks", "messages": [{ "role": "user", "content": image }] }), "usage"),
        (json!({ "model": "gasworks", "messages": [{ "role": "user", "content": " " }] }), "usage"),
        (json!({ "model": "gasworks", "n": 2, "messages": [{ "role": "user", "content": "x" }] }), "usage"),
        (json!({ "model": "gasworks", "user": "a\nb", "messages": [{ "role": "user", "content": "x" }] }), "usage"),
    ] {
        assert_eq!(place.post(CHAT, &ask).error(400), code, "{ask}");
    }
    assert_eq!(place.get("/v1/sessions").ok(200), json!([]), "nothing was done");
}

#[test]
fn a_failure_is_told_and_not_to_be_tried_again() {
    let place = Place::new("echo 'no such luck' >&2; exit 3");
    let reply = place.post(CHAT, &question("x"));
    assert_eq!(reply.error(502), "failed");
    assert!(reply.head.contains("x-should-retry: false"), "{reply:?}");
    assert!(reply.json()["error"]["message"].as_str().is_some_and(|why| why.contains("no such luck")), "{reply:?}");
    let mut ask = question("x");
    ask["stream"] = json!(true);
    let events = place.caller().open("POST", CHAT, "", &ask.to_string()).rest();
    let [_role, failed] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(failed.json()["error"]["code"], "failed");
    // A command is obeyed, and answered like anything else.
    assert_eq!(content(&place.post(CHAT, &question("/stopall")).ok(200)), "Nothing runs or waits here.");
}

#[test]
fn a_client_that_goes_away_stops_what_was_asked_for_it_alone() {
    let place = Place::new(WAITS);
    let caller = place.caller();
    let asked = |user: Option<&str>, stream: bool| {
        let mut ask = question("x");
        (ask["user"], ask["stream"]) = (json!(user), json!(stream));
        ask.to_string()
    };
    let begun = || {
        place.fleet.await_file("begun");
        std::fs::remove_file(place.fleet.home("begun")).expect("it is there");
    };
    // While the answer comes bit by bit, and while it is waited for.
    let stream = caller.open("POST", CHAT, "", &asked(None, true));
    begun();
    drop(stream);
    place.fleet.until_events("turn.ended", None, 1);
    let waiting = caller.ask_and_hold(CHAT, &asked(None, false));
    begun();
    drop(waiting);
    let events = place.fleet.until_events("turn.ended", None, 2);
    let ends: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "turn.ended").map(|one| &one["data"]["outcome"]).collect();
    assert_eq!(ends, ["cancelled", "cancelled"]);
    // What belongs to a session that others know goes on.
    let waiting = caller.ask_and_hold(CHAT, &asked(Some("eva"), false));
    begun();
    drop(waiting);
    place.fleet.open_gate("gate");
    place.fleet.until_events("turn.ended", None, 3);
    assert_eq!(place.get("/v1/sessions/http:eva/turns").ok(200)[0]["reply"], "You said: x");
}
