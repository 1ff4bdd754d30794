//! Landing: the target moves forward, with the files of whoever has it checked out, or nothing happens.

use std::fs;
use std::path::Path;
use std::process::Command;

use gt_runtime::merge::{MergeError, can_land, delete_branch, land};

use super::{Yard, commit, git, text};
use crate::it::town::until;

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
    can_land(&yard.rig, "main", &work).unwrap();
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

/// Landing and the question whether it is possible agree: this file is in the way.
fn assert_in_the_way(yard: &Yard, base: &str, work: &str, path: &Path, files: &[&str]) {
    for refused in [can_land(&yard.rig, "main", work), land(&yard.rig, "main", base, work)] {
        match refused {
            Err(MergeError::InTheWay { path: at, files: named }) => {
                assert_eq!(at, path);
                assert_eq!(named, files);
            }
            other => panic!("expected files in the way, got {other:?}"),
        }
    }
    assert_eq!(yard.tip("main"), base);
}

#[test]
fn changes_that_the_commit_does_not_touch_are_not_in_the_way() {
    let (yard, base, work) = yard_with_work();
    fs::write(yard.rig.join("file"), "mine\n").unwrap();
    fs::write(yard.rig.join("staged"), "mine\n").unwrap();
    git(&yard.rig, &["add", "staged"]);
    can_land(&yard.rig, "main", &work).unwrap();
    land(&yard.rig, "main", &base, &work).unwrap();
    assert_eq!((yard.tip("main"), text(yard.rig.join("file"))), (work, "mine\n".to_owned()));
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "M file\nA  staged", "its first space is trimmed");
}

#[test]
fn changes_that_the_commit_touches_are_never_overwritten() {
    let yard = Yard::new();
    let (base, work) = (yard.tip("main"), yard.work("gt/one", "file", "theirs\n"));
    fs::write(yard.rig.join("file"), "mine\n").unwrap();
    for is_staged in [false, true] {
        if is_staged {
            git(&yard.rig, &["add", "file"]);
        }
        assert_in_the_way(&yard, &base, &work, &yard.rig, &["file"]);
        assert_eq!(text(yard.rig.join("file")), "mine\n");
    }
}

#[test]
fn changes_in_files_that_git_is_told_to_overlook_are_in_the_way_of_what_touches_them_alone() {
    for option in ["--assume-unchanged", "--skip-worktree"] {
        let yard = Yard::new();
        let (base, work) = (yard.tip("main"), yard.work("gt/one", "file", "theirs\n"));
        let other = yard.work("gt/two", "other", "theirs\n");
        git(&yard.rig, &["update-index", option, "file"]);
        fs::write(yard.rig.join("file"), "mine\n").unwrap();
        assert_in_the_way(&yard, &base, &work, &yard.rig, &["file"]);
        land(&yard.rig, "main", &base, &other).unwrap();
        assert_eq!(text(yard.rig.join("file")), "mine\n");
        fs::write(yard.rig.join("file"), "one\n").unwrap();
        let work = yard.work("gt/three", "file", "theirs\n");
        land(&yard.rig, "main", &other, &work).unwrap();
        assert_eq!((yard.tip("main"), text(yard.rig.join("file"))), (work, "theirs\n".to_owned()));
    }
}

#[test]
fn a_directory_of_somebody_in_place_of_a_file_that_git_overlooks_is_in_the_way() {
    for option in ["--assume-unchanged", "--skip-worktree"] {
        let yard = Yard::new();
        let (base, work) = (yard.tip("main"), yard.work("gt/one", "file", "theirs\n"));
        git(&yard.rig, &["update-index", option, "file"]);
        fs::remove_file(yard.rig.join("file")).unwrap();
        fs::create_dir(yard.rig.join("file")).unwrap();
        fs::write(yard.rig.join("file/notes"), "mine\n").unwrap();
        assert_in_the_way(&yard, &base, &work, &yard.rig, &["file/notes"]);
        assert_eq!(text(yard.rig.join("file/notes")), "mine\n");
    }
}

