//! Trouble on the way to the target: gates that others end, origins that refuse one commit, people who commit meanwhile,
//! programs that hang or lie. Good work gets through, only what is flawed comes back, nobody waits for ever. // SPEC M2

use super::{
    COMMITS, WORKS, WORKS_ANEW, add_origin, assert_merged_once, explain, files, fleet, git, git_agrees, last_of,
    set_gates, sling,
};
use crate::fleet::{Fleet, count};

/// A gate that waits for the test.
const WAITS: &str = "touch \"$HOME/asked-$GT_RIG\"; while [ ! -e \"$HOME/pass\" ]; do sleep 0.02; done";

fn add_mill(fleet: &Fleet) {
    fleet.town.repository("mill");
    fleet.town.gt(["rig", "add", "mill", "mill", "--prefix", "ml"]).success();
}

/// A hook of the origin's.
fn write_hook(fleet: &Fleet, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = fleet.town.path("origin.git/hooks").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the origin can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is there");
}

#[test]
fn a_daemon_that_stops_ends_its_own_gates_and_nobody_elses() {
    let fleet = fleet(WORKS);
    add_mill(&fleet);
    set_gates(&fleet, "shop", WAITS);
    set_gates(&fleet, "mill", WAITS);
    let mut beads = sling(&fleet, &["gt-a"], &[]);
    fleet.town.gt(["scheduler", "run"]).success();
    // Whoever saw the agent end merges its work.
    fleet.await_file("asked-shop");
    fleet.start_daemon();
    beads.extend(sling(&fleet, &["ml-a"], &[]));
    fleet.await_file("asked-mill");
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.open_gate("pass");
    fleet.until_done(&beads);
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0, "good work came back");
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(git(&fleet, "mill", &["show", "main:ml-a.txt"]), "ml-a");
}

#[test]
fn a_gate_that_somebody_kills_is_asked_again_and_nobody_is_blamed() {
    let fleet = fleet(WORKS);
    set_gates(&fleet, "shop", "if mkdir \"$HOME/once\" 2> /dev/null; then kill -9 $$; fi");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert!(last_of(&fleet, "merge.held", "reason").contains("was killed (ended by signal 9)"));
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0, "good work came back");
    assert_merged_once(&fleet, "gt-a");
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_gate_that_is_killed_each_time_with_the_same_work_fails() {
    let fleet = fleet(WORKS);
    set_gates(&fleet, "shop", "if [ -e gt-a.txt ]; then kill -9 $$; fi");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.returned", Some("gt-a"), 1);
    let reason = last_of(&fleet, "merge.returned", "reason");
    assert!(reason.contains("(ended by signal 9)"), "{reason}");
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 1);
}

#[test]
fn what_the_origin_refuses_comes_back_and_the_others_are_merged() {
    let fleet = fleet(WORKS_ANEW);
    add_origin(&fleet);
    let hook = "read old new name; if git cat-file -e $new:gt-b.txt 2> /dev/null; then echo 'no b here'; exit 1; fi";
    write_hook(&fleet, "pre-receive", hook);
    fleet.town.gt(["refinery", "pause"]).success();
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b", "gt-c"], &[]);
    fleet.until_events("merge.queued", None, 3);
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.until_done(&beads);
    for bead in ["gt-a", "gt-c"] {
        assert_merged_once(&fleet, bead);
    }
    assert!(!files(&fleet, "main").contains(&"gt-b.txt".to_owned()));
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 1);
    let reason = last_of(&fleet, "merge.returned", "reason");
    assert!(reason.contains("the origin refuses it") && reason.contains("pre-receive hook declined"), "{reason}");
    let rework = last_of(&fleet, "merge.returned", "rework");
    let said = super::show(&fleet, &rework)["description"].as_str().expect("it says why").to_owned();
    assert!(said.contains("no b here"), "{said}");
}

