//! What the refinery pushes: agents' work where that is wanted, and never a commit of a person's. // SPEC M2a

use std::time::Duration;

use gt_engine::crash::CrashPoint;

use super::{
    WORKS, add_origin, add_silent_origin, assert_merged_once, explain, files, fleet, git, git_agrees, last_of,
    set_gates, show, sling,
};
use crate::fleet::{Fleet, count};

/// A commit of the user's on `main`, which nothing has pushed.
fn commit(fleet: &Fleet, name: &str) -> String {
    std::fs::write(fleet.town.path("shop").join(name), "mine\n").expect("the rig can be written");
    fleet.town.git(&["-C", "shop", "add", name]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message", &format!("secret {name}")]);
    git(fleet, "shop", &["rev-parse", "main"])
}

fn push(fleet: &Fleet) {
    fleet.town.git(&["-C", "shop", "push", "--quiet", "origin", "main"]);
}

/// The files of `main` at the origin.
fn published(fleet: &Fleet) -> Vec<String> {
    let listed = git(fleet, "origin.git", &["ls-tree", "-r", "--name-only", "main"]);
    listed.lines().map(str::to_owned).collect()
}

fn assert_same_there(fleet: &Fleet) {
    let there = git(fleet, "origin.git", &["rev-parse", "main"]);
    assert_eq!(git(fleet, "shop", &["rev-parse", "main"]), there, "here and there differ");
}

/// Waits until the target is held for this reason, and returns the whole of it.
fn until_held(fleet: &Fleet, why: &str) -> String {
    fleet.until(&format!("a hold: {why}"), |events| {
        events.iter().any(|event| {
            event["type"] == "merge.held" && event["data"]["reason"].as_str().is_some_and(|told| told.contains(why))
        })
    });
    last_of(fleet, "merge.held", "reason")
}

#[test]
fn a_rig_added_by_path_is_merged_into_and_its_origin_is_left_alone() {
    let fleet = fleet(WORKS);
    add_silent_origin(&fleet);
    commit(&fleet, "draft");
    let before = git(&fleet, "origin.git", &["for-each-ref"]);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["draft", "gt-a.txt"]);
    assert_eq!(git(&fleet, "origin.git", &["for-each-ref"]), before, "something was pushed");
    fleet.assert_at_rest(&beads);
}

#[test]
fn an_origin_that_is_away_or_ahead_does_not_matter_where_nothing_is_pushed() {
    let fleet = fleet(WORKS);
    add_silent_origin(&fleet);
    fleet.start_daemon();
    let mut beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    fleet.town.git(&["clone", "--quiet", "origin.git", "other"]);
    fleet.town.git(&["-C", "other", "commit", "--quiet", "--allow-empty", "--message=theirs"]);
    fleet.town.git(&["-C", "other", "push", "--quiet", "origin", "main"]);
    fleet.town.git(&["-C", "shop", "fetch", "--quiet"]);
    beads.extend(sling(&fleet, &["gt-b"], &[]));
    fleet.until_done(&beads);
    std::fs::rename(fleet.town.path("origin.git"), fleet.town.path("gone.git")).expect("it is there");
    beads.extend(sling(&fleet, &["gt-c"], &[]));
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "gt-b.txt", "gt-c.txt"]);
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 0);
}

#[test]
fn a_branch_that_only_the_origin_has_is_made_here_where_nothing_is_pushed() {
    let fleet = fleet(WORKS);
    add_silent_origin(&fleet);
    fleet.town.git(&["-C", "shop", "push", "--quiet", "origin", "main:release"]);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--base-branch", "release"]);
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "release"), ["gt-a.txt"]);
    assert_eq!(git(&fleet, "origin.git", &["ls-tree", "release"]), "", "it was pushed");
}

#[test]
fn a_rig_that_was_cloned_from_an_address_is_pushed() {
    let fleet = fleet(WORKS);
    fleet.town.git(&["clone", "--quiet", "--bare", "shop", "origin.git"]);
    let url = format!("file://{}", fleet.town.path("origin.git").display());
    fleet.town.gt(["rig", "add", "mill", &url, "--prefix", "ml"]).success();
    fleet.start_daemon();
    let beads = sling(&fleet, &["ml-a"], &[]);
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["ml-a.txt"]);
    fleet.set("rigs.mill.push", "false");
    let beads = sling(&fleet, &["ml-b"], &[]);
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["ml-a.txt"], "it was set to false");
}

