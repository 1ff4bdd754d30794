//! Telegram: a double of its Bot API on loopback, with people who write to the bot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::double::{Answer, Double, Request};
use super::{asked, await_parcels, talking};
use crate::fleet::{Fleet, PATIENCE};
use crate::full_store::refuse;

const TOKEN: &str = "12345:token";
/// Whoever types is seen for five seconds.
const SEEN_TYPING: Duration = Duration::from_secs(5);

/// What people have written, until the bot has read it.
#[derive(Default)]
struct Chat {
    updates: Mutex<Vec<Value>>,
    is_more: Condvar,
}

/// A double of Telegram, and whom it serves.
struct Telegram {
    double: Double,
    chat: Arc<Chat>,
}

fn answer(status: u16, result: &Value) -> Answer {
    Answer::Status(status, "content-type: application/json\r\n", result.to_string())
}

fn done(result: &Value) -> Answer {
    answer(200, &json!({ "ok": true, "result": result }))
}

impl Telegram {
    fn new() -> Telegram {
        Telegram::that(|_, _| None)
    }

    /// One that answers some calls otherwise: by method, body, and how many came before.
    fn that(otherwise: impl Fn(&Request, usize) -> Option<Answer> + Send + Sync + 'static) -> Telegram {
        let chat = Arc::new(Chat::default());
        let kept = Arc::clone(&chat);
        let double = Double::new(move |request, n| {
            assert!(request.path.starts_with(&format!("/bot{TOKEN}/")), "{request:?}");
            otherwise(request, n).unwrap_or_else(|| match method(request) {
                "getMe" => done(&json!({ "id": 1, "is_bot": true, "first_name": "Our", "username": "OurBot" })),
                "getUpdates" => done(&kept.since(&request.json())),
                "sendMessage" => {
                    done(&json!({ "message_id": 900 + n, "date": 1, "chat": { "id": 7, "type": "private" } }))
                }
                _ => done(&json!(true)),
            })
        });
        Telegram { double, chat }
    }

    /// Somebody writes; `more` overwrites what is usual.
    fn write(&self, id: i64, text: &str, more: &Value) {
        self.tell(id, "message", text, more);
    }

    fn tell(&self, id: i64, kind: &str, text: &str, more: &Value) {
        let mut message = json!({
            "message_id": id + 100, "date": 1, "text": text,
            "from": { "id": 7, "is_bot": false, "first_name": "Anna", "username": "anna" },
            "chat": { "id": 7, "type": "private", "first_name": "Anna" },
        });
        more.as_object().into_iter().flatten().for_each(|(key, value)| message[key] = value.clone());
        self.chat.updates.lock().expect("nobody panicked").push(json!({ "update_id": id, kind: message }));
        self.chat.is_more.notify_all();
    }

    /// What the bot said that was taken, in order: the chat and the text.
    fn sent(&self) -> Vec<(i64, String)> {
        self.double.requests().iter().filter(|request| method(request) == "sendMessage").map(chat_and_text).collect()
    }

    fn until_sent(&self, text: &str) -> Request {
        let is_it = |request: &Request| method(request) == "sendMessage" && request.json()["text"] == text;
        let requests = self.double.until(&format!("`{text}`"), |requests| requests.iter().any(is_it));
        requests.into_iter().find(is_it).expect("it is there")
    }

    fn count(&self, name: &str) -> usize {
        self.double.requests().iter().filter(|request| method(request) == name).count()
    }

    fn until_typing(&self, n: usize) {
        let typing = |requests: &[Request]| requests.iter().filter(|one| method(one) == "sendChatAction").count();
        self.double.until(&format!("{n} × typing"), |requests| typing(requests) >= n);
    }