#[test]
fn a_branch_of_the_origins_that_nobody_may_push_to_holds_and_nobody_is_blamed() {
    let fleet = fleet(WORKS);
    fleet.town.git(&["clone", "--quiet", "shop", "origin"]);
    let origin = fleet.town.path("origin").display().to_string();
    fleet.town.git(&["-C", "shop", "remote", "add", "origin", &origin]);
    fleet.set("rigs.shop.push", "true");
    fleet.set("rigs.shop.gates", r#"["echo ran >> \"$HOME/gates\""]"#);
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_seen("a third try", || {
        let status = fleet.town.gt(["refinery", "status", "--json"]).json();
        status["targets"][0]["held"]["tries"].as_i64() >= Some(3)
    });
    assert!(explain(&fleet, "gt-a").contains("branch is currently checked out"));
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0, "somebody was blamed");
    let gates = std::fs::read_to_string(fleet.home("gates")).expect("the gates have run");
    assert_eq!(gates, "ran\n", "the same tree was judged again");
}

#[test]
fn what_git_cannot_merge_though_nothing_conflicts_comes_back_and_the_others_are_merged() {
    let fleet = fleet(&format!(
        "[ $GT_BEAD = gt-b ] && {{ echo '*.bin filter=lost' > .gitattributes; echo 1 > 1.bin; }}; {WORKS_ANEW}"
    ));
    for (name, value) in [("clean", "cat"), ("smudge", "false"), ("required", "true")] {
        fleet.town.git(&["-C", "shop", "config", &format!("filter.lost.{name}"), value]);
    }
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b", "gt-c"], &[]);
    fleet.until_done(&beads);
    for bead in ["gt-a", "gt-c"] {
        assert_merged_once(&fleet, bead);
    }
    let reason = last_of(&fleet, "merge.returned", "reason");
    assert!(reason.contains("it cannot be merged into main") && reason.contains("filter"), "{reason}");
}

