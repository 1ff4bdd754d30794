//! The patrol of the daemon clears away what is merged: one at a time, and at a cost that does not grow with what stays.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use super::{WORKS, fleet};
use crate::fleet::Fleet;

/// Starts a daemon that patrols each second, and whose every git is this script first.
fn start_daemon_with_git(fleet: &Fleet, script: &str) {
    fleet.set("daemon.heartbeat", "1s");
    let bin = fleet.home("bin-of-daemon");
    fs::create_dir(&bin).expect("the home can be written");
    fs::write(bin.join("git"), script).expect("the home can be written");
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("it is there");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    fleet.start_daemon_with(&[("PATH", &path)]);
}

/// Waits until a patrol has begun after this moment: it removes logs that are too old.
fn await_patrol(fleet: &Fleet, name: &str) {
    let log = fleet.town.path(&format!(".gt/logs/{name}.log"));
    fs::create_dir_all(log.parent().expect("a path has a parent")).expect("the town can be written");
    let file = fs::File::create(&log).expect("the town can be written");
    file.set_modified(SystemTime::now() - Duration::from_hours(24 * 365)).expect("it is ours");
    fleet.until_seen("a patrol", || !log.exists());
}

/// Hangs when a patrol looks for branches, until it may go on.
const HANGS: &str = r#"#!/bin/bash
case "$*" in
*for-each-ref*refs/heads/polecat/*)
  echo "$$" >> "$HOME/looks"
  while [ -d "$HOME" ] && [ ! -e "$HOME/go-on" ]; do sleep 0.05; done ;;
esac
PATH=${PATH#*:} exec git "$@"
"#;

#[test]
fn a_patrol_that_still_clears_away_is_not_joined_by_the_next() {
    let fleet = fleet(WORKS);
    start_daemon_with_git(&fleet, HANGS);
    fleet.await_file("looks");
    for name in ["first", "second", "third"] {
        await_patrol(&fleet, name);
    }
    let looks = || fs::read_to_string(fleet.home("looks")).expect("it is there").lines().count();
    assert_eq!(looks(), 1, "one thread clears away");
    fleet.open_gate("go-on");
    fleet.until_seen("the next one clears away", || looks() > 2);
}

const COUNTS: &str = r#"#!/bin/bash
echo "$*" >> "$HOME/calls"
PATH=${PATH#*:} exec git "$@"
"#;

#[test]
fn what_is_not_merged_costs_no_calls_of_git() {
    const BRANCHES: usize = 40;
    let fleet = fleet(WORKS);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["close", "gt-a"]).success();
    let output = fleet
        .town
        .command("git")
        .args(["-C", "shop", "commit-tree", "-p", "main", "-m", "lost", "main^{tree}"])
        .output()
        .expect("git is installed");
    let commit = String::from_utf8(output.stdout).expect("ids are text").trim().to_owned();
    for n in 0..BRANCHES {
        for name in [format!("refs/heads/polecat/Toast/gt-a@{n}"), format!("refs/gt/merges/gt-mr-{n}")] {
            fleet.town.git(&["-C", "shop", "update-ref", &name, &commit]);
        }
    }
    start_daemon_with_git(&fleet, COUNTS);
    let calls = || fs::read_to_string(fleet.home("calls")).unwrap_or_default();
    let last_of_patrol = |call: &&str| call.contains("refs/gt/handoffs/");
    fleet.until_seen("two patrols", || calls().lines().filter(last_of_patrol).count() > 1);
    let calls = calls();
    let patrol: Vec<&str> = calls.lines().skip_while(|call| !last_of_patrol(call)).skip(1).collect();
    let n_calls = patrol.iter().take_while(|call| !last_of_patrol(call)).count();
    assert!(n_calls < BRANCHES / 2, "{n_calls} calls: {patrol:#?}");
}
