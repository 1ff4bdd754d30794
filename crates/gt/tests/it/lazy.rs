//! Nothing exists before its time: no name, worktree, branch or process for a bead that cannot start. // SPEC P4

use std::fs;

use serde_json::Value;

use crate::fleet::{Fleet, count};

/// An agent that ends its bead once the test lets it.
const WAITS: &str = "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; gt done --no-changes";

/// A fleet whose polecats have worktrees.
fn with_worktrees(cap: usize) -> Fleet {
    let fleet = Fleet::with_cap(cap, WAITS);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet
}

fn create(fleet: &Fleet, title: &str, after: Option<&String>) -> String {
    let base = [title, "--rig", "shop"];
    match after {
        None => fleet.town.create(&base),
        Some(blocker) => fleet.town.create(&[&base[..], &["--blocked-by", blocker]].concat()),
    }
}

fn chain(fleet: &Fleet, n: usize) -> Vec<String> {
    let mut beads: Vec<String> = Vec::new();
    for link in 0..n {
        beads.push(create(fleet, &format!("Link {link}"), beads.last()));
    }
    beads
}

fn sling(fleet: &Fleet, beads: &[String]) {
    fleet.town.call(["sling"].into_iter().chain(beads.iter().map(String::as_str))).run().success();
}

/// Everything that exists for polecats, by name: those known, their directories, their branches, their processes.
#[derive(Debug, PartialEq, Eq)]
struct Workers {
    known: Vec<String>,
    directories: Vec<String>,
    branches: Vec<String>,
    n_processes: usize,
}

fn workers(fleet: &Fleet) -> Workers {
    let polecats = fleet.town.gt(["polecat", "list", "--json"]).json();
    let name = |polecat: &Value| polecat["name"].as_str().expect("it has a name").to_owned();
    let mut known: Vec<String> = polecats.as_array().expect("a list").iter().map(name).collect();
    let entries = fs::read_dir(fleet.town.path(".gt/polecats/shop")).into_iter().flatten().flatten();
    let mut directories: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let list = ["-C", "shop", "branch", "--list", "polecat/*", "--format=%(refname:short)"];
    let output = fleet.town.command("git").args(list).output().expect("git is installed");
    let branches = String::from_utf8(output.stdout).expect("branches here are text");
    known.sort();
    directories.sort();
    let n_processes = fleet.agents().into_iter().filter(|agent| agent.leads).count();
    Workers { known, directories, branches: branches.lines().map(str::to_owned).collect(), n_processes }
}

/// Who had a bead, run by run.
fn holders(fleet: &Fleet, bead: &str) -> Vec<String> {
    let events = fleet.town.events();
    let hooked = events.iter().filter(|event| event["type"] == "bead.hooked" && event["bead"] == bead);
    hooked.map(|event| event["data"]["polecat"].as_str().expect("a hook is somebody's").to_owned()).collect()
}

#[test]
fn nothing_exists_for_scheduled_beads_before_one_of_them_starts() {
    let fleet = with_worktrees(3);
    let beads = chain(&fleet, 10);
    sling(&fleet, &beads);
    let none = Workers { known: vec![], directories: vec![], branches: vec![], n_processes: 0 };
    assert_eq!(workers(&fleet), none);
    assert!(fleet.keepers().is_empty(), "scheduling starts nothing at all");
}

