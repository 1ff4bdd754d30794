//! From done to merged, by hand: list, show, status, pause, resume, run.

use serde_json::json;

use super::{CLASHES, COMMITS, fleet, git, masked, merges, paused_fleet, work_on};
use crate::town::{Town, session, snapshot};

#[test]
fn an_empty_queue_says_so() {
    let town = Town::with_rig();
    let answers = [
        town.gt(["refinery", "list"]),
        town.gt(["refinery", "list", "--all", "--rig", "shop"]),
        town.gt(["refinery", "status"]),
        town.gt(["refinery", "run"]),
        town.gt(["refinery", "run", "--dry-run"]),
        town.gt(["refinery", "resume"]),
        town.gt(["refinery", "list", "--json"]),
        town.gt(["refinery", "status", "--json"]),
        town.gt(["refinery", "run", "--json"]),
        town.gt(["refinery", "run", "--dry-run", "--json"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt refinery list
    Nothing waits to be merged. `--all` shows what was merged or came back.
    $ gt refinery list --all --rig shop
    Nothing was ever handed over to be merged in shop.
    $ gt refinery status
    Refinery
      State:  active
      Queued: 0 to merge, 0 came back
    $ gt refinery run
    Nothing waits to be merged.
    $ gt refinery run --dry-run
    Dry run, nothing is changed. This would happen:
    Nothing would be tried: `gt refinery status` says why.
    $ gt refinery resume
    It was not paused; nothing was changed.
    $ gt refinery list --json
    []
    $ gt refinery status --json
    {"paused":false,"pauses":[],"returned":[],"targets":[],"waiting":0}
    $ gt refinery run --json
    {"targets":[],"waiting":0}
    $ gt refinery run --dry-run --json
    {"dry_run":true,"waiting":0,"would_try":[]}
    "#);
}

#[test]
fn what_waits_is_listed_run_and_shown_as_merged() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    work_on(&fleet, "gt-b");
    let id = &merges(&fleet)[0];
    let town = &fleet.town;
    let answers = [
        town.gt(["refinery", "list"]),
        town.gt(["refinery", "show", id]),
        town.gt(["refinery", "status"]),
        town.gt(["status"]),
        town.gt(["explain", "gt-a"]),
        town.gt(["refinery", "run"]),
        town.gt(["refinery", "resume"]),
        town.gt(["refinery", "run", "--dry-run"]),
        town.gt(["refinery", "run"]),
        town.gt(["refinery", "list"]),
        town.gt(["refinery", "list", "--all"]),
        town.gt(["show", "gt-a"]),
    ];
    snapshot!("refinery_session", masked(&session(answers)));
    assert_eq!(git(&fleet, &["ls-tree", "--name-only", "main"]), "gt-a.txt\ngt-b.txt");
    assert_eq!(town.gt(["show", "gt-a", "--json"]).json()["merges"][0]["state"], "merged");
    fleet.town.assert_healthy();
}

#[test]
fn the_queue_as_json() {
    let fleet = paused_fleet(COMMITS);
    work_on(&fleet, "gt-a");
    let id = &merges(&fleet)[0];
    let shown = fleet.town.gt(["refinery", "show", id, "--json"]).json();
    let tip = git(&fleet, &["rev-parse", &format!("refs/gt/merges/{id}")]);
    assert_eq!((&shown["state"], &shown["commit"]), (&json!("waiting"), &json!(tip)), "{shown}");
    assert_eq!(fleet.town.gt(["refinery", "list", "--json"]).json(), json!([shown]));
    let status = fleet.town.gt(["refinery", "status", "--json"]).json();
    assert_eq!((&status["waiting"], &status["paused"], &status["returned"]), (&json!(1), &json!(true), &json!([])));
    let target = json!({ "rig": "shop", "target": "main", "waiting": 1, "requested": 0, "merges": [id],
                         "working": null, "held": null, "paused": true });
    assert_eq!(status["targets"], json!([target]));
    assert_eq!(fleet.town.gt(["status", "--json"]).json()["merging"], status);
    fleet.town.gt(["refinery", "resume"]).success();
    let would = fleet.town.gt(["refinery", "run", "--dry-run", "--json"]).json();
    let try_it = json!([{ "rig": "shop", "target": "main", "beads": ["gt-a"] }]);
    assert_eq!(would, json!({ "would_try": try_it, "waiting": 1, "dry_run": true }));
    let ran = fleet.town.gt(["refinery", "run", "--json"]).json();
    let target = json!({ "rig": "shop", "target": "main", "merged": ["gt-a"], "returned": [], "unlocked": [], "resumed": [], "held": null,
                         "busy": false, "pid": null });
    assert_eq!(ran, json!({ "targets": [target], "waiting": 0 }));
}

#[test]
fn a_pause_names_who_and_why_for_one_rig_or_all() {
    let fleet = fleet(COMMITS);
    fleet.town.gt(["refinery", "pause", "shop", "--dry-run"]).success();
    let answers = [
        fleet.town.gt(["refinery", "pause", "shop", "--reason", "release day"]),
        fleet.town.gt(["refinery", "pause", "shop"]),
        fleet.town.gt(["refinery", "status"]),
        fleet.town.gt(["refinery", "pause"]),
        fleet.town.gt(["refinery", "resume", "shop"]),
        fleet.town.gt(["refinery", "resume", "shop"]),
        fleet.town.gt(["refinery", "resume"]),
        fleet.town.gt(["refinery", "resume", "shop"]),
    ];
    snapshot!(session(answers), @r"
    $ gt refinery pause shop --reason 'release day'
    Nothing more is merged in shop; what is under way comes to its end. `gt refinery resume shop` goes on.
    $ gt refinery pause shop
    It is paused already in shop by tester since [TIME]; nothing was changed.
    $ gt refinery status
    Refinery
      State:  shop is PAUSED by tester since [TIME]: release day
      Queued: 0 to merge, 0 came back
    $ gt refinery pause
    Nothing more is merged; what is under way comes to its end. `gt refinery resume` goes on.
    $ gt refinery resume shop
    Every rig is paused by tester since [TIME]: `gt refinery resume`.
    $ gt refinery resume shop
    Every rig is paused by tester since [TIME]; nothing was changed: `gt refinery resume`.
    $ gt refinery resume
    Merging goes on.
    $ gt refinery resume shop
    It was not paused in shop; nothing was changed.
    ");
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    snapshot!([refused("refinery pause shp"), refused("refinery resume nowhere"), refused("refinery list --rig shp"),
               refused("refinery show gt-mr-none"), refused("refinery drop gt-mr-none"),
               refused("refinery retry gt-mr-none")].concat(), @r"
    $ gt refinery pause shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    $ gt refinery resume nowhere
    ! error: there is no rig `nowhere`
    ! hint: `gt rig list` shows what there is
    [exit 3]
    $ gt refinery list --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    $ gt refinery show gt-mr-id01
    ! error: there is no merge `gt-mr-id01`
    ! hint: `gt refinery list --all` shows what there is
    [exit 3]
    $ gt refinery drop gt-mr-id01
    ! error: there is no merge `gt-mr-id01`
    ! hint: `gt refinery list --all` shows what there is
    [exit 3]
    $ gt refinery retry gt-mr-id01
    ! error: there is no merge `gt-mr-id01`
    ! hint: `gt refinery list --all` shows what there is
    [exit 3]
    ");
}

#[test]
fn what_conflicts_comes_back_and_is_seen_everywhere() {
    let fleet = paused_fleet(CLASHES);
    work_on(&fleet, "gt-a");
    work_on(&fleet, "gt-b");
    fleet.town.gt(["refinery", "resume"]).success();
    let town = &fleet.town;
    let answers = [
        town.gt(["refinery", "run"]),
        town.gt(["refinery", "status"]),
        town.gt(["status"]),
        town.gt(["show", "gt-b"]),
        town.gt(["explain", "gt-b"]),
    ];
    snapshot!("refinery_returned", masked(&session(answers)));
}

#[test]
fn a_merge_that_would_overwrite_uncommitted_work_waits_until_that_is_put_away() {
    let fleet = paused_fleet(COMMITS);
    fleet.town.write("shop/gt-a.txt", "one");
    fleet.town.git(&["-C", "shop", "add", "."]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=mine"]);
    work_on(&fleet, "gt-a");
    fleet.town.write("shop/gt-a.txt", "two");
    fleet.town.gt(["refinery", "resume"]).success();
    let town = &fleet.town;
    let answers =
        [town.gt(["refinery", "run"]), town.gt(["refinery", "status"]), town.gt(["status"]), town.gt(["doctor"])];
    snapshot!("refinery_held", masked(&session(answers)));
    town.git(&["-C", "shop", "checkout", "--quiet", "gt-a.txt"]);
    snapshot!(town.gt(["refinery", "run"]), @r"
    $ gt refinery run
    ✓ gt-a is merged into main (shop)
    ");
}

#[test]
fn somebody_else_who_is_at_it_is_named() {
    let fleet = paused_fleet(COMMITS);
    let gate = format!("touch {0}/gating; while [ ! -e {0}/pass ]; do sleep 0.02; done", fleet.town.home().display());
    fleet.set("rigs.shop.gates", &json!([gate]).to_string());
    work_on(&fleet, "gt-a");
    fleet.town.gt(["refinery", "resume"]).success();
    let mut first = fleet.town.call(["refinery", "run"]).spawn();
    fleet.await_file("gating");
    let pid = first.id().to_string();
    let answers = [fleet.town.gt(["refinery", "run"]), fleet.town.gt(["refinery", "status"])];
    snapshot!(session(answers).replace(&pid, "[PID]"), @r"
    $ gt refinery run
    ⏸ another process ([PID]) is at main of shop
    [exit 5]
    $ gt refinery status
    Refinery
      State:  active
      Queued: 1 to merge, 0 came back
      ○ shop, into main: 1 waits to be merged
          ▶ process [PID] is at it: gt-mr-id01
    ! note: no daemon runs, so nothing is merged by itself: `gt daemon start`, or once: `gt refinery run`
    ");
    fleet.open_gate("pass");
    assert!(first.wait().expect("it is a child").success());
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["status"], "closed");
    assert_eq!(fleet.town.gt(["refinery", "status", "--json"]).json()["targets"], json!([]));
}

#[test]
fn the_daemon_goes_on_where_somebody_at_it_was_killed() {
    let fleet = paused_fleet(COMMITS);
    let home = fleet.town.home().display().to_string();
    let gate = format!("echo gate >> {home}/trace; while [ ! -e {home}/pass ]; do sleep 0.02; done");
    fleet.set("rigs.shop.gates", &json!([gate]).to_string());
    work_on(&fleet, "gt-a");
    fleet.town.gt(["refinery", "resume"]).success();
    let mut first = fleet.town.call(["refinery", "run"]).spawn();
    fleet.await_trace("gate", 1);
    fleet.start_daemon();
    // It finds the place taken, and leaves it alone.
    let working = fleet.town.gt(["refinery", "status", "--json"]).json()["targets"][0]["working"].clone();
    assert_eq!(working["pid"], json!(first.id()));
    first.kill().expect("it runs");
    first.wait().expect("it is a child");
    fleet.await_trace("gate", 2);
    fleet.open_gate("pass");
    fleet.until_events("merge.landed", Some("gt-a"), 1);
    assert_eq!(git(&fleet, &["show", "main:gt-a.txt"]), "work");
}
