//! Sessions by HTTP: sending, waiting, following, stopping.

use serde_json::{Value, json};

use super::caller::{ECHOES, Place, WAITS};
use crate::fleet::count;

const ANNA: &str = "/v1/sessions/dm:anna";

fn messages(session: &str) -> String {
    format!("/v1/sessions/{session}/messages")
}

#[test]
fn a_message_is_answered_and_can_be_looked_at_afterwards() {
    let place = Place::new(ECHOES);
    let sent = place.post(&messages("dm:anna"), &json!({ "text": "How far?", "sender": "anna" })).ok(202);
    assert_eq!(
        sent,
        json!({ "session": "dm:anna", "message": "m1", "turn": "1", "run": null, "outcome": "queued", "reply": null, "error": null })
    );
    let done = place.post(&messages("dm:anna"), &json!({ "text": "And now?", "wait": true, "lane": "cron" })).ok(200);
    assert_eq!(
        (&done["turn"], &done["outcome"], &done["reply"]),
        (&json!("2"), &json!("done"), &json!("You said: And now?"))
    );
    assert!(done["run"].is_string(), "{done}");
    let turns = place.get(&format!("{ANNA}/turns")).ok(200);
    let replies: Vec<&Value> = turns.as_array().expect("a list").iter().map(|turn| &turn["reply"]).collect();
    assert_eq!(replies, ["You said: How far?", "You said: And now?"]);
    assert_eq!(
        (&turns[1]["state"], &turns[1]["lane"], &turns[1]["run"]),
        (&json!("ended"), &json!("cron"), &done["run"])
    );
    assert_eq!(place.get(&format!("{ANNA}/turns?limit=1")).ok(200).as_array().map(Vec::len), Some(1));
    let session = place.get(ANNA).ok(200);
    assert_eq!((&session["key"], &session["waiting"], &session["running"]), (&json!("dm:anna"), &json!(0), &json!(0)));
    // The commands tell the same.
    let told = |words: &[&str]| place.fleet.town.call(words.iter().copied()).run().json();
    assert_eq!(place.get("/v1/sessions").ok(200), json!([session]));
    assert_eq!(told(&["session", "list", "--json"]), json!([session]));
    assert_eq!(told(&["session", "show", "dm:anna", "--json"])["turns"], turns);
    let lanes = place.get("/v1/lanes").ok(200);
    assert_eq!(told(&["lane", "list", "--json"]), lanes);
    let names: Vec<&Value> = lanes.as_array().expect("a list").iter().map(|lane| &lane["name"]).collect();
    assert_eq!(names, ["cron", "delegate", "main", "subagent", "polecat"]);
    place.fleet.town.assert_healthy();
}

#[test]
fn a_run_that_asks_and_waits_lends_its_place() {
    let first = "case $said in first) touch \"$HOME/begun\"; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done;; esac";
    let place = Place::with(&format!("{first}; {ECHOES}"), &[("lanes.main", "1")]);
    place.post(&messages("dm:a"), &json!({ "text": "first" })).ok(202);
    place.fleet.until_seen("the first turn", || place.fleet.home("begun").exists());
    let turns = place.get("/v1/sessions/dm:a/turns").ok(200);
    let head = format!("X-Gasworks-Run: {}\r\n", turns[0]["run"].as_str().expect("it runs"));
    let ask = |path: &str, body: &Value| place.caller().call("POST", path, &head, body.to_string());
    let nested = json!({ "text": "second", "lane": "main", "wait": true });
    assert_eq!(ask(&messages("dm:b"), &nested).ok(200)["reply"], "You said: second");
    let question = json!({ "model": "gasworks", "messages": [{ "role": "user", "content": "third" }] });
    let answer = ask("/v1/chat/completions", &question).ok(200);
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: third");
    assert_eq!(ask(&messages("dm:a"), &nested).status, 409, "it would wait for itself");
    place.fleet.open_gate("gate");
}

#[test]
fn names_of_sessions_may_hold_anything_that_can_be_seen() {
    let place = Place::new("printf '%s' \"$GT_SESSION\"");
    for (path, key) in [("a%2Fb%20c%3F", "a/b c?"), ("gr%C3%BC%C3%9Fe", "gr\u{fc}\u{df}e"), ("100%25", "100%")] {
        let done = place.post(&messages(path), &json!({ "text": "x", "wait": true })).ok(200);
        assert_eq!((&done["session"], &done["reply"]), (&json!(key), &json!(key)));
        assert_eq!(place.get(&format!("/v1/sessions/{path}")).ok(200)["key"], key);
    }
}