    /// Asserts that nobody is seen to type any more, once what was under way to Telegram has come.
    fn assert_nobody_types(&self) {
        let typing = |requests: &[Request]| requests.iter().filter(|one| method(one) == "sendChatAction").count();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let n = self.count("sendChatAction");
            if !self.double.comes_within(SEEN_TYPING, |requests| typing(requests) > n) {
                return;
            }
            assert!(Instant::now() < deadline, "somebody types though nobody is at work");
        }
    }
}

impl Chat {
    /// Waits for updates, as Telegram does; what lies before the offset was read.
    fn since(&self, asked: &Value) -> Value {
        let offset = asked["offset"].as_i64().unwrap_or(0);
        let mut updates = self.updates.lock().expect("nobody panicked");
        updates.retain(|update| update["update_id"].as_i64() >= Some(offset) || update["is_repeated"] == true);
        let span = Duration::from_secs(asked["timeout"].as_u64().expect("it waits"));
        let waited = self.is_more.wait_timeout_while(updates, span, |updates| updates.is_empty());
        let mut updates = waited.expect("nobody panicked").0;
        let answer = json!(*updates);
        updates.retain(|update| update["is_repeated"] != true);
        answer
    }
}

fn method(request: &Request) -> &str {
    request.path.rsplit('/').next().unwrap_or_default()
}

fn chat_and_text(request: &Request) -> (i64, String) {
    let body = request.json();
    (body["chat_id"].as_i64().expect("a chat"), body["text"].as_str().expect("a text").to_owned())
}

/// A town whose bot Anna, user 7, may write to, as may everybody in the group -9.
fn town(telegram: &Telegram) -> Fleet {
    let fleet = talking();
    fleet.set("channels.telegram.url", &telegram.double.url);
    fleet.set("channels.telegram.token", TOKEN);
    fleet.set("channels.telegram.allow", r#"["@Anna", "-9"]"#);
    fleet.set("channels.telegram.kind", "telegram");
    fleet.start_daemon();
    fleet
}

#[test]
fn whoever_writes_sees_somebody_type_until_the_answer_to_the_message_comes() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    telegram.write(10, "wait a bit", &json!({}));
    telegram.until_typing(2);
    assert_eq!(telegram.sent(), []);
    let asked = |name: &str| telegram.double.requests().into_iter().find(|request| method(request) == name);
    let body = |name: &str| asked(name).expect("it was asked").json();
    assert_eq!(body("sendChatAction"), json!({ "chat_id": 7, "action": "typing" }));
    let poll = json!({ "allowed_updates": ["message", "edited_message"], "limit": 50, "timeout": 30 });
    assert_eq!(body("getUpdates"), poll);
    fleet.open_gate("gate");
    let reply = telegram.until_sent("re: wait a bit").json();
    assert_eq!((&reply["chat_id"], &reply["reply_parameters"]["message_id"]), (&json!(7), &json!(110)), "{reply}");
    assert_eq!(reply["message_thread_id"], Value::Null);
    telegram.assert_nobody_types();
    let sessions = fleet.town.gt(["session", "list", "--json"]).success().stdout.clone();
    assert!(sessions.contains("dm:telegram:7"), "{sessions}");
}

#[test]
fn stop_is_answered_and_what_it_stopped_says_nothing_more() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    telegram.write(10, "wait one", &json!({}));
    fleet.await_trace("turn wait one", 1);
    telegram.write(11, "wait two", &json!({}));
    telegram.write(12, "/stop", &json!({}));
    telegram.until_sent("Stopped 1 turn that ran; 1 more is left.");
    fleet.await_trace("turn wait two", 1);
    telegram.write(13, "wait three", &json!({}));
    telegram.write(14, "/StopAll@ourbot", &json!({}));
    telegram.until_sent("Stopped 1 turn that ran and cancelled 1 message that waited.");
    await_parcels(&fleet, "waiting", 0);
    await_parcels(&fleet, "delivered", 5);
    telegram.assert_nobody_types();
    assert_eq!(telegram.sent().len(), 2, "{:?}", telegram.sent());
    telegram.write(15, "/stop", &json!({}));
    telegram.until_sent("Nothing runs or waits here.");
}