/// What git itself finds in the way holds this merge alone, like what was found before.
#[test]
fn what_is_written_after_it_was_looked_for_is_in_the_way_too() {
    let yard = Yard::new();
    commit(&yard.rig, "zz", "one\n");
    let base = yard.tip("main");
    let tree = yard.worktree("gt/one");
    commit(&tree, "zz", "theirs\n");
    let work = commit(&tree, "file", "theirs\n");
    // Both are compared twice, `zz` after `file`; somebody writes that one when it has been compared for the last time.
    git(&yard.rig, &["config", "filter.late.clean", "mkdir .git/first 2> /dev/null || echo mine > file; cat"]);
    fs::write(yard.rig.join(".git/info/attributes"), "zz filter=late\n").unwrap();
    fs::write(yard.rig.join("zz"), "one\n").unwrap();
    match land(&yard.rig, "main", &base, &work) {
        Err(MergeError::InTheWay { files, .. }) => assert_eq!(files, ["file"]),
        other => panic!("expected a file in the way, got {other:?}"),
    }
    assert_eq!((yard.tip("main"), text(yard.rig.join("file"))), (base, "mine\n".to_owned()));
    assert!(!yard.rig.join(".git/gt-landing").exists());
}

#[test]
fn a_new_file_in_the_way_is_never_overwritten_not_even_an_ignored_one() {
    let (yard, base, work) = yard_with_work();
    for is_ignored in [false, true] {
        if is_ignored {
            fs::write(yard.rig.join(".git/info/exclude"), "work\n").unwrap();
        }
        fs::write(yard.rig.join("work"), "mine\n").unwrap();
        assert_in_the_way(&yard, &base, &work, &yard.rig, &["work"]);
        assert_eq!(text(yard.rig.join("work")), "mine\n");
    }
}

#[test]
fn a_file_where_a_directory_is_to_be_is_in_the_way_and_so_is_one_inside_the_other_way_round() {
    let yard = Yard::new();
    let base = yard.tip("main");
    let tree = yard.worktree("gt/one");
    fs::create_dir(tree.join("new")).unwrap();
    let work = commit(&tree, "new/inside", "theirs\n");
    fs::write(yard.rig.join("new"), "mine\n").unwrap();
    assert_in_the_way(&yard, &base, &work, &yard.rig, &["new"]);
    fs::remove_file(yard.rig.join("new")).unwrap();

    let work = yard.work("gt/two", "dir", "theirs\n");
    fs::create_dir_all(yard.rig.join("dir/deep")).unwrap();
    fs::write(yard.rig.join("dir/deep/notes"), "mine\n").unwrap();
    assert_in_the_way(&yard, &base, &work, &yard.rig, &["dir/deep/notes"]);
    fs::remove_file(yard.rig.join("dir/deep/notes")).unwrap();
    can_land(&yard.rig, "main", &work).unwrap();
}

#[test]
fn a_checkout_in_which_git_is_at_work_is_left_alone() {
    let (yard, base, work) = yard_with_work();
    let lock = yard.rig.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let lock = lock.canonicalize().unwrap();
    let why = "git is at work there, or was killed and left `index.lock`; if none runs there, `rm ";
    let why = format!("{why}{}`", lock.display());
    assert_busy(can_land(&yard.rig, "main", &work), &yard.rig, &why);
    assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, &why);
    assert_eq!(yard.tip("main"), base);
}

#[test]
fn a_checkout_in_the_middle_of_a_merge_or_a_cherry_pick_is_left_alone() {
    let (yard, base, work) = yard_with_work();
    let other = yard.work("gt/other", "other", "more\n");
    for (begin, what) in
        [(["merge", "--no-ff", "--no-commit"], "merge"), (["cherry-pick", "--edit", "-x"], "cherry-pick")]
    {
        // With an editor that refuses, git leaves the cherry-pick unfinished.
        let mut begun = Command::new("git");
        begun.arg("-C").arg(&yard.rig).args(begin).arg(&other).env("GIT_EDITOR", "false").output().unwrap();
        let why = format!("is in the middle of a {what}; commit it or abort it");
        assert_busy(can_land(&yard.rig, "main", &work), &yard.rig, &why);
        assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, &why);
        assert_eq!(yard.tip("main"), base);
        git(&yard.rig, &[what, "--abort"]);
    }
    land(&yard.rig, "main", &base, &work).unwrap();
}

