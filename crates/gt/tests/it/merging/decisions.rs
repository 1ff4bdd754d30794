//! What people and agents decide on the way from done to merged, and when: closing, adding, merging by themselves, going on and
//! on. // SPEC M1, M2, P7

use super::{
    COMMITS, WORKS, add_origin, assert_merged_once, explain, files, fleet, git, git_agrees, last_of, set_gates, show,
    sling,
};
use crate::fleet::{Fleet, count};

fn read(fleet: &Fleet, name: &str) -> String {
    std::fs::read_to_string(fleet.home(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn touch(fleet: &Fleet, name: &str) {
    std::fs::write(fleet.home(name), "").expect("the home can be written");
}

/// Commits after the first `gt done` are part of what waits, and refused once it does not wait any more.
const ADDS: &str = r#"
gt done > "$HOME/first"
echo more > more; git add -A; git commit --quiet --message="more of $GT_BEAD"
gt done > "$HOME/second"; touch "$HOME/said"
while ! git merge-base --is-ancestor HEAD main; do sleep 0.02; done
echo late > late; git add -A; git commit --quiet --message="late for $GT_BEAD"
gt done > "$HOME/third" 2>&1; touch "$HOME/end""#;

#[test]
fn commits_that_come_while_it_waits_are_merged_with_it_and_later_ones_refused() {
    let fleet = fleet(&format!("{COMMITS}{ADDS}"));
    fleet.town.gt(["refinery", "pause"]).success();
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("said");
    assert!(read(&fleet, "second").contains("waits to be merged into main"), "{}", read(&fleet, "second"));
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.await_file("end");
    fleet.until_done(&beads);
    let third = read(&fleet, "third");
    assert!(third.contains("1 commit came after it was handed over and is not part of it"), "{third}");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "more"]);
    let events = fleet.town.events();
    assert_eq!((count(&events, "merge.landed", None), count(&events, "merge.dropped", None)), (1, 1));
}

#[test]
fn work_whose_bead_was_closed_meanwhile_stays_on_its_branch_and_the_bead_says_where() {
    let fleet = fleet(&format!(
        "{COMMITS}; touch \"$HOME/here\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done\n\
         gt done > \"$HOME/said\" && touch \"$HOME/end\""
    ));
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("here");
    fleet.town.gt(["close", "gt-a"]).success();
    touch(&fleet, "go");
    fleet.await_file("end");
    let said = read(&fleet, "said");
    assert!(said.contains("gt-a was closed meanwhile; your commits stay on polecat/"), "{said}");
    let shown = show(&fleet, "gt-a").to_string();
    assert!(shown.contains("its commits stay on polecat/"), "{shown}");
    assert_eq!(files(&fleet, "main"), Vec::<String>::new());
}

/// What somebody closes while its gates run does not land.
#[test]
fn what_is_closed_while_its_gates_run_is_not_merged() {
    let fleet = fleet(&format!("{COMMITS}; gt done"));
    set_gates(&fleet, "shop", "touch \"$HOME/tested\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("tested");
    fleet.town.gt(["close", "gt-a"]).success();
    touch(&fleet, "go");
    std::fs::remove_file(fleet.home("tested")).expect("it is there");
    sling(&fleet, &["gt-b"], &[]);
    fleet.until_done(&["gt-b".to_owned()]);
    assert_eq!(files(&fleet, "main"), ["gt-b.txt"]);
    assert!(last_of(&fleet, "merge.dropped", "reason").ends_with("closed gt-a"));
}

/// An agent that has merged its commits itself has still done its work, and who waits for the merge goes on.
#[test]
fn what_an_agent_has_merged_by_itself_counts_as_merged() {
    let fleet = fleet(&format!(
        "{COMMITS}; case $GT_BEAD in gt-a) git -C \"$GT_TOWN/shop\" merge --quiet --ff-only \"$(git rev-parse HEAD)\";; esac; gt done"
    ));
    fleet.start_daemon();
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"a"}"#,
        r#"{"id":"gt-b","title":"b","dependencies":[{"issue_id":"gt-b","depends_on_id":"gt-a","type":"merge-blocks"}]}"#,
    ]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_merged_once(&fleet, "gt-a");
    assert!(show(&fleet, "gt-a").to_string().contains("merged_at"));
}

/// To bring the target's commits over is no work.
#[test]
fn commits_of_others_are_no_work_of_ones_own() {
    let fleet = fleet(
        "echo 1 > \"$GT_TOWN/shop/theirs\"; git -C \"$GT_TOWN/shop\" add -A; git -C \"$GT_TOWN/shop\" commit --quiet --message=theirs\n\
         git merge --quiet --ff-only main; gt done > \"$HOME/said\" 2>&1; gt done --no-changes",
    );
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert!(read(&fleet, "said").contains("there is nothing to merge"), "{}", read(&fleet, "said"));
    assert_eq!(count(&fleet.town.events(), "merge.queued", None), 0);
}

