//! Agents on a screen: what they tell through their hooks, when they wait for a person, and that they do not end by
//! themselves.
//!
//! The screens are tmux servers of the test's own. Nothing that is decided here is read off a screen, except that a
//! question is on it which no hook tells of.

use std::fs;
use std::path::Path;

use gt_model::{Answer, Script, WORK};
use serde_json::Value;

use crate::cli::{Cli, Place, Rights, programs};
use crate::workshop::Workshop;

fn open(script: Script, rights: Rights) -> Option<Workshop> {
    let is_there = std::process::Command::new("tmux").arg("-V").output().is_ok();
    if !is_there {
        eprintln!("skipped: no `tmux` to make a terminal with");
        return None;
    }
    Workshop::open_at(Place::Terminal, script, rights)
}

impl Workshop {
    fn tmux(&self, bead: &str, arguments: &[&str]) -> String {
        let socket = self.fleet.home(&format!("{bead}.tmux"));
        let output = self.fleet.town.command("tmux").arg("-S").arg(socket).args(arguments).output();
        String::from_utf8_lossy(&output.expect("tmux is there").stdout).into_owned()
    }

    fn screen(&self, bead: &str) -> String {
        self.tmux(bead, &["capture-pane", "-p"])
    }

    /// Answers the question on the screen. An agent that has just drawn it may not listen yet, so what counts is that the
    /// question goes away.
    fn answer_yes(&self, bead: &str) {
        let asks = || self.screen(bead).contains("1. Yes");
        self.fleet.until_seen("a question", asks);
        self.fleet.until_seen("no question", || {
            self.tmux(bead, &["send-keys", "Enter"]);
            !asks()
        });
    }

    /// What the agent told through its hooks so far.
    fn told(&self, bead: &str) -> Vec<Value> {
        read_lines(&self.fleet.home(&format!("{bead}.hooks")))
    }

    /// Waits until the agent tells of an event, and returns all that it told.
    fn await_hook(&self, bead: &str, event: &str) -> Vec<Value> {
        let mut told = Vec::new();
        self.fleet.until_seen(&format!("hook {event} of {bead}"), || {
            told = self.told(bead);
            told.iter().any(|line| line["hook_event_name"] == event)
        });
        told
    }
}

/// A line that is not yet whole is not there yet.
fn read_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn names(told: &[Value]) -> Vec<&str> {
    told.iter().filter_map(|line| line["hook_event_name"].as_str()).collect()
}

#[test]
fn claude_on_a_screen_takes_a_bead_to_closed_and_is_ended() {
    takes_a_bead_to_closed_and_is_ended(Cli::Claude);
}

#[test]
fn codex_on_a_screen_takes_a_bead_to_closed_and_is_ended() {
    takes_a_bead_to_closed_and_is_ended(Cli::Codex);
}

