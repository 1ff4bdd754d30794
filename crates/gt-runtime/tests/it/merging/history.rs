//! Looking at what there is to merge, keeping it, sealing it, and writing it down as a patch.

use std::fs;

use gt_runtime::merge::{
    MergeError, exclude, forget, has_work_of, is_part_of, keep, kept, kept_and_merged, look, patch, seal,
};

use super::{Yard, commit, git, text};

#[test]
fn a_look_says_what_there_is_to_hand_over() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    let seen = look(&worktree, "main").unwrap();
    assert_eq!((seen.branch.as_deref(), seen.n_ahead, seen.unsaved), (Some("gt/one"), 0, None));
    let made = commit(&worktree, "work", "done\n");
    let seen = look(&worktree, "main").unwrap();
    assert_eq!((seen.commit, seen.n_ahead), (made, 1));

    fs::write(worktree.join("new"), "").unwrap();
    assert_eq!(look(&worktree, "main").unwrap().unsaved, Some("it has uncommitted changes"));
    fs::remove_file(worktree.join("new")).unwrap();
    git(&worktree, &["checkout", "--quiet", "--detach"]);
    commit(&worktree, "work", "on no branch\n");
    let seen = look(&worktree, "main").unwrap();
    assert_eq!((seen.branch, seen.n_ahead), (None, 2));
    assert_eq!(seen.unsaved, Some("it has commits that are on no branch"));
    assert!(matches!(look(&worktree, "trunk"), Err(MergeError::NoTarget { .. })));
}

#[test]
fn a_commit_counts_only_if_the_target_has_it_neither_here_nor_at_the_origin() {
    let yard = Yard::with_origin();
    let theirs = yard.other_pushes("theirs");
    git(&yard.rig, &["fetch", "--quiet"]);
    let worktree = yard.worktree("gt/one");
    git(&worktree, &["reset", "--quiet", "--hard", &theirs]);
    assert_eq!(look(&worktree, "main").unwrap().n_ahead, 0);
    commit(&worktree, "work", "done\n");
    commit(&yard.rig, "ours", "ours\n");
    git(&worktree, &["merge", "--quiet", "--no-edit", "main"]);
    // The work and the merge; what main has here or there does not count.
    assert_eq!(look(&worktree, "main").unwrap().n_ahead, 2);
    git(&yard.rig, &["checkout", "--quiet", "--detach"]);
    git(&yard.rig, &["branch", "--quiet", "-D", "main"]);
    assert_eq!(look(&worktree, "main").unwrap().n_ahead, 3);
}

#[test]
fn a_look_at_a_repository_without_commits_says_so() {
    let yard = Yard::new();
    git(yard.root.path(), &["init", "--quiet", "empty"]);
    assert!(matches!(look(&yard.path("empty"), "main"), Err(MergeError::NoCommit { .. })));
}

