//! What is merged into: checked out or not, bare, with an origin, protected, broken, slow, paused. // SPEC M2

use gt_store::Stamp;
use jiff::Timestamp;

use super::{
    COMMITS, WORKS, WORKS_ANEW, add_origin, assert_merged_once, explain, files, fleet, git, git_agrees, last_of,
    set_gates, show, sling,
};
use crate::fleet::{Fleet, count};

/// Commits a file to the rig's own checkout.
fn commit_here(fleet: &Fleet, name: &str, text: &str) {
    std::fs::write(fleet.town.path("shop").join(name), text).expect("the rig can be written");
    fleet.town.git(&["-C", "shop", "add", name]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message", &format!("add {name}")]);
}

#[test]
fn changes_in_a_file_of_the_merge_hold_it_with_a_reason_and_it_is_merged_when_they_are_put_away() {
    let fleet = fleet(&format!("echo two > README; {WORKS}"));
    commit_here(&fleet, "README", "hello\n");
    std::fs::write(fleet.town.path("shop/README"), "a person is at work\n").expect("the rig can be written");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(
        why.contains("merging into main is held: gt-a waits") && why.contains("has uncommitted work in README"),
        "{why}"
    );
    assert_eq!(std::fs::read_to_string(fleet.town.path("shop/README")).expect("it is there"), "a person is at work\n");
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "README"]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert!(fleet.town.path("shop/gt-a.txt").exists(), "the checkout was moved along");
    let events = fleet.until_events("merge.freed", None, 1);
    assert_eq!(count(&events, "merge.freed", None), 1);
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_file_of_a_persons_that_is_in_the_way_is_not_overwritten() {
    let fleet = fleet(WORKS);
    std::fs::write(fleet.town.path("shop/gt-a.txt"), "mine\n").expect("the rig can be written");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("has uncommitted work in gt-a.txt; commit, stash or move it"), "{why}");
    assert_eq!(std::fs::read_to_string(fleet.town.path("shop/gt-a.txt")).expect("it is there"), "mine\n");
    std::fs::remove_file(fleet.town.path("shop/gt-a.txt")).expect("it is there");
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
}

/// Many keep settings of their own in a tracked file like this.
#[test]
fn a_change_that_git_is_told_to_overlook_holds_only_the_merge_of_that_file() {
    let fleet = fleet(&format!("[ $GT_BEAD = gt-b ] || echo two > README; {WORKS}"));
    commit_here(&fleet, "README", "hello\n");
    fleet.town.git(&["-C", "shop", "update-index", "--skip-worktree", "README"]);
    std::fs::write(fleet.town.path("shop/README"), "mine\n").expect("the rig can be written");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("has uncommitted work in README; commit, stash or move it"), "{why}");
    let other = sling(&fleet, &["gt-b"], &[]);
    fleet.until_done(&other);
    assert_merged_once(&fleet, "gt-b");
    assert_eq!(std::fs::read_to_string(fleet.town.path("shop/README")).expect("it is there"), "mine\n");
    std::fs::write(fleet.town.path("shop/README"), "hello\n").expect("the rig can be written");
    fleet.until_done(&["gt-a".to_owned()]);
    assert_merged_once(&fleet, "gt-a");
}

#[test]
fn a_branch_that_nobody_has_checked_out_moves_by_itself() {
    let fleet = fleet(WORKS);
    fleet.town.git(&["-C", "shop", "switch", "--quiet", "--create", "elsewhere"]);
    commit_here(&fleet, "README", "hello\n");
    std::fs::write(fleet.town.path("shop/README"), "a person is at work\n").expect("the rig can be written");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &["--base-branch", "main"]);
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main"), ["gt-a.txt"]);
    assert_eq!(git(&fleet, "shop", &["branch", "--show-current"]), "elsewhere");
    assert_eq!(std::fs::read_to_string(fleet.town.path("shop/README")).expect("it is there"), "a person is at work\n");
}

/// Another rig whose agents are the same.
fn add_rig(fleet: &Fleet, name: &str, place: &str, prefix: &str) {
    fleet.town.gt(["rig", "add", name, place, "--prefix", prefix]).success();
}

#[test]
fn a_bare_repository_is_merged_into() {
    let fleet = fleet(WORKS);
    fleet.town.git(&["clone", "--quiet", "--bare", "shop", "depot.git"]);
    fleet.town.git(&["-C", "depot.git", "remote", "remove", "origin"]);
    add_rig(&fleet, "depot", "depot.git", "dp");
    set_gates(&fleet, "depot", "test -e dp-a.txt");
    fleet.start_daemon();
    let beads = sling(&fleet, &["dp-a", "dp-b"], &[]);
    fleet.until_done(&beads);
    let there = git(&fleet, "depot.git", &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(there, "dp-a.txt\ndp-b.txt");
}

#[test]
fn a_push_that_another_clone_forestalls_is_tried_again_on_top_of_it() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    fleet.town.git(&["clone", "--quiet", "origin.git", "other"]);
    // Between the look and the push, somebody else is faster, once.
    let race = "echo ran >> \"$HOME/gates\"; if mkdir \"$HOME/raced\" 2> /dev/null; then \
                cd \"$GT_TOWN/other\" && touch theirs && git add theirs && git commit --quiet --message=theirs && \
                git push --quiet origin main; fi";
    set_gates(&fleet, "shop", &format!("({race})"));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "theirs"]);
    let there = git(&fleet, "origin.git", &["rev-parse", "main"]);
    assert_eq!(git(&fleet, "shop", &["rev-parse", "main"]), there);
    let gates = std::fs::read_to_string(fleet.home("gates")).expect("the gates have run");
    assert_eq!(gates, "ran\nran\n", "what was landed on was judged");
    fleet.assert_at_rest(&beads);
}

