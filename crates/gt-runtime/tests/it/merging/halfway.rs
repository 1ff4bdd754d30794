//! A checkout that a killed git left half-way is finished or put back, and what somebody wrote there meanwhile stays.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gt_runtime::merge::{MergeError, Resumed, can_land, clear_dead_locks, land, resume};

use super::{Yard, commit, git, text};
use crate::it::town::until;

/// A yard, the commit `main` is at, and one on top of it that adds, changes and removes files.
fn yard_with_work() -> (Yard, String, String) {
    let yard = Yard::new();
    fs::create_dir(yard.rig.join("old")).unwrap();
    for name in ["changed", "gone", "old/gone", "other"] {
        commit(&yard.rig, name, "one\n");
    }
    let base = yard.tip("main");
    let tree = yard.worktree("gt/one");
    git(&tree, &["rm", "--quiet", "gone", "old/gone"]);
    fs::create_dir(tree.join("new")).unwrap();
    fs::write(tree.join("new/added"), "new\n").unwrap();
    // Of several pages.
    fs::write(tree.join("added"), "new\n".repeat(5000)).unwrap();
    git(&tree, &["add", "--all"]);
    let work = commit(&tree, "changed", "two\n");
    (yard, base, work)
}

/// As a landing leaves it whose git was killed: the note, and nothing else yet.
fn begin(yard: &Yard, work: &str) -> PathBuf {
    let note = yard.rig.join(".git/gt-landing");
    fs::write(&note, work).unwrap();
    note
}

/// As git leaves it when it is killed before it moves the branch.
fn begin_and_write(yard: &Yard, base: &str, work: &str) -> PathBuf {
    git(&yard.rig, &["read-tree", "-m", "-u", base, work]);
    begin(yard, work)
}

fn status(yard: &Yard) -> Vec<String> {
    let listed = git(&yard.rig, &["-c", "core.quotePath=false", "status", "--porcelain", "--untracked-files=all"]);
    listed.lines().map(|line| line.trim().to_owned()).collect()
}

fn resumed(yard: &Yard, is_wanted: bool) -> Option<Resumed> {
    resume(&yard.rig, "main", is_wanted).unwrap()
}

#[test]
fn only_the_branch_has_to_be_moved_and_is_if_the_commit_is_wanted() {
    let (yard, base, work) = yard_with_work();
    let note = begin_and_write(&yard, &base, &work);
    assert_eq!(resumed(&yard, true), Some(Resumed::Finished));
    assert_eq!((yard.tip("main"), status(&yard)), (work, vec![]));
    assert!(!note.exists());
    assert_eq!(resumed(&yard, true), None);
}

#[test]
fn a_commit_that_is_not_wanted_any_more_is_put_back() {
    let (yard, base, work) = yard_with_work();
    let note = begin_and_write(&yard, &base, &work);
    assert_eq!(resumed(&yard, false), Some(Resumed::Undone));
    assert_eq!((yard.tip("main"), status(&yard)), (base.clone(), vec![]));
    assert!(!note.exists() && !yard.rig.join("new").exists());
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!(status(&yard), Vec::<String>::new());
}

#[test]
fn a_commit_that_the_origin_has_is_wanted() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["update-ref", "refs/remotes/origin/main", &work]);
    begin_and_write(&yard, &base, &work);
    assert_eq!(resumed(&yard, false), Some(Resumed::Finished));
    assert_eq!(yard.tip("main"), work);
}

#[test]
fn what_somebody_edited_in_the_new_files_is_their_change_of_them() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    fs::write(yard.rig.join("changed"), "two\nmine\n").unwrap();
    fs::write(yard.rig.join("other"), "mine\n").unwrap();
    fs::write(yard.rig.join("new/notes"), "mine\n").unwrap();
    git(&yard.rig, &["add", "other"]);
    assert_eq!(resumed(&yard, true), Some(Resumed::Finished));
    assert_eq!(status(&yard), ["M changed", "M  other", "?? new/notes"]);
}

