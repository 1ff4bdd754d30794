//! When a rework is merged: what it was made for is merged with it only if its commits are there, or the agent says that they are
//! replaced. // SPEC M2b

use super::{WORKS, explain, files, fleet, last_of, set_gates, show, sling};
use crate::fleet::{Fleet, count};

/// The work on `gt-a` breaks the gate. Whoever works on it again finds its branch in `$branch`.
fn with_rework(rework: &str) -> Fleet {
    let fleet = fleet(&format!(
        "if [ $GT_BEAD = gt-a ]; then touch bad; {WORKS}; exit; fi\n\
         gt prime > \"$HOME/prime\"\n\
         branch=$(sed -n 's/^Its commits are on the branch \\(.*\\); you start.*/\\1/p' \"$HOME/prime\")\n\
         {rework}"
    ));
    let gate = "while [ -e \"$HOME/wait\" ]; do sleep 0.02; done; test ! -e bad || test -e mended";
    set_gates(&fleet, "shop", gate);
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.returned", Some("gt-a"), 1);
    fleet
}

fn commit(file: &str) -> String {
    format!("touch {file}; git add -A; git commit --quiet --message='add {file}'")
}

/// The rework of `gt-a`, once it is merged.
fn until_rework_merged(fleet: &Fleet) -> String {
    let rework = last_of(fleet, "merge.returned", "rework");
    fleet.until_events("merge.landed", Some(&rework), 1);
    assert!(show(fleet, &rework)["merged_at"].is_string());
    rework
}

fn said(fleet: &Fleet) -> String {
    std::fs::read_to_string(fleet.home("said")).expect("it has said so")
}

fn assert_both_merged(fleet: &Fleet) {
    fleet.until_done(&["gt-a".to_owned()]);
    let rework = until_rework_merged(fleet);
    for bead in ["gt-a", &rework] {
        let bead = show(fleet, bead);
        assert!(bead["merged_at"].is_string(), "{bead}");
        assert!(bead["close_reason"].as_str().is_some_and(|reason| reason.starts_with("Merged in ")), "{bead}");
    }
    assert_eq!(count(&fleet.town.events(), "bead.escalated", None), 0);
}

#[test]
fn a_rework_without_the_commits_of_what_it_is_for_leaves_that_open_and_asks_a_person() {
    let fleet = with_rework(&format!("{}; gt done > \"$HOME/said\"", commit("unrelated")));
    let rework = until_rework_merged(&fleet);
    assert!(said(&fleet).contains("gt-a stays open") && said(&fleet).contains("gt done --replaces WHY"));
    let bead = show(&fleet, "gt-a");
    assert_eq!((bead["status"].as_str(), &bead["merged_at"]), (Some("open"), &serde_json::Value::Null), "{bead}");
    assert_eq!(files(&fleet, "main"), ["unrelated"]);
    let merge = last_of(&fleet, "merge.returned", "merge");
    let why = explain(&fleet, "gt-a");
    let words = [
        &format!("{rework} was merged without its commits"),
        "`gt close gt-a`",
        &format!("`gt refinery retry {merge}`"),
        "`gt scheduler retry gt-a`",
    ];
    for words in words {
        assert!(why.contains(words), "{words}: {why}");
    }
    let status = fleet.town.gt(["status"]);
    assert!(status.stdout.contains("Needs a person") && status.stdout.contains("was merged without"), "{status}");
    let letters = fleet.town.gt(["mail", "inbox", "--json"]).json();
    assert_eq!((&letters[0]["bead"], letters.as_array().map(Vec::len)), (&"gt-a".into(), Some(1)), "{letters}");
    let prime = std::fs::read_to_string(fleet.home("prime")).expect("it has asked");
    assert!(prime.contains("gt done --replaces WHY"), "{prime}");
    fleet.town.gt(["scheduler", "run"]).success();
    assert_eq!(count(&fleet.town.events(), "bead.hooked", Some("gt-a")), 1, "nobody starts it by themselves");
    fleet.town.gt(["close", "gt-a"]).success();
    fleet.town.assert_healthy();
}