#[test]
fn an_origin_that_is_away_holds_its_branch_and_nothing_is_merged_here_alone() {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    std::fs::rename(fleet.town.path("origin.git"), fleet.town.path("gone.git")).expect("it is there");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("the origin cannot be reached"), "{why}");
    assert_eq!(files(&fleet, "main"), Vec::<String>::new());
    std::fs::rename(fleet.town.path("gone.git"), fleet.town.path("origin.git")).expect("it is there");
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert!(git_agrees(&fleet, "origin.git", &["cat-file", "-e", "main:gt-a.txt"]), "it was pushed");
}

/// A command for pull requests: `open` names one, `status` tells what is in the file `request`. One that is merged was
/// squashed by somebody at the origin.
const REQUESTS: &str = r#"
echo "$1 $2 $GT_BEAD $GT_BRANCH $GT_TARGET" >> "$HOME/requests"
case $1 in
  open) git -C "$GT_TOWN/origin.git" rev-parse --verify --quiet "refs/heads/$GT_BRANCH" > /dev/null || exit 1
        echo "some words"; echo "pr-$GT_BEAD" ;;
  status) state=$(cat "$HOME/request" 2> /dev/null || echo open)
        if [ "$state" = merged ]; then
          cd "$GT_TOWN/other" && git pull --quiet && git fetch --quiet origin "$GT_BRANCH" &&
          git merge --quiet --squash FETCH_HEAD > /dev/null && git commit --quiet --message="squashed $GT_BEAD" &&
          git push --quiet origin main || exit 1
        fi
        echo "$state" ;;
esac
"#;

fn with_requests() -> Fleet {
    let fleet = fleet(WORKS);
    add_origin(&fleet);
    fleet.town.git(&["clone", "--quiet", "origin.git", "other"]);
    let script = fleet.home("requests.sh");
    std::fs::write(&script, REQUESTS).expect("the home can be written");
    let argv = serde_json::to_string(&["bash", &script.display().to_string()]).expect("text is JSON");
    fleet.set("rigs.shop.pull_request", &argv);
    fleet.set("refinery.poll", "1s");
    fleet.start_daemon();
    fleet
}

#[test]
fn a_pull_request_is_opened_once_and_what_it_merged_is_here_when_others_start() {
    let fleet = with_requests();
    fleet.script(&format!("ls > \"$HOME/seen-$GT_BEAD\"; {WORKS}"));
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"first"}"#,
        r#"{"id":"gt-b","title":"b","dependencies":[{"issue_id":"gt-b","depends_on_id":"gt-a","type":"merge-blocks"}]}"#,
    ]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_events("merge.requested", Some("gt-a"), 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("waits for the pull request pr-gt-a into main"), "{why}");
    assert!(
        !git_agrees(&fleet, "origin.git", &["cat-file", "-e", "main:gt-a.txt"]),
        "a protected branch was pushed to"
    );
    std::fs::write(fleet.home("request"), "merged\n").expect("the home can be written");
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    let seen = std::fs::read_to_string(fleet.home("seen-gt-b")).expect("it has looked");
    assert_eq!(seen, "gt-a.txt\n", "the second began without the first one's work");
    let requests = std::fs::read_to_string(fleet.home("requests")).expect("the command was called");
    for bead in ["gt-a", "gt-b"] {
        let opened = requests.lines().filter(|line| line.starts_with(&format!("open  {bead} ")));
        assert_eq!(opened.count(), 1, "{requests}");
        let log = git(&fleet, "origin.git", &["log", "--format=%s", &format!("--grep=squashed {bead}"), "main"]);
        assert_eq!(log.lines().count(), 1);
    }
    assert!(show(&fleet, "gt-a")["merged_at"].is_string());
}

#[test]
fn a_pull_request_that_is_closed_comes_back_as_rework() {
    let fleet = with_requests();
    std::fs::write(fleet.home("request"), "closed\n").expect("the home can be written");
    fleet.script(&format!("case $GT_BEAD in gt-a) {WORKS};; *) sleep 600;; esac"));
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.returned", Some("gt-a"), 1);
    let rework = last_of(&fleet, "merge.returned", "rework");
    let text = show(&fleet, &rework)["description"].as_str().expect("it says why").to_owned();
    assert!(text.contains("its pull request pr-gt-a was closed without merging it"), "{text}");
    let branch = last_of(&fleet, "merge.queued", "branch");
    assert_eq!(files(&fleet, &branch), ["gt-a.txt"], "the work is kept");
}

