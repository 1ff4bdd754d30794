//! The refinery as people see and steer it: the queue, its switches, what came back; what is kept and what is cleared.
//! // SPEC M1, M2, P8

use std::path::PathBuf;

use crate::fleet::Fleet;

mod again;
mod assignment;
mod health;
mod nuke;
mod patrol;
mod queue;

/// Commits a file named after the bead, and is done.
const COMMITS: &str = "echo work > \"$GT_BEAD.txt\"; git add -A; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=\"$GT_BEAD\"; gt done";

/// Commits a line of its own into a file that all write.
const CLASHES: &str = "echo \"$GT_BEAD\" > shared.txt; git add -A; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=\"$GT_BEAD\"; gt done";

/// A town whose agents work in worktrees, with two beads and no daemon; nothing is merged before somebody says so.
fn paused_fleet(script: &str) -> Fleet {
    let fleet = fleet(script);
    fleet.town.gt(["refinery", "pause"]).success();
    fleet
}

fn fleet(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet
}

/// Has a bead worked on until its run has ended.
fn work_on(fleet: &Fleet, bead: &str) {
    fleet.town.gt(["sling", bead]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    fleet.until_events("run.ended", Some(bead), 1);
    // The look that follows an end merges what it finds, if merging goes on meanwhile.
    fleet.end_looks();
}

/// The ids of all merges, in their order.
fn merges(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.town.gt(["refinery", "list", "--all", "--json"]).json();
    let id = |merge: &serde_json::Value| merge["id"].as_str().expect("an id").to_owned();
    listed.as_array().expect("a list").iter().map(id).collect()
}

fn worktree(fleet: &Fleet) -> PathBuf {
    let polecats = fleet.town.gt(["polecat", "list", "--json"]).json();
    PathBuf::from(polecats[0]["worktree"].as_str().unwrap_or_else(|| panic!("a worktree: {polecats}")))
}

/// What git answers.
fn git(fleet: &Fleet, arguments: &[&str]) -> String {
    let output = fleet.town.command("git").args(["-C", "shop"]).args(arguments).output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Commits differ from run to run.
fn masked(text: &str) -> String {
    let is_commit = |word: &str| [10, 40].contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit());
    let mask = |word: &str| if is_commit(word) { "[COMMIT]".to_owned() } else { word.to_owned() };
    let mut masked = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
        } else {
            masked.push_str(&mask(&std::mem::take(&mut word)));
            masked.push(c);
        }
    }
    masked.trim_end().to_owned()
}
