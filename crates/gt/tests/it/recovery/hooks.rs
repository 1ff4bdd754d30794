//! Notices: commands and web hooks are told, each once, whoever else cannot be reached. // SPEC C4, R3

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::fleet::{Fleet, PATIENCE};

/// A fleet whose daemon tells these targets.
fn telling(targets: &[&str]) -> Fleet {
    let fleet = Fleet::with_cap(5, "exec sleep 600");
    fleet.set("convoy.notify", &json!(targets).to_string());
    fleet.hold(&["gt-a"]);
    fleet.start_daemon();
    fleet
}

fn escalate(fleet: &Fleet, words: &str) {
    fleet.town.gt(["escalate", words, "--bead", "gt-a"]).success();
}

/// A server on loopback that answers with these statuses, one after the other, and passes on what it was sent.
fn server(statuses: &'static [&'static str]) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/hook?token=hush", listener.local_addr().expect("it is bound"));
    let (sender, posted) = mpsc::channel();
    std::thread::spawn(move || {
        for (stream, status) in listener.incoming().zip(statuses) {
            let mut stream = BufReader::new(stream.expect("somebody connects"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).expect("a line");
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("the body comes whole");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).expect("it is answered");
            sender.send((head, serde_json::from_slice(&body).expect("it is JSON"))).unwrap_or_default();
        }
    });
    (url, posted)
}

/// The lines of a file in the home, once there are so many.
fn lines(fleet: &Fleet, name: &str, n: usize) -> Vec<String> {
    let path = fleet.home(name);
    let read = || fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    fleet.until_seen(&format!("{n} lines in {name}"), || read().len() >= n);
    read()
}

fn until_settled(fleet: &Fleet, n: i64) {
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "SELECT count(*) FROM notice WHERE next_at IS NULL";
    let n_settled = || store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("it answers");
    fleet.until_seen(&format!("that {n} are settled"), || n_settled() == n);
}

