//! Landing: the target moves forward, with the files of whoever has it checked out, or nothing happens.

use std::fs;
use std::path::Path;

use gt_runtime::merge::{MergeError, can_land, delete_branch, land};

use super::{Yard, commit, git, text};

/// A yard, the commit `main` is at, and one that builds on it.
fn yard_with_work() -> (Yard, String, String) {
    let yard = Yard::new();
    let (base, work) = (yard.tip("main"), yard.work("gt/one", "work", "done\n"));
    (yard, base, work)
}

fn assert_busy(landed: Result<(), MergeError>, path: &Path, why: &str) {
    match landed {
        Err(MergeError::Checkout { path: at, why: said }) => assert_eq!((at.as_path(), said.as_str()), (path, why)),
        other => panic!("expected a busy checkout, got {other:?}"),
    }
}

#[test]
fn a_clean_checkout_is_moved_with_its_files() {
    let (yard, base, work) = yard_with_work();
    fs::write(yard.rig.join("untracked"), "mine").unwrap();
    can_land(&yard.rig, "main").unwrap();
    for _ in 0..2 {
        land(&yard.rig, "main", &base, &work).unwrap();
    }
    assert_eq!(yard.tip("main"), work);
    assert_eq!(text(yard.rig.join("work")), "done\n");
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "?? untracked");
}

#[test]
fn how_somebody_likes_to_merge_does_not_matter() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["config", "branch.main.mergeoptions", "--squash"]);
    git(&yard.rig, &["config", "merge.verifySignatures", "true"]);
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!(yard.tip("main"), work);
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "");
}

#[test]
fn a_checkout_with_changes_is_left_alone() {
    let (yard, base, work) = yard_with_work();
    fs::write(yard.rig.join("file"), "mine\n").unwrap();
    for is_staged in [false, true] {
        if is_staged {
            git(&yard.rig, &["add", "file"]);
        }
        assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, "has uncommitted changes");
        assert_busy(can_land(&yard.rig, "main"), &yard.rig, "has uncommitted changes");
        assert_eq!((yard.tip("main"), text(yard.rig.join("file"))), (base.clone(), "mine\n".to_owned()));
    }
}

#[test]
fn a_new_file_in_the_way_is_never_overwritten_not_even_an_ignored_one() {
    let (yard, base, work) = yard_with_work();
    for is_ignored in [false, true] {
        if is_ignored {
            fs::write(yard.rig.join(".git/info/exclude"), "work\n").unwrap();
        }
        fs::write(yard.rig.join("work"), "mine\n").unwrap();
        can_land(&yard.rig, "main").unwrap();
        let why = "a file of its own is in the way: work";
        assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, why);
        assert_eq!((yard.tip("main"), text(yard.rig.join("work"))), (base.clone(), "mine\n".to_owned()));
    }
}

#[test]
fn a_checkout_in_which_git_is_at_work_is_left_alone() {
    let (yard, base, work) = yard_with_work();
    fs::write(yard.rig.join(".git/index.lock"), "").unwrap();
    let why = "git is at work there, or was killed and left `index.lock`";
    assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, why);
    assert_eq!(yard.tip("main"), base);
}

#[test]
fn a_checkout_that_was_half_moved_is_finished() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["read-tree", "-m", "-u", &base, &work]);
    assert_ne!(git(&yard.rig, &["status", "--porcelain"]), "");
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!(yard.tip("main"), work);
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "");

    git(&yard.rig, &["reset", "--quiet", "--hard", &base]);
    git(&yard.rig, &["read-tree", "-m", "-u", &base, &work]);
    fs::write(yard.rig.join("work"), "mine\n").unwrap();
    assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, "has uncommitted changes");
}

#[test]
fn a_target_that_another_worktree_has_is_moved_there() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    let second = yard.path("second");
    git(&yard.rig, &["worktree", "add", "--quiet", second.to_str().unwrap(), "main"]);
    fs::write(second.join("file"), "mine\n").unwrap();
    assert_busy(land(&yard.rig, "main", &base, &work), &second, "has uncommitted changes");
    git(&second, &["checkout", "--quiet", "file"]);
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!(text(second.join("work")), "done\n");
    assert!(!yard.rig.join("work").exists());
}

#[test]
fn a_branch_in_the_middle_of_a_rebase_is_left_alone() {
    let (yard, base, work) = yard_with_work();
    commit(&yard.rig, "file", "two\n");
    git(&yard.rig, &["-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "--quiet", "-i", &base]);
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "");
    assert_busy(can_land(&yard.rig, "main"), &yard.rig, "is in the middle of a rebase");
    let tip = yard.tip("main");
    assert!(matches!(land(&yard.rig, "main", &base, &work), Err(MergeError::Moved { .. })));
    let (base, work) = (tip.clone(), git(&yard.rig, &["commit-tree", "main^{tree}", "-p", "main", "-m", "more"]));
    assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, "is in the middle of a rebase");
    git(&yard.rig, &["branch", "release"]);
    assert!(!delete_branch(&yard.rig, "main", "release").unwrap());
    assert_eq!(yard.tip("main"), tip);
}

