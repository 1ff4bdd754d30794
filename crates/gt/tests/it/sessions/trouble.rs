//! Stopping in every phase, crashes under load, floods. // SPEC L2–L4

use std::collections::{BTreeMap, BTreeSet};

use gt_core::lane::Lanes;
use gt_core::session::Rules;
use gt_engine::Town as Place;
use gt_store::{Address, NewMessage, SendOutcome, Stamp};
use jiff::{SignedDuration, Timestamp};

use crate::channels::double::{Double, Request, ok};
use crate::sessions_table::{ECHO, Table};
use crate::town::{session, snapshot};

#[test]
fn stop_and_stopall_work_in_every_phase_and_say_what_they_did() {
    let table = Table::new("sleep 600 & (setsid sleep 600 &); sleep 600");
    table.set("lanes.main", "1");
    let queued = table.town.gt(["send", "dm:early", "no daemon yet"]);
    let unqueued = table.town.gt(["send", "dm:early", "/stop"]);
    table.start_daemon();
    table.town.gt(["send", "dm:a", "runs"]).success();
    table.await_lines("start dm:a", 1);
    table.town.gt(["send", "dm:a", "waits for it"]).success();
    table.town.gt(["send", "dm:b", "waits for the lane"]).success();
    let lane = table.town.gt(["session", "stop", "dm:b"]);
    let running = table.town.gt(["send", "dm:a", "/stop"]);
    table.await_lines("start dm:a waits", 1);
    let all = table.town.gt(["send", "dm:a", "/STOPALL"]);
    table.await_outcomes("dm:a", &["cancelled", "cancelled"]);
    let nothing = table.town.gt(["send", "dm:a", "/stopall"]);
    snapshot!(session([queued, unqueued, lane, running, all, nothing]), @r"
    $ gt send dm:early 'no daemon yet'
    Sent to dm:early.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt send dm:early /stop
    Cancelled 1 message that waited.
    $ gt session stop dm:b
    Cancelled 1 message that waited.
    $ gt send dm:a /stop
    Stopped 1 turn that ran; 1 more is left.
    $ gt send dm:a /STOPALL
    Stopped 1 turn that ran.
    $ gt send dm:a /stopall
    Nothing runs or waits here.
    ");
    table.until_seen("nobody to be left, children included", || table.agents().is_empty());
    assert_eq!(table.lines().len(), 2, "what was cancelled never ran: {:?}", table.lines());
}

#[test]
fn an_interrupting_message_never_runs_beside_the_old_turn() {
    let table = Table::new(
        "case $message in old) trap '' TERM; touch \"$HOME/in\"; sleep 600;; esac; printf 're %s' \"$message\"",
    );
    table.set("sessions.mode", "interrupt");
    table.start_daemon();
    table.town.gt(["send", "dm:a", "old"]).success();
    table.await_file("in");
    let answer = table.town.gt(["send", "dm:a", "new", "--wait"]);
    assert_eq!(answer.stdout.trim(), "re new", "{answer}");
    assert_eq!(table.outcomes("dm:a"), ["cancelled", "done"]);
}

#[test]
fn a_flood_of_one_sender_is_bounded_and_holds_up_nobody_else() {
    let table = Table::new("case $message in flood*) sleep 600;; esac; printf 're %s' \"$message\"");
    table.set("sessions.drop", "new");
    table.start_daemon();
    table.town.gt(["send", "dm:loud", "flood 0"]).success();
    table.await_lines("start dm:loud", 1);
    let place = Place::at(table.town.root()).expect("a town");
    let mut store = place.open_store().expect("it opens");
    let flood: Vec<NewMessage> = (1..2000).map(|n| message("dm:loud", &format!("flood {n}"))).collect();
    let rules = Rules { overflow: gt_core::session::Overflow::New, ..rules() };
    let sent = store.send(&flood, &rules, &Lanes::default(), &stamp()).expect("it is stored");
    let n_taken = sent.iter().flatten().filter(|sent| sent.outcome == SendOutcome::Queued).count();
    assert_eq!(n_taken, 10, "as many as may wait");
    let full = table.town.gt(["send", "dm:loud", "one more"]);
    assert_eq!(full.code, 5, "{full}");
    let other = table.town.gt(["send", "dm:quiet", "hello", "--wait"]);
    assert_eq!(other.stdout.trim(), "re hello", "{other}");
    table.town.gt(["session", "stopall", "dm:loud"]).success();
}

#[test]
fn load_over_kills_of_the_daemon_loses_and_doubles_nothing() {
    const SESSIONS: usize = 40;
    const MESSAGES: usize = 8;
    let table = Table::new(ECHO);
    table.set("sessions.cap", "100");
    let receiver = Double::new(|_, _| ok());
    table.set("channels.hook.url", &receiver.url);
    table.set("channels.hook.kind", "webhook");
    table.start_daemon();
    let place = Place::at(table.town.root()).expect("a town");
    let mut store = place.open_store().expect("it opens");
    let lane = |session: usize| ["main", "subagent", "delegate", "delegate"][session % 4];
    for n in 0..MESSAGES {
        let some: Vec<NewMessage> = (0..SESSIONS)
            .map(|s| NewMessage {
                lane: Some(lane(s).to_owned()),
                deliver: Some(Address { channel: "hook".into(), recipient: Some(s.to_string()), reply_to: None }),
                ..message(&format!("dm:{s}"), &n.to_string())
            })
            .collect();
        let sent = store.send(&some, &rules(), &Lanes::default(), &stamp()).expect("it is stored");
        assert!(sent.iter().all(Result::is_ok));
    }
    for n in [20, 80, 160, 240] {
        table.await_lines("end", n);
        table.kill_daemon();
        table.start_daemon();
    }
    table.await_lines("end", SESSIONS * MESSAGES);
    let is_done = |key: &str| table.outcomes(key).iter().all(|outcome| outcome == "done");
    for s in 0..SESSIONS {
        let key = format!("dm:{s}");
        table.until_seen(&format!("{key} to be answered"), || is_done(&key));
    }
    let mut ran: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        ran.entry(words[1].to_owned()).or_default().push(format!("{} {}", words[0], words[2]));
    }
    let wanted: Vec<String> = (0..MESSAGES).flat_map(|n| [format!("start {n}"), format!("end {n}")]).collect();
    for (key, lines) in &ran {
        assert_eq!(lines, &wanted, "{key} ran each once, in order, one after the other");
    }
    assert_eq!(ran.len(), SESSIONS);
    assert_delivered(&receiver, SESSIONS, MESSAGES);
    assert_eq!(store.inspect(Timestamp::now()).expect("it answers").dispatch, Vec::<String>::new());
}

