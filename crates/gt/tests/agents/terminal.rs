//! Agents on screens of the town's tmux: what is known of them by what they tell, when they wait for a person, and that
//! whoever does not end by itself is ended.
//!
//! Nothing is decided by a screen. It is looked at only as a person would, to see a question before answering it.

use gt_model::{Answer, Script, TOKENS, WORK};

use crate::cli::{Cli, Place, Rights};
use crate::fleet::count;
use crate::workshop::Workshop;

fn open(script: Script, rights: Rights) -> Workshop {
    let tmux = std::process::Command::new("tmux").arg("-V").output();
    assert!(tmux.is_ok(), "no `tmux` to make a terminal with");
    Workshop::open_at(Place::Terminal, script, rights)
}

impl Workshop {
    /// What a person sees who looks at the only worker's screen.
    fn screen(&self) -> String {
        self.gt(&["polecat", "peek", "Toast"]).stdout
    }

    /// Waits until the only worker is shown as waiting for this, and first of all.
    fn await_waiting(&self, need: &str) {
        self.fleet.until_events("run.waiting", None, 1);
        let worker = self.worker();
        assert_eq!((&worker["state"], &worker["waiting_for"]), (&"waiting".into(), &need.into()), "{worker}");
        let status = self.gt(&["status"]).stdout;
        let first = status.lines().position(|line| line == "Needs a person (1)");
        let running = status.lines().position(|line| line.starts_with("Running"));
        assert!(first.is_some() && first < running, "{status}");
    }

    /// Answers the question on the screen until the worker goes on. One that has just drawn its question may not listen yet.
    fn answer_until_it_goes_on(&self, question: &str, answer: &str) {
        self.fleet.until_seen("the question", || self.screen().to_lowercase().contains(question));
        self.fleet.until_seen("that it goes on", || {
            let asks = self.worker()["state"] == "waiting" && self.screen().to_lowercase().contains(question);
            if asks {
                self.gt(&["polecat", "send", "Toast", answer]);
            }
            // One that is quick has closed its bead before anybody notes that it goes on.
            let events = self.fleet.town.events();
            count(&events, "run.resumed", None) + count(&events, "bead.closed", None) > 0
        });
    }
}

#[test]
fn claude_on_a_screen_takes_a_bead_to_merged_and_is_ended() {
    takes_a_bead_to_merged_and_is_ended(Cli::Claude);
}

#[test]
fn codex_on_a_screen_takes_a_bead_to_merged_and_is_ended() {
    takes_a_bead_to_merged_and_is_ended(Cli::Codex);
}

