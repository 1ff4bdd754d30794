//! Where a worker works: a worktree and a branch of its own, which are never lost. // SPEC P5, P8

use std::path::PathBuf;

use crate::fleet::Fleet;
use crate::town::{session, snapshot};

/// Commits a file named after the bead, and is done.
const COMMITS: &str = "echo work > \"$GT_BEAD.txt\"; git add .; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=\"$GT_BEAD\"; gt done";

fn fleet(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("rigs.shop.merge", "local");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet
}

/// Has a bead done, and returns the worktree it was done in.
fn do_one(fleet: &Fleet, bead: &str) -> PathBuf {
    fleet.town.gt(["sling", bead]).success();
    fleet.until_done(&[bead.to_owned()]);
    worktree(fleet, 0)
}

fn worktree(fleet: &Fleet, n: usize) -> PathBuf {
    let polecats = fleet.town.gt(["polecat", "list", "--json"]).json();
    PathBuf::from(polecats[n]["worktree"].as_str().unwrap_or_else(|| panic!("a worktree: {polecats}")))
}

fn git(fleet: &Fleet, arguments: &[&str]) -> String {
    let output = fleet.town.command("git").args(arguments).output().expect("git is installed");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn what_a_worker_commits_is_on_a_branch_of_its_own_and_nowhere_else() {
    let fleet = fleet(COMMITS);
    fleet.start_daemon();
    let path = do_one(&fleet, "gt-a");
    let events = fleet.town.events();
    let started = events.iter().find(|event| event["type"] == "run.started").expect("it started");
    let branch = started["data"]["branch"].as_str().expect("a branch");
    let short = started["run"].as_str().and_then(|run| run.rsplit('-').next()).expect("a run");
    assert_eq!(branch, format!("polecat/Toast/gt-a@{short}"));
    assert_eq!(git(&fleet, &["-C", "shop", "show", &format!("{branch}:gt-a.txt")]), "work\n");
    assert!(!fleet.town.path("shop/gt-a.txt").exists(), "the rig itself is untouched");
    assert_eq!(git(&fleet, &["-C", "shop", "log", "--format=%s", "main"]), "start\n");
    assert_eq!(git(&fleet, &["-C", "shop", "status", "--porcelain"]), "");
    assert!(path.starts_with(fleet.town.root()), "{path:?}");
}

#[test]
fn a_clean_worktree_is_used_again_on_a_new_branch_from_the_base() {
    let fleet = fleet(COMMITS);
    fleet.start_daemon();
    let first = do_one(&fleet, "gt-a");
    let second = do_one(&fleet, "gt-b");
    assert_eq!(first, second);
    assert!(second.join("gt-b.txt").exists());
    assert!(!second.join("gt-a.txt").exists(), "the second starts from the base, not from the first");
    let branches = git(&fleet, &["-C", "shop", "branch", "--list", "polecat/*", "--format=%(refname:short)"]);
    assert_eq!(branches.lines().count(), 2, "{branches}");
}

#[test]
fn a_dirty_worktree_is_kept_never_used_again_and_only_removed_by_force() {
    let fleet = fleet("echo half > half.txt; gt close $GT_BEAD");
    fleet.start_daemon();
    let path = do_one(&fleet, "gt-a");
    fleet.script(COMMITS);
    let list = fleet.town.gt(["polecat", "list"]);
    let status = fleet.town.gt(["status"]);
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.until_done(&["gt-b".to_owned()]);
    assert!(path.join("half.txt").exists());
    assert!(!path.join("gt-b.txt").exists());
    let refused = fleet.town.refused(["polecat", "nuke", "Toast"]);
    assert!(path.join("half.txt").exists());
    let forced = fleet.town.gt(["polecat", "nuke", "Toast", "--force"]);
    assert!(!path.exists());
    let names = fleet.town.gt(["polecat", "list"]);
    snapshot!(session([list, status]) + &refused + &session([forced, names]), @r"
    $ gt polecat list
    ● shop/Toast  salvaged  gt-a is closed and its changes are in refs/gt/salvage/[RUN]; [TOWN]/.gt/polecats/shop/Toast is removed in [SPAN]
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 5 agents running

    Nothing runs.

    Nothing is scheduled. 1 bead is ready: `gt ready`, then `gt sling BEAD`.

    Salvaged worktrees (1)
      ● shop/Toast  salvaged  gt-a is closed and its changes are in refs/gt/salvage/[RUN]; [TOWN]/.gt/polecats/shop/Toast is removed in [SPAN]
    $ gt polecat nuke Toast
    ! error: the worktree [TOWN]/.gt/polecats/shop/Toast is not safe to remove: it has uncommitted changes
    ! hint: look into it, or remove it and keep what is in it as a patch: `gt polecat nuke shop/Toast --force`
    [exit 1]
    $ gt polecat nuke Toast --force
    shop/Toast is gone; its branches stay.
    What was not committed is kept in [TOWN]/.gt/salvage/[RUN].patch (`git apply --3way`) and as refs/gt/salvage/[RUN].
    $ gt polecat list
    ● shop/Ember  idle
    ");
}

#[test]
fn commits_on_no_branch_are_not_lost() {
    let fleet = fleet(
        "git checkout --quiet --detach; echo lone > lone.txt; git add .; \
         git -c user.name=it -c user.email=it@example.org commit --quiet --message=lone; gt close $GT_BEAD",
    );
    fleet.start_daemon();
    let path = do_one(&fleet, "gt-a");
    let lone = git(&fleet, &["-C", &path.display().to_string(), "rev-parse", "HEAD"]);
    let refused = fleet.town.refused(["polecat", "nuke", "Toast"]);
    fleet.script(COMMITS);
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.until_done(&["gt-b".to_owned()]);
    let holders = git(&fleet, &["-C", "shop", "branch", "--format=%(refname)", "--contains", lone.trim()]);
    assert!(holders.starts_with("refs/heads/polecat/Toast/gt-a@"), "they are on the branch of their run: {holders}");
    snapshot!(refused, @r"
    $ gt polecat nuke Toast
    ! error: the worktree [TOWN]/.gt/polecats/shop/Toast is not safe to remove: it has 1 commit that main does not have
    ! hint: look into it, or remove it and keep what is in it as a patch: `gt polecat nuke shop/Toast --force`
    [exit 1]
    ");
}

#[test]
fn a_start_that_nobody_lived_to_record_is_taken_up_with_its_branch_and_worktree() {
    let fleet = fleet("touch \"$HOME/ready\"; exec sleep 600");
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon_with(&[("GT_CRASH_AT", "launched")]);
    fleet.await_daemon_death();
    fleet.await_file("ready");
    fleet.start_daemon();
    let events = fleet.until_events("run.started", Some("gt-a"), 1);
    let started = events.iter().find(|event| event["type"] == "run.started").expect("it started");
    let branch = started["data"]["branch"].as_str().unwrap_or_else(|| panic!("a branch: {started}"));
    let path = worktree(&fleet, 0).display().to_string();
    assert_eq!(git(&fleet, &["-C", &path, "branch", "--show-current"]).trim(), branch);
    assert_eq!(fleet.starts(), ["gt-a"], "it was started once");
}

#[test]
fn nuking_an_idle_worker_removes_its_worktree_and_keeps_its_branch() {
    let fleet = fleet(COMMITS);
    fleet.start_daemon();
    let path = do_one(&fleet, "gt-a");
    // Its commit is nowhere else than on its branch.
    let refused = fleet.town.refused(["polecat", "nuke", "Toast"]);
    assert!(refused.contains("it has 1 commit that main does not have"), "{refused}");
    let dry = fleet.town.gt(["polecat", "nuke", "Toast", "--force", "--dry-run"]);
    assert!(path.exists(), "{dry}");
    fleet.town.gt(["polecat", "nuke", "Toast", "--force"]).success();
    assert!(!path.exists());
    let branches = git(&fleet, &["-C", "shop", "branch", "--list", "polecat/*", "--format=%(refname:short)"]);
    assert_eq!(branches.lines().count(), 1);
    assert_eq!(git(&fleet, &["-C", "shop", "worktree", "list"]).lines().count(), 1, "git has forgotten it too");
    fleet.town.assert_healthy();
}

#[test]
fn two_workers_at_once_have_a_worktree_each() {
    let fleet = fleet("touch \"$HOME/$GT_BEAD\"; exec sleep 600");
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    let (one, two) = (worktree(&fleet, 0), worktree(&fleet, 1));
    assert_ne!(one, two);
    assert!(one.join(".git").exists() && two.join(".git").exists());
}

#[test]
fn a_worker_that_dies_leaves_its_branch_to_the_next_attempt() {
    let fleet = fleet(
        "gt prime > \"$HOME/prime-$GT_RUN\"; if [ -e \"$HOME/second\" ]; then gt done --no-changes; exit; fi; touch \"$HOME/second\"; \
         echo part > part.txt; git add .; \
         git -c user.name=it -c user.email=it@example.org commit --quiet --message=part; exit 1",
    );
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let events = fleet.town.events();
    let starts: Vec<_> = events.iter().filter(|event| event["type"] == "run.started").collect();
    assert_eq!(starts.len(), 2);
    let left = starts[0]["data"]["branch"].as_str().expect("a branch");
    assert_eq!(git(&fleet, &["-C", "shop", "show", &format!("{left}:part.txt")]), "part\n");
    let second = starts[1]["run"].as_str().expect("a run");
    let prime = std::fs::read_to_string(fleet.home(&format!("prime-{second}"))).expect("it was printed");
    assert!(prime.contains(left), "{prime}");
}
