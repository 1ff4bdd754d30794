//! Landing in a checkout that a person works in: a git that is killed half-way leaves nothing for them to clean up, and their own
//! changes stay as they are. // SPEC M2, M2a

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{WORKS, assert_merged_once, explain, files, fleet, git, last_of, set_gates, sling};
use crate::fleet::{Fleet, count};

fn read(fleet: &Fleet, name: &str) -> String {
    fs::read_to_string(fleet.town.path("shop").join(name)).expect("the file is there")
}

fn write(fleet: &Fleet, name: &str, text: &str) {
    fs::write(fleet.town.path("shop").join(name), text).expect("the rig can be written");
}

/// Commits files to the rig's own checkout.
fn commit(fleet: &Fleet, names: &[&str]) {
    for name in names {
        write(fleet, name, "one\n");
    }
    fleet.town.git(&["-C", "shop", "add", "--all"]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=mine"]);
}

fn status(fleet: &Fleet) -> String {
    git(fleet, "shop", &["status", "--porcelain"])
}

/// As if it had been left long ago: then the refinery need not wait before it removes it. On a busy machine it has waited already.
fn age(lock: &Path) {
    let long_ago = SystemTime::now() - Duration::from_mins(1);
    let aged = fs::File::options().write(true).open(lock).and_then(|file| file.set_modified(long_ago));
    assert!(aged.is_ok() || !lock.exists(), "{aged:?}");
}

fn lock_path(fleet: &Fleet, name: &str) -> PathBuf {
    fleet.town.path("shop/.git").join(name)
}

/// A daemon whose every git is the script `git` first.
fn start_daemon_with_git(fleet: &Fleet, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = fleet.home("bin-of-daemon");
    fs::create_dir(&bin).expect("the home can be written");
    for (name, text) in [("git", script), ("reference-transaction", DIES_WITH_THE_BRANCH)] {
        fs::write(bin.join(name), text).expect("the home can be written");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("it is there");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    fleet.start_daemon_with(&[("PATH", &path)]);
}

/// Has the first fast-forward of a checkout run with the hook below.
const RUNS_A_HOOK_ONCE: &str = r#"#!/bin/bash
args=("$@")
case "$*" in
*--ff-only*) mkdir "$HOME/died" 2> /dev/null && args=("${args[@]/core.hooksPath=\/dev\/null/core.hooksPath=$HOME/bin-of-daemon}") ;;
esac
PATH=${PATH#*:} exec git "${args[@]}"
"#;

/// Kills git when files and index are written and the branch is about to be moved.
const DIES_WITH_THE_BRANCH: &str = r#"#!/bin/bash
[ "$1" = prepared ] && grep -q refs/heads/main && kill -9 $PPID
exit 0
"#;

#[test]
fn a_stale_lock_of_the_branch_leaves_no_files_behind_and_holds_it_only_until_it_is_removed() {
    for name in ["HEAD.lock", "refs/heads/main.lock"] {
        let fleet = fleet(WORKS);
        // It comes after the round has looked for locks.
        let lock = lock_path(&fleet, name);
        let leave = format!("if mkdir \"$HOME/once\" 2> /dev/null; then touch '{}'; fi", lock.display());
        set_gates(&fleet, "shop", &leave);
        fleet.start_daemon();
        let beads = sling(&fleet, &["gt-a"], &[]);
        fleet.until_events("merge.held", None, 1);
        let why = last_of(&fleet, "merge.held", "reason");
        assert!(why.contains(name.rsplit('/').next().expect("a name")), "{why}");
        age(&lock);
        fleet.until_done(&beads);
        assert_merged_once(&fleet, "gt-a");
        assert_eq!(status(&fleet), "");
        let held: Vec<_> = fleet.town.events().into_iter().filter(|event| event["type"] == "merge.held").collect();
        assert!(held.iter().all(|event| !event.to_string().contains("uncommitted")), "{held:?}");
    }
}

#[test]
fn a_git_killed_before_it_moved_the_branch_is_finished_with_and_what_a_person_edited_meanwhile_stays() {
    let fleet = fleet(WORKS);
    commit(&fleet, &["README"]);
    start_daemon_with_git(&fleet, RUNS_A_HOOK_ONCE);
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    let why = last_of(&fleet, "merge.held", "reason");
    assert!(why.contains("git was killed by signal 9") && why.contains("tried again"), "{why}");
    write(&fleet, "README", "a person is at work\n");
    write(&fleet, "gt-a.txt", "a person has added to it\n");
    for name in ["HEAD.lock", "refs/heads/main.lock"] {
        age(&lock_path(&fleet, name));
    }
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(status(&fleet), " M README\n M gt-a.txt");
    assert_eq!(read(&fleet, "README"), "a person is at work\n");
    assert_eq!(read(&fleet, "gt-a.txt"), "a person has added to it\n");
    fleet.until_seen("the daemon to say so", || fleet.n_said(&["finished what a killed git had begun"]) == 1);
}

/// Work that adds, changes and removes files.
const REWORKS: &str = "mkdir new; for name in b c d; do echo new > new/$name; done; echo two > changed; git rm --quiet gone; \
                       echo \"$GT_BEAD\" > \"$GT_BEAD.txt\"; git add -A; git commit --quiet --message=\"work on $GT_BEAD\"; gt done";

#[test]
fn a_git_killed_while_it_wrote_files_is_undone_and_what_a_person_wrote_stays() {
    let fleet = fleet(REWORKS);
    commit(&fleet, &["README", "changed", "gone"]);
    // Git dies over `new/c` in the checkout, once.
    let dies = "case $PWD in */shop) mkdir \"$HOME/died\" 2> /dev/null && kill -9 $PPID;; esac; cat";
    fleet.town.git(&["-C", "shop", "config", "filter.mortal.smudge", dies]);
    fs::write(fleet.town.path("shop/.git/info/attributes"), "new/c filter=mortal\n").expect("the rig can be written");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_events("merge.held", None, 1);
    assert!(last_of(&fleet, "merge.held", "reason").contains("git was killed by signal 9"));
    write(&fleet, "README", "a person is at work\n");
    fs::create_dir_all(fleet.town.path("shop/new")).expect("the rig can be written");
    write(&fleet, "new/notes", "a person's\n");
    age(&lock_path(&fleet, "index.lock"));
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(status(&fleet), " M README\n?? new/notes");
    fleet.until_seen("the daemon to say so", || fleet.n_said(&["undid what a killed git had begun"]) == 1);
    assert_eq!(files(&fleet, "main"), ["README", "changed", "gt-a.txt", "new/b", "new/c", "new/d"]);
}

#[test]
fn a_checkout_with_changes_is_moved_forward_where_the_merge_does_not_touch_them() {
    let fleet = fleet(WORKS);
    commit(&fleet, &["README", "notes"]);
    write(&fleet, "README", "a person is at work\n");
    write(&fleet, "notes", "staged\n");
    fleet.town.git(&["-C", "shop", "add", "notes"]);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(status(&fleet), " M README\nM  notes");
    assert_eq!((read(&fleet, "README"), read(&fleet, "gt-a.txt")), ("a person is at work\n".into(), "gt-a\n".into()));
    assert_eq!(count(&fleet.town.events(), "merge.held", None), 0);
}

#[test]
fn a_merge_that_touches_a_persons_changes_waits_with_their_names_and_others_go_on() {
    let fleet = fleet(&format!("[ $GT_BEAD = gt-a ] && echo two > README; {WORKS}"));
    commit(&fleet, &["README"]);
    write(&fleet, "README", "a person is at work\n");
    fleet.town.gt(["refinery", "pause"]).success();
    fleet.start_daemon();
    let mut beads = sling(&fleet, &["gt-a", "gt-b"], &[]);
    fleet.until_events("merge.queued", None, 2);
    fleet.town.gt(["refinery", "resume"]).success();
    fleet.until_events("merge.landed", Some("gt-b"), 1);
    fleet.until_events("merge.held", None, 1);
    // What comes while one waits does not wait with it.
    beads.extend(sling(&fleet, &["gt-c"], &[]));
    fleet.until_events("merge.landed", Some("gt-c"), 1);
    assert_eq!(count(&fleet.town.events(), "merge.landed", Some("gt-a")), 0);
    let why = explain(&fleet, "gt-a");
    assert!(why.contains("README") && why.contains("commit, stash or move"), "{why}");
    assert_eq!(read(&fleet, "README"), "a person is at work\n");
    fleet.town.git(&["-C", "shop", "checkout", "--quiet", "README"]);
    fleet.until_done(&beads);
    for bead in &beads {
        assert_merged_once(&fleet, bead);
    }
    assert_eq!(count(&fleet.town.events(), "merge.returned", None), 0);
    assert_eq!(read(&fleet, "README"), "two\n");
}