#[test]
fn a_rehearsal_of_done_keeps_no_commit() {
    let fleet = fleet(&format!(
        "{COMMITS}; gt done --dry-run > \"$HOME/said\"; git for-each-ref refs/gt > \"$HOME/refs\"; gt done"
    ));
    fleet.set("rigs.shop.merge", "direct");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_eq!(read(&fleet, "refs"), "");
    assert!(read(&fleet, "said").contains("gt-a is done"), "{}", read(&fleet, "said"));
    assert_merged_once(&fleet, "gt-a");
}

/// An agent that hands its work on and does nothing else is stopped by its attempts.
#[test]
fn handing_on_without_a_commit_ends_with_a_person() {
    let fleet = fleet("gt handoff 'somebody else should'");
    fleet.set("witness.redispatch_attempts", "1");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_seen("a hold", || explain(&fleet, "gt-a").contains("2 attempts ended unfinished"));
    assert_eq!(count(&fleet.town.events(), "run.started", Some("gt-a")), 3, "the first is free");
}

/// The branch of a handoff is gone; its commit was kept.
#[test]
fn a_handoff_whose_branch_was_deleted_is_made_again() {
    let fleet = fleet(&format!(
        "if mkdir \"$HOME/first\" 2> /dev/null; then\n\
         echo 1 > part; git add -A; git commit --quiet --message=part; gt handoff 'go on'\n\
         branch=$(git branch --show-current); git checkout --quiet --detach main; git branch --quiet -D \"$branch\"\n\
         else ls > \"$HOME/seen\"; {COMMITS}; gt done; fi"
    ));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_eq!(read(&fleet, "seen"), "part\n");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "part"]);
    assert_eq!(git(&fleet, "shop", &["for-each-ref", "--format=x", "refs/gt/handoffs"]), "x");
}

/// A rework that changes nothing leaves what it was for to a person: it is not started over and over.
#[test]
fn a_rework_that_changes_nothing_leaves_its_work_to_a_person() {
    let fleet =
        fleet(&format!("case $GT_BEAD in gt-a) touch bad; {COMMITS}; gt done;; *) gt done --no-changes;; esac"));
    set_gates(&fleet, "shop", "! ls | grep -q bad");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_seen("a hold", || explain(&fleet, "gt-a").contains("nobody works on it again"));
    let events = fleet.town.events();
    assert_eq!((count(&events, "run.started", Some("gt-a")), count(&events, "merge.returned", None)), (1, 1));
    let status = fleet.town.gt(["status"]);
    assert!(status.stdout.contains("gt scheduler retry gt-a"), "{status}");
}

/// A submodule's commit that only the worktree has would be lost with it, and the target would name what nobody can find.
#[test]
fn a_submodule_is_pushed_before_what_names_it_is_done() {
    let fleet = fleet(
        "git -c protocol.file.allow=always submodule --quiet update --init; cd lib; echo 2 > l; git add -A; \
         git commit --quiet --message=lib; cd ..; git add -A; git commit --quiet --message=\"work on $GT_BEAD\"; \
         gt done 2> \"$HOME/refused\"; git -C lib push --quiet origin HEAD:refs/heads/mended; gt done",
    );
    fleet.town.git(&["init", "--quiet", "--initial-branch=main", "lib"]);
    std::fs::write(fleet.town.path("lib/l"), "1\n").expect("it can be written");
    fleet.town.git(&["-C", "lib", "add", "-A"]);
    fleet.town.git(&["-C", "lib", "commit", "--quiet", "--message=lib"]);
    let lib = fleet.town.path("lib").display().to_string();
    fleet.town.git(&["-C", "shop", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &lib, "lib"]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=a submodule"]);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    let refused = std::fs::read_to_string(fleet.home("refused")).expect("it was refused at first");
    assert!(refused.contains("the submodule lib is at a commit that none of its remotes has"), "{refused}");
    let named = git(&fleet, "shop", &["rev-parse", "main:lib"]);
    assert!(git_agrees(&fleet, "lib", &["cat-file", "-e", &named]), "whoever clones it finds it");
}

/// What could not be landed waits for the next try, and until then nobody is at it.
#[test]
fn what_is_held_back_from_its_branch_can_be_dropped_or_closed() {
    for is_here in [true, false] {
        let fleet = fleet(WORKS);
        fleet.set("scheduler.max_polecats", "-1");
        if is_here {
            std::fs::write(fleet.town.path("shop/gt-a.txt"), "mine\n").expect("the rig can be written");
        } else {
            add_origin(&fleet);
            fleet.town.git(&["-C", "origin.git", "config", "core.bare", "false"]);
        }
        sling(&fleet, &["gt-a"], &[]);
        fleet.until_events("merge.held", None, 1);
        if is_here {
            fleet.town.gt(["close", "gt-a"]).success();
        } else {
            let waiting = fleet.town.gt(["refinery", "list", "--json"]).json();
            fleet.town.gt(["refinery", "drop", waiting[0]["id"].as_str().expect("it waits")]).success();
        }
        assert_eq!(count(&fleet.town.events(), "merge.dropped", Some("gt-a")), 1);
        assert_eq!(files(&fleet, "main"), Vec::<String>::new());
    }
}
