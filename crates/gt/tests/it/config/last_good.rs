//! A broken `town.toml` changes nothing: the last good config stays in force, and every command says so. // SPEC T5

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use gt_engine::config::digest;
use rusqlite::Connection;
use serde_json::Value;

use crate::fleet::{Fleet, PATIENCE, count};
use crate::town::{Town, session, snapshot};

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

/// Every way to break the file, as a text or by removing it.
const BREAKS: [Option<&str>; 5] =
    [Some(""), Some(" \n\n"), Some("\u{feff}"), Some("[scheduler]\nmax_polecats = = 3\n"), None];

fn spoil(town: &Town, text: Option<&str>) {
    match text {
        Some(text) => drop(town.write("town.toml", text)),
        None => fs::remove_file(town.path("town.toml")).expect("it was there"),
    }
}

#[test]
fn commands_go_on_with_the_last_good_config_and_say_so() {
    let town = Town::with_rig();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
    for text in BREAKS {
        spoil(&town, text);
        for words in [&["config", "get", "scheduler.max_polecats"][..], &["scheduler", "status"], &["scheduler", "run"]]
        {
            let answer = town.call(words.iter().copied()).run();
            answer.success();
            assert!(answer.stderr.contains("the last good config stays in force"), "{text:?}: {answer}");
            assert!(answer.stderr.matches("warning:").count() == 1, "{text:?}: {answer}");
        }
        assert_eq!(town.gt(["config", "get", "scheduler.max_polecats"]).stdout, "3\n", "{text:?}");
        assert_eq!(town.gt(["status", "--json"]).json()["max_polecats"], 3, "{text:?}");
        town.write("town.toml", "scheduler.max_polecats = 3\n");
        assert_eq!(town.gt(["scheduler", "status"]).stderr.matches("warning:").count(), 0);
    }
}

#[test]
fn what_is_said_of_an_empty_file() {
    let town = Town::with_rig();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
    town.write("town.toml", "");
    let answers = [
        town.gt(["config", "get", "scheduler.max_polecats"]),
        town.gt(["config", "get", "scheduler.max_polecats", "--json"]),
        town.gt(["config", "set", "scheduler.max_polecats", "5"]),
        town.gt(["config", "unset", "scheduler.max_polecats"]),
        town.gt(["status"]),
    ];
    assert_eq!(town.read("town.toml"), "", "what was written stays");
    snapshot!(session(answers), @r#"
    $ gt config get scheduler.max_polecats
    3
    ! warning: [TOWN]/town.toml is empty; the last good config stays in force
    ! hint: write it again, or remove [TOWN]/town.toml and let `gt init` write the last good one
    $ gt config get scheduler.max_polecats --json
    {"help":"polecats alive at once; -1 and 0: no cap, work starts at once","key":"scheduler.max_polecats","source":"file","value":3}
    ! warning: [TOWN]/town.toml is empty; the last good config stays in force
    ! hint: write it again, or remove [TOWN]/town.toml and let `gt init` write the last good one
    $ gt config set scheduler.max_polecats 5
    ! error: [TOWN]/town.toml is empty
    ! hint: write it again, or remove [TOWN]/town.toml and let `gt init` write the last good one
    [exit 1]
    $ gt config unset scheduler.max_polecats
    ! error: [TOWN]/town.toml is empty
    ! hint: write it again, or remove [TOWN]/town.toml and let `gt init` write the last good one
    [exit 1]
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 3 agents running

    Needs a person (1)
      ! [TOWN]/town.toml is empty; the last good config stays in force

    Nothing runs.

    Nothing is scheduled.
    "#);
    let doctor = town.gt(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    let first = doctor.to_string().lines().skip(1).take(2).collect::<Vec<_>>().join("\n");
    snapshot!(first, @r"
    ✗ config     [TOWN]/town.toml is empty; the last good config stays in force
        → write it again, or remove [TOWN]/town.toml and let `gt init` write the last good one
    ");
    let error = town.gt(["config", "set", "scheduler.max_polecats", "5", "--json"]);
    error.assert_is_json_error();
}

#[test]
fn comments_only_are_a_config() {
    let town = Town::with_rig();
    town.gt(["config", "set", "default_agent", "codex"]).success();
    town.write("town.toml", "# nothing yet\n");
    let answer = town.gt(["config", "get", "default_agent"]);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("claude\n", ""), "{answer}");
}

#[test]
fn a_removed_config_comes_back_as_it_was() {
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\"]"]).success();
    let good = town.read("town.toml");
    spoil(&town, None);
    let set = town.gt(["config", "set", "scheduler.max_polecats", "5"]);
    assert_eq!(set.code, 1, "{set}");
    assert!(!town.path("town.toml").exists(), "a command has made a config without the gates");
    town.gt(["init"]).success();
    assert_eq!(town.read("town.toml"), good);
}

