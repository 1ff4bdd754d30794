//! Web hooks: signed, in order, once for whoever looks at the key, and never in anybody's way.

use std::sync::{Mutex, mpsc};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::double::{Answer, Double, Request, ok};
use super::{asked, await_parcels, talking};
use crate::fleet::Fleet;

fn failure() -> Answer {
    Answer::Status(500, "", String::new())
}

/// Has a channel post to a double.
fn hook(fleet: &Fleet, name: &str, double: &Double) {
    fleet.set(&format!("channels.{name}.url"), &format!("{}/{name}", double.url));
    fleet.set(&format!("channels.{name}.kind"), "webhook");
}

fn send(fleet: &Fleet, session: &str, text: &str, channel: &str) {
    fleet.town.gt(["send", session, text, "--channel", channel]).success();
}

fn key(request: &Request) -> &str {
    &request.headers["idempotency-key"]
}

fn texts(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| request.json()["text"].as_str().expect("a text").to_owned()).collect()
}

fn assert_signed(request: &Request, secret: &str) {
    let (at, signature) = request.headers["x-gasworks-signature"].split_once(",v1=").expect("two parts");
    let at = at.strip_prefix("t=").expect("a time");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
    mac.update(format!("{at}.{}", request.body).as_bytes());
    let bytes: Vec<u8> = (0..signature.len() / 2)
        .map(|at| u8::from_str_radix(&signature[2 * at..2 * at + 2], 16).expect("hex"))
        .collect();
    mac.verify_slice(&bytes).expect("the signature is right");
}

#[test]
fn an_answer_is_posted_until_it_arrives_always_under_the_same_key_and_the_agent_runs_once() {
    let double =
        Double::in_order(vec![failure, || Answer::Cut, || Answer::Status(302, "location: /x\r\n", String::new())]);
    let fleet = talking();
    fleet.start_daemon();
    // The daemon takes it at once.
    hook(&fleet, "hook", &double);
    fleet.set("channels.hook.secret", "it is a secret");
    send(&fleet, "dm:anna", "hi", "hook");
    await_parcels(&fleet, "delivered", 1);
    let requests = double.requests();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    for request in &requests {
        assert_eq!((request.path.as_str(), key(request)), ("/hook", "turn-1"));
        assert_eq!(request.body, requests[0].body);
        assert_signed(request, "it is a secret");
    }
    let letter = requests[0].json();
    let fields: Vec<&String> = letter.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["at", "key", "outcome", "run", "session", "text", "to"]);
    assert_eq!(
        json!([letter["key"], letter["session"], letter["outcome"], letter["text"]]),
        json!(["turn-1", "dm:anna", "done", "re: hi"])
    );
    assert_eq!(letter["to"], json!(null), "no recipient was named");
    assert_eq!(asked(&fleet), ["hi"]);
}

#[test]
fn the_receiver_is_told_for_whom_an_answer_is() {
    let double = Double::in_order(Vec::new());
    let fleet = talking();
    hook(&fleet, "hook", &double);
    fleet.start_daemon();
    fleet.town.gt(["send", "dm:anna", "hi", "--channel", "hook", "--to", "anna@example.org"]).success();
    await_parcels(&fleet, "delivered", 1);
    assert_eq!(double.requests()[0].json()["to"], "anna@example.org");
}

#[test]
fn answers_arrive_in_order_though_the_first_is_hard_to_deliver() {
    let busy = || Answer::Status(503, "retry-after: 1\r\n", String::new());
    let double = Double::in_order(vec![busy, busy]);
    let fleet = talking();
    hook(&fleet, "hook", &double);
    fleet.start_daemon();
    for text in ["one", "two", "three"] {
        send(&fleet, "dm:anna", text, "hook");
    }
    await_parcels(&fleet, "delivered", 3);
    assert_eq!(texts(&double.requests()), ["re: one", "re: one", "re: one", "re: two", "re: three"]);
}

#[test]
fn a_receiver_that_never_answers_holds_up_nobody_else() {
    let (dead, alive) = (Double::in_order(vec![|| Answer::Never]), Double::in_order(Vec::new()));
    let fleet = talking();
    hook(&fleet, "dead", &dead);
    hook(&fleet, "alive", &alive);
    fleet.start_daemon();
    send(&fleet, "dm:anna", "one", "dead");
    dead.until("the one that hangs", |requests| !requests.is_empty());
    send(&fleet, "dm:anna", "two", "alive");
    alive.until("the other", |requests| !requests.is_empty());
    await_parcels(&fleet, "delivered", 1);
    assert_eq!(dead.requests().len(), 1);
}