#[test]
fn a_push_waits_until_the_user_has_pushed_their_own_commits() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    let mine = commit(&fleet, "draft");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    let why = until_held(&fleet, "secret draft");
    let words = [
        &format!("{} secret draft", &mine[..10]),
        "1 commit on main is not on the origin and was not merged by Gasworks",
        &format!("git -C {} push origin main", fleet.town.path("shop").display()),
        "gt config set rigs.shop.push false",
    ];
    for words in words {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert!(explain(&fleet, "gt-a").contains("secret draft"), "{}", explain(&fleet, "gt-a"));
    for command in [["refinery", "list"], ["refinery", "status"]] {
        let told = fleet.town.gt(command);
        assert!(told.stdout.contains("secret draft"), "{told}");
    }
    let told = fleet.town.gt(["status"]);
    assert!(told.stdout.contains("Needs a person") && told.stdout.contains("secret draft"), "{told}");
    assert_eq!(published(&fleet), Vec::<String>::new());
    assert_eq!(files(&fleet, "main"), ["draft"], "what is not pushed is not merged here alone either");
    push(&fleet);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(published(&fleet), ["draft", "gt-a.txt"]);
    assert_same_there(&fleet);
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_commit_between_two_merges_is_not_carried_along_by_the_second() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    fleet.start_daemon();
    let mut beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["gt-a.txt"]);
    commit(&fleet, "draft");
    beads.extend(sling(&fleet, &["gt-b", "gt-c"], &[]));
    until_held(&fleet, "1 commit on main");
    assert_eq!(published(&fleet), ["gt-a.txt"]);
    push(&fleet);
    fleet.until_done(&beads);
    assert_same_there(&fleet);
}

#[test]
fn what_was_merged_while_nothing_was_pushed_goes_with_the_next_push() {
    let fleet = fleet(WORKS);
    add_silent_origin(&fleet);
    // Dies between the landing and its record: what has landed is agents' work all the same.
    fleet.start_daemon_with(&[("GT_CRASH_AT", CrashPoint::Landed.name())]);
    let mut beads = sling(&fleet, &["gt-a", "gt-b"], &[]);
    fleet.await_daemon_death();
    fleet.start_daemon();
    fleet.until_done(&beads);
    fleet.set("rigs.shop.push", "true");
    beads.extend(sling(&fleet, &["gt-c"], &[]));
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["gt-a.txt", "gt-b.txt", "gt-c.txt"]);
    assert_same_there(&fleet);
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 0);
}

#[test]
fn a_commit_that_the_user_has_taken_back_is_not_published_by_an_agent_that_began_on_it() {
    let fleet =
        fleet(&format!("touch \"$HOME/began-$GT_BEAD\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; {WORKS}"));
    add_origin(&fleet);
    let mine = commit(&fleet, "draft");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("began-gt-a");
    fleet.town.git(&["-C", "shop", "reset", "--quiet", "--hard", "HEAD~1"]);
    fleet.open_gate("go");
    let why = until_held(&fleet, "secret draft");
    assert!(why.contains("gt-a waits") && why.contains("gt refinery drop"), "{why}");
    // Others are merged meanwhile.
    let beads = sling(&fleet, &["gt-b"], &[]);
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["gt-b.txt"]);
    assert!(!git_agrees(&fleet, "origin.git", &["cat-file", "-e", &mine]), "the user's commit was published");
    assert_eq!(show(&fleet, "gt-a")["status"], "in_progress");
}

#[test]
fn a_branch_of_the_users_that_an_agent_merges_is_not_published_and_one_that_it_makes_is() {
    let fleet = fleet(&format!(
        "if [ $GT_BEAD = gt-a ]; then git merge --quiet --no-edit draft; fi
         began=$(date +%s); while [ $(date +%s) = $began ]; do sleep 0.05; done # git's log of branches has seconds
         git checkout --quiet -b part-$GT_BEAD; echo x > part-$GT_BEAD; git add .; git commit --quiet --message part
         git checkout --quiet -; git merge --quiet --no-ff --no-edit part-$GT_BEAD; {WORKS}"
    ));
    add_origin(&fleet);
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "-b", "draft"]);
    commit(&fleet, "draft");
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "main"]);
    let mine = git(&fleet, "shop", &["rev-parse", "draft"]);
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    let why = until_held(&fleet, "secret draft");
    assert!(why.contains("1 commit that is not an agent's") && why.contains("gt refinery drop"), "{why}");
    let beads = sling(&fleet, &["gt-b"], &[]);
    fleet.until_done(&beads);
    assert_eq!(published(&fleet), ["gt-b.txt", "part-gt-b"]);
    assert!(!git_agrees(&fleet, "origin.git", &["cat-file", "-e", &mine]), "the user's commit was published");
    fleet.town.git(&["-C", "shop", "push", "--quiet", "origin", "draft"]);
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(published(&fleet), ["draft", "gt-a.txt", "gt-b.txt", "part-gt-a", "part-gt-b"]);
}