#[test]
fn a_command_gets_json_on_its_input_and_the_gist_in_its_environment() {
    let fleet =
        telling(&[r#"cat >> "$HOME/json"; echo >> "$HOME/json"; echo "$GT_EVENT $GT_BEAD $GT_TEXT" >> "$HOME/gist""#]);
    escalate(&fleet, "which of the two?");
    assert_eq!(lines(&fleet, "gist", 1), ["bead.escalated gt-a gt-a needs a person: which of the two?"]);
    let told: Value = serde_json::from_str(&lines(&fleet, "json", 1)[0]).expect("it is JSON");
    let fields: Vec<&String> = told.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["at", "bead", "data", "event", "id", "text", "town"]);
    assert_eq!((&told["event"], &told["data"]["text"]), (&json!("bead.escalated"), &json!("which of the two?")));
    assert_eq!(told["town"], json!(fleet.town.root().display().to_string()));
}

#[test]
fn who_failed_is_told_again_and_who_was_told_is_not() {
    let (url, posted) = server(&["302 Elsewhere", "204 Fine", "200 Fine"]);
    let fleet = telling(&[&url, r#"echo "$GT_TEXT" >> "$HOME/told""#]);
    escalate(&fleet, "one");
    for _ in 0..2 {
        let (head, body) = posted.recv_timeout(PATIENCE).expect("it is posted");
        assert!(head.starts_with("POST /hook?token=hush HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/json\r\n"), "{head}");
        assert_eq!((&body["event"], &body["bead"]), (&json!("bead.escalated"), &json!("gt-a")));
    }
    escalate(&fleet, "two");
    assert_eq!(posted.recv_timeout(PATIENCE).expect("it is posted").1["text"], "gt-a needs a person: two");
    // What was told is told in order, so nothing comes between.
    assert_eq!(lines(&fleet, "told", 2), ["gt-a needs a person: one", "gt-a needs a person: two"]);
    let store = fs::read(fleet.town.store()).expect("the store is there");
    let has = |word: &[u8]| store.windows(word.len()).any(|part| part == word);
    assert!(!has(b"token=hush"), "secrets of an address are not kept");
}

#[test]
fn a_target_that_hangs_holds_up_nobody() {
    let fleet = telling(&[r#"echo $$ > "$HOME/hangs"; exec sleep 600"#, r#"echo "$GT_TEXT" >> "$HOME/told""#]);
    escalate(&fleet, "one");
    fleet.await_file("hangs");
    escalate(&fleet, "two");
    assert_eq!(lines(&fleet, "told", 2).len(), 2);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.started", Some("gt-a"), 1);
    let pid = lines(&fleet, "hangs", 1)[0].parse().expect("a number");
    fleet.kill_daemon();
    Fleet::signal(pid, "-9"); // it still hangs
}

#[test]
fn a_target_that_hangs_delays_no_second_try_of_another() {
    let fails_once =
        r#"if [ -e "$HOME/tried" ]; then echo "$GT_TEXT" >> "$HOME/told"; else touch "$HOME/tried"; exit 1; fi"#;
    let fleet = telling(&[r#"echo $$ >> "$HOME/hangs"; exec sleep 600"#, fails_once]);
    escalate(&fleet, "one");
    assert_eq!(lines(&fleet, "told", 1).len(), 1);
    let pid: u32 = lines(&fleet, "hangs", 1)[0].parse().expect("a number");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "it had to wait until that one was given up");
    fleet.kill_daemon();
    Fleet::signal(pid, "-9");
}

#[test]
fn a_command_that_runs_when_the_daemon_stops_ends_with_it_and_is_called_again() {
    let hangs = r#"trap '' TERM; sleep 600 & echo $! >> "$HOME/child"; echo $$ >> "$HOME/hangs"; wait"#;
    let fleet = telling(&[hangs]);
    escalate(&fleet, "one");
    let pids = [lines(&fleet, "hangs", 1), lines(&fleet, "child", 1)];
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.await_daemon_death();
    for pid in pids.iter().flatten() {
        fleet.await_end(pid.parse().expect("a number"));
    }
    fleet.start_daemon();
    assert_eq!(lines(&fleet, "hangs", 2).len(), 2);
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.await_daemon_death();
}

#[test]
fn what_nobody_told_before_a_crash_is_told_after_it() {
    let fleet = telling(&[r#"while [ ! -e "$HOME/open" ]; do sleep 0.02; done; echo "$GT_TEXT" >> "$HOME/told""#]);
    fleet.kill_daemon();
    escalate(&fleet, "nobody hears this");
    assert!(!fleet.home("told").exists());
    fleet.open_gate("open");
    fleet.start_daemon();
    assert_eq!(lines(&fleet, "told", 1), ["gt-a needs a person: nobody hears this"]);
    until_settled(&fleet, 1);
    fleet.kill_daemon();
    fleet.start_daemon();
    escalate(&fleet, "and this");
    assert_eq!(lines(&fleet, "told", 2)[1], "gt-a needs a person: and this");
}

#[test]
fn silence_and_waiting_are_told_too() {
    let ask = r#"{"hook_event_name":"PermissionRequest","session_id":"s-1","tool_use_id":"t"}"#;
    let fleet = telling(&[r#"echo "$GT_EVENT $GT_TEXT" >> "$HOME/told""#]);
    fleet.set("agents.scripted.speaks", "claude");
    fleet.set("witness.stall_after", "2s");
    fleet.script(&format!(
        "[ $GT_BEAD = gt-a ] && echo '{ask}' | gt agent-event claude\necho hello; trap '' INT; sleep 600"
    ));
    fleet.hold(&["gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    let mut told = lines(&fleet, "told", 2);
    told.sort();
    let polecat = |line: &str| line.replace("shop/Toast", "[WHO]").replace("shop/Ember", "[WHO]");
    let told: Vec<String> = told.iter().map(|line| polecat(line)).collect();
    assert_eq!(
        told,
        ["run.stalled [WHO] gives no sign of life on gt-b", "run.waiting [WHO] waits for an approval on gt-a"]
    );
}

#[test]
fn a_desktop_that_cannot_be_told_is_missed_once() {
    let fleet = Fleet::with_cap(5, "exec sleep 600");
    fleet.set("convoy.notify", r#"["desktop"]"#);
    fleet.hold(&["gt-a"]);
    let bin = fleet.home("bin");
    fs::create_dir(&bin).expect("it is new");
    let path = std::env::var_os("PATH").unwrap_or_default();
    for program in ["sh", "git", "bash", "sleep"] {
        let mut places = std::env::split_paths(&path).map(|dir| dir.join(program));
        let found = places.find(|place| place.exists()).expect("it is installed");
        std::os::unix::fs::symlink(found, bin.join(program)).expect("it is new");
    }
    fleet.start_daemon_with(&[("PATH", bin.to_str().expect("a path"))]);
    escalate(&fleet, "one");
    let events = fleet.until_events("notice.failed", None, 1);
    let missed = events.iter().find(|event| event["type"] == "notice.failed").expect("it is there");
    assert_eq!(missed["data"]["error"], "the desktop cannot be told: `notify-send` is not installed");
    escalate(&fleet, "two");
    let shown = bin.join("notify-send");
    until_settled(&fleet, 2);
    assert_eq!(crate::fleet::count(&fleet.town.events(), "notice.failed", None), 1);
    // Once it is installed it is used.
    fs::write(&shown, "#!/bin/sh\necho \"$@\" >> \"$HOME/shown\"\n").expect("it can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&shown, mode).expect("it is ours");
    escalate(&fleet, "three");
    assert_eq!(lines(&fleet, "shown", 1), ["--app-name=Gasworks -- Gasworks gt-a needs a person: three"]);
}