#[test]
fn what_somebody_edited_stays_when_the_rest_is_put_back() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    fs::write(yard.rig.join("changed"), "two\nmine\n").unwrap();
    fs::write(yard.rig.join("other"), "mine\n").unwrap();
    fs::write(yard.rig.join("new/notes"), "mine\n").unwrap();
    fs::write(yard.rig.join("gone"), "mine\n").unwrap();
    assert_eq!(resumed(&yard, false), Some(Resumed::Undone));
    assert_eq!(status(&yard), ["M changed", "M gone", "M other", "?? new/notes"]);
    assert_eq!((text(yard.rig.join("changed")), text(yard.rig.join("gone"))), ("two\nmine\n".into(), "mine\n".into()));
    let refused = can_land(&yard.rig, "main", &work);
    assert!(matches!(refused, Err(MergeError::InTheWay { files, .. }) if files == ["changed", "gone"]));
}

/// Files are removed, then written one after the other, each from nothing; then comes the index.
#[test]
fn wherever_git_was_killed_while_it_wrote_files_they_are_put_back() {
    let pages = "new\n".repeat(1024);
    let first = |yard: &Yard| fs::remove_file(yard.rig.join("gone")).unwrap();
    let second = |yard: &Yard| fs::remove_dir_all(yard.rig.join("old")).unwrap();
    let third = |yard: &Yard| fs::write(yard.rig.join("added"), "").unwrap();
    let fourth = |yard: &Yard| fs::write(yard.rig.join("added"), &pages).unwrap();
    let fifth = |yard: &Yard| fs::write(yard.rig.join("added"), "new\n".repeat(5000)).unwrap();
    let sixth = |yard: &Yard| fs::remove_file(yard.rig.join("changed")).unwrap();
    let seventh = |yard: &Yard| fs::write(yard.rig.join("changed"), "two\n").unwrap();
    let eighth = |yard: &Yard| {
        fs::create_dir(yard.rig.join("new")).unwrap();
        fs::write(yard.rig.join("new/added"), "new\n").unwrap();
    };
    let steps: [&dyn Fn(&Yard); 8] = [&first, &second, &third, &fourth, &fifth, &sixth, &seventh, &eighth];
    let (yard, base, work) = yard_with_work();
    for n in 0..=steps.len() {
        let note = begin(&yard, &work);
        for step in &steps[..n] {
            step(&yard);
        }
        assert_eq!(resumed(&yard, true), (n > 0).then_some(Resumed::Undone), "killed after {n} steps");
        assert_eq!((yard.tip("main"), status(&yard)), (base.clone(), vec![]), "killed after {n} steps");
        assert!(!note.exists());
    }
    land(&yard.rig, "main", &base, &work).unwrap();
}

#[test]
fn what_somebody_has_at_a_path_of_the_commit_is_neither_overwritten_nor_removed() {
    let (yard, _, work) = yard_with_work();
    begin(&yard, &work);
    fs::remove_file(yard.rig.join("gone")).unwrap();
    fs::create_dir(yard.rig.join("gone")).unwrap();
    fs::write(yard.rig.join("gone/notes"), "mine\n").unwrap();
    fs::write(yard.rig.join("added"), "new\nmine\n").unwrap();
    fs::remove_dir_all(yard.rig.join("old")).unwrap();
    fs::write(yard.rig.join("old"), "mine\n").unwrap();
    resumed(&yard, true);
    let mine = ["gone/notes", "added", "old"].map(|name| text(yard.rig.join(name)));
    assert_eq!(mine, ["mine\n", "new\nmine\n", "mine\n"]);
}

#[test]
fn a_person_who_put_everything_back_or_committed_it_has_settled_it() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    git(&yard.rig, &["reset", "--quiet", "--hard"]);
    assert_eq!(resumed(&yard, true), None);
    begin_and_write(&yard, &base, &work);
    git(&yard.rig, &["commit", "--quiet", "--all", "--message=mine"]);
    let mine = yard.tip("main");
    resumed(&yard, true);
    assert_eq!((yard.tip("main"), status(&yard)), (mine, vec![]));
}

#[test]
fn a_person_who_committed_a_part_of_it_keeps_that_and_the_rest_is_put_back() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    git(&yard.rig, &["commit", "--quiet", "--message=mine", "changed"]);
    let mine = yard.tip("main");
    assert_eq!(resumed(&yard, true), Some(Resumed::Undone));
    assert_eq!((yard.tip("main"), status(&yard)), (mine, vec![]));
    assert_eq!(text(yard.rig.join("changed")), "two\n");
}