#[test]
fn what_is_refused_for_good_or_not_allowed_is_given_up_and_the_next_is_delivered() {
    let double = Double::in_order(vec![|| Answer::Status(410, "", String::new()), ok]);
    let fleet = talking();
    hook(&fleet, "hook", &double);
    fleet.set("channels.hook.allow", r#"["dm:*"]"#);
    fleet.start_daemon();
    send(&fleet, "dm:anna", "one", "hook");
    let events = fleet.until_events("delivery.failed", None, 1);
    send(&fleet, "group:ops", "two", "hook");
    fleet.until_events("delivery.failed", None, 2);
    send(&fleet, "dm:anna", "three", "hook");
    await_parcels(&fleet, "delivered", 1);
    assert_eq!(texts(&double.requests()), ["re: one", "re: three"]);
    let failed = events.iter().find(|event| event["type"] == "delivery.failed").expect("it was told");
    assert_eq!(failed["data"]["key"], "turn-1", "{failed}");
    let told = failed["data"]["error"].as_str().expect("a reason");
    assert!(told.ends_with("answered with status 410") && !told.contains("/hook"), "{told}");
    let errors: Vec<String> = fleet.town.events().iter().map(|event| event["data"]["error"].to_string()).collect();
    let why = "\"`channels.hook.allow` does not name the session group:ops\"";
    assert!(errors.iter().any(|error| error == why), "{errors:?}");
}

#[test]
fn what_a_killed_daemon_had_posted_comes_again_under_the_same_key_and_the_agent_does_not_run_again() {
    let double = Double::in_order(vec![|| Answer::Never]);
    let fleet = talking();
    hook(&fleet, "hook", &double);
    fleet.start_daemon();
    send(&fleet, "dm:anna", "hi", "hook");
    double.until("the first try", |requests| requests.len() == 1);
    fleet.kill_daemon();
    fleet.start_daemon();
    await_parcels(&fleet, "delivered", 1);
    let requests = double.requests();
    assert_eq!(requests.iter().map(key).collect::<Vec<_>>(), ["turn-1", "turn-1"]);
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(asked(&fleet), ["hi"]);
}

#[test]
fn a_daemon_that_is_told_to_stop_notes_what_is_on_its_way() {
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let double = Double::new(move |_, _| {
        gate.lock().expect("nobody panicked").recv().expect("it is opened");
        ok()
    });
    let fleet = talking();
    hook(&fleet, "hook", &double);
    fleet.start_daemon();
    send(&fleet, "dm:anna", "hi", "hook");
    double.until("the post", |requests| requests.len() == 1);
    Fleet::signal(fleet.daemon_pid(), "-TERM");
    open.send(()).expect("somebody waits");
    fleet.await_daemon_death();
    await_parcels(&fleet, "delivered", 1);
}

#[test]
fn a_channel_is_told_that_a_convoy_has_landed_once() {
    let fleet = talking();
    let double = Double::new(|_, _| ok());
    hook(&fleet, "ops", &double);
    // `gt config set` refuses a channel that is not there; in a file it hinders no other.
    let notify = "\n[convoy]\nnotify = [\"channel:ops\", \"channel:nobody\"]\n";
    fleet.town.write("town.toml", fleet.town.read("town.toml") + notify);
    fleet.start_daemon();
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["convoy", "create", "A trip", "gt-a"]).success();
    fleet.town.gt(["close", "gt-a"]).success();
    let requests = double.until("the notice", |requests| !requests.is_empty());
    let parcel = requests[0].json();
    assert_eq!((&parcel["session"], &parcel["outcome"]), (&json!("notices"), &json!("convoy.landed")), "{parcel}");
    assert!(parcel["text"].as_str().is_some_and(|text| text.contains("A trip")), "{parcel}");
    await_parcels(&fleet, "delivered", 1);
    assert_eq!(double.requests().len(), 1);
}

#[test]
fn a_channel_that_does_not_work_is_seen_with_what_to_do() {
    let fleet = talking();
    fleet.set("channels.dead.url", "http://127.0.0.1:9/hush");
    fleet.set("channels.dead.kind", "webhook");
    fleet.set("channels.mute.url", "http://127.0.0.1:9/hush");
    fleet.set("channels.mute.secret", "env:GT_NO_SUCH_SECRET");
    fleet.set("channels.mute.kind", "webhook");
    let mute = "the channel mute does not run: `channels.mute.secret` is read from the environment, which has no \
                GT_NO_SUCH_SECRET: `export GT_NO_SUCH_SECRET=…`, then `gt daemon restart`";
    assert!(fleet.town.gt(["status"]).stdout.contains(mute), "without a daemon");
    fleet.start_daemon_with(&[("GT_NO_SUCH_SECRET", "it is there")]);
    let status = || fleet.town.gt(["status"]).stdout;
    fleet.until_seen("what the daemon knows", || !status().contains(mute));
    send(&fleet, "dm:anna", "hi", "dead");
    let dead = "the channel dead: 1 delivery not arrived; last error: ";
    fleet.until_seen("a failed delivery", || status().contains(dead));
    let doctor = fleet.town.gt(["doctor"]).stdout;
    assert!(doctor.contains(dead) && doctor.contains("check `channels.dead.url`"), "{doctor}");
    assert!(!doctor.contains("hush"), "{doctor}");
    assert_eq!(fleet.town.gt(["status", "--json"]).json()["channels"][0]["channel"], "dead");
}