#[test]
fn an_agent_that_is_killed_is_tried_once_more_and_then_reported() {
    let table = Table::new("touch \"$HOME/in-$message\"; kill -9 $$");
    table.start_daemon();
    let failed = table.town.gt(["send", "dm:a", "x", "--wait"]);
    snapshot!(failed, @r"
    $ gt send dm:a x --wait
    ! failed: it was interrupted 2 times, the last time so: killed by signal 9
    [exit 1]
    ");
    assert_eq!(table.lines(), ["start dm:a x", "start dm:a x"]);
}

#[test]
fn an_answer_whose_end_the_keeper_did_not_see_is_delivered_once_and_not_run_again() {
    let table = Table::new("printf 're %s' \"$message\"; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done");
    let receiver = Double::new(|_, _| ok());
    table.set("channels.hook.url", &receiver.url);
    table.set("channels.hook.kind", "webhook");
    table.start_daemon();
    table.town.gt(["send", "dm:a", "x", "--channel", "hook"]).success();
    table.until_events("run.started", None, 1);
    table.await_lines("start", 1);
    table.kill_daemon();
    table.kill_keepers();
    table.open_gate("gate");
    table.until_seen("the end of the agent", || table.lines().len() == 2 && table.agents().is_empty());
    table.start_daemon();
    table.await_outcomes("dm:a", &["done"]);
    let requests = receiver.until("the answer", |requests| !requests.is_empty());
    let text = requests[0].json()["text"].as_str().expect("a text").to_owned();
    assert_eq!(text, "re x\n\n[the end of this run was not seen, so the answer may be incomplete]");
    // Another message comes after whatever the first may have led to.
    table.town.gt(["send", "dm:a", "y", "--channel", "hook"]).success();
    table.await_outcomes("dm:a", &["done", "done"]);
    assert_eq!(table.lines(), ["start dm:a x", "end dm:a x", "start dm:a y", "end dm:a y"]);
    let requests = receiver.until("the second answer", |requests| requests.len() >= 2);
    let keys: BTreeSet<&String> = requests.iter().map(|request| &request.headers["idempotency-key"]).collect();
    assert_eq!(keys.len(), 2, "each answer has one key");
}

/// Every answer has arrived, in order, and what came twice came under the same name.
fn assert_delivered(receiver: &Double, n_sessions: usize, n_messages: usize) {
    let keys = |requests: &[Request]| -> BTreeSet<String> {
        requests.iter().map(|request| request.headers["idempotency-key"].clone()).collect()
    };
    let requests = receiver.until("every answer", |requests| keys(requests).len() == n_sessions * n_messages);
    let mut by_session: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for request in requests.iter().filter(|request| known.insert(request.headers["idempotency-key"].clone())) {
        let parcel = request.json();
        let word = |name: &str| parcel[name].as_str().expect("a text").to_owned();
        by_session.entry(word("session")).or_default().push(word("text"));
    }
    let wanted: Vec<String> = (0..n_messages).map(|n| format!("re {n}")).collect();
    assert!(by_session.len() == n_sessions && by_session.values().all(|texts| *texts == wanted), "{by_session:#?}");
}

fn message(session: &str, text: &str) -> NewMessage {
    NewMessage {
        session: session.to_owned(),
        text: text.to_owned(),
        sender: "test".to_owned(),
        channel: "test".to_owned(),
        ..NewMessage::default()
    }
}

fn rules() -> Rules {
    Rules { debounce: SignedDuration::ZERO, ..Rules::default() }
}

fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "test")
}