#[test]
fn a_long_answer_comes_in_parts_and_none_comes_twice_though_there_were_too_many() {
    // The second part is refused at first.
    let telegram = Telegram::that(|request, _| {
        static N_SENT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let is_second =
            method(request) == "sendMessage" && N_SENT.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1;
        is_second.then(|| {
            let parameters = json!({ "retry_after": 1 });
            answer(429, &json!({ "ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": parameters }))
        })
    });
    let fleet = town(&telegram);
    telegram.write(10, "long", &json!({}));
    await_parcels(&fleet, "delivered", 1);
    let mut sent = telegram.sent();
    assert_eq!(sent[1], sent[2], "the one that was refused is tried again, and no other");
    sent.remove(1);
    assert!(sent.iter().all(|(_, text)| text.encode_utf16().count() <= 4096));
    let whole: Vec<&str> = sent.iter().flat_map(|(_, text)| text.lines()).collect();
    let lines: Vec<String> = (1..=1500).map(|i| format!("line {i} of it")).collect();
    assert_eq!(whole, lines);
    assert_eq!(asked(&fleet), ["long"]);
}

#[test]
fn parts_that_have_arrived_are_not_sent_again_though_that_could_not_be_noted() {
    let telegram = Telegram::that(|request, _| {
        // The second part, once.
        static IS_REFUSED: AtomicBool = AtomicBool::new(false);
        let is_second = method(request) == "sendMessage" && !request.body.contains("line 1 of it");
        (is_second && !IS_REFUSED.swap(true, Ordering::Relaxed))
            .then(|| answer(500, &json!({ "ok": false, "error_code": 500, "description": "oh" })))
    });
    let fleet = town(&telegram);
    refuse(&fleet, "UPDATE OF sent_parts", "outbox");
    telegram.write(10, "long", &json!({}));
    await_parcels(&fleet, "delivered", 1);
    let is_first = |(_, text): &(i64, String)| text.contains("line 1 of it");
    assert_eq!(telegram.sent().iter().filter(|sent| is_first(sent)).count(), 1, "{:#?}", telegram.sent());
}

#[test]
fn an_update_that_comes_again_is_answered_once_and_a_new_daemon_goes_on_where_the_old_one_was() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    telegram.write(10, "one", &json!({}));
    telegram.until_sent("re: one");
    await_parcels(&fleet, "delivered", 1);
    telegram.write(10, "one", &json!({}));
    let again = telegram.chat.updates.lock().expect("nobody panicked").pop().expect("it was put there");
    telegram.chat.updates.lock().expect("nobody panicked").extend([again].map(|mut update| {
        update["is_repeated"] = json!(true);
        update
    }));
    telegram.write(11, "two", &json!({}));
    telegram.until_sent("re: two");
    await_parcels(&fleet, "delivered", 2);
    fleet.kill_daemon();
    let n_before = telegram.double.requests().len();
    fleet.start_daemon();
    let polls = |requests: &[Request]| requests[n_before..].iter().any(|request| method(request) == "getUpdates");
    let requests = telegram.double.until("the first poll", polls);
    let first = requests[n_before..].iter().find(|request| method(request) == "getUpdates").expect("it is there");
    assert_eq!(first.json()["offset"], 12);
    telegram.write(12, "three", &json!({}));
    telegram.until_sent("re: three");
    assert_eq!(asked(&fleet), ["one", "two", "three"]);
    assert_eq!(telegram.sent().len(), 3);
}