#[test]
fn without_any_good_config_nobody_guesses_what_may_run() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a"]);
    fleet.town.forget_config();
    for text in BREAKS {
        spoil(&fleet.town, text);
        for arguments in [["sling", "gt-a"], ["scheduler", "run"]] {
            let refused = fleet.town.refused(arguments);
            assert!(refused.contains("town.toml"), "{refused}");
        }
        fleet.town.write("town.toml", "");
    }
}

#[test]
fn a_daemon_that_starts_on_a_broken_file_keeps_to_the_last_good_caps() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.write("town.toml", "");
    let slung = fleet.town.gt(["sling", "gt-a", "gt-b"]);
    slung.success();
    assert!(slung.stderr.contains("the last good config stays in force"), "{slung}");
    fleet.start_daemon();
    fleet.until_events("config.rejected", None, 1);
    fleet.until_events("run.started", None, 1);
    // A pass after which nothing more may start.
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
    assert_eq!(count(&fleet.town.events(), "bead.hooked", None), 1, "the cap of the last good config holds");
}

/// What is seen while an edit is fresh, which it is for ten seconds. On a very busy machine it is made and looked at again.
fn right_after_edit<T>(town: &Town, text: &str, look: impl Fn() -> T) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        town.write("town.toml", text);
        let begun = Instant::now();
        let seen = look();
        if begun.elapsed() < Duration::from_secs(5) {
            return seen;
        }
        assert!(Instant::now() < deadline, "a few commands never end within five seconds of an edit");
    }
}

#[test]
fn a_command_meets_a_cap_that_was_edited_out_a_moment_ago() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a"]);
    let good = fleet.town.read("town.toml");
    let edited = good.replace("max_polecats = 1\n", "");
    assert_ne!(edited, good);
    let sling = right_after_edit(&fleet.town, &edited, || fleet.town.gt(["sling", "gt-a", "--dry-run"]));
    sling.success();
    assert!(sling.stdout.contains("Would schedule gt-a"), "{sling}");
    assert!(
        sling.stderr.contains("the limit `scheduler.max_polecats` (it was 1) was removed from town.toml"),
        "{sling}"
    );
}

#[test]
fn a_command_changes_its_own_key_and_takes_nothing_else_of_a_fresh_edit() {
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\"]"]).success();
    let edited = town.read("town.toml").replace("gates = [\"make\"]", "merge = \"direct\"");
    let got = right_after_edit(&town, &edited, || {
        town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
        ["rigs.shop.gates", "scheduler.max_polecats"].map(|key| town.gt(["config", "get", key]).stdout)
    });
    assert_eq!(got, ["[\"make\"]\n", "3\n"]);
}

fn dropped(town: &Town) -> Value {
    town.gt(["status", "--json"]).json()["config_dropped"].clone()
}