#[test]
fn a_chain_of_ten_beads_is_worked_off_by_one_polecat_in_one_worktree() {
    let fleet = with_worktrees(3);
    let beads = chain(&fleet, 10);
    sling(&fleet, &beads);
    fleet.start_daemon();
    fleet.until_events("run.started", Some(&beads[0]), 1);
    let while_first = workers(&fleet);
    let names = while_first.known.clone();
    assert_eq!(names.len(), 1, "{while_first:?}");
    assert_eq!(while_first.directories, names);
    assert_eq!(while_first.n_processes, 1, "{while_first:?}");
    assert_eq!(while_first.branches.len(), 1, "{while_first:?}");
    assert!(while_first.branches[0].contains(&beads[0]), "{while_first:?}");
    fleet.open_gate("gate");
    fleet.until_done(&beads);
    let at_the_end = workers(&fleet);
    assert_eq!((&at_the_end.known, &at_the_end.directories), (&names, &names));
    assert_eq!((at_the_end.branches.len(), at_the_end.n_processes), (10, 0), "{at_the_end:?}");
    assert_eq!(fleet.starts(), beads);
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_chain_that_is_cleared_after_its_first_bead_leaves_no_agent_behind() {
    let fleet = with_worktrees(3);
    let beads = chain(&fleet, 10);
    sling(&fleet, &beads);
    fleet.start_daemon();
    fleet.until_events("run.started", Some(&beads[0]), 1);
    let cleared = fleet.town.gt(["scheduler", "clear", "--json"]).json();
    assert_eq!(cleared["cleared"].as_array().map(Vec::len), Some(9), "{cleared}");
    fleet.open_gate("gate");
    fleet.until_events("run.ended", Some(&beads[0]), 1);
    // A pass that follows every change has seen the end; one more change shows that it starts nothing.
    let other = create(&fleet, "Other", None);
    sling(&fleet, std::slice::from_ref(&other));
    fleet.until_done(&[beads[0].clone(), other.clone()]);
    assert_eq!(fleet.starts(), [beads[0].clone(), other.clone()]);
    let workers = workers(&fleet);
    assert_eq!((workers.known.len(), workers.directories.len(), workers.n_processes), (1, 1, 0), "{workers:?}");
    for bead in &beads[1..] {
        assert_eq!(count(&fleet.town.events(), "bead.hooked", Some(bead)), 0);
        assert!(!workers.branches.iter().any(|branch| branch.contains(bead.as_str())), "{workers:?}");
    }
    fleet.assert_at_rest(&[beads[0].clone(), other]);
}

#[test]
fn who_finished_a_blocker_goes_on_with_what_it_blocked() {
    let fleet = with_worktrees(4);
    let firsts: Vec<String> = (0..3).map(|n| create(&fleet, &format!("First {n}"), None)).collect();
    let seconds: Vec<String> =
        firsts.iter().enumerate().map(|(n, first)| create(&fleet, &format!("Second {n}"), Some(first))).collect();
    let all = [firsts.clone(), seconds.clone()].concat();
    sling(&fleet, &all);
    fleet.start_daemon();
    fleet.until_events("run.started", None, 3);
    fleet.open_gate("gate");
    fleet.until_done(&all);
    for (first, second) in firsts.iter().zip(&seconds) {
        assert_eq!(holders(&fleet, first), holders(&fleet, second), "{second} changed hands");
    }
    assert_eq!(workers(&fleet).known.len(), 3);
    fleet.assert_at_rest(&all);
}

#[test]
fn a_fan_out_makes_as_many_polecats_as_run_at_once_and_later_work_reuses_them() {
    let fleet = with_worktrees(3);
    let root = create(&fleet, "Root", None);
    let leaves: Vec<String> = (0..6).map(|n| create(&fleet, &format!("Leaf {n}"), Some(&root))).collect();
    let all = [vec![root.clone()], leaves.clone()].concat();
    sling(&fleet, &all);
    fleet.start_daemon();
    fleet.until_events("run.started", Some(&root), 1);
    assert_eq!(workers(&fleet).known.len(), 1);
    fleet.open_gate("gate");
    fleet.until_done(&all);
    let crew = workers(&fleet).known;
    assert_eq!(crew.len(), 3, "{crew:?}");
    let later: Vec<String> = (0..5).map(|n| create(&fleet, &format!("Later {n}"), None)).collect();
    sling(&fleet, &later);
    fleet.until_done(&later);
    let workers = workers(&fleet);
    assert_eq!((&workers.known, &workers.directories), (&crew, &crew));
    assert!(later.iter().flat_map(|bead| holders(&fleet, bead)).all(|who| crew.contains(&who)));
    fleet.assert_at_rest(&[all, later].concat());
}
