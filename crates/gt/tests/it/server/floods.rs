//! Many callers at once, and rude ones: bounded, and others do not notice.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::{Value, json};

use super::caller::{ECHOES, Place, WAITS, connect};

#[test]
fn a_flood_into_one_session_is_bounded_and_others_are_answered() {
    let place = Place::with(WAITS, &[("sessions.drop", "new"), ("sessions.cap", "5")]);
    let caller = place.caller();
    let flood: Vec<_> = (0..40)
        .map(|thread| {
            let caller = caller.clone();
            std::thread::spawn(move || {
                let send =
                    |n| caller.post("/v1/sessions/dm:flood/messages", &json!({ "text": format!("{thread}.{n}") }));
                (0..10).map(|n| send(n).status).collect::<Vec<u16>>()
            })
        })
        .collect();
    let mut n_of: BTreeMap<u16, usize> = BTreeMap::new();
    for thread in flood {
        thread.join().expect("it is answered").into_iter().for_each(|status| *n_of.entry(status).or_default() += 1);
    }
    // One may run, five may wait.
    let n_taken = n_of.get(&202).copied().unwrap_or_default();
    assert!((5..=6).contains(&n_taken), "{n_of:?}");
    assert_eq!(n_of.get(&429).copied(), Some(400 - n_taken), "{n_of:?}");
    place.fleet.open_gate("gate");
    let other = place.post("/v1/sessions/dm:anna/messages", &json!({ "text": "x", "wait": true })).ok(200);
    assert_eq!(other["outcome"], "done");
    place.fleet.until_events("turn.ended", None, n_taken + 1);
    let turns = place.get("/v1/sessions/dm:flood/turns").ok(200);
    assert!(turns.as_array().expect("a list").iter().all(|turn| turn["outcome"] == "done"), "{turns}");
    place.fleet.town.assert_healthy();
}

#[test]
fn those_who_wait_are_bounded_and_leave_room_for_those_who_stop_them() {
    let place = Place::new(WAITS);
    let caller = place.caller();
    let path = "/v1/sessions/group:all/events";
    let followers: Vec<_> = (0..192).map(|_| caller.open("GET", path, "", "")).collect();
    assert_eq!(place.get(path).error(503), "not-now");
    let wait = json!({ "text": "x", "wait": true });
    assert_eq!(place.post("/v1/sessions/dm:anna/messages", &wait).error(503), "not-now");
    assert_eq!(place.get("/v1/sessions").ok(200), json!([]), "what could not be waited for was not sent");
    // All of them hear of a turn, from one who reads for all.
    place.post("/v1/sessions/group:all/messages", &json!({ "text": "x" })).ok(202);
    place.fleet.await_file("begun");
    assert_eq!(place.post("/v1/sessions/group:all/stop", &json!({})).ok(200)["outcome"], "stopped");
    let ends: Vec<Value> = followers.into_iter().map(|mut follower| follower.turn().1.json()).collect();
    assert!(ends.iter().all(|end| end["outcome"] == "cancelled" && end == &ends[0]), "{:?}", ends[0]);
    // When they have gone there is room again.
    place.fleet.open_gate("gate");
    place.fleet.until_seen("room", || place.post("/v1/sessions/dm:anna/messages", &wait).status == 200);
}

#[test]
fn rude_callers_are_survived() {
    let place = Place::new(ECHOES);
    let (address, token) = (place.address(), place.token());
    let head =
        format!("POST /v1/sessions/dm:a/messages HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    let rude = [
        "\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\u{0}".to_owned(),
        format!("GET /v1/lanes HTTP/1.1\r\n{}\r\n", "x-much: more\r\n".repeat(10_000)),
        format!("{head}Content-Length: 100\r\n\r\n{{\"text\""),
        format!("{head}Content-Length: -1\r\n\r\n"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    ];
    for bytes in &rude {
        // Half of them may be refused before they have said it all.
        connect(address).write_all(bytes.as_bytes()).unwrap_or_default();
    }
    assert_eq!(place.get("/v1/sessions").ok(200), json!([]));
    assert!(place.fleet.daemon_lives());
}
