//! Worktrees that ended workers left with changes: salvaged, shown as such, and cleared away in time. // SPEC P8

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fleet::Fleet;
use crate::town::{GT, session, snapshot};

/// Leaves something uncommitted, and has its bead closed.
const LEAVES: &str = "echo half > half.txt; gt close $GT_BEAD";

/// A fleet with a daemon that patrols every second.
fn fleet(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("rigs.shop.merge", "local");
    fleet.set("daemon.heartbeat", "1s");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.start_daemon();
    fleet
}

/// Has a worker leave its worktree, and returns that and the ref its changes are under.
fn leave(fleet: &Fleet) -> (PathBuf, String) {
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = events.iter().find(|event| event["type"] == "run.ended").expect("it ended");
    let polecats = fleet.town.gt(["polecat", "list", "--json"]).json();
    let path = polecats[0]["worktree"].as_str().unwrap_or_else(|| panic!("a worktree: {polecats}"));
    (PathBuf::from(path), format!("refs/gt/salvage/{}", ended["run"].as_str().expect("a run")))
}

fn saved(fleet: &Fleet, name: &str, file: &str) -> String {
    let output = fleet.town.command("git").args(["-C", "shop", "show", &format!("{name}:{file}")]).output();
    String::from_utf8(output.expect("git is installed").stdout).expect("text")
}

/// Waits until the patrol has been through everything at least once more: what lies here goes with each.
fn until_patrolled(fleet: &Fleet) {
    let lock = fleet.town.path("shop/.git/packed-refs.lock");
    for _ in 0..2 {
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
        fs::File::create(&lock).and_then(|file| file.set_modified(long_ago)).expect("the rig can be written");
        fleet.until_seen("a patrol", || !lock.exists());
    }
}

