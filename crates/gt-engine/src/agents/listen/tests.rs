//! Tests of reading a file that somebody else is writing.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

struct Log {
    path: PathBuf,
    tail: Tail,
    _dir: TempDir,
}

impl Log {
    fn new() -> Log {
        let dir = tempfile::tempdir().expect("a directory");
        Log { path: dir.path().join("log"), tail: Tail::default(), _dir: dir }
    }

    fn write(&self, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).expect("it can be opened");
        file.write_all(text.as_bytes()).expect("it can be written");
    }

    fn heard(&mut self, is_over: bool) -> Vec<String> {
        let mut heard = Vec::new();
        self.tail.read(&self.path, is_over, |line| heard.push(line.to_owned())).expect("it can be read");
        heard.retain(|line| !line.is_empty());
        heard
    }
}

#[test]
fn each_line_is_heard_once_and_when_it_is_finished() {
    let mut log = Log::new();
    assert_eq!(log.heard(false), Vec::<String>::new(), "a file that is not there yet");
    log.write("one\ntwo");
    assert_eq!(log.heard(false), ["one"]);
    assert_eq!(log.heard(false), Vec::<String>::new());
    log.write(" more\nthree");
    assert_eq!(log.heard(false), ["two more"]);
    assert_eq!(log.heard(true), ["three"], "what nobody will finish is heard in the end");
    assert_eq!(log.heard(true), Vec::<String>::new(), "and once");
}

#[test]
fn a_line_without_end_is_passed_over_and_what_follows_is_heard() {
    let mut log = Log::new();
    log.write(&"x".repeat(LINE_BYTES_MAX + 1));
    assert_eq!(log.heard(false), Vec::<String>::new());
    log.write("rest\nnext\n");
    assert_eq!(log.heard(false), ["next"]);
}

#[test]
fn of_a_flood_only_the_end_is_read() {
    let mut log = Log::new();
    log.write("first\n");
    let line = "y".repeat(1023) + "\n";
    log.write(&line.repeat(usize::try_from(TAIL_BYTES_MAX).expect("it fits") / 1024 + 10));
    log.write("last\n");
    let heard = log.heard(false);
    assert!(!heard.contains(&"first".to_owned()));
    assert_eq!(heard.last().map(String::as_str), Some("last"));
    assert!(heard.iter().all(|line| line == "last" || line.len() == 1023), "no half line is taken for a whole one");
}

fn speaking() -> Ear {
    Ear { speaks: Some(Vendor::Claude), ..Ear::default() }
}

/// Seed 153 of the simulation: the config was broken when a daemon began to listen.
#[test]
fn who_could_not_be_understood_at_first_is_heard_from_the_beginning() {
    let dir = tempfile::tempdir().expect("a directory");
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let (town, _) = Town::init(dir.path(), &gt_store::Stamp::new(now, "tester")).expect("the directory is empty");
    fs::create_dir_all(town.logs_dir()).expect("the town can be written");
    fs::write(town.log_path("r"), "{\"type\":\"result\",\"is_error\":false}\n").expect("it can be written");
    let mut ear = Ear::default();
    ear.learn(|| None);
    ear.hear(&town, "r", false, now);
    assert!(ear.telling("r").is_none());
    ear.learn(|| Some(Vendor::Claude));
    ear.hear(&town, "r", true, now);
    let told = ear.telling("r").expect("it is understood").told;
    assert_eq!(told.activity(), Some(gt_core::agent::Activity::TurnOver));
}

#[test]
fn what_stands_on_a_screen_is_no_stream_and_silence_is_a_question() {
    let dir = tempfile::tempdir().expect("a directory");
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let (town, _) = Town::init(dir.path(), &gt_store::Stamp::new(now, "tester")).expect("the directory is empty");
    fs::create_dir_all(town.logs_dir()).expect("the town can be written");
    fs::write(town.log_path("r"), "{\"type\":\"result\",\"is_error\":false}\n").expect("it can be written");
    fs::write(town.events_path("r"), format!("{HOOKED_MARK}\n")).expect("it can be written");
    let mut ear = speaking();
    ear.hear(&town, "r", false, now);
    assert_eq!((ear.told.activity(), ear.is_hooked), (None, true));
    fs::remove_file(town.events_path("r")).expect("it is there");
    let mut ear = speaking();
    ear.hear(&town, "r", false, now);
    assert_eq!(ear.told.activity(), Some(gt_core::agent::Activity::TurnOver));
}

#[test]
fn a_record_is_read_wherever_its_hook_says_and_nothing_waits_for_a_pipe() {
    let dir = tempfile::tempdir().expect("a directory");
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let (town, _) = Town::init(dir.path(), &gt_store::Stamp::new(now, "tester")).expect("the directory is empty");
    fs::create_dir_all(town.logs_dir()).expect("the town can be written");
    let record = dir.path().join("record.jsonl");
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("it is installed");
    assert!(made.success());
    for (path, tokens_out) in [(&record, 7), (&pipe, 0)] {
        let start = serde_json::json!({ "hook_event_name": "SessionStart", "transcript_path": path });
        let hook = gt_core::agent::read_hook(Vendor::Claude, &start.to_string(), now).expect("a hook");
        let line = r#"{"type":"assistant","message":{"id":"a","usage":{"input_tokens":1,"output_tokens":7}}}"#;
        fs::write(&record, format!("{line}\n")).expect("it can be written");
        fs::write(town.events_path("r"), format!("{HOOKED_MARK}\n{}\n", hook.to_line())).expect("it can be written");
        let mut ear = speaking();
        ear.hear(&town, "r", true, now);
        assert_eq!(ear.told.usage().tokens_out, tokens_out);
    }
}

#[test]
fn a_file_that_was_begun_anew_is_read_from_its_beginning() {
    let mut log = Log::new();
    log.write("one\ntwo\n");
    log.heard(false);
    fs::write(&log.path, "new\n").expect("it can be written");
    assert_eq!(log.heard(false), ["new"]);
}