#[test]
fn a_message_that_comes_twice_is_taken_once() {
    let place = Place::new(ECHOES);
    let once = json!({ "text": "Pay!", "id": "order 7", "wait": true });
    let caller = place.caller();
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let (caller, once) = (caller.clone(), once.clone());
            std::thread::spawn(move || caller.post(&messages("dm:anna"), &once).ok(200))
        })
        .collect();
    let answers: Vec<Value> = asked.into_iter().map(|asked| asked.join().expect("it is answered")).collect();
    assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
    assert_eq!((&answers[0]["message"], &answers[0]["reply"]), (&json!("m1"), &json!("You said: Pay!")));
    // By a header it is the same; it is known without waiting, too.
    let head = "Idempotency-Key: order 7\r\n";
    let again = caller.call("POST", &messages("dm:anna"), head, r#"{"text": "Pay!"}"#).ok(200);
    assert_eq!(again, answers[0]);
    assert_eq!(place.n_turns(), 1);
    // Elsewhere the name is another's.
    assert_eq!(place.post(&messages("dm:bert"), &once).ok(200)["message"], "m2");
    assert_eq!(place.n_turns(), 2);
}

#[test]
fn a_session_is_followed_word_by_word_and_nothing_is_missed() {
    let place = Place::new(WAITS);
    let caller = place.caller();
    // Who listens before anything was said.
    let mut early = caller.open("GET", &format!("{ANNA}/events"), "", "");
    let sent = place.post(&messages("dm:anna"), &json!({ "text": "one" })).ok(202);
    let first = early.next().expect("it begins");
    assert_eq!((first.kind.as_str(), first.id.as_str()), ("delta", ""));
    let delta = first.json();
    assert_eq!((&delta["turn"], &delta["text"], &delta["offset"]), (&sent["turn"], &json!("You "), &json!(0)));
    // Who comes later is told what was said so far.
    let mut late = caller.open("GET", &format!("{ANNA}/events"), "", "");
    assert_eq!(late.next().expect("it has begun").json(), delta);
    place.fleet.open_gate("gate");
    let (rest, end) = early.turn();
    assert_eq!(rest, "said: one");
    let told = end.json();
    assert_eq!(
        (&told["turn"], &told["outcome"], &told["reply"]),
        (&sent["turn"], &json!("done"), &json!("You said: one"))
    );
    assert_eq!(told["run"], delta["run"]);
    assert_eq!(late.turn(), (rest, end));
    drop((early, late));
    // Others are not told.
    let second = place.post(&messages("dm:anna"), &json!({ "text": "two", "wait": true })).ok(200);
    place.post(&messages("dm:bert"), &json!({ "text": "none of anna's", "wait": true })).ok(200);
    // Who comes back is told what he has missed, in order, and then what is new.
    let resumed =
        |since: &str| caller.open("GET", &format!("{ANNA}/events"), &format!("Last-Event-ID: {since}\r\n"), "");
    let mut all = resumed("0");
    let ends = [all.turn().1, all.turn().1];
    assert_eq!(ends[0].json(), told);
    assert_eq!((&ends[1].json()["turn"], &ends[1].json()["reply"]), (&second["turn"], &json!("You said: two")));
    let mut back = resumed(&ends[0].id);
    assert_eq!(back.turn().1, ends[1]);
    place.post(&messages("dm:anna"), &json!({ "text": "three" })).ok(202);
    for follower in [&mut all, &mut back] {
        let (said, end) = follower.turn();
        assert_eq!((said.as_str(), &end.json()["reply"]), ("You said: three", &json!("You said: three")));
        assert!(end.id.parse::<i64>().expect("a number") > ends[1].id.parse().expect("a number"));
    }
}

