//! What must become of a town of 0.1.0 once the newer `gt` runs it: all that was under way or waited is finished.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::fleet::Fleet;

/// Lets the agents of a town that `make.sh` made go on, and waits until the newer daemon has seen to everything.
pub(crate) fn goes_on(fleet: &Fleet) {
    fleet.open_gate("gate");
    let beads = ["sh-1", "sh-2", "sh-3", "sh-4"];
    fleet.until("everything that was under way or waited", |events| beads.iter().all(|bead| is_closed(events, bead)));
    let merged = log_of(fleet, "shop");
    assert!(beads.iter().all(|bead| merged.lines().any(|line| line == *bead)), "{merged}");
    let mut starts = fleet.starts();
    starts.retain(|bead| bead != "si-dirty");
    starts.sort();
    assert_eq!(starts, beads, "each was started once");

    fleet.until_seen("both turns to be answered", || {
        let session = fleet.town.gt(["session", "show", "dm:anna", "--json"]).json();
        session["turns"].as_array().is_some_and(|turns| turns.iter().all(|turn| turn["outcome"] == "done"))
    });
    let session = fleet.town.gt(["session", "show", "dm:anna", "--json"]).json();
    let replies: Vec<&str> =
        session["turns"].as_array().expect("turns").iter().filter_map(|turn| turn["reply"].as_str()).collect();
    assert!(replies.len() == 2 && replies[0].starts_with("re: first") && replies[1] == "re: second", "{replies:?}");
    let trace = fs::read_to_string(fleet.home("trace")).expect("agents left a trace");
    assert_eq!(trace.lines().filter(|line| line.starts_with("turn")).count(), 2, "no turn was run twice: {trace}");

    let jobs = fleet.town.gt(["cron", "list", "--json"]).json();
    let names: Vec<&str> = jobs.as_array().expect("a list").iter().filter_map(|job| job["name"].as_str()).collect();
    assert_eq!(names, ["tidy", "later"], "{jobs}");

    // What a person changed still holds the merge, until it is out of the way.
    let notes = fleet.home("site/notes.txt");
    assert_eq!(fs::read_to_string(&notes).expect("it is there"), "mine\n");
    fleet.town.git(&["-C", "../site", "rm", "--quiet", "--cached", "notes.txt"]);
    fs::rename(&notes, fleet.home("notes-of-mine")).expect("it can be moved");
    let tried = fleet.town.gt(["refinery", "run"]);
    assert!([0, 5].contains(&tried.code), "the daemon may be at it already: {tried}");
    fleet.until("the held merge to land", |events| is_closed(events, "si-dirty"));
    assert!(log_of(fleet, "site").lines().any(|line| line == "si-dirty"));
    fleet.town.assert_healthy();
}

fn log_of(fleet: &Fleet, rig: &str) -> String {
    let log =
        Command::new("git").args(["-C", &fleet.home(rig).display().to_string(), "log", "--format=%s", "main"]).output();
    String::from_utf8_lossy(&log.expect("git is installed").stdout).into_owned()
}

fn is_closed(events: &[Value], bead: &str) -> bool {
    events.iter().any(|event| event["type"] == "bead.closed" && event["bead"] == bead)
}