#[test]
fn a_branch_for_a_pull_request_carries_no_commit_of_the_users_either() {
    let fleet = fleet(WORKS);
    add_silent_origin(&fleet);
    let argv = serde_json::to_string(&["sh", "-c", "case $1 in open) echo pr-1;; *) echo open;; esac", "request"]);
    fleet.set("rigs.shop.pull_request", &argv.expect("text is JSON"));
    let mine = commit(&fleet, "draft");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    until_held(&fleet, "secret draft");
    assert!(!git_agrees(&fleet, "origin.git", &["cat-file", "-e", &mine]), "the user's commit was published");
    push(&fleet);
    fleet.until_events("merge.requested", Some("gt-a"), 1);
    let branch = last_of(&fleet, "merge.queued", "branch");
    assert!(git_agrees(&fleet, "origin.git", &["cat-file", "-e", &format!("{branch}:gt-a.txt")]), "it is not there");
}

#[test]
fn what_the_user_commits_while_gates_run_is_seen_before_the_push() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    let commit = "if mkdir \"$HOME/once\" 2> /dev/null; then cd \"$GT_TOWN/shop\" && touch mine && git add mine && \
                  git commit --quiet --message='secret mine'; fi";
    set_gates(&fleet, "shop", &format!("({commit})"));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    until_held(&fleet, "secret mine");
    assert_eq!(published(&fleet), Vec::<String>::new());
    push(&fleet);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "mine"]);
    assert_same_there(&fleet);
}

/// Gates that wait until the test opens them; each leaves `began` first.
const WAITS: &str = "touch \"$GT_TOWN/../began\"; while [ ! -e \"$GT_TOWN/../go\" ]; do sleep 0.02; done";

#[test]
fn a_push_that_is_switched_off_while_gates_run_does_not_happen() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    set_gates(&fleet, "shop", WAITS);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("began");
    fleet.set("rigs.shop.push", "false");
    fleet.open_gate("go");
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["gt-a.txt"]);
    assert_eq!(published(&fleet), Vec::<String>::new());
}

#[test]
fn gates_that_are_set_while_others_run_judge_the_same_work() {
    let fleet = fleet(WORKS);
    set_gates(&fleet, "shop", WAITS);
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("began");
    set_gates(&fleet, "shop", "[ ! -e gt-a.txt ]");
    fleet.open_gate("go");
    fleet.until_events("merge.returned", Some("gt-a"), 1);
    assert_eq!(files(&fleet, "main"), Vec::<String>::new());
}

#[test]
fn nothing_is_pushed_that_an_unfinished_merge_keeps_from_landing_here() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "-b", "side"]);
    commit(&fleet, "draft");
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "main"]);
    fleet.town.git(&["-C", "shop", "merge", "--quiet", "--no-ff", "--no-commit", "side"]);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    until_held(&fleet, "is in the middle of a merge; commit it or abort it");
    assert_eq!(published(&fleet), Vec::<String>::new());
    fleet.town.git(&["-C", "shop", "merge", "--abort"]);
    fleet.until_done(&beads);
    assert_same_there(&fleet);
}

#[test]
fn a_target_that_is_held_is_tried_again_at_once_when_the_config_changes() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    commit(&fleet, "draft");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    until_held(&fleet, "secret draft");
    // As if it had been held for long: by itself it would be tried again in a year.
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    store.busy_timeout(Duration::from_mins(1)).expect("it can wait");
    store.execute("UPDATE merge_hold SET until = until + 31536000000000", []).expect("it is SQL");
    fleet.set("rigs.shop.push", "false");
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["draft", "gt-a.txt"]);
    assert_eq!(published(&fleet), Vec::<String>::new());
}
