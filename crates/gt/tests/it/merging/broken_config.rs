//! Gates hold while `town.toml` is broken, or was edited a moment ago. // SPEC T5

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command};

use jiff::Timestamp;
use serde_json::Value;

use super::{COMMITS, files, fleet, set_gates, sling};
use crate::fleet::{Fleet, count};

/// A gate that refuses every bead's work, and nothing else.
const REFUSES: &str = "! ls gt-*.txt";

/// An agent that commits, and says that it is done once its test wants that.
fn commits_and_waits() -> String {
    format!("{COMMITS}; while [ ! -e \"$HOME/$GT_BEAD\" ]; do sleep 0.02; done; gt done")
}

/// A fleet whose gate refuses everything, with a bead whose work is about to be handed over.
fn with_work(beads: &[&str]) -> Fleet {
    let fleet = fleet(&commits_and_waits());
    set_gates(&fleet, "shop", REFUSES);
    fleet.start_daemon();
    sling(&fleet, beads, &[]);
    fleet.until_events("run.started", None, beads.len());
    fleet
}

/// Hands a bead's work over; says whether it landed.
fn lands(fleet: &Fleet, bead: &str) -> bool {
    fleet.open_gate(bead);
    let decided = |events: &[Value]| ["merge.landed", "merge.returned"].map(|kind| count(events, kind, Some(bead)));
    let events = fleet.until("a merge that landed or came back", |events| decided(events) != [0, 0]);
    let has_landed = decided(&events)[0] > 0;
    assert_eq!(files(fleet, "main").contains(&format!("{bead}.txt")), has_landed);
    has_landed
}

/// Replaces the config by this text again and again, so that it is never unchanged for long.
struct Rewriting(Child);

impl Rewriting {
    fn begin(fleet: &Fleet, text: &str) -> Rewriting {
        fs::write(fleet.home("edited.toml"), text).expect("the home can be written");
        let (from, to) = (fleet.home("edited.toml"), fleet.town.path("town.toml"));
        let (from, to) = (from.display(), to.display());
        let again = format!("while cp '{from}' '{from}.new' && mv '{from}.new' '{to}'; do sleep 0.2; done");
        let child = Command::new("sh").args(["-c", &again]).spawn().expect("there is a shell");
        let rewriting = Rewriting(child);
        fleet.until_seen("the edit", || fs::read_to_string(fleet.town.path("town.toml")).is_ok_and(|now| now == text));
        rewriting
    }

    fn end(self) {
        drop(self);
    }
}

impl Drop for Rewriting {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().expect("it can be waited for");
    }
}

/// When the file was put in place.
fn changed_at(file: &Path) -> Timestamp {
    let metadata = fs::metadata(file).expect("the file is there");
    Timestamp::new(metadata.ctime(), metadata.ctime_nsec() as i32).expect("it is a time")
}

fn without_gates(fleet: &Fleet) -> String {
    let text = fleet.town.read("town.toml");
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("gates = ")).collect();
    assert!(kept.len() < text.lines().count(), "{text}");
    kept.join("\n") + "\n"
}

#[test]
fn an_empty_config_lands_nothing_that_the_gates_refuse() {
    for broken in ["", " \n\t\n"] {
        let fleet = with_work(&["gt-a"]);
        fleet.town.write("town.toml", broken);
        assert!(!lands(&fleet, "gt-a"), "an empty town.toml has opened the gates");
        assert_eq!(fleet.town.read("town.toml"), broken);
    }
}

#[test]
fn a_missing_config_lands_nothing_that_the_gates_refuse() {
    let fleet = with_work(&["gt-a"]);
    fs::remove_file(fleet.town.path("town.toml")).expect("it was there");
    assert!(!lands(&fleet, "gt-a"), "a missing town.toml has opened the gates");
    fleet.until_events("config.rejected", None, 1);
}

#[test]
fn a_daemon_that_starts_on_an_empty_config_lands_nothing_that_the_gates_refuse() {
    let fleet = with_work(&["gt-a"]);
    fleet.kill_daemon();
    fleet.town.write("town.toml", "");
    fleet.start_daemon();
    assert!(!lands(&fleet, "gt-a"), "an empty town.toml has opened the gates");
    fleet.until_events("config.rejected", None, 1);
}

/// At the real ten seconds.
#[test]
fn gates_that_were_edited_out_hold_until_the_file_was_left_alone_for_ten_seconds() {
    let fleet = with_work(&["gt-a", "gt-b"]);
    let rewriting = Rewriting::begin(&fleet, &without_gates(&fleet));
    assert!(!lands(&fleet, "gt-a"), "gates that were removed a moment ago have opened");
    assert_eq!(count(&fleet.town.events(), "config.loosened", None), 0);
    rewriting.end();
    let edited_at = changed_at(&fleet.town.path("town.toml"));
    let events = fleet.until_events("config.loosened", None, 1);
    let loosened = events.iter().find(|event| event["type"] == "config.loosened").expect("it was waited for");
    let at: Timestamp = loosened["ts"].as_str().expect("a time").parse().expect("a time");
    assert!(at.duration_since(edited_at).as_secs_f64() > 9.9, "{loosened} counts too soon after {edited_at}");
    assert_eq!(loosened["data"]["dropped"], serde_json::json!(["rigs.shop.gates"]));
    assert!(lands(&fleet, "gt-b"), "the edit counts by now");
    let status = fleet.town.gt(["status"]).stdout;
    assert!(status.contains("gates of rig shop were removed from town.toml "), "{status}");
}

#[test]
fn a_refinery_run_by_a_command_keeps_to_gates_that_were_edited_out_a_moment_ago() {
    let fleet = fleet(&commits_and_waits());
    set_gates(&fleet, "shop", REFUSES);
    sling(&fleet, &["gt-a"], &[]);
    fleet.town.gt(["scheduler", "run"]).success();
    fleet.until_events("run.started", None, 1);
    // What the end of the agent would lead to is done by hand.
    fleet.end_looks();
    let rewriting = Rewriting::begin(&fleet, &without_gates(&fleet));
    fleet.open_gate("gt-a");
    fleet.until_events("merge.queued", Some("gt-a"), 1);
    let run = fleet.town.gt(["refinery", "run"]);
    rewriting.end();
    assert!(run.stderr.contains("gates of rig shop were removed from town.toml; that counts in "), "{run}");
    assert!(!files(&fleet, "main").contains(&"gt-a.txt".to_owned()), "{run}");
    assert_eq!(count(&fleet.town.events(), "merge.returned", Some("gt-a")), 1, "{run}");
}

#[test]
fn gates_that_were_removed_with_gt_config_are_gone_at_once() {
    let fleet = with_work(&["gt-a"]);
    fleet.town.gt(["config", "unset", "rigs.shop.gates"]).success();
    assert!(lands(&fleet, "gt-a"), "they were removed by a command");
    let status = fleet.town.gt(["status"]).stdout;
    assert!(status.contains("gates of rig shop were removed with `gt config` "), "{status}");
}