#[test]
fn a_base_that_fails_its_own_gate_holds_the_branch_and_nobody_is_blamed() {
    let fleet = fleet(WORKS);
    commit_here(&fleet, "broken", "");
    set_gates(&fleet, "shop", "test ! -e broken");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b", "gt-c"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("without anything new, main does not pass the gate `test ! -e broken`"), "{why}");
    fleet.town.git(&["-C", "shop", "rm", "--quiet", "broken"]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=mended"]);
    fleet.until_done(&beads);
    for bead in &beads {
        assert_merged_once(&fleet, bead);
    }
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0, "somebody was blamed");
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_protected_base_that_fails_its_own_gate_holds_too_and_what_mends_it_is_asked_for() {
    let fleet = with_requests();
    fleet.script(&format!("if [ $GT_BEAD = gt-mend ]; then git rm --quiet broken; fi; {WORKS}"));
    commit_here(&fleet, "broken", "");
    fleet.town.git(&["-C", "shop", "push", "--quiet", "origin", "main"]);
    set_gates(&fleet, "shop", "test ! -e broken");
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("without anything new, main does not pass the gate `test ! -e broken`"), "{why}");
    sling(&fleet, &["gt-mend"], &[]);
    fleet.until_events("merge.requested", Some("gt-mend"), 1);
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0, "somebody was blamed");
}

/// What mends a base that does not pass is merged like anything else, and with it whoever waited for that.
#[test]
fn a_base_that_fails_its_own_gate_is_mended_by_work_too() {
    let script = "if [ $GT_BEAD = gt-mend ]; then git rm --quiet broken; fi; echo \"$GT_BEAD\" > \"$GT_BEAD.txt\"; \
                  git add -A; git commit --quiet --message=\"work on $GT_BEAD\"; gt done";
    let fleet = fleet(script);
    commit_here(&fleet, "broken", "");
    set_gates(&fleet, "shop", "test ! -e broken");
    fleet.start_daemon();
    let mut beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    beads.extend(sling(&fleet, &["gt-mend"], &[]));
    fleet.until_done(&beads);
    for bead in &beads {
        assert_merged_once(&fleet, bead);
    }
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "gt-mend.txt"]);
}

#[test]
fn a_gate_that_takes_too_long_is_ended_and_its_work_comes_back() {
    let fleet = fleet(WORKS_ANEW);
    fleet.set("refinery.gate_timeout", "1s");
    set_gates(&fleet, "shop", "if [ -e gt-a.txt ]; then echo $$ > \"$HOME/gate-pid\"; sleep 600; fi");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.returned", Some("gt-a"), 1);
    let pid = std::fs::read_to_string(fleet.home("gate-pid")).expect("the gate has begun");
    fleet.await_end(pid.trim().parse().expect("a number"));
    let reason = last_of(&fleet, "merge.returned", "reason");
    assert!(reason.contains("1 s"), "{reason}");
    // The agent of the rework leaves out what took so long.
    fleet.until_done(&["gt-a".to_owned()]);
    assert!(!files(&fleet, "main").contains(&"gt-a.txt".to_owned()));
}

#[test]
fn a_slow_gate_in_one_rig_does_not_delay_another() {
    let fleet = fleet(WORKS);
    fleet.town.repository("mill");
    add_rig(&fleet, "mill", "mill", "ml");
    set_gates(&fleet, "shop", "touch \"$HOME/asked\"; while [ ! -e \"$HOME/pass\" ]; do sleep 0.02; done");
    fleet.start_daemon();
    let slow = sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("asked");
    let quick = sling(&fleet, &["ml-a"], &[]);
    fleet.until_events("merge.landed", Some("ml-a"), 1);
    assert_eq!(count(&fleet.town.events(), "merge.landed", Some("gt-a")), 0);
    fleet.open_gate("pass");
    fleet.until_done(&[slow, quick].concat());
    assert_eq!(git(&fleet, "mill", &["ls-tree", "--name-only", "main"]), "ml-a.txt");
}

#[test]
fn a_paused_refinery_merges_nothing_until_it_is_resumed() {
    let fleet = fleet(&format!("{COMMITS}; gt done"));
    let town = gt_engine::Town::at(fleet.town.root()).expect("it is a town");
    let stamp = || Stamp::new(Timestamp::now(), "tester");
    town.open_store().and_then(|mut store| Ok(store.pause_refinery(Some("shop"), None, &stamp())?)).expect("a store");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("run.ended", Some("gt-a"), 1);
    fleet.town.gt(["scheduler", "run"]).success();
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("tester has paused the refinery"), "{why}");
    assert_eq!(files(&fleet, "main"), Vec::<String>::new());
    town.open_store().and_then(|mut store| Ok(store.resume_refinery(None, &stamp())?)).expect("a store");
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
}