#[test]
fn a_worktree_that_is_gone_is_not_in_the_way_unless_it_is_locked() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    let second = yard.path("second");
    git(&yard.rig, &["worktree", "add", "--quiet", second.to_str().unwrap(), "main"]);
    git(&yard.rig, &["worktree", "lock", second.to_str().unwrap()]);
    fs::remove_dir_all(&second).unwrap();
    assert_busy(land(&yard.rig, "main", &base, &work), &second, "is not there now, but locked");
    git(&yard.rig, &["worktree", "unlock", second.to_str().unwrap()]);
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!(yard.tip("main"), work);
}

#[test]
fn a_target_that_nobody_has_checked_out_is_swapped() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    fs::write(yard.rig.join("file"), "mine\n").unwrap();
    can_land(&yard.rig, "main").unwrap();
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!((yard.tip("main"), text(yard.rig.join("file"))), (work, "mine\n".to_owned()));
}

#[test]
fn a_bare_repository_can_be_landed_in() {
    let yard = Yard::with_origin();
    let origin = yard.path("origin.git");
    let base = git(&origin, &["rev-parse", "main"]);
    let work = commit(&yard.rig, "work", "done\n");
    git(&yard.rig, &["push", "--quiet", "origin", "HEAD:refs/heads/gt/one"]);
    can_land(&origin, "main").unwrap();
    land(&origin, "main", &base, &work).unwrap();
    assert_eq!(git(&origin, &["rev-parse", "main"]), work);
}

#[test]
fn a_target_that_lagged_behind_catches_up_and_one_that_is_missing_is_made() {
    let yard = Yard::new();
    let old = yard.tip("main");
    let base = yard.work("gt/theirs", "theirs", "theirs\n");
    git(&yard.rig, &["checkout", "--quiet", "-b", "elsewhere", &base]);
    let work = commit(&yard.rig, "work", "done\n");
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_ne!(yard.tip("main"), old);
    land(&yard.rig, "release", &base, &work).unwrap();
    assert_eq!((yard.tip("main"), yard.tip("release")), (work.clone(), work));
}

#[test]
fn a_target_that_moved_meanwhile_stays_where_it_is() {
    let (yard, base, work) = yard_with_work();
    let later = commit(&yard.rig, "later", "");
    for is_checked_out in [true, false] {
        if !is_checked_out {
            git(&yard.rig, &["checkout", "--quiet", "--detach"]);
        }
        assert!(matches!(land(&yard.rig, "main", &base, &work), Err(MergeError::Moved { .. })));
        assert!(matches!(land(&yard.rig, "main", &later, &work), Err(MergeError::NotOnTop { .. })));
        assert_eq!(yard.tip("main"), later);
    }
}

#[test]
fn of_many_who_land_on_one_base_exactly_one_does() {
    let yard = Yard::new();
    let base = yard.tip("main");
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    let works: Vec<String> = (0..6).map(|n| yard.work(&format!("gt/{n}"), &format!("work{n}"), "")).collect();
    let landed: Vec<Result<(), MergeError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = works.iter().map(|work| scope.spawn(|| land(&yard.rig, "main", &base, work))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winners: Vec<&String> =
        works.iter().zip(&landed).filter(|(_, landed)| landed.is_ok()).map(|(w, _)| w).collect();
    assert_eq!(winners, [&yard.tip("main")]);
    let n_lost = landed.iter().filter(|landed| matches!(landed, Err(MergeError::Moved { .. }))).count();
    assert_eq!(n_lost, 5, "{landed:?}");
}

#[test]
fn an_unborn_checkout_gets_its_first_files() {
    let yard = Yard::with_origin();
    git(yard.root.path(), &["init", "--quiet", "-b", "main", "new"]);
    let new = yard.path("new");
    git(&new, &["fetch", "--quiet", yard.rig.to_str().unwrap(), "main"]);
    let first = yard.tip("main");
    land(&new, "main", &first, &first).unwrap();
    assert_eq!(git(&new, &["status", "--porcelain"]), "");
    assert_eq!(text(new.join("file")), "one\n");
}

#[test]
fn a_branch_is_deleted_only_when_it_is_merged_and_nobody_has_it() {
    let (yard, base, work) = yard_with_work();
    let worktree = yard.worktree("gt/two");
    assert!(!delete_branch(&yard.rig, "gt/one", "main").unwrap(), "it is not merged");
    assert!(!delete_branch(&yard.rig, "gt/two", "main").unwrap(), "it is checked out");
    assert!(!delete_branch(&yard.rig, "gt/three", "main").unwrap(), "it is not there");
    assert!(!delete_branch(&yard.rig, "gt/one", "trunk").unwrap(), "the target is not there");
    assert_eq!(yard.tip("gt/one"), work);

    land(&yard.rig, "main", &base, &work).unwrap();
    git(&worktree, &["checkout", "--quiet", "--detach"]);
    for branch in ["gt/one", "gt/two"] {
        assert!(delete_branch(&yard.rig, branch, "main").unwrap());
        assert!(!delete_branch(&yard.rig, branch, "main").unwrap());
    }
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    assert!(!delete_branch(&yard.rig, "main", "main").unwrap());
}
