//! What becomes of work that is done: merged at once, by the refinery, or kept where it is. // SPEC M1

use super::{COMMITS, WORKS, add_origin, assert_merged_once, files, fleet, git, last_of, set_gates, show, sling};
use crate::fleet::{Fleet, count};

/// What the agent's `gt done` said.
fn said(fleet: &Fleet) -> String {
    std::fs::read_to_string(fleet.home("said")).expect("the agent has written it")
}

#[test]
fn direct_work_is_merged_when_done_returns_and_no_gate_is_asked() {
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said\"; git show main:gt-a.txt > \"$HOME/on-main\""));
    set_gates(&fleet, "shop", "touch \"$HOME/gate-ran\"");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--merge", "direct"]);
    fleet.until_done(&beads);
    assert_eq!(said(&fleet), "gt-a is merged into main. End your process now.\n");
    assert_eq!(std::fs::read_to_string(fleet.home("on-main")).expect("it was looked at"), "gt-a\n");
    assert!(!fleet.home("gate-ran").exists(), "a gate was asked");
    assert_merged_once(&fleet, "gt-a");
    fleet.assert_at_rest(&beads);
}

#[test]
fn queued_work_is_merged_by_the_refinery_after_its_gates_and_its_branch_goes() {
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said\""));
    set_gates(&fleet, "shop", "cat gt-a.txt > \"$HOME/gate-saw\"");
    fleet.set("daemon.heartbeat", "1s");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--merge", "mr"]);
    fleet.until_done(&beads);
    assert!(said(&fleet).contains("gt-a is done and waits to be merged into main"), "{}", said(&fleet));
    assert_eq!(std::fs::read_to_string(fleet.home("gate-saw")).expect("the gate has run"), "gt-a\n");
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(git(&fleet, "shop", &["status", "--porcelain"]), "", "the rig's own checkout was moved along");
    let bead = show(&fleet, "gt-a");
    assert!(bead["merged_at"].is_string(), "{bead}");
    assert!(bead["close_reason"].as_str().is_some_and(|reason| reason.starts_with("Merged in ")), "{bead}");
    fleet.assert_at_rest(&beads);
    assert_eq!(git(&fleet, "shop", &["for-each-ref", "refs/gt/merges"]), "");
    // Its worker has it checked out until its next run.
    let beads = sling(&fleet, &["gt-b"], &[]);
    fleet.until_done(&beads);
    let branch = ["branch", "--list", "polecat/*/gt-a@*"];
    fleet.until_seen("its branch gone", || git(&fleet, "shop", &branch).is_empty());
}

/// Work that nobody merges: the bead is closed, the commit stays on its branch, `main` is what it was.
fn assert_kept(fleet: &Fleet, beads: &[String]) {
    fleet.until_done(beads);
    assert_eq!(count(&fleet.town.events(), "merge.queued", None), 0);
    assert_eq!(files(fleet, "main"), Vec::<String>::new());
    let branch = last_of(fleet, "run.started", "branch");
    assert_eq!(files(fleet, &branch), ["gt-a.txt"]);
    assert!(said(fleet).contains(&format!("its work stays on {branch}")), "{}", said(fleet));
    assert!(show(fleet, "gt-a")["merged_at"].is_null());
    fleet.assert_at_rest(beads);
}

#[test]
fn local_work_stays_on_its_branch_and_its_bead_closes() {
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said\""));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--merge", "local"]);
    assert_kept(&fleet, &beads);
}

#[test]
fn work_that_is_not_to_be_merged_stays_on_its_branch_and_its_bead_closes() {
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said\""));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--no-merge"]);
    assert_kept(&fleet, &beads);
}

#[test]
fn the_strategy_of_a_rig_is_that_of_its_slings_unless_they_say_otherwise() {
    let fleet = fleet(&format!("{COMMITS}; gt done > \"$HOME/said\""));
    fleet.set("rigs.shop.merge", "local");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    assert_kept(&fleet, &beads);
    let beads = sling(&fleet, &["gt-b"], &["--merge", "mr"]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-b");
}

#[test]
fn work_goes_to_the_base_branch_that_was_asked_for_and_to_no_other() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    fleet.town.git(&["-C", "shop", "branch", "release/1"]);
    fleet.start_daemon();
    let mut beads = sling(&fleet, &["gt-a"], &["--base-branch", "release/1"]);
    beads.extend(sling(&fleet, &["gt-b"], &[]));
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "release/1"), ["gt-a.txt"]);
    assert_eq!(files(&fleet, "main"), ["gt-b.txt"]);
    for branch in ["main", "release/1"] {
        let there = git(&fleet, "origin.git", &["rev-parse", branch]);
        assert_eq!(git(&fleet, "shop", &["rev-parse", branch]), there, "{branch} was not pushed");
    }
    fleet.assert_at_rest(&beads);
}

#[test]
fn agents_files_of_ours_are_never_committed() {
    let fleet = fleet(WORKS);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b", "gt-c"], &[]);
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "gt-b.txt", "gt-c.txt"]);
}

/// The second waits for the first one's work in the given way; the gate holds the merge until the test lets it go.
fn dependent_start(edge: &str) -> (Fleet, Vec<String>) {
    let fleet = fleet(&format!("ls > \"$HOME/seen-$GT_BEAD\"; {WORKS}"));
    set_gates(&fleet, "shop", "touch \"$HOME/asked\"; while [ ! -e \"$HOME/pass\" ]; do sleep 0.02; done");
    let second = format!(
        r#"{{"id":"gt-b","title":"second","dependencies":[{{"issue_id":"gt-b","depends_on_id":"gt-a","type":"{edge}"}}]}}"#
    );
    fleet.hold_lines(&[r#"{"id":"gt-a","title":"first"}"#, &second]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.await_file("asked");
    fleet.until_events("run.ended", Some("gt-a"), 1);
    (fleet, vec!["gt-a".to_owned(), "gt-b".to_owned()])
}

#[test]
fn dependents_start_after_the_merge_and_not_after_done() {
    for edge in ["merge-blocks", "blocks"] {
        let (fleet, beads) = dependent_start(edge);
        // The daemon has seen the end of the first; whatever that made possible it has begun.
        fleet.town.gt(["scheduler", "run"]).success();
        assert_eq!(count(&fleet.town.events(), "bead.hooked", Some("gt-b")), 0, "{edge}: started before the merge");
        fleet.open_gate("pass");
        fleet.until_done(&beads);
        let seen = std::fs::read_to_string(fleet.home("seen-gt-b")).expect("it has looked");
        assert_eq!(seen, "gt-a.txt\n", "{edge}: the second began without the first one's work");
        fleet.assert_at_rest(&beads);
    }
}

#[test]
fn a_close_by_hand_is_no_merge_for_those_who_wait_for_one() {
    let fleet = fleet(WORKS);
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"first"}"#,
        r#"{"id":"gt-b","title":"b","dependencies":[{"issue_id":"gt-b","depends_on_id":"gt-a","type":"merge-blocks"}]}"#,
        r#"{"id":"gt-c","title":"c","dependencies":[{"issue_id":"gt-c","depends_on_id":"gt-a","type":"blocks"}]}"#,
    ]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-b", "gt-c"]).success();
    fleet.town.gt(["close", "gt-a"]).success();
    fleet.until_done(&["gt-c".to_owned()]);
    assert_eq!(count(&fleet.town.events(), "bead.hooked", Some("gt-b")), 0, "nothing was merged");
}
