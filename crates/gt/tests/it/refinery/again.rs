//! A merge goes into line again, or out of it.

use serde_json::json;

use super::{CLASHES, COMMITS, git, masked, merges, paused_fleet, work_on};
use crate::town::{session, snapshot};

#[test]
fn what_is_dropped_is_open_again_and_can_be_retried() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    let id = &merges(&fleet)[0];
    let town = &fleet.town;
    let waits = town.refused(["refinery", "retry", id]);
    town.gt(["refinery", "drop", id, "--dry-run"]).success();
    assert_eq!(town.gt(["refinery", "show", id, "--json"]).json()["state"], "waiting");
    let answers = [
        town.gt(["refinery", "drop", id, "--reason", "not now"]),
        town.gt(["refinery", "list", "--all"]),
        town.gt(["refinery", "retry", id, "--dry-run"]),
        town.gt(["refinery", "retry", id]),
        town.gt(["refinery", "resume"]),
        town.gt(["refinery", "run"]),
    ];
    let over = town.refused(["refinery", "drop", id]);
    snapshot!(masked(&(waits + &session(answers) + &over)), @"
    $ gt refinery retry gt-mr-id01
    ! error: the work on gt-a waits to be merged already, as gt-mr-id01
    ! hint: see how it stands with `gt refinery show gt-mr-id01`
    [exit 1]
    $ gt refinery drop gt-mr-id01 --reason 'not now'
    gt-mr-id01 will not be merged; gt-a is open again, and its commits stay on polecat/Toast/gt-a@[RUN]. `gt refinery retry gt-mr-id01` puts it back.
    $ gt refinery list --all
    shop, into main
      ✗ gt-mr-id01  gt-a Do gt-a
          dropped at [TIME]: not now
    $ gt refinery retry gt-mr-id01 --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a waits to be merged into main again: polecat/Toast/gt-a@[RUN] as it was, at [COMMIT].
    $ gt refinery retry gt-mr-id01
    gt-a waits to be merged into main again: polecat/Toast/gt-a@[RUN] as it was, at [COMMIT].
    ! note: no daemon runs, so nothing is merged by itself: `gt daemon start`, or once: `gt refinery run`
    $ gt refinery resume
    Merging goes on.
    ! note: no daemon runs, so nothing is merged by itself: `gt daemon start`, or once: `gt refinery run`
    $ gt refinery run
    ✓ gt-a is merged into main (shop)
    $ gt refinery drop gt-mr-id01
    ! error: gt-mr-id01 is over: it is merged
    ! hint: see what is in the queue with `gt refinery list`
    [exit 1]
    ");
}

#[test]
fn the_branch_as_it_is_now_is_what_a_retry_merges_and_the_old_commit_is_kept() {
    let fleet = paused_fleet(CLASHES);
    work_on(&fleet, "gt-a");
    work_on(&fleet, "gt-b");
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.town.gt(["refinery", "run"]).success();
    let town = &fleet.town;
    let returned = town.gt(["refinery", "status", "--json"]).json()["returned"][0].clone();
    let text = |field: &str| returned[field].as_str().unwrap_or_else(|| panic!("{field}: {returned}")).to_owned();
    let (id, branch, old) = (text("id"), text("branch"), text("commit"));
    // Somebody makes it fit, on top of what is there now.
    town.git(&["-C", "shop", "worktree", "add", "--quiet", "--detach", "../mend", "main"]);
    town.write("mend/shared.txt", "both");
    town.git(&["-C", "mend", "commit", "--quiet", "--all", "--message=both"]);
    let mended = git(&fleet, &["-C", "../mend", "rev-parse", "HEAD"]);
    let worktree = super::worktree(&fleet).display().to_string();
    town.git(&["-C", &worktree, "reset", "--quiet", "--hard", &mended]);
    assert_eq!(git(&fleet, &["rev-parse", &branch]), mended);
    let rework = text("rework");
    let answers = [town.gt(["refinery", "retry", &id]), town.gt(["refinery", "run"])];
    snapshot!(masked(&session(answers)), @r"
    $ gt refinery retry gt-mr-id01
    gt-b waits to be merged into main again: polecat/Toast/gt-b@[RUN] as it is now, at [COMMIT].
    ! note: no daemon runs, so nothing is merged by itself: `gt daemon start`, or once: `gt refinery run`
    $ gt refinery run
    ✓ gt-b is merged into main (shop)
    ");
    assert_eq!(git(&fleet, &["show", "main:shared.txt"]), "both");
    assert_eq!(town.gt(["show", "gt-b", "--json"]).json()["status"], "closed");
    assert_eq!(town.gt(["show", &rework, "--json"]).json()["status"], "closed", "nobody has to work on it again");
    let kept = git(&fleet, &["for-each-ref", "--format=%(objectname)", "refs/gt/merges"]);
    assert_eq!(kept, old, "what the branch has not any more is kept");
}

#[test]
fn a_branch_that_is_gone_is_told_with_the_place_of_its_commit() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    let id = &merges(&fleet)[0];
    let town = &fleet.town;
    town.gt(["refinery", "drop", id]).success();
    let branch = town.gt(["refinery", "show", id, "--json"]).json()["branch"].as_str().expect("a branch").to_owned();
    git(&fleet, &["update-ref", "-d", &format!("refs/heads/{branch}")]);
    let kept = town.refused(["refinery", "retry", id]);
    snapshot!(masked(&kept), @r"
    $ gt refinery retry gt-mr-id01
    ! error: the branch `polecat/Toast/gt-a@[RUN]` of gt-mr-id01 is gone; its commit [COMMIT] is still there
    ! hint: make it again with `git -C [TOWN]/shop branch polecat/Toast/gt-a@[RUN] [COMMIT]`, then retry
    [exit 1]
    ");
    let state = town.gt(["refinery", "show", id, "--json"]).json()["state"].clone();
    assert_eq!(state, json!("dropped"));
}