#[test]
fn a_kept_commit_outlives_its_branch() {
    let yard = Yard::new();
    let made = yard.work("gt/one", "work", "done\n");
    for _ in 0..2 {
        keep(&yard.rig, "refs/gt/merges/1", &made).unwrap();
    }
    git(&yard.rig, &["branch", "--quiet", "-D", "gt/one"]);
    git(&yard.rig, &["reflog", "expire", "--expire=now", "--all"]);
    git(&yard.rig, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(kept(&yard.rig, "refs/gt/merges").unwrap(), [("refs/gt/merges/1".to_owned(), made.clone())]);
    assert_eq!(kept(&yard.rig, "refs/gt/salvage").unwrap(), []);
    assert_eq!(yard.tip(&made), made);
    for _ in 0..2 {
        forget(&yard.rig, "refs/gt/merges/1").unwrap();
    }
    assert_eq!(kept(&yard.rig, "refs/gt").unwrap(), []);
}

#[test]
fn what_is_kept_and_merged_is_known_here_and_at_the_origin() {
    let yard = Yard::new();
    let made = ["one", "two", "three"].map(|name| yard.work(&format!("gt/{name}"), name, "done\n"));
    for (n, commit) in made.iter().enumerate() {
        keep(&yard.rig, &format!("refs/gt/merges/{n}"), commit).unwrap();
    }
    assert_eq!(kept_and_merged(&yard.rig, "refs/gt/merges/", "main").unwrap(), []);
    git(&yard.rig, &["update-ref", "refs/heads/main", &made[0]]);
    git(&yard.rig, &["update-ref", "refs/remotes/origin/main", &made[1]]);
    let merged = [0, 1].map(|n| (format!("refs/gt/merges/{n}"), made[n].clone()));
    assert_eq!(kept_and_merged(&yard.rig, "refs/gt/merges/", "main").unwrap(), merged);
    assert_eq!(kept_and_merged(&yard.rig, "refs/gt/salvage/", "main").unwrap(), []);
    assert_eq!(kept_and_merged(&yard.rig, "refs/gt/merges/", "trunk").unwrap(), []);
}

#[test]
fn only_refs_of_ours_are_touched() {
    let yard = Yard::new();
    assert!(matches!(forget(&yard.rig, "refs/heads/main"), Err(MergeError::ForeignRef { .. })));
    assert!(matches!(keep(&yard.rig, "refs/heads/main", "HEAD"), Err(MergeError::ForeignRef { .. })));
    let nothing = keep(&yard.rig, "refs/gt/merges/1", &"1".repeat(40));
    assert!(matches!(nothing, Err(MergeError::NoCommit { .. })));
}

#[test]
fn what_is_part_of_what_is_asked_of_git() {
    let yard = Yard::new();
    let made = yard.work("gt/one", "work", "done\n");
    assert!(is_part_of(&yard.rig, "main", &made).unwrap());
    assert!(is_part_of(&yard.rig, &made, &made).unwrap());
    assert!(!is_part_of(&yard.rig, &made, "main").unwrap());
    for (commit, of) in [("nothing", "main"), ("main", "nothing")] {
        assert!(matches!(is_part_of(&yard.rig, commit, of), Err(MergeError::NoCommit { .. })));
    }
}

/// On top of `main`, in a worktree of its own: two commits with changes, and one without.
fn three_commits(yard: &Yard) -> String {
    let worktree = yard.worktree("old");
    commit(&worktree, "one", "1\n");
    git(&worktree, &["commit", "--quiet", "--allow-empty", "--message=nothing"]);
    commit(&worktree, "two", "2\n")
}

#[test]
fn work_is_there_as_it_is_or_with_the_same_changes() {
    let yard = Yard::new();
    let old = three_commits(&yard);
    let worktree = yard.worktree("new");
    let fresh = commit(&worktree, "mended", "");
    assert!(!has_work_of(&yard.rig, &old, &fresh).unwrap(), "none of it is there");
    git(&worktree, &["cherry-pick", "old~2"]);
    assert!(!has_work_of(&yard.rig, &old, "new").unwrap(), "a part of it is there");
    git(&worktree, &["cherry-pick", "old"]);
    assert!(has_work_of(&yard.rig, &old, "new").unwrap(), "what changes nothing is not missing");
    git(&worktree, &["reset", "--quiet", "--hard", &fresh]);
    git(&worktree, &["merge", "--quiet", "--no-edit", "old"]);
    assert!(has_work_of(&yard.rig, &old, "new").unwrap());
    assert!(matches!(has_work_of(&yard.rig, &"1".repeat(40), "new"), Err(MergeError::NoCommit { .. })));
}

#[test]
fn work_that_was_changed_on_the_way_or_is_a_merge_is_not_the_same() {
    let yard = Yard::new();
    let old = yard.work("old", "one", "1\n");
    let worktree = yard.worktree("new");
    commit(&worktree, "one", "another\n");
    assert!(!has_work_of(&yard.rig, &old, "new").unwrap());
    let merging = yard.worktree("merging");
    commit(&merging, "side", "");
    git(&merging, &["merge", "--quiet", "--no-edit", "old"]);
    git(&worktree, &["reset", "--quiet", "--hard", "merging^1"]);
    git(&worktree, &["merge", "--quiet", "--no-edit", "--message=another", "old"]);
    assert!(!has_work_of(&yard.rig, "merging", "new").unwrap(), "only a person can compare merges");
}

#[test]
fn a_sealed_commit_has_the_base_and_the_tip_as_parents() {
    let yard = Yard::new();
    let base = yard.tip("main");
    let tip = yard.work("gt/one", "work", "done\n");
    let sealed = seal(&yard.rig, "main", &tip, "Merge two\n\nand a body").unwrap();
    assert_eq!(yard.tip(&format!("{sealed}^1")), base);
    assert_eq!(yard.tip(&format!("{sealed}^2")), tip);
    assert_eq!(yard.tip(&format!("{sealed}^{{tree}}")), yard.tip(&format!("{tip}^{{tree}}")));
    assert_eq!(git(&yard.rig, &["log", "-1", "--format=%s", &sealed]), "Merge two");

    assert_eq!(seal(&yard.rig, &base, &sealed, "again").unwrap(), sealed, "it is such a commit already");
    assert_eq!(seal(&yard.rig, &base, &base, "nothing").unwrap(), base);
    let later = commit(&yard.rig, "later", "");
    assert!(matches!(seal(&yard.rig, &later, &tip, "undoes it"), Err(MergeError::NotOnTop { .. })));
}

#[test]
fn who_has_no_identity_commits_as_the_refinery() {
    let yard = Yard::new();
    let tip = yard.work("gt/one", "work", "done\n");
    let people = |commit: &str| git(&yard.rig, &["log", "-1", "--format=%an <%ae> %cn", commit]);
    assert_eq!(people(&seal(&yard.rig, "main", &tip, "m").unwrap()), "Test <test@example.org> Test");
    git(&yard.rig, &["config", "user.name", ""]);
    let expected = "Gasworks refinery <refinery@gasworks.invalid> Gasworks refinery";
    assert_eq!(people(&seal(&yard.rig, "main", &tip, "m").unwrap()), expected);
}

#[test]
fn a_patch_brings_the_commits_to_another_repository() {
    let yard = Yard::with_origin();
    let worktree = yard.worktree("gt/one");
    commit(&worktree, "work", "done\n");
    fs::write(worktree.join("picture"), [0, 1, 2, 255, 0]).unwrap();
    git(&worktree, &["add", "."]);
    git(&worktree, &["commit", "--quiet", "-m", "a picture"]);
    git(&yard.rig, &["config", "diff.noprefix", "true"]);
    commit(&yard.rig, "later", "");

    let file = yard.path("one.patch");
    patch(&yard.rig, "main", "gt/one", &file).unwrap();
    let other = yard.other();
    git(&other, &["am", "--quiet", file.to_str().unwrap()]);
    assert_eq!(git(&other, &["log", "--format=%s"]), "a picture\nchange work\nchange file");
    assert_eq!(fs::read(other.join("picture")).unwrap(), [0, 1, 2, 255, 0]);

    let nowhere = patch(&yard.rig, "main", "gt/one", &yard.path("missing/one.patch"));
    assert!(matches!(nowhere, Err(MergeError::Io { .. })));
    patch(&yard.rig, "main", "main", &file).unwrap();
    assert_eq!(text(&file), "");
}

#[test]
fn a_pattern_is_excluded_once_however_many_ask() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    let path = yard.rig.join(".git/info/exclude");
    fs::write(&path, "# theirs\nlast line").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| exclude(&worktree, "/.gt/").unwrap());
        }
    });
    assert_eq!(text(&path), "# theirs\nlast line\n/.gt/\n");
    fs::remove_dir_all(yard.rig.join(".git/info")).unwrap();
    exclude(&yard.rig, "/.gt/").unwrap();
    assert_eq!(text(&path), "/.gt/\n");
    fs::create_dir(worktree.join(".gt")).unwrap();
    fs::write(worktree.join(".gt/file"), "").unwrap();
    assert_eq!(git(&worktree, &["status", "--porcelain"]), "");
}