#[test]
fn nothing_is_touched_while_a_git_may_be_at_work_there() {
    let (yard, base, work) = yard_with_work();
    let note = begin_and_write(&yard, &base, &work);
    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let lock = yard.rig.join(".git").join(name);
        fs::write(&lock, "").unwrap();
        let refused = resume(&yard.rig, "main", true);
        assert!(matches!(&refused, Err(MergeError::Checkout { why, .. }) if why.contains(name)), "{refused:?}");
        assert!(note.exists());
        fs::remove_file(lock).unwrap();
    }
    assert_eq!(resumed(&yard, true), Some(Resumed::Finished));
}

/// Nothing is written that could not be finished.
#[test]
fn a_lock_that_is_in_the_way_of_the_branch_is_seen_before_files_are_written() {
    let (yard, base, work) = yard_with_work();
    for name in ["HEAD.lock", "refs/heads/main.lock"] {
        let lock = yard.rig.join(".git").join(name);
        fs::write(&lock, "").unwrap();
        assert!(matches!(land(&yard.rig, "main", &base, &work), Err(MergeError::Checkout { .. })));
        assert_eq!(status(&yard), Vec::<String>::new());
        fs::remove_file(lock).unwrap();
    }
}

#[test]
fn a_git_that_is_killed_is_said_to_have_been_and_leaves_what_can_be_resumed() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["config", "filter.mortal.smudge", "mkdir .git/once 2> /dev/null && kill -9 $PPID; cat"]);
    fs::write(yard.rig.join(".git/info/attributes"), "changed filter=mortal\n").unwrap();
    match land(&yard.rig, "main", &base, &work) {
        Err(MergeError::HalfWay { why, .. }) => {
            assert_eq!(why, "git was killed by signal 9 while it moved it, which is tried again");
        }
        other => panic!("expected it half-way, got {other:?}"),
    }
    let lock = yard.rig.join(".git/index.lock");
    assert!(resume(&yard.rig, "main", true).is_err(), "its lock is too young");
    let long_ago = std::time::SystemTime::now() - super::LONG;
    fs::File::options().write(true).open(&lock).unwrap().set_modified(long_ago).unwrap();
    let lock = lock.canonicalize().unwrap();
    let mut cleared = Vec::new();
    // Strangers' gits may be at work in it, as far as is known.
    until("the lock to be cleared away", || {
        cleared.extend(clear_dead_locks(&yard.rig, ["main"]).unwrap());
        !cleared.is_empty()
    });
    assert_eq!(cleared, [lock]);
    assert_eq!(resumed(&yard, true), Some(Resumed::Undone));
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!((yard.tip("main"), status(&yard)), (work, vec![]));
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_neither_missing_nor_written() {
    let yard = Yard::new();
    for dir in ["in", "out"] {
        fs::create_dir(yard.rig.join(dir)).unwrap();
        commit(&yard.rig, &format!("{dir}/file"), "one\n");
    }
    let base = yard.tip("main");
    let tree = yard.worktree("gt/one");
    commit(&tree, "in/file", "two\n");
    let work = commit(&tree, "out/file", "two\n");
    git(&yard.rig, &["sparse-checkout", "set", "in"]);
    assert!(!yard.rig.join("out").exists());
    begin(&yard, &work);
    assert_eq!(resumed(&yard, true), None, "git had not begun");
    for (is_wanted, settled, tip) in [(false, Resumed::Undone, &base), (true, Resumed::Finished, &work)] {
        begin_and_write(&yard, &base, &work);
        assert_eq!(resumed(&yard, is_wanted), Some(settled));
        assert_eq!((&yard.tip("main"), status(&yard)), (tip, vec![]));
        assert!(!yard.rig.join("out").exists());
    }
}

