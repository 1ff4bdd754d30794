//! From done to merged: the real binary, real processes, real git. // SPEC M1, M2, P7, P8
//!
//! What came of it is asked of git, and of our own log only where git cannot know.

use std::process::Command;

use serde_json::Value;

use crate::fleet::{Fleet, count};

#[path = "merging/again.rs"]
mod again;
#[path = "merging/broken_config.rs"]
mod broken_config;
#[path = "merging/decisions.rs"]
mod decisions;
#[path = "merging/halfway.rs"]
mod halfway;
#[path = "merging/load.rs"]
mod load;
#[path = "merging/patrols.rs"]
mod patrols;
#[path = "merging/publishing.rs"]
mod publishing;
#[path = "merging/reworks.rs"]
mod reworks;
#[path = "merging/steps.rs"]
mod steps;
#[path = "merging/strategies.rs"]
mod strategies;
#[path = "merging/targets.rs"]
mod targets;
#[path = "merging/trouble.rs"]
mod trouble;

/// An agent that commits a file with the name of its bead.
const COMMITS: &str =
    "echo \"$GT_BEAD\" > \"$GT_BEAD.txt\"; git add -A; git commit --quiet --message=\"work on $GT_BEAD\"";

/// The same, and it says that it is done.
const WORKS: &str =
    "echo \"$GT_BEAD\" > \"$GT_BEAD.txt\"; git add -A; git commit --quiet --message=\"work on $GT_BEAD\"; gt done";

/// The same; what came back is done anew, without its commits.
const WORKS_ANEW: &str = "echo \"$GT_BEAD\" > \"$GT_BEAD.txt\"; git add -A; git commit --quiet --message=\"work on $GT_BEAD\"; \
     gt done --replaces 'it is done anew' || gt done";

/// A fleet with room for four whose agents have worktrees and can commit.
fn fleet(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(4, script);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("witness.redispatch_cooldown", "0s");
    std::fs::write(fleet.home(".gitconfig"), "[user]\nname = agent\nemail = agent@example.org\n").expect("a home");
    fleet
}

/// Slings beads of these ids, with the words of a sling.
fn sling(fleet: &Fleet, ids: &[&str], words: &[&str]) -> Vec<String> {
    fleet.hold(ids);
    fleet.town.call(["sling"].iter().chain(ids).chain(words).copied()).run().success();
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn set_gates(fleet: &Fleet, rig: &str, command: &str) {
    let gates = serde_json::to_string(&[command]).expect("text is JSON");
    fleet.set(&format!("rigs.{rig}.gates"), &gates);
}

/// Git in a directory of the town; what it printed.
fn git(fleet: &Fleet, dir: &str, arguments: &[&str]) -> String {
    let output = git_command(fleet, dir, arguments).output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Whether git says yes.
fn git_agrees(fleet: &Fleet, dir: &str, arguments: &[&str]) -> bool {
    git_command(fleet, dir, arguments).output().expect("git is installed").status.success()
}

fn git_command(fleet: &Fleet, dir: &str, arguments: &[&str]) -> Command {
    let mut command = fleet.town.command("git");
    command.current_dir(fleet.town.path(dir)).args(arguments);
    command
}

/// The files of a branch.
fn files(fleet: &Fleet, branch: &str) -> Vec<String> {
    git(fleet, "shop", &["ls-tree", "-r", "--name-only", branch]).lines().map(str::to_owned).collect()
}

/// An origin for the rig, with all it has so far, to which merged work is pushed.
fn add_origin(fleet: &Fleet) {
    add_silent_origin(fleet);
    fleet.set("rigs.shop.push", "true");
}

/// The same, and whether anything is pushed is left to the default.
fn add_silent_origin(fleet: &Fleet) {
    fleet.town.git(&["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
    let origin = fleet.town.path("origin.git").display().to_string();
    fleet.town.git(&["-C", "shop", "remote", "add", "origin", &origin]);
    fleet.town.git(&["-C", "shop", "push", "--quiet", "origin", "main"]);
}

/// The bead's work is on `main`, by one merge and one commit of its own.
fn assert_merged_once(fleet: &Fleet, bead: &str) {
    let own = git(fleet, "shop", &["log", "--format=%H", &format!("--grep=work on {bead}$"), "main"]);
    assert_eq!(own.lines().count(), 1, "{bead}: its commit on main");
    assert_eq!(git(fleet, "shop", &["show", &format!("main:{bead}.txt")]), bead);
    let events = fleet.town.events();
    for kind in ["merge.queued", "merge.landed", "bead.closed"] {
        assert_eq!(count(&events, kind, Some(bead)), 1, "{kind} {bead}");
    }
}

fn show(fleet: &Fleet, bead: &str) -> Value {
    fleet.town.gt(["show", bead, "--json"]).json()
}

/// Why a bead is where it is, in words.
fn explain(fleet: &Fleet, bead: &str) -> String {
    let answer = fleet.town.gt(["explain", bead]);
    answer.success();
    answer.stdout.clone()
}

/// The value of a field of the latest event of a type.
fn last_of(fleet: &Fleet, kind: &str, field: &str) -> String {
    let events = fleet.town.events();
    let last = events.iter().rfind(|event| event["type"] == kind).unwrap_or_else(|| panic!("there is a {kind}"));
    last["data"][field].as_str().unwrap_or_default().to_owned()
}