#[test]
fn a_checkout_with_conflicts_is_left_alone() {
    let yard = Yard::new();
    fs::write(yard.rig.join("file"), "mine\n").unwrap();
    git(&yard.rig, &["stash", "--quiet"]);
    let base = commit(&yard.rig, "file", "theirs\n");
    let popped = Command::new("git").arg("-C").arg(&yard.rig).args(["stash", "pop", "--quiet"]).output().unwrap();
    assert!(!popped.status.success(), "there is no conflict");
    let work = yard.work("gt/one", "work", "done\n");
    let why = "has files with conflicts; resolve and commit them";
    assert_busy(can_land(&yard.rig, "main", &work), &yard.rig, why);
    assert_busy(land(&yard.rig, "main", &base, &work), &yard.rig, why);
    assert_eq!(yard.tip("main"), base);
}

#[test]
fn a_target_that_another_worktree_has_is_moved_there() {
    let (yard, base, work) = yard_with_work();
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    let second = yard.path("second");
    git(&yard.rig, &["worktree", "add", "--quiet", second.to_str().unwrap(), "main"]);
    fs::write(second.join("work"), "mine\n").unwrap();
    assert_in_the_way(&yard, &base, &work, &second, &["work"]);
    fs::remove_file(second.join("work")).unwrap();
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
    let tip = yard.tip("main");
    assert!(matches!(land(&yard.rig, "main", &base, &work), Err(MergeError::Moved { .. })));
    assert!(matches!(can_land(&yard.rig, "main", &work), Err(MergeError::Moved { .. })));
    let (base, work) = (tip.clone(), git(&yard.rig, &["commit-tree", "main^{tree}", "-p", "main", "-m", "more"]));
    assert_busy(can_land(&yard.rig, "main", &work), &yard.rig, "is in the middle of a rebase");
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
    can_land(&yard.rig, "main", &work).unwrap();
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
    can_land(&origin, "main", &work).unwrap();
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

/// An agent may commit to a branch while it is being cleared away.
#[test]
fn a_branch_that_has_moved_since_it_was_looked_at_stays() {
    let yard = Yard::new();
    let (branch, merged) = ("gt/one", yard.tip("main"));
    git(&yard.rig, &["branch", branch, "main"]);
    let newer = yard.work("gt/two", "work", "done\n");
    // Git waits for the lock of a ref, and has compared nothing before it has that.
    git(&yard.rig, &["config", "core.filesRefLockTimeout", "120000"]);
    let [file, lock] = ["", ".lock"].map(|end| yard.rig.join(format!(".git/refs/heads/{branch}{end}")));
    fs::write(&lock, "").unwrap();
    let is_deleted = std::thread::scope(|scope| {
        let deleting = scope.spawn(|| delete_branch(&yard.rig, branch, "main").unwrap());
        until("git waits for the branch", || deleting.is_finished() || is_git_deleting(&yard.rig));
        assert!(!deleting.is_finished());
        fs::write(&file, format!("{newer}\n")).unwrap();
        fs::remove_file(&lock).unwrap();
        deleting.join().unwrap()
    });
    assert_eq!((is_deleted, yard.tip(branch)), (false, newer));
    git(&yard.rig, &["update-ref", &format!("refs/heads/{branch}"), &merged]);
    assert!(delete_branch(&yard.rig, branch, "main").unwrap());
}

/// Whether a git that was sent to a repository is deleting a ref.
fn is_git_deleting(repository: &Path) -> bool {
    let words = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
    let is_it = |words: String| words.contains("update-ref\0-d") && words.contains(repository.to_str().unwrap());
    fs::read_dir("/proc").unwrap().flatten().any(|entry| is_it(words(entry)))
}
