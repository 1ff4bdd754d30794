//! What the daemon clears away after merges, and what it never does. // SPEC M2, P8

use std::fs;

use super::{CLASHES, COMMITS, fleet, git, merges, paused_fleet, work_on};
use crate::fleet::Fleet;

/// A daemon that looks after things all the time, and starts nobody.
fn patrolled(fleet: &Fleet) {
    fleet.town.gt(["scheduler", "pause"]).success();
    fleet.set("daemon.heartbeat", "1s");
    fleet.start_daemon();
}

fn refs(fleet: &Fleet, prefix: &str) -> Vec<String> {
    git(fleet, &["for-each-ref", "--format=%(refname)", prefix]).lines().map(str::to_owned).collect()
}

#[test]
fn branches_and_refs_that_the_target_has_go_and_no_others() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    work_on(&fleet, "gt-b");
    let ids = merges(&fleet);
    fleet.town.gt(["refinery", "drop", &ids[1]]).success();
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.town.gt(["refinery", "run"]).success();
    let dropped = git(&fleet, &["rev-parse", &format!("refs/gt/merges/{}", ids[1])]);
    // As a crash leaves them: the ref and the branch of what is merged, and a ref of a merge that was never recorded.
    let merged = git(&fleet, &["rev-parse", "main"]);
    git(&fleet, &["update-ref", &format!("refs/gt/merges/{}", ids[0]), &merged]);
    git(&fleet, &["update-ref", "refs/gt/merges/gt-mr-gone", &dropped]);
    git(&fleet, &["update-ref", "refs/heads/polecat/Toast/gt-a@0123456789ab", &merged]);
    git(&fleet, &["update-ref", "refs/heads/polecat/Toast/gt-b@0123456789ab", &merged]);
    git(&fleet, &["update-ref", "refs/heads/polecat/mine", &merged]);
    git(&fleet, &["update-ref", "refs/heads/other", &merged]);
    patrolled(&fleet);
    let left = format!("refs/gt/merges/{}", ids[1]);
    let cleared = format!("refs/gt/merges/{}", ids[0]);
    fleet.until_seen("what is merged is cleared", || {
        !refs(&fleet, "refs/gt/merges").contains(&cleared)
            && !refs(&fleet, "refs/heads").contains(&"refs/heads/polecat/Toast/gt-a@0123456789ab".to_owned())
    });
    assert!(refs(&fleet, "refs/gt/merges").contains(&"refs/gt/merges/gt-mr-gone".to_owned()), "it is not merged");
    let branches = refs(&fleet, "refs/heads");
    for kept in ["main", "other", "polecat/mine", "polecat/Toast/gt-b@0123456789ab"] {
        assert!(branches.contains(&format!("refs/heads/{kept}")), "{kept} is gone: {branches:?}");
    }
    let own = |bead: &str| branches.iter().filter(|name| name.contains(&format!("/{bead}@"))).count();
    assert_eq!(own("gt-b"), 2, "its commits are nowhere else: {branches:?}");
    assert_eq!(git(&fleet, &["rev-parse", &left]), dropped);
}

#[test]
fn salvage_is_kept_until_its_bead_has_been_closed_for_long() {
    let fleet = fleet("echo half > half.txt; exit 1");
    fleet.set("retention.logs", "1s");
    // Before its worktree is gone it is needed to compare that with.
    fleet.set("retention.worktrees", "1s");
    work_on(&fleet, "gt-a");
    let run = &fleet.started_runs()[0];
    let (name, patch) = (format!("refs/gt/salvage/{run}"), fleet.town.path(&format!(".gt/salvage/{run}.patch")));
    assert_eq!(refs(&fleet, "refs/gt/salvage"), std::slice::from_ref(&name));
    assert!(fs::read_to_string(&patch).expect("it was saved").contains("+half"));
    // Something else that the patrol clears tells that it was there.
    let merged = git(&fleet, &["rev-parse", "main"]);
    git(&fleet, &["update-ref", "refs/gt/merges/gt-mr-gone", &merged]);
    patrolled(&fleet);
    fleet.until_seen("a patrol", || refs(&fleet, "refs/gt/merges").is_empty());
    assert_eq!(refs(&fleet, "refs/gt/salvage"), [name], "its bead is open");
    assert!(patch.exists());
    fleet.town.gt(["close", "gt-a"]).success();
    fleet.until_seen("salvage pruned", || refs(&fleet, "refs/gt/salvage").is_empty() && !patch.exists());
}

#[test]
fn what_came_back_is_never_cleared() {
    let fleet = paused_fleet(CLASHES);
    work_on(&fleet, "gt-a");
    work_on(&fleet, "gt-b");
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.town.gt(["refinery", "run"]).success();
    fleet.town.gt(["polecat", "nuke", "Toast"]).success();
    let before = (refs(&fleet, "refs/gt/merges"), refs(&fleet, "refs/heads/polecat"));
    assert_eq!((before.0.len(), before.1.len()), (1, 1), "{before:?}");
    let merged = git(&fleet, &["rev-parse", "main"]);
    git(&fleet, &["update-ref", "refs/gt/merges/gt-mr-gone", &merged]);
    patrolled(&fleet);
    fleet.until_seen("a patrol", || !refs(&fleet, "refs/gt/merges").contains(&"refs/gt/merges/gt-mr-gone".to_owned()));
    assert_eq!((refs(&fleet, "refs/gt/merges"), refs(&fleet, "refs/heads/polecat")), before);
}