#[test]
fn stopping_ends_what_runs_and_says_so_to_everybody() {
    let place = Place::new("sleep 1000 & echo $! > \"$HOME/child\"; touch \"$HOME/begun\"; wait");
    let caller = place.caller();
    let waiting = std::thread::spawn({
        let caller = caller.clone();
        move || caller.post(&messages("dm:anna"), &json!({ "text": "Go on for ever", "wait": true })).ok(200)
    });
    place.fleet.await_file("begun");
    let mut follower = caller.open("GET", &format!("{ANNA}/events"), "", "");
    let obeyed = place.post(&messages("dm:anna"), &json!({ "text": " /STOP " })).ok(200);
    assert_eq!((&obeyed["outcome"], &obeyed["reply"]), (&json!("stopped"), &json!("Stopped 1 turn that ran.")));
    let cancelled = waiting.join().expect("it is answered");
    assert_eq!((&cancelled["outcome"], &cancelled["reply"]), (&json!("cancelled"), &json!(null)));
    assert!(cancelled["error"].as_str().is_some_and(|why| why.contains("http stopped it")), "{cancelled}");
    assert_eq!(follower.turn().1.json()["outcome"], "cancelled");
    let child = std::fs::read_to_string(place.fleet.home("child")).expect("it was written");
    place.fleet.await_end(child.trim().parse().expect("a process"));
    // All at once, by its own address.
    std::fs::remove_file(place.fleet.home("begun")).expect("it was there");
    let turns: Vec<Value> =
        (0..3).map(|_| place.post(&messages("dm:anna"), &json!({ "text": "more" })).ok(202)["turn"].clone()).collect();
    place.fleet.await_file("begun");
    let stopped = place.post(&format!("{ANNA}/stop"), &json!({ "all": true })).ok(200);
    assert_eq!(stopped["reply"], "Stopped 1 turn that ran and cancelled 2 messages that waited.");
    assert_eq!(
        (&stopped["cancelled"], &stopped["left"], stopped["stopped"].as_array().map(Vec::len)),
        (&json!(2), &json!(0), Some(1))
    );
    let mut ended: Vec<Value> = (0..3).map(|_| follower.turn().1.json()["turn"].clone()).collect();
    ended.sort_by_key(Value::to_string);
    assert_eq!(ended, turns);
    assert_eq!(
        place.post(&messages("dm:anna"), &json!({ "text": "/stopall" })).ok(200)["reply"],
        "Nothing runs or waits here."
    );
    assert_eq!(caller.call("POST", &format!("{ANNA}/stop"), "", "").ok(200)["reply"], "Nothing runs or waits here.");
    assert_eq!(count(&place.fleet.town.events(), "session.stopped", None), 2);
}

#[test]
fn a_full_session_takes_no_more_and_says_so() {
    let place = Place::with(WAITS, &[("sessions.drop", "new"), ("sessions.cap", "1")]);
    place.post(&messages("dm:anna"), &json!({ "text": "runs" })).ok(202);
    place.fleet.await_file("begun");
    place.post(&messages("dm:anna"), &json!({ "text": "waits" })).ok(202);
    for wait in [false, true] {
        let reply = place.post(&messages("dm:anna"), &json!({ "text": "too much", "wait": wait }));
        assert_eq!(reply.error(429), "full");
        let body = reply.json();
        assert_eq!(
            (&body["outcome"], &body["turn"], &body["session"]),
            (&json!("full"), &json!(null), &json!("dm:anna"))
        );
    }
    let chat = json!({ "model": "gasworks", "messages": [{ "role": "user", "content": "x" }] });
    let head = "X-Gasworks-Session: dm:anna\r\n";
    let reply = place.caller().call("POST", "/v1/chat/completions", head, chat.to_string());
    assert_eq!(reply.error(429), "full");
    // The others are not concerned.
    place.fleet.open_gate("gate");
    place.post(&messages("dm:bert"), &json!({ "text": "x", "wait": true })).ok(200);
}

#[test]
fn an_answer_goes_where_the_message_says() {
    let place = Place::new(ECHOES);
    let deliver = json!({ "channel": "pigeon", "to": "roof 7" });
    place.post(&messages("dm:anna"), &json!({ "text": "x", "wait": true, "deliver": deliver })).ok(200);
    let store = rusqlite::Connection::open(place.fleet.town.store()).expect("the store is there");
    let sql = "SELECT channel, recipient, text FROM outbox";
    let row = store.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let expected = ("pigeon".to_owned(), "roof 7".to_owned(), "You said: x".to_owned());
    assert_eq!(row.expect("it is there"), expected);
}
