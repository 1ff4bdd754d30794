//! A worker that is nuked takes no work with it. // SPEC P8

use std::fs;

use super::{COMMITS, fleet, git, masked, merges, paused_fleet, work_on, worktree};
use crate::town::{session, snapshot};

/// Commits once, changes more, and ends without a word.
const LEAVES_HALF: &str = "echo work > work.txt; git add -A; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=work; echo half > half.txt; exit 1";

#[test]
fn what_waits_to_be_merged_is_safe_and_its_worker_may_go() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    let path = worktree(&fleet);
    let nuked = fleet.town.gt(["polecat", "nuke", "Toast"]);
    snapshot!(nuked, @r"
    $ gt polecat nuke Toast
    shop/Toast is gone; its branches stay.
    ");
    assert!(!path.exists());
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.town.gt(["refinery", "run"]).success();
    assert_eq!(git(&fleet, &["show", "main:gt-a.txt"]), "work");
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["status"], "closed");
}

#[test]
fn what_was_dropped_is_kept_and_merged_work_needs_nobody() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    let id = &merges(&fleet)[0];
    fleet.town.gt(["refinery", "drop", id]).success();
    fleet.town.gt(["polecat", "nuke", "Toast"]).success();
    let kept = git(&fleet, &["show", &format!("refs/gt/merges/{id}:gt-a.txt")]);
    assert_eq!(kept, "work");
    fleet.town.gt(["refinery", "resume"]).success();
    work_on(&fleet, "gt-b");
    fleet.until_events("merge.landed", Some("gt-b"), 1);
    fleet.town.gt(["polecat", "nuke", "Toast"]).success();
}

#[test]
fn unmerged_work_is_refused_and_by_force_salvaged() {
    let fleet = fleet(LEAVES_HALF);
    work_on(&fleet, "gt-a");
    let path = worktree(&fleet);
    let refused = fleet.town.refused(["polecat", "nuke", "Toast"]);
    fs::remove_file(path.join("half.txt")).expect("it was left");
    // What a run has left is salvaged when it ends, and with it its commits are kept.
    let salvaged = git(&fleet, &["for-each-ref", "--format=%(refname)", "refs/gt/salvage"]);
    git(&fleet, &["update-ref", "-d", &salvaged]);
    let committed = fleet.town.refused(["polecat", "nuke", "Toast"]);
    fs::write(path.join("half.txt"), "another half").expect("it can be written");
    let dry = fleet.town.gt(["polecat", "nuke", "Toast", "--force", "--dry-run"]);
    assert!(path.join("half.txt").exists());
    let forced = fleet.town.gt(["polecat", "nuke", "Toast", "--force"]);
    assert!(!path.exists());
    snapshot!(masked(&(refused + &committed + &session([dry, forced]))), @"
    $ gt polecat nuke Toast
    ! error: the worktree [TOWN]/.gt/polecats/shop/Toast is not safe to remove: it has uncommitted changes
    ! hint: look into it, or remove it and keep what is in it as a patch: `gt polecat nuke shop/Toast --force`
    [exit 1]
    $ gt polecat nuke Toast
    ! error: the worktree [TOWN]/.gt/polecats/shop/Toast is not safe to remove: it has 1 commit that main does not have
    ! hint: look into it, or remove it and keep what is in it as a patch: `gt polecat nuke shop/Toast --force`
    [exit 1]
    $ gt polecat nuke Toast --force --dry-run
    Dry run, nothing is changed. This would happen:
    shop/Toast is gone; its branches stay.
    $ gt polecat nuke Toast --force
    shop/Toast is gone; its branches stay.
    What was not committed is kept in [TOWN]/.gt/salvage/[RUN].patch (`git apply --3way`) and as refs/gt/salvage/[RUN].
    ");
    assert_eq!(git(&fleet, &["show", &format!("{salvaged}:half.txt")]), "another half");
    assert_eq!(git(&fleet, &["show", &format!("{salvaged}:work.txt")]), "work");
    let saved: Vec<_> = fs::read_dir(fleet.town.path(".gt/salvage")).expect("it is there").flatten().collect();
    let text = fs::read_to_string(saved[0].path()).expect("it is text");
    assert!(text.contains("+another half"), "{text}");
    assert_eq!(git(&fleet, &["branch", "--list", "polecat/*"]).lines().count(), 1, "its branch stays");
}

#[test]
fn what_git_cannot_take_is_moved_away_as_it_is() {
    let fleet = fleet(LEAVES_HALF);
    work_on(&fleet, "gt-a");
    let path = worktree(&fleet);
    // A repository inside is nothing that git would save.
    fleet.town.git(&["init", "--quiet", &path.join("inner").display().to_string()]);
    fs::write(path.join("inner/file.txt"), "inner work").expect("it can be written");
    let forced = fleet.town.gt(["polecat", "nuke", "Toast", "--force", "--json"]).json();
    assert!(!path.exists());
    let place = forced["salvage"]["directory"].as_str().unwrap_or_else(|| panic!("a directory: {forced}"));
    assert_eq!(fs::read_to_string(format!("{place}/inner/file.txt")).expect("it was moved"), "inner work");
    assert_eq!(fs::read_to_string(format!("{place}/half.txt")).expect("it was moved"), "half\n");
    assert_eq!(git(&fleet, &["worktree", "list"]).lines().count(), 1, "git has forgotten it");
    fleet.town.assert_healthy();
}