/// A git that is killed the first time that the refinery asks it each of these.
const MORTAL: &str = r#"#!/bin/bash
case "${GT_RUN:+agent} $*" in
agent*) ;;
*'merge --no-ff'*) mkdir "$HOME/died-merging" 2> /dev/null && kill -9 $$ ;;
*refs/*) ;;
*'--verify --end-of-options'*) mkdir "$HOME/died-looking" 2> /dev/null && kill -9 $$ ;;
esac
PATH=${PATH#*:} exec git "$@"
"#;

#[test]
fn a_git_that_is_killed_says_nothing_about_the_work() {
    use std::os::unix::fs::PermissionsExt as _;
    let fleet = fleet(WORKS);
    let (bin, git) = (fleet.home("mortal"), fleet.home("mortal/git"));
    std::fs::create_dir(&bin).expect("the home can be written");
    std::fs::write(&git, MORTAL).expect("the home can be written");
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).expect("it is there");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    fleet.start_daemon_with(&[("PATH", &path)]);
    let beads = sling(&fleet, &["gt-a"], &["--base-branch", "main"]);
    fleet.until_done(&beads);
    for name in ["died-merging", "died-looking"] {
        assert!(fleet.home(name).exists(), "{name}");
    }
    let events = fleet.town.events();
    for kind in ["merge.returned", "merge.dropped"] {
        assert_eq!(count(&events, kind, None), 0, "{kind}: {}", last_of(&fleet, kind, "reason"));
    }
    assert_merged_once(&fleet, "gt-a");
}

#[test]
fn a_branch_that_is_not_of_our_making_stays() {
    let fleet = fleet(&format!("git switch --quiet --create feature/mine; {WORKS}; git switch --quiet --detach"));
    fleet.start_daemon();
    set_gates(&fleet, "shop", WAITS);
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("run.ended", Some("gt-a"), 1);
    fleet.open_gate("pass");
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert!(git_agrees(&fleet, "shop", &["rev-parse", "--verify", "refs/heads/feature/mine"]), "it was deleted");
}

#[test]
fn a_gate_judges_what_is_merged_and_not_what_another_gate_or_caller_left() {
    let fleet = fleet(WORKS);
    let gates = [
        "echo changed > gt-a.txt && git add --all && git -c user.name=x -c user.email=x commit --quiet --message=x",
        "test \"$(cat gt-a.txt)\" = gt-a && test \"$(git rev-parse HEAD)\" = $GT_COMMIT && env | grep ^GT_ > \"$HOME/seen\"",
    ];
    fleet.set("rigs.shop.gates", &serde_json::to_string(&gates).expect("text is JSON"));
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.start_daemon_with(&[("GT_BEAD", "another"), ("GT_ODD", "1")]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    let seen = std::fs::read_to_string(fleet.home("seen")).expect("the gate has looked");
    let mut names: Vec<&str> = seen.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GT_COMMIT", "GT_GATE", "GT_RIG", "GT_TARGET", "GT_TOWN"]);
}

#[test]
fn a_gate_that_checks_the_target_out_is_not_in_the_way_of_landing() {
    let fleet = fleet(WORKS);
    fleet.town.git(&["-C", "shop", "switch", "--quiet", "--create", "elsewhere"]);
    set_gates(&fleet, "shop", "git checkout --quiet main && touch dirty && git add dirty");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--base-branch", "main"]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt"]);
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 0);
}

#[test]
fn direct_work_does_not_ask_the_gates_of_others() {
    let ends = "ls \"$HOME\" > \"$HOME/new-$GT_BEAD\"; mv \"$HOME/new-$GT_BEAD\" \"$HOME/then-$GT_BEAD\"; \
                while [ ! -e \"$HOME/over\" ]; do sleep 0.02; done";
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said-$GT_BEAD\"; {ends}"));
    set_gates(&fleet, "shop", "touch \"$HOME/gate-ran\"");
    let mut beads = Vec::new();
    for (bead, strategy) in [("gt-a", "mr"), ("gt-b", "direct")] {
        beads.extend(sling(&fleet, &[bead], &["--merge", strategy]));
        fleet.town.gt(["scheduler", "run"]).success();
        fleet.await_file(&format!("then-{bead}"));
    }
    let then = std::fs::read_to_string(fleet.home("then-gt-b")).expect("it was just written");
    assert!(!then.contains("gate-ran"), "its `gt done` asked somebody else's gate");
    let said = std::fs::read_to_string(fleet.home("said-gt-b")).expect("the agent has written it");
    assert_eq!(said, "gt-b is merged into main. End your process now.\n");
    fleet.open_gate("over");
    fleet.until_done(&beads);
}

#[test]
fn without_a_daemon_a_finished_worker_makes_room_before_its_gates_run() {
    let fleet = fleet(WORKS);
    fleet.set("scheduler.max_polecats", "-1");
    set_gates(&fleet, "shop", WAITS);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_file("asked-shop");
    assert_eq!(count(&fleet.town.events(), "run.ended", Some("gt-a")), 1, "its slot is taken while its gates run");
    fleet.open_gate("pass");
    fleet.until_done(&["gt-a".to_owned()]);
    assert_merged_once(&fleet, "gt-a");
}

/// A rig whose merges are asked for by a program.
fn with_program(script: &str) -> Fleet {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    let argv = serde_json::to_string(&["sh", "-c", script, "request"]).expect("text is JSON");
    fleet.set("rigs.shop.pull_request", &argv);
    fleet.set("refinery.poll", "1s");
    fleet.start_daemon();
    fleet
}

#[test]
fn a_request_that_is_said_to_be_merged_is_not_believed_before_the_target_has_moved() {
    let fleet = with_program("case $1 in open) echo pr-1;; *) echo merged;; esac");
    let beads = sling(&fleet, &["gt-a"], &[]);
    let what = "pr-1 is said to be merged, but main has not moved since it was opened";
    fleet.until("a hold with the reason", |events| {
        events.iter().any(|event| event["type"] == "merge.held" && event["data"]["reason"] == what)
    });
    assert_eq!(count(&fleet.town.events(), "merge.landed", None), 0);
    fleet.town.git(&["clone", "--quiet", "origin.git", "other"]);
    std::fs::write(fleet.town.path("other/squashed"), "").expect("the clone can be written");
    fleet.town.git(&["-C", "other", "add", "squashed"]);
    fleet.town.git(&["-C", "other", "commit", "--quiet", "--message=squashed"]);
    fleet.town.git(&["-C", "other", "push", "--quiet", "origin", "main"]);
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["squashed"], "what was merged is here");
}

#[test]
fn a_program_for_requests_ends_with_the_daemon() {
    let fleet = with_program("echo $$ > \"$HOME/pid.new\"; mv \"$HOME/pid.new\" \"$HOME/pid\"; sleep 600");
    sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("pid");
    let pid = std::fs::read_to_string(fleet.home("pid")).expect("it was just written");
    fleet.town.gt(["daemon", "stop"]).success();
    fleet.await_end(pid.trim().parse().expect("a number"));
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 0, "nothing is wrong with the target");
}

#[test]
fn what_is_new_does_not_wait_for_requests_that_are_open() {
    let fleet = with_program("case $1 in open) echo pr-$GT_BEAD;; *) echo open;; esac");
    fleet.set("refinery.poll", "1h");
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    sling(&fleet, &["gt-b"], &[]);
    fleet.until_events("merge.requested", Some("gt-b"), 1);
}

/// As an agent leaves it that is killed while its git commits; for a long time, as far as anybody can tell.
fn leave_lock(fleet: &Fleet, name: &str) -> std::path::PathBuf {
    let lock = fleet.town.path("shop/.git").join(name);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
    std::fs::File::create(&lock).and_then(|file| file.set_modified(long_ago)).expect("the rig can be written");
    lock
}

#[test]
fn a_lock_that_a_killed_git_has_left_holds_nobody_up_and_leaves_nothing_behind() {
    let fleet = fleet(WORKS);
    let lock = leave_lock(&fleet, "packed-refs.lock");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b", "gt-c"], &[]);
    fleet.until_done(&beads);
    fleet.until_seen("the daemon to say so", || {
        fleet.n_said(&["packed-refs.lock: a git that was killed had left it"]) == 1
    });
    assert!(!lock.exists());
    fleet.until_seen("refs of what is merged to be cleared away", || {
        git(&fleet, "shop", &["for-each-ref", "refs/gt/merges"]).is_empty()
    });
    fleet.assert_at_rest(&beads);
}

/// Somebody else pushes to `main`.
fn move_origin(fleet: &Fleet) {
    fleet.town.git(&["clone", "--quiet", "origin.git", "other"]);
    fleet.town.git(&["-C", "other", "commit", "--quiet", "--allow-empty", "--message=theirs"]);
    fleet.town.git(&["-C", "other", "push", "--quiet", "origin", "main"]);
}

/// Each of these is in the way of another step on the way to the target.
#[test]
fn whoever_merges_by_hand_is_told_of_locks_that_were_left() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    set_gates(&fleet, "shop", "if mkdir \"$HOME/once\" 2> /dev/null; then kill -9 $$; fi");
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.town.gt(["scheduler", "run"]).success();
    fleet.until_events("merge.held", None, 1);
    fleet.end_looks();
    move_origin(&fleet);
    let names = ["packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "refs/remotes/origin/main.lock"];
    let locks = names.map(|name| leave_lock(&fleet, name));
    let told = fleet.town.gt(["refinery", "run"]).stdout;
    for lock in &locks {
        let words = format!("! removed {}: a git that was killed had left it", lock.display());
        assert!(told.contains(&words), "{told}");
        assert!(!lock.exists());
    }
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
}

#[test]
fn the_patrol_clears_locks_away_also_where_nothing_is_merged() {
    let fleet = fleet(WORKS);
    git(&fleet, "shop", &["branch", "polecat/Toast/gt-a@1"]);
    let locks = ["packed-refs.lock", "refs/heads/main.lock", "refs/heads/polecat/Toast/gt-a@1.lock"];
    let locks = locks.map(|name| leave_lock(&fleet, name));
    fleet.start_daemon();
    // A daemon that runs patrols as often from now on.
    fleet.set("daemon.heartbeat", "1s");
    fleet.until_seen("the daemon to say so", || fleet.n_said(&["a git that was killed had left it"]) == 3);
    assert!(locks.iter().all(|lock| !lock.exists()));
}