#[test]
fn a_file_that_git_is_told_to_overlook_is_put_back_too_and_keeps_its_mark() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["update-index", "--skip-worktree", "changed"]);
    for left in ["two\n", ""] {
        begin(&yard, &work);
        fs::write(yard.rig.join("changed"), left).unwrap();
        assert_eq!(resumed(&yard, true), Some(Resumed::Undone));
        assert_eq!((yard.tip("main"), text(yard.rig.join("changed"))), (base.clone(), "one\n".to_owned()));
        assert_eq!(git(&yard.rig, &["ls-files", "-v", "changed"]), "S changed");
    }
}

/// As on a full disk: git compares files in an index that it must write.
#[test]
fn what_git_cannot_compare_is_neither_left_nor_taken_for_a_persons() {
    let (yard, base, work) = yard_with_work();
    let note = begin_and_write(&yard, &base, &work);
    git(&yard.rig, &["reset", "--quiet"]);
    git(&yard.rig, &["config", "filter.broken.required", "true"]);
    git(&yard.rig, &["config", "filter.broken.clean", "false"]);
    let attributes = yard.rig.join(".git/info/attributes");
    fs::write(&attributes, "changed filter=broken\n").unwrap();
    assert!(resume(&yard.rig, "main", true).is_err());
    assert!(note.exists(), "it is tried again");
    fs::remove_file(attributes).unwrap();
    assert_eq!(resumed(&yard, true), Some(Resumed::Undone));
    assert_eq!((yard.tip("main"), status(&yard)), (base, vec![]));
}

/// An empty file could be one that git had begun to write, but this git has ended before.
#[test]
fn an_empty_file_that_a_person_makes_after_git_has_ended_stays() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["config", "filter.mortal.smudge", "kill -9 $PPID; cat"]);
    fs::write(yard.rig.join(".git/info/attributes"), "changed filter=mortal\n").unwrap();
    assert!(matches!(land(&yard.rig, "main", &base, &work), Err(MergeError::HalfWay { .. })));
    fs::remove_file(yard.rig.join(".git/index.lock")).unwrap();
    fs::remove_file(yard.rig.join(".git/info/attributes")).unwrap();
    let mine = yard.rig.join("new/added");
    assert!(!mine.exists(), "git had not come to it");
    fs::create_dir_all(yard.rig.join("new")).unwrap();
    fs::write(&mine, "").unwrap();
    assert_eq!(resumed(&yard, true), Some(Resumed::Undone));
    assert_eq!((yard.tip("main"), status(&yard), text(mine)), (base, vec!["?? new/added".to_owned()], String::new()));
}

/// Somebody saves a file while others are put back.
#[test]
fn what_somebody_saves_while_files_are_put_back_stays() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    // Git writes `changed` before `gone`, and somebody saves `gone` meanwhile.
    git(&yard.rig, &["config", "filter.editor.smudge", "echo mine > gone; cat"]);
    fs::write(yard.rig.join(".git/info/attributes"), "changed filter=editor\n").unwrap();
    assert_eq!(resumed(&yard, false), Some(Resumed::Undone));
    assert_eq!((text(yard.rig.join("changed")), text(yard.rig.join("gone"))), ("one\n".into(), "mine\n".into()));
    assert_eq!(status(&yard), ["M gone"]);
}

/// The same between the look at the files and their removal.
#[test]
fn what_somebody_saves_after_it_was_looked_at_stays() {
    let (yard, base, work) = yard_with_work();
    begin_and_write(&yard, &base, &work);
    // `zz` is compared last, and twice, because git does not trust its own list about a file that is younger than the list. Before the
    // second time somebody saves `changed`.
    let tree = yard.path("gt-one");
    let work = commit(&tree, "zz", "new\n");
    begin(&yard, &work);
    let zz = yard.rig.join("zz");
    fs::write(&zz, "new\n").unwrap();
    File::options().write(true).open(&zz).unwrap().set_modified(SystemTime::now() + Duration::from_hours(1)).unwrap();
    let editor = "mkdir .git/first 2> /dev/null || echo mine > changed; cat";
    git(&yard.rig, &["config", "filter.editor.clean", editor]);
    fs::write(yard.rig.join(".git/info/attributes"), "zz filter=editor\n").unwrap();
    resumed(&yard, false);
    assert_eq!(text(yard.rig.join("changed")), "mine\n");
    assert_eq!(git(&yard.rig, &["diff", "--cached", "--name-only"]), "");
}