#[test]
fn what_was_dropped_is_shown_for_a_day_or_until_it_is_back() {
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\"]"]).success();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
    assert_eq!(dropped(&town), serde_json::json!([]));
    town.gt(["config", "unset", "rigs.shop.gates"]).success();
    town.gt(["config", "set", "scheduler.max_polecats", "-1"]).success();
    let keys = |dropped: Value| -> Vec<Value> {
        dropped.as_array().expect("a list").iter().map(|one| one["key"].clone()).collect()
    };
    assert_eq!(keys(dropped(&town)), ["scheduler.max_polecats", "rigs.shop.gates"]);
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).success();
    assert_eq!(keys(dropped(&town)), ["rigs.shop.gates"]);
    let store = Connection::open(town.store()).expect("the store is there");
    let older = |hours: i64| {
        store.execute("UPDATE config_dropped SET at = at - ?1", [hours * 3_600_000_000]).expect("it is SQL");
    };
    older(23);
    let status = town.gt(["status"]).stdout;
    assert!(!status.contains("Needs a person"), "a deliberate command needs nobody: {status}");
    assert!(
        status.contains(
            "Limits dropped in the last 24 h (1)\n  gates of rig shop were removed with `gt config` 23 h ago"
        ),
        "{status}"
    );
    older(2);
    assert_eq!(dropped(&town), serde_json::json!([]));
    assert!(!town.gt(["status"]).stdout.contains("gates"));
}

/// Cut off in the middle, as an editor or a full disk leaves it, a file may still be a config.
#[test]
fn a_file_that_was_cut_off_a_moment_ago_merges_and_pushes_nothing_that_was_held_back() {
    let town = Town::with_rig();
    let gates = "[rigs.shop]\ngates = [\"make\"]\n";
    let rest = "merge = \"local\"\npull_request = [\"./pr.sh\"]\npush = false\n\n[server]\nallow = [\"dm:*\"]\n";
    let keys = ["rigs.shop.merge", "rigs.shop.pull_request", "rigs.shop.push", "server.allow"];
    town.write("town.toml", format!("{gates}{rest}"));
    town.gt(["config", "get", "rigs.shop.merge"]).success();
    let (got, told) = right_after_edit(&town, gates, || {
        (keys.map(|key| town.gt(["config", "get", key]).stdout), town.gt(["scheduler", "status"]).stderr)
    });
    assert_eq!(got, ["local\n", "[\"./pr.sh\"]\n", "false\n", "[\"dm:*\"]\n"]);
    assert!(keys.iter().all(|key| told.contains(&format!("the limit `{key}`"))), "{told}");
}

/// The texts of good configs that are kept, and hold this.
fn kept_with(town: &Town, words: &str) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(town.path(".gt/config")).expect("configs are kept").flatten().map(|entry| entry.path());
    files.filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(words))).collect()
}

/// A town from whose config a token was removed hours ago, as the files say.
fn with_removed_token(fleet: &Fleet) {
    fleet.set("channels.bot.token", "1:hush");
    fleet.town.gt(["config", "unset", "channels.bot.token"]).success();
    let left = kept_with(&fleet.town, "1:hush");
    assert!(!left.is_empty(), "it was kept");
    for file in left {
        let file = fs::File::open(file).expect("it is there");
        file.set_modified(SystemTime::now() - Duration::from_hours(2)).expect("it is ours");
    }
}

#[test]
fn the_daemon_clears_a_secret_away_that_is_in_no_config_any_more() {
    let fleet = Fleet::new(STAYS);
    fleet.set("daemon.heartbeat", "1s");
    with_removed_token(&fleet);
    fleet.start_daemon();
    fleet.until_seen("no kept token", || kept_with(&fleet.town, "1:hush").is_empty());
    assert_eq!(fleet.town.gt(["config", "get", "default_agent"]).stdout, "scripted\n", "what counts stays");
}

#[test]
fn a_command_clears_a_secret_away_that_is_in_no_config_any_more() {
    let fleet = Fleet::new(STAYS);
    with_removed_token(&fleet);
    fleet.set("scheduler.max_polecats", "3");
    assert_eq!(kept_with(&fleet.town, "1:hush"), Vec::<std::path::PathBuf>::new());
}