#[test]
fn what_a_rework_left_out_is_merged_when_a_person_asks_for_it() {
    let fleet = with_rework(&format!("{}; gt done", commit("mended")));
    until_rework_merged(&fleet);
    let merge = last_of(&fleet, "merge.returned", "merge");
    fleet.town.gt(["refinery", "retry", &merge]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(files(&fleet, "main"), ["bad", "gt-a.txt", "mended"]);
    assert!(show(&fleet, "gt-a")["merged_at"].is_string());
}

#[test]
fn a_rework_that_merges_the_branch_of_what_it_is_for_closes_both() {
    let fleet = with_rework(&format!("git merge --quiet --no-edit \"$branch\"; {}; gt done", commit("mended")));
    assert_both_merged(&fleet);
}

#[test]
fn a_rework_that_cherry_picks_the_commits_of_what_it_is_for_closes_both() {
    let fleet = with_rework(&format!("{}; git cherry-pick \"$branch\"; gt done", commit("mended")));
    assert_both_merged(&fleet);
}

#[test]
fn a_rework_that_rebases_the_branch_of_what_it_is_for_closes_both() {
    let fleet = with_rework(&format!(
        "{}; own=$(git branch --show-current); git checkout --quiet --detach \"$branch\" && git rebase --quiet \"$own\" && \
         git switch --quiet -C \"$own\"; gt done",
        commit("mended")
    ));
    assert_both_merged(&fleet);
}

/// What was replaced is closed, says by what and why, and its own merge does not count as merged.
fn assert_replaced(fleet: &Fleet, why: &str) {
    fleet.until_done(&["gt-a".to_owned()]);
    let rework = until_rework_merged(fleet);
    let bead = show(fleet, "gt-a");
    let reason = bead["close_reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with(&format!("Replaced by {rework}, merged in ")) && reason.ends_with(why), "{reason}");
    assert!(bead["merged_at"].is_string(), "what waits for the merge goes on: {bead}");
    let shown = fleet.town.gt(["show", &rework]);
    assert!(shown.stdout.contains(&format!("replaces    {why}")), "{shown}");
    let merge = last_of(fleet, "merge.returned", "merge");
    let merge = fleet.town.gt(["refinery", "show", &merge, "--json"]).json();
    assert_eq!(merge["state"], "dropped", "{merge}");
    assert!(merge["reason"].as_str().is_some_and(|reason| reason.contains(why)), "{merge}");
    let events = fleet.town.events();
    let closed = events.iter().find(|event| event["type"] == "bead.closed" && event["bead"] == "gt-a");
    let told = closed.expect("it is closed")["data"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("replaced by") && told.contains(why), "{told}");
    assert_eq!(count(&events, "bead.escalated", None), 0);
    fleet.town.assert_healthy();
}

#[test]
fn a_rework_that_says_that_it_replaces_the_commits_closes_both_with_the_reason() {
    let fleet = with_rework(&format!("{}; gt done --replaces 'bad was a bad idea'", commit("better")));
    assert_replaced(&fleet, "bad was a bad idea");
    assert_eq!(files(&fleet, "main"), ["better"]);
}

#[test]
fn that_a_waiting_rework_replaces_the_commits_can_be_said_later() {
    let fleet = with_rework(&format!(
        "{}; touch \"$HOME/wait\"; gt done; gt done --replaces 'bad was a bad idea'; rm \"$HOME/wait\"",
        commit("better")
    ));
    assert_replaced(&fleet, "bad was a bad idea");
}

#[test]
fn what_replaces_nothing_is_refused() {
    let fleet = fleet(&format!("{}; gt done --replaces 'all of it' 2> \"$HOME/refused\"; gt done", commit("own")));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    let refused = std::fs::read_to_string(fleet.home("refused")).expect("it was refused");
    assert!(refused.contains("gt-a replaces nothing"), "{refused}");
    assert_eq!(files(&fleet, "main"), ["own"]);
}