/// What it has used is not in its hooks, but in the record that it keeps itself.
fn takes_a_bead_to_merged_and_is_ended(cli: Cli) {
    let shop = open(Script::work(), Rights::All);
    shop.fleet.set("default_agent", cli.name());
    shop.fleet.hold(&["gt-a"]);
    shop.gt(&["sling", "gt-a"]);
    let end = shop.await_end("gt-a", 1);
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.assert_shows_use(cli, &end, (2 * TOKENS.0, 2 * TOKENS.1));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

/// The home that several share is nobody's channel: each ends its own bead, and leaves nothing in the background.
#[test]
fn several_of_one_home_end_each_its_own_bead() {
    let shop = open(Script::work(), Rights::All);
    let beads = ["gt-a", "gt-b", "gt-c"].map(str::to_owned);
    shop.sling(Cli::Codex, "gt-a");
    // A home that was never used is set up by whoever comes first; of several who come at once one fails.
    shop.fleet.until_events("bead.closed", Some("gt-a"), 1);
    shop.sling(Cli::Codex, "gt-b");
    shop.sling(Cli::Codex, "gt-c");
    shop.fleet.until_done(&beads);
    let events = shop.fleet.town.events();
    for bead in &beads {
        let run_of = |kind: &str| {
            let event = events.iter().find(|event| event["type"] == kind && event["bead"] == **bead);
            event.unwrap_or_else(|| panic!("no {kind} of {bead}"))["run"].clone()
        };
        assert_eq!(run_of("run.reported"), run_of("run.started"));
    }
    shop.fleet.assert_at_rest(&beads);
}

#[test]
fn claude_on_a_screen_asks_is_shown_as_waiting_and_goes_on_when_it_is_allowed() {
    asks_is_shown_as_waiting_and_goes_on(Cli::Claude, "1");
}

#[test]
fn codex_on_a_screen_asks_is_shown_as_waiting_and_goes_on_when_it_is_allowed() {
    asks_is_shown_as_waiting_and_goes_on(Cli::Codex, "y");
}

fn asks_is_shown_as_waiting_and_goes_on(cli: Cli, yes: &str) {
    let answers = vec![Answer::Escalate(WORK.to_owned()), Answer::Text("All done.".to_owned())];
    let shop = open(Script::default().with("gt-a", answers), Rights::Few);
    shop.sling(cli, "gt-a");
    shop.await_waiting("approval");
    let why = shop.gt(&["explain", "gt-a"]).stdout;
    assert!(why.contains("shop/Toast waits for an approval"), "{why}");
    assert_eq!(shop.status_of("gt-a"), "in_progress");
    shop.answer_until_it_goes_on("1. yes", yes);
    let end = shop.await_end("gt-a", 1);
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(shop.committed(&end, "gt-a.txt").as_deref(), Some("gt-a\n"));
}

#[test]
fn a_limit_of_claude_on_a_screen_holds_it_up_and_costs_nothing() {
    a_limit_on_a_screen_holds_up_and_costs_nothing(Cli::Claude, Cli::Codex);
}

/// No hook of Codex tells of it: it stands in its record only.
#[test]
fn a_limit_of_codex_on_a_screen_holds_it_up_and_costs_nothing() {
    a_limit_on_a_screen_holds_up_and_costs_nothing(Cli::Codex, Cli::Claude);
}

/// On a screen it stays after that, and is ended.
fn a_limit_on_a_screen_holds_up_and_costs_nothing(cli: Cli, other: Cli) {
    let answers = [vec![Answer::Limit(3600)], Script::working()].concat();
    let script = Script::default().with("gt-a", answers).with("gt-b", Script::working());
    let shop = open(script, Rights::All);
    shop.sling(cli, "gt-a");
    shop.fleet.until_events("run.waiting", Some("gt-a"), 1);
    assert_eq!(shop.worker()["waiting_for"], "limit");
    shop.let_time_pass("activity_at");
    shop.assert_limit_is_survived(cli, other);
}

#[test]
fn a_claude_on_a_screen_whose_processes_are_killed_is_followed_by_another() {
    one_whose_processes_are_killed_is_followed_by_another(Cli::Claude);
}

#[test]
fn a_codex_on_a_screen_whose_processes_are_killed_is_followed_by_another() {
    one_whose_processes_are_killed_is_followed_by_another(Cli::Codex);
}

fn one_whose_processes_are_killed_is_followed_by_another(cli: Cli) {
    let answers = [vec![Answer::Hang], Script::working()].concat();
    let shop = open(Script::default().with("gt-a", answers), Rights::All);
    shop.fleet.set("witness.redispatch_cooldown", "0s");
    shop.sling(cli, "gt-a");
    shop.await_questions("gt-a", 1);
    shop.kill_group(&shop.worker());
    let killed = shop.await_end("gt-a", 1);
    assert_eq!((&killed["data"]["outcome"], &killed["data"]["signal"]), (&"died".into(), &9.into()), "{killed}");
    let end = shop.await_end("gt-a", 2);
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn claude_that_asks_whether_to_trust_a_directory_is_shown_as_waiting() {
    one_that_asks_for_trust_is_shown_as_waiting(Cli::Claude);
}

#[test]
fn codex_that_asks_whether_to_trust_a_directory_is_shown_as_waiting() {
    one_that_asks_for_trust_is_shown_as_waiting(Cli::Codex);
}

/// It tells nobody. That its hooks are silent is what there is to go by.
fn one_that_asks_for_trust_is_shown_as_waiting(cli: Cli) {
    let shop = open(Script::work(), Rights::None);
    shop.sling(cli, "gt-a");
    shop.fleet.until_seen("the question", || shop.screen().to_lowercase().contains("trust this folder"));
    assert_eq!(shop.worker()["state"], "working");
    shop.let_time_pass("started_at");
    shop.await_waiting("trust");
    assert_eq!(shop.questions(""), Vec::<String>::new(), "the model was asked before the directory was trusted");
    shop.answer_until_it_goes_on("trust this folder", "1");
    assert_eq!(shop.await_end("gt-a", 1)["data"]["outcome"], "completed");
}