/// As on a full disk.
#[test]
fn an_edit_that_cannot_be_kept_counts_neither_for_commands_nor_for_the_daemon() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    let edited = fleet.town.read("town.toml").replace("max_polecats = 1\n", "max_polecats = 2\n");
    // Where its text belongs there is something else.
    let place = fleet.town.path(&format!(".gt/config/{}.toml", digest(&edited)));
    fs::create_dir_all(place.join("full")).expect("it can be made");
    fleet.town.write("town.toml", &edited);
    let answer = fleet.town.gt(["config", "get", "scheduler.max_polecats"]);
    assert_eq!(answer.stdout, "1\n", "{answer}");
    assert!(answer.stderr.contains("cannot be kept"), "{answer}");
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 1);
    // A pass after which nothing more may start.
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5);
    let status = fleet.town.gt(["status", "--json"]).json();
    assert_eq!(status["max_polecats"], 1, "{status}");
    fs::remove_dir_all(&place).expect("it is there");
    fleet.until_events("run.started", None, 2);
    assert_eq!(fleet.town.gt(["config", "get", "scheduler.max_polecats"]).stdout, "2\n");
}

#[test]
fn a_command_has_a_dropped_limit_count_that_was_edited_out_before() {
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\", \"make test\"]"]).success();
    town.gt(["config", "set", "witness.max_run", "1h"]).success();
    let edited =
        town.read("town.toml").replace("gates = [\"make\", \"make test\"]", "").replace("max_run = \"1h\"", "");
    town.write("town.toml", edited);
    let waits = town.gt(["config", "get", "witness.max_run"]);
    assert!(waits.stderr.contains("the limit `witness.max_run` (it was 1h) was removed from town.toml"), "{waits}");
    let rehearsed = town.gt(["config", "unset", "rigs.shop.gates", "--dry-run", "--json"]).json();
    assert_eq!(rehearsed["changed"], true);
    let unset = town.gt(["config", "unset", "rigs.shop.gates"]);
    assert_eq!(unset.success().stdout, "Unset rigs.shop.gates; its default counts again.\n");
    assert_eq!(town.gt(["config", "get", "rigs.shop.gates"]).stdout, "[]\n");
    town.gt(["config", "unset", "witness.max_run"]).success();
    let got = town.gt(["config", "get", "witness.max_run"]);
    assert_eq!((got.stdout.as_str(), got.stderr.as_str()), ("0s\n", ""));
}

#[test]
fn the_section_of_a_rig_that_does_not_exist_goes_at_once() {
    let town = Town::with_rig();
    let good = town.read("town.toml");
    town.write("town.toml", good.clone() + "\n[rigs.shpo]\ngates = [\"make\"]\n");
    assert!(town.gt(["status"]).stdout.contains("there is no rig `shpo`"));
    town.write("town.toml", good);
    let status = town.gt(["status"]);
    assert!(!status.to_string().contains("shpo"), "{status}");
}

#[test]
fn fewer_gates_are_changed_gates() {
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\", \"make test\"]"]).success();
    town.gt(["config", "set", "rigs.shop.gates", "[\"make\"]"]).success();
    let status = town.gt(["status"]).stdout;
    assert!(status.contains("gates of rig shop were changed from 2 to 1 with `gt config`"), "{status}");
    town.write("town.toml", town.read("town.toml").replace("[\"make\"]", "[]"));
    let waits = town.gt(["config", "get", "rigs.shop.gates"]).stderr;
    assert!(waits.contains("gates of rig shop were removed from town.toml; that counts in "), "{waits}");
}

#[test]
fn a_limit_that_a_command_drops_does_not_wait_in_the_log() {
    let fleet = Fleet::new(STAYS);
    fleet.set("rigs.shop.gates", "[\"make\"]");
    fleet.start_daemon();
    for n in 1..=5 {
        fleet.set("rigs.shop.gates", "[]");
        fleet.set("rigs.shop.gates", "[\"make\"]");
        fleet.set("default_agent", "scripted");
        fleet.until_seen("the daemon has taken the edits", || fleet.n_said(&["took the changed config"]) >= n);
    }
    fleet.town.write("town.toml", "scheduler = [");
    fleet.until_seen("the rejected file", || fleet.n_said(&["the config cannot be taken"]) == 1);
    assert_eq!(fleet.n_said(&["that counts in", "in order again"]), 0);
}
