//! Who may ask, for what, and how clearly the others are refused. // SPEC U3

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::caller::{ECHOES, Place};

#[test]
fn nothing_is_told_or_done_without_the_token() {
    let place = Place::new(ECHOES);
    let (caller, address, token) = (place.caller(), place.address(), place.token());
    assert_eq!(token.len(), 64, "256 bits");
    let mode = std::fs::metadata(place.fleet.town.path(".gt/token")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let wrong = [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer 0000\r\n".to_owned(),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: Bearer {}\r\n", &token[1..]),
        format!("Authorization: Bearer {token}x\r\n"),
    ];
    for head in &wrong {
        for line in ["GET /v1/sessions", "POST /v1/sessions/dm:a/messages", "POST /v1/chat/completions", "GET /nothing"]
        {
            let reply = caller.raw(&format!("{line} HTTP/1.1\r\nHost: {address}\r\n{head}"), br#"{"text": "x"}"#);
            assert_eq!(reply.error(401), "unauthorized", "{line} {head}");
            assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
        }
    }
    assert_eq!(place.get("/v1/sessions").ok(200), json!([]), "nothing was done");
    // It is the same after a restart.
    place.fleet.kill_daemon();
    place.fleet.start_daemon();
    assert_eq!(place.token(), token);
    place.get("/v1/sessions").ok(200);
}

#[test]
fn other_sites_and_other_names_are_refused_though_they_know_the_token() {
    let place = Place::new(ECHOES);
    let (caller, address, token) = (place.caller(), place.address(), place.token());
    let port = address.port();
    let ask = |host: &str, head: &str| {
        let head = format!("GET /v1/lanes HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{head}");
        caller.raw(&head, b"")
    };
    for (host, head) in [
        (address.to_string(), String::new()),
        (format!("localhost:{port}"), String::new()),
        (format!("localhost:{port}"), format!("Origin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n")),
    ] {
        ask(&host, &head).ok(200);
    }
    for (host, head) in [
        (format!("evil.example:{port}"), ""),
        ("192.168.7.7".to_owned(), ""),
        (address.to_string(), "Origin: http://evil.example\r\n"),
        (address.to_string(), "Origin: null\r\n"),
        (address.to_string(), "Sec-Fetch-Site: cross-site\r\n"),
        (address.to_string(), "Sec-Fetch-Site: same-site\r\n"),
    ] {
        let reply = ask(&host, head);
        assert_eq!(reply.error(403), "forbidden", "{host} {head}");
        assert!(!reply.head.contains("access-control"), "{reply:?}");
    }
    // What a browser asks before it asks is refused as well.
    let preflight = "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
    let reply = caller.call("OPTIONS", "/v1/sessions/dm:a/messages", preflight, "");
    assert_eq!(reply.error(403), "forbidden");
    assert!(!reply.head.contains("access-control"), "{reply:?}");
}

#[test]
fn what_cannot_be_answered_is_refused_in_one_shape() {
    let place = Place::new(ECHOES);
    let caller = place.caller();
    let messages = "/v1/sessions/dm:a/messages";
    assert_eq!(place.get("/v1/nothing").error(404), "not-found");
    assert_eq!(place.get("/").error(404), "not-found");
    assert_eq!(place.get(messages).error(405), "usage");
    for path in ["/v1/sessions/dm:a", "/v1/sessions/dm:a/turns"] {
        assert_eq!(place.get(path).error(404), "not-found");
    }
    assert_eq!(caller.call("POST", "/v1/sessions/dm:a/stop", "", "").error(404), "not-found");
    assert_eq!(place.get("/v1/sessions?limit=many").error(400), "usage");
    for bad in [
        "",
        "text",
        "[]",
        "{}",
        r#"{"text": 7}"#,
        r#"{"text": "x", "txet": 1}"#,
        r#"{"text": "x"} x"#,
        r#"{"text": " "}"#,
    ] {
        assert_eq!(caller.call("POST", messages, "", bad).error(400), "usage", "{bad}");
    }
    assert_eq!(caller.call("POST", messages, "", b"{\"text\": \"\xff\xfe\"}").error(400), "usage");
    assert_eq!(place.post(messages, &json!({ "text": "x", "agent": "nobody" })).error(400), "usage");
    assert_eq!(place.post(messages, &json!({ "text": "x", "id": "" })).error(400), "usage");
    for key in ["%ff", "a%0Ab", "%20a", &"x".repeat(201)] {
        assert_eq!(
            place.post(&format!("/v1/sessions/{key}/messages"), &json!({ "text": "x" })).error(400),
            "usage",
            "{key}"
        );
    }
    assert_eq!(caller.call("GET", "/v1/sessions/dm:a/events", "Last-Event-ID: x\r\n", "").error(400), "usage");
    assert_eq!(place.get("/v1/sessions").ok(200), json!([]), "nothing was done");
    // Too long for a message, and far too long.
    let long = place.post(messages, &json!({ "text": "x".repeat(1024 * 1024 + 1) }));
    assert_eq!(long.error(413), "too-large");
    let huge = place.post(messages, &json!({ "text": "x".repeat(10_000_000) }));
    assert_eq!(huge.error(413), "too-large");
    // The longest that may be is taken, even where it needs twice the room.
    place.post(messages, &json!({ "text": "\"".repeat(1024 * 1024) })).ok(202);
}

#[test]
fn callers_talk_only_to_sessions_that_they_may_talk_to() {
    let place = Place::with(ECHOES, &[("server.allow", r#"["dm:*", "group:ops"]"#)]);
    let send = |key: &str| place.post(&format!("/v1/sessions/{key}/messages"), &json!({ "text": "x" }));
    send("dm:anna").ok(202);
    send("group:ops").ok(202);
    for key in ["group:ops2", "xdm:anna", "DM:anna"] {
        assert_eq!(send(key).error(403), "forbidden", "{key}");
    }
    let chat = json!({ "model": "gasworks", "user": "eva", "messages": [{ "role": "user", "content": "x" }] });
    assert_eq!(place.post("/v1/chat/completions", &chat).error(403), "forbidden");
    // An edit counts at once, for what is listed too.
    place.fleet.set("server.allow", r#"["group:*"]"#);
    assert_eq!(send("dm:anna").error(403), "forbidden");
    for path in ["/v1/sessions/dm:anna", "/v1/sessions/dm:anna/turns", "/v1/sessions/dm:anna/events"] {
        assert_eq!(place.get(path).error(403), "forbidden", "{path}");
    }
    let listed = place.get("/v1/sessions").ok(200);
    let keys: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|one| one["key"].as_str()).collect();
    assert_eq!(keys, ["group:ops"]);
}

#[test]
fn an_address_in_use_is_told_and_the_town_runs_without_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it has one");
    let place = Place::with(ECHOES, &[("server.bind", &address.to_string())]);
    let report: serde_json::Value = serde_json::from_str(&place.fleet.town.read(".gt/server.json")).expect("JSON");
    assert_eq!((&report["address"], &report["pid"]), (&json!(null), &json!(place.fleet.daemon_pid())));
    let error = report["error"].as_str().expect("a reason").to_owned();
    assert!(error.contains(&format!("cannot listen at {address}")), "{error}");
    let status = place.fleet.town.gt(["daemon", "status", "--json"]).json();
    assert_eq!(status["server"], json!({ "address": null, "error": error }));
    let words = place.fleet.town.gt(["daemon", "status"]);
    assert!(words.success().stderr.contains("it answers no HTTP requests"), "{words}");
    let doctor = place.fleet.town.gt(["doctor"]);
    assert!(doctor.success().stdout.contains("the daemon answers no HTTP requests"), "{doctor}");
    // A daemon that ends takes back what it said.
    drop(taken);
    place.fleet.kill_daemon();
    place.fleet.start_daemon();
    assert_eq!(place.address(), address);
    place.fleet.town.gt(["daemon", "stop"]).success();
    assert!(!place.fleet.town.path(".gt/server.json").exists());
}