#[test]
fn strangers_get_no_answer_and_what_cannot_be_read_is_said_once() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    let stranger =
        json!({ "from": { "id": 8, "is_bot": false, "first_name": "Eve" }, "chat": { "id": 8, "type": "private" } });
    telegram.write(10, "hello", &stranger);
    telegram.write(11, "/stopall", &stranger);
    let photo = json!({ "text": null, "photo": [{ "file_id": "a", "file_unique_id": "b", "width": 1, "height": 1 }] });
    telegram.write(12, "", &photo);
    telegram.write(13, "", &photo);
    let mut described = photo.clone();
    described["caption"] = json!("look");
    telegram.write(14, "", &described);
    telegram.until_sent("re: look");
    assert_eq!(telegram.sent(), [(7, "I understand only text.".to_owned()), (7, "re: look".to_owned())]);
    assert_eq!(asked(&fleet), ["look"]);
}

#[test]
fn a_group_is_answered_where_it_asked_and_an_edit_is_asked_anew() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    let group = json!({ "chat": { "id": -9, "type": "supergroup", "title": "Ops" }, "message_thread_id": 3, "is_topic_message": true,
                        "from": { "id": 8, "is_bot": false, "first_name": "Bob" } });
    telegram.write(10, "nobody is asked", &group);
    telegram.write(11, "/stop@OtherBot", &group);
    telegram.write(12, "@ourbot how?", &group);
    let reply = telegram.until_sent("re: @ourbot how?").json();
    assert_eq!((&reply["chat_id"], &reply["message_thread_id"]), (&json!(-9), &json!(3)), "{reply}");
    telegram.tell(13, "edited_message", "@ourbot why?", &group);
    telegram.until_sent("re: @ourbot why?");
    assert_eq!(asked(&fleet), ["@ourbot how?", "@ourbot why?"]);
    let sessions = fleet.town.gt(["session", "list", "--json"]).success().stdout.clone();
    assert!(sessions.contains("group:telegram:-9:topic:3"), "{sessions}");
}

#[test]
fn another_program_that_reads_is_waited_for() {
    let telegram = Telegram::that(|request, n| {
        let is_taken = method(request) == "getUpdates" && n < 3;
        is_taken.then(|| {
            answer(409, &json!({ "ok": false, "error_code": 409, "description": "Conflict: terminated by other" }))
        })
    });
    let fleet = town(&telegram);
    telegram.write(10, "hi", &json!({}));
    telegram.until_sent("re: hi");
    assert_eq!(asked(&fleet), ["hi"]);
}

#[test]
fn a_flood_is_bounded_and_told_so_once() {
    let telegram = Telegram::new();
    let fleet = town(&telegram);
    fleet.set("sessions.cap", "2");
    telegram.write(10, "wait", &json!({}));
    fleet.await_trace("turn wait", 1);
    for id in 11..31 {
        telegram.write(id, &format!("flood {id}"), &json!({}));
    }
    telegram.until_sent("Your message was dropped: too many newer ones wait here.");
    await_parcels(&fleet, "delivered", 18);
    fleet.open_gate("gate");
    telegram.until_sent("re: flood 30");
    let sent: Vec<String> = telegram.sent().into_iter().map(|(_, text)| text).collect();
    let dropped = "Your message was dropped: too many newer ones wait here.";
    assert_eq!(sent, [dropped, "re: wait", "re: flood 29", "re: flood 30"]);
}

#[test]
fn a_group_that_has_moved_gets_its_answer_where_it_is_now() {
    let telegram = Telegram::that(|request, _| {
        let is_old = method(request) == "sendMessage" && request.json()["chat_id"] == -9;
        let told = json!({ "ok": false, "error_code": 400, "description": "upgraded", "parameters": { "migrate_to_chat_id": -10 } });
        is_old.then(|| answer(400, &told))
    });
    let fleet = town(&telegram);
    telegram.write(10, "@ourbot hi", &json!({ "chat": { "id": -9, "type": "group", "title": "Ops" } }));
    await_parcels(&fleet, "delivered", 1);
    let reply = "re: @ourbot hi".to_owned();
    assert_eq!(telegram.sent(), [(-9, reply.clone()), (-10, reply)]);
}