fn until_gone(fleet: &Fleet, path: &Path) {
    fleet.until_seen("the worktree to be cleared away", || !path.exists());
    fleet.until_seen("the worker to be forgotten", || {
        fleet.town.gt(["polecat", "list", "--json"]).json().as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn what_is_salvaged_and_whose_bead_is_closed_needs_nobody_and_goes_in_time() {
    let fleet = fleet(LEAVES);
    let (path, name) = leave(&fleet);
    until_patrolled(&fleet);
    assert!(path.join("half.txt").exists(), "it is kept for a day");
    let listed = fleet.town.gt(["polecat", "list", "--json"]).json();
    assert_eq!((&listed[0]["state"], &listed[0]["salvage"]["ref"]), (&"salvaged".into(), &name.clone().into()));
    assert!(listed[0]["salvage"]["cleared_at"].is_string(), "{listed}");
    snapshot!(session([fleet.town.gt(["polecat", "list"]), fleet.town.gt(["status"])]), @r"
    $ gt polecat list
    ● shop/Toast  salvaged  gt-a is closed and its changes are in refs/gt/salvage/[RUN]; [TOWN]/.gt/polecats/shop/Toast is removed in [SPAN]
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 5 agents running

    Nothing runs.

    Nothing is scheduled. 1 bead is ready: `gt ready`, then `gt sling BEAD`.

    Salvaged worktrees (1)
      ● shop/Toast  salvaged  gt-a is closed and its changes are in refs/gt/salvage/[RUN]; [TOWN]/.gt/polecats/shop/Toast is removed in [SPAN]
    ");
    let doctor = fleet.town.gt(["doctor"]).stdout;
    assert!(doctor.contains("1 worktree of an ended worker is salvaged"), "{doctor}");

    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    assert_eq!(saved(&fleet, &name, "half.txt"), "half\n", "what it held is kept");
    fleet.until_seen("the daemon to say so", || fleet.n_said(&["cleared away", &name]) == 1);
    fleet.town.assert_healthy();
}

#[test]
fn what_is_changed_after_that_is_salvaged_too_before_it_goes() {
    let fleet = fleet(LEAVES);
    let (path, name) = leave(&fleet);
    fs::write(path.join("half.txt"), "whole\n").expect("it can be written");
    fs::write(path.join("later.txt"), "a person's\n").expect("it can be written");
    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    assert_eq!(
        (saved(&fleet, &name, "half.txt"), saved(&fleet, &name, "later.txt")),
        ("whole\n".into(), "a person's\n".into())
    );
    assert_eq!(saved(&fleet, &format!("{name}^2"), "half.txt"), "half\n", "what was saved first is kept too");
}

#[test]
fn what_was_never_salvaged_is_first() {
    let fleet = fleet(LEAVES);
    let (path, name) = leave(&fleet);
    fleet.town.git(&["-C", "shop", "update-ref", "-d", &name]);
    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    assert_eq!(saved(&fleet, &name, "half.txt"), "half\n");
}

#[test]
fn what_git_cannot_keep_stays_and_a_person_is_told_why() {
    let fleet = fleet("git init --quiet inner; touch inner/file; echo half > half.txt; gt close $GT_BEAD");
    let (path, _) = leave(&fleet);
    fleet.set("retention.worktrees", "1s");
    fleet.until_seen("the reason", || {
        fleet.town.gt(["status"]).stdout.contains("it cannot be cleared away: git cannot save inner/ in it")
    });
    assert!(fleet.town.gt(["doctor"]).stdout.contains("it cannot be cleared away"));
    assert!(path.join("inner/file").exists());
    // When that is put away it goes like any other.
    fs::remove_dir_all(path.join("inner")).expect("it is there");
    until_gone(&fleet, &path);
}

#[test]
fn changes_that_git_is_told_to_overlook_are_salvaged_before_it_goes() {
    for has_other_changes in ["echo half > half.txt", "true"] {
        let fleet = fleet(&format!(
            "git update-index --assume-unchanged a.txt; git update-index --skip-worktree s.txt; \
             echo precious > a.txt; echo precious > s.txt; {has_other_changes}; gt close $GT_BEAD"
        ));
        for name in ["a.txt", "s.txt"] {
            fs::write(fleet.town.path("shop").join(name), "base\n").expect("the rig can be written");
            fleet.town.git(&["-C", "shop", "add", name]);
        }
        fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=two files"]);
        let (path, name) = leave(&fleet);
        let refused = fleet.town.refused(["polecat", "nuke", "Toast"]);
        assert!(refused.contains("is not safe to remove"), "{refused}");
        fleet.set("retention.worktrees", "1s");
        until_gone(&fleet, &path);
        assert_eq!(["a.txt", "s.txt"].map(|file| saved(&fleet, &name, file)), ["precious\n", "precious\n"]);
    }
}

/// Adds a repository with a commit of its own like a file, and has its bead closed.
const EMBEDS: &str = "git init --quiet inner; cd inner; echo precious > file; git add .; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=inner; cd ..; \
    git add inner; gt close $GT_BEAD";

#[test]
fn a_repository_inside_that_was_added_like_a_file_stays() {
    let fleet = fleet(EMBEDS);
    let (path, _) = leave(&fleet);
    fleet.set("retention.worktrees", "1s");
    fleet.until_seen("the reason", || {
        fleet.town.gt(["status"]).stdout.contains("it cannot be cleared away: git cannot save inner in it")
    });
    assert!(path.join("inner/.git").exists());
    let forced = fleet.town.gt(["polecat", "nuke", "Toast", "--force", "--json"]).json();
    let place = forced["salvage"]["directory"].as_str().unwrap_or_else(|| panic!("a directory: {forced}"));
    let log = fleet.town.command("git").args(["-C", &format!("{place}/inner"), "log", "--format=%s"]).output();
    assert_eq!(String::from_utf8_lossy(&log.expect("git is installed").stdout), "inner\n");
}

/// A git that waits, once the worktree was moved away, until the patrol has forgotten the worker.
const WAITS: &str = r#"#!/bin/sh
if [ ! -e "$LEFT" ]; then
  until [ "$("$GT" --town "$TOWN" polecat list --json)" = "[]" ]; do sleep 0.1; done
fi
PATH="$REAL_PATH" exec git "$@"
"#;

#[test]
fn a_worker_that_the_patrol_forgets_while_it_is_nuked_is_gone() {
    let fleet = fleet(EMBEDS);
    let (path, _) = leave(&fleet);
    fleet.set("retention.worktrees", "1s");
    let tools = fleet.home("tools");
    fs::create_dir(&tools).expect("the home can be written");
    fs::write(tools.join("git"), WAITS).expect("the home can be written");
    fs::set_permissions(tools.join("git"), PermissionsExt::from_mode(0o755)).expect("it was just written");
    let real = std::env::var("PATH").expect("there is a PATH");
    let mut nuke = fleet.town.command(GT);
    nuke.args(["polecat", "nuke", "Toast", "--force"]).env("LEFT", &path).env("GT", GT);
    nuke.env("TOWN", fleet.town.root()).env("PATH", format!("{}:{real}", tools.display())).env("REAL_PATH", real);
    let answer = nuke.output().expect("gt starts");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(!path.exists());
}

/// Has a rebase stop at a conflict, with changes put away, and its bead closed.
const REBASES: &str = "git config user.name it; git config user.email it@example.org; \
    echo ours > both; git add .; git commit --quiet --message=ours; \
    echo tracked > other; git add .; git commit --quiet --message=other; echo precious > other; \
    git rebase --autostash theirs; git checkout --ours both; git add both; \
    gt close $GT_BEAD";

#[test]
fn what_an_unfinished_rebase_has_put_away_outlives_the_worktree() {
    let fleet = fleet(REBASES);
    fleet.town.git(&["-C", "shop", "switch", "--quiet", "--create", "theirs"]);
    fs::write(fleet.town.path("shop/both"), "theirs\n").expect("the rig can be written");
    fleet.town.git(&["-C", "shop", "add", "both"]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=theirs"]);
    fleet.town.git(&["-C", "shop", "switch", "--quiet", "main"]);
    let (path, name) = leave(&fleet);
    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    let log = fleet.town.command("git").args(["-C", "shop", "log", "--format=%H %s", &name]).output();
    let log = String::from_utf8(log.expect("git is installed").stdout).expect("text");
    let stash = log.lines().find(|line| line.ends_with(": autostash")).and_then(|line| line.split(' ').next());
    let stash = stash.unwrap_or_else(|| panic!("the changes that were put away: {log}"));
    assert_eq!(saved(&fleet, stash, "other"), "precious\n");
    assert!(log.contains(" ours") && log.contains(" other"), "{log}");
}

#[test]
fn a_stash_outlives_the_worktree() {
    let fleet = fleet(
        "echo precious > stashed; git -c user.name=it -c user.email=it@example.org stash --quiet --include-untracked; \
         echo half > half.txt; gt close $GT_BEAD",
    );
    let (path, _) = leave(&fleet);
    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    assert_eq!(saved(&fleet, "stash@{0}^3", "stashed"), "precious\n");
}

#[test]
fn a_directory_that_is_no_worktree_any_more_is_moved_away_by_force_and_never_deleted() {
    let fleet = fleet(LEAVES);
    // The town lies in a repository, which git would look into instead.
    fleet.town.git(&["init", "--quiet", "."]);
    fs::write(fleet.town.path(".gitignore"), "*\n").expect("the town can be written");
    let (path, _) = leave(&fleet);
    fs::remove_file(path.join(".git")).expect("it is a worktree");
    fs::write(path.join("half.txt"), "precious\n").expect("it can be written");
    let forced = fleet.town.gt(["polecat", "nuke", "Toast", "--force", "--json"]).json();
    let place = forced["salvage"]["directory"].as_str().unwrap_or_else(|| panic!("a directory: {forced}"));
    assert_eq!(fs::read_to_string(format!("{place}/half.txt")).expect("it was moved"), "precious\n");
}

#[test]
fn what_cannot_be_deleted_is_told_and_in_nobodys_way() {
    let fleet = fleet(LEAVES);
    let (path, _) = leave(&fleet);
    // A file where a directory is expected cannot be deleted like one.
    let stuck = path.with_file_name(".discarded-Toast");
    fs::write(&stuck, "").expect("it can be written");
    fleet.set("retention.worktrees", "1s");
    until_gone(&fleet, &path);
    let doctor = fleet.town.gt(["doctor"]).stdout;
    let told = format!("{} is left of a removed worktree and cannot be deleted", stuck.display());
    assert!(doctor.contains(&told), "{doctor}");
    fs::remove_file(stuck).expect("it is there");
    fleet.town.assert_healthy();
}

#[test]
fn a_worktree_of_work_that_is_not_over_stays() {
    let fleet = fleet("echo half > half.txt; exit 1");
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.set("retention.worktrees", "1s");
    let (path, _) = leave(&fleet);
    until_patrolled(&fleet);
    assert!(path.join("half.txt").exists());
    let status = fleet.town.gt(["status"]).stdout;
    assert!(status.contains("gone      gt-a: it has uncommitted changes"), "{status}");
    fleet.town.gt(["close", "gt-a"]).success();
    until_gone(&fleet, &path);
}

#[test]
fn a_worktree_that_somebody_has_cleaned_gets_work_again() {
    let fleet = fleet(LEAVES);
    let (path, _) = leave(&fleet);
    fs::remove_file(path.join("half.txt")).expect("it is there");
    fleet.set("retention.worktrees", "1s");
    fleet.until_seen("the worker to be idle", || {
        fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"] == "idle"
    });
    assert!(path.exists());
}