fn takes_a_bead_to_closed_and_is_ended(cli: Cli) {
    let Some(shop) = open(Script::work(), Rights::All) else { return };
    shop.sling(cli, "gt-a");
    let told = shop.await_hook("gt-a", "Stop");
    assert_eq!(names(&told), ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]);
    let prompt = told[1]["prompt"].as_str().expect("it tells what it was asked");
    assert!(prompt.contains("Your work is gt-a"), "{prompt}");
    assert_eq!(told[4]["last_assistant_message"], "All done.");
    let end = shop.await_end("gt-a", 1);
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(shop.committed(&end, "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

/// Codex has a server in the background for all who share a home and have no settings on their command line. There the
/// commands of one run would get the environment of another, and end its bead.
#[test]
fn agents_of_one_home_end_each_its_own_bead() {
    let Some(shop) = open(Script::work(), Rights::All) else { return };
    settle_codex_by_files(&shop);
    for bead in ["gt-a", "gt-b", "gt-c"] {
        shop.sling(Cli::Codex, bead);
        let events = shop.fleet.until_events("run.reported", Some(bead), 1);
        let run_of = |kind: &str| {
            let event = events.iter().find(|event| event["type"] == kind && event["bead"] == bead);
            event.expect("it was waited for")["run"].clone()
        };
        assert_eq!(run_of("run.reported"), run_of("run.started"));
    }
}

/// What is else on its command line, in the home that its runs share.
fn settle_codex_by_files(shop: &Workshop) {
    let file = shop.fleet.home("codex/config.toml");
    let config = fs::read_to_string(&file).expect("it was written");
    let rights = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nallow_login_shell = false\n";
    let repository = shop.fleet.town.path("shop").display().to_string();
    let trust = format!("\n[projects.{repository:?}]\ntrust_level = \"trusted\"\n");
    fs::write(&file, [rights, &config, &trust].concat()).expect("the home can be written");
    let program = programs().expect("it is installed").join("codex").display().to_string();
    let script = shop.fleet.home("in-terminal.sh").display().to_string();
    let command = ["sh", &script, &program, "--no-daemon"];
    shop.fleet.set("agents.codex.command", &format!("{command:?}"));
}

#[test]
fn claude_on_a_screen_asks_waits_and_goes_on_when_it_is_allowed() {
    asks_waits_and_goes_on_when_it_is_allowed(Cli::Claude);
}

#[test]
fn codex_on_a_screen_asks_waits_and_goes_on_when_it_is_allowed() {
    asks_waits_and_goes_on_when_it_is_allowed(Cli::Codex);
}

fn asks_waits_and_goes_on_when_it_is_allowed(cli: Cli) {
    let answers = vec![Answer::Escalate(WORK.to_owned()), Answer::Text("All done.".to_owned())];
    let Some(shop) = open(Script::default().with("gt-a", answers), Rights::Few) else { return };
    shop.sling(cli, "gt-a");
    let told = shop.await_hook("gt-a", "PermissionRequest");
    assert_eq!(names(&told), ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest"]);
    assert_eq!((&told[3]["tool_name"], &told[3]["tool_input"]["command"]), (&"Bash".into(), &WORK.into()));
    assert_eq!(shop.status_of("gt-a"), "in_progress");
    shop.answer_yes("gt-a");
    let told = shop.await_hook("gt-a", "Stop");
    assert_eq!(names(&told)[4..], ["PostToolUse", "Stop"]);
    shop.fleet.until_events("bead.closed", Some("gt-a"), 1);
}

#[test]
fn claude_on_a_screen_tells_of_a_limit_and_stays() {
    let Some(shop) = open(Script::default().with("gt-a", vec![Answer::Limit(3600)]), Rights::All) else { return };
    shop.sling(Cli::Claude, "gt-a");
    let told = shop.await_hook("gt-a", "StopFailure");
    assert_eq!(names(&told), ["SessionStart", "UserPromptSubmit", "StopFailure"]);
    assert_eq!(told[2]["error"], "rate_limit", "{}", told[2]);
    assert!(shop.fleet.agents().iter().any(|agent| agent.leads), "it has ended");
}

/// No hook tells of it: what is left is the record that Codex keeps itself, whose place it tells at its start.
#[test]
fn codex_on_a_screen_keeps_a_limit_in_its_own_record_and_stays() {
    let Some(shop) = open(Script::default().with("gt-a", vec![Answer::Limit(3600)]), Rights::All) else { return };
    shop.sling(Cli::Codex, "gt-a");
    let told = shop.await_hook("gt-a", "UserPromptSubmit");
    let record = told[0]["transcript_path"].as_str().expect("it tells where its record is").to_owned();
    let is_limit = |line: &Value| line["payload"]["error"]["codex_error_info"] == "usage_limit_exceeded";
    shop.fleet.until_seen("the limit in the record", || read_lines(Path::new(&record)).iter().any(is_limit));
    assert_eq!(names(&shop.told("gt-a")), ["SessionStart", "UserPromptSubmit"]);
    assert!(shop.fleet.agents().iter().any(|agent| agent.leads), "it has ended");
}

#[test]
fn claude_that_asks_whether_to_trust_a_directory_tells_nobody() {
    one_that_asks_for_trust_tells_nobody(Cli::Claude);
}

#[test]
fn codex_that_asks_whether_to_trust_a_directory_tells_nobody() {
    one_that_asks_for_trust_tells_nobody(Cli::Codex);
}

/// That nothing is told is all there is to see: no session has started.
fn one_that_asks_for_trust_tells_nobody(cli: Cli) {
    let Some(shop) = open(Script::work(), Rights::None) else { return };
    shop.sling(cli, "gt-a");
    shop.fleet.until_seen("the question", || shop.screen("gt-a").to_lowercase().contains("trust this folder"));
    assert_eq!(shop.told("gt-a"), Vec::<Value>::new());
    assert_eq!(shop.questions(""), Vec::<String>::new(), "the model was asked before the directory was trusted");
}
