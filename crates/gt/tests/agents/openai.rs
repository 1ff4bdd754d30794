//! OpenAI's own client, from PyPI, talks to the daemon as it would to OpenAI: only address and key are other ones.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::caller::{Place, WAITS};

/// Names the python that has the client; `cargo xtask test --with-agents` sets it.
const VARIABLE: &str = "GT_TEST_OPENAI";

#[test]
fn the_official_client_holds_a_streamed_conversation() {
    let place = Place::new(WAITS);
    let script = place.fleet.home("client.py");
    std::fs::write(&script, include_str!("openai.py")).expect("the home can be written");
    let mut client = place.fleet.town.command(crate::cli::named(VARIABLE));
    client.arg(script).arg(format!("http://{}/v1", place.address())).arg(place.token()).arg(place.fleet.home("gate"));
    let output = client.stdin(Stdio::null()).output().expect("python can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(told["first"], json!({ "pieces": ["", "You", " said: One?"], "finish": ["stop"], "usage": [0] }));
    let second: String =
        serde_json::from_value::<Vec<String>>(told["second"]["pieces"].clone()).expect("texts").concat();
    assert!(second.starts_with("You said: ") && second.ends_with("Two?"), "{second}");
    assert!(
        second.contains("One?") && second.contains("You said: One?"),
        "an agent without a memory is told all: {second}"
    );
    assert_eq!((&told["whole"], &told["whole_finish"]), (&json!("You said: Three?"), &json!("stop")));
    assert_eq!(told["models"][0], "gasworks");
    assert_eq!(told["errors"], json!(["NotFoundError", "AuthenticationError", "BadRequestError"]));
    let turns = place.get("/v1/sessions/http:eva/turns").ok(200);
    assert_eq!(turns.as_array().map(Vec::len), Some(2), "one session for both questions: {turns}");
}
