//! The workbench: commits merged one on top of the other, conflicts, and whatever a killed refinery left there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use gt_runtime::merge::{MergeError, Stacked, Workbench};

use super::{Yard, commit, git, text};

fn bench(yard: &Yard) -> Workbench {
    Workbench::open(&yard.rig, &bench_path(yard)).unwrap()
}

fn bench_path(yard: &Yard) -> PathBuf {
    yard.path("refinery/main")
}

fn desk(yard: &Yard) -> PathBuf {
    yard.rig.join(".git/worktrees/main")
}

#[test]
fn commits_are_stacked_one_on_top_of_the_other() {
    let yard = Yard::new();
    let (one, two) = (yard.work("gt/one", "one", "1\n"), yard.work("gt/two", "two", "2\n"));
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    let Stacked::Done { tip: first } = bench.merge(&one, "Merge one").unwrap() else { panic!("no conflict") };
    let Stacked::Done { tip: second } = bench.merge(&two, "Merge two").unwrap() else { panic!("no conflict") };
    assert_eq!(yard.tip(&format!("{first}^1")), yard.tip("main"));
    assert_eq!(yard.tip(&format!("{first}^2")), one);
    assert_eq!(yard.tip(&format!("{second}^1")), first);
    assert_eq!(yard.tip(&format!("{second}^2")), two);
    assert_eq!(text(bench.path().join("one")) + &text(bench.path().join("two")), "1\n2\n");
    assert_eq!(bench.merge(&one, "again").unwrap(), Stacked::Done { tip: second });
    assert_eq!(git(&yard.rig, &["status", "--porcelain"]), "", "nobody else notices");
}

#[test]
fn after_a_conflict_the_workbench_is_as_before() {
    let yard = Yard::new();
    let (one, two) = (yard.work("gt/one", "file", "1\n"), yard.work("gt/two", "file", "2\n"));
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    let Stacked::Done { tip } = bench.merge(&one, "Merge one").unwrap() else { panic!("no conflict") };
    let conflict = bench.merge(&two, "Merge two").unwrap();
    assert_eq!(conflict, Stacked::Conflict { files: vec!["file".to_owned()] });
    assert_eq!(git(bench.path(), &["rev-parse", "HEAD"]), tip);
    assert_eq!(git(bench.path(), &["status", "--porcelain"]), "");
    assert!(!desk(&yard).join("MERGE_HEAD").exists());
    assert_eq!(text(bench.path().join("file")), "1\n");
}

#[test]
fn what_cannot_be_merged_at_all_is_told_apart() {
    let yard = Yard::new();
    let tree = yard.tip("main^{tree}");
    let unrelated = git(&yard.rig, &["commit-tree", &tree, "-m", "unrelated"]);
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    assert!(matches!(bench.merge(&unrelated, "m"), Err(MergeError::Unrelated { .. })));
    assert!(matches!(bench.merge("nothing", "m"), Err(MergeError::NoCommit { .. })));
    assert!(matches!(bench.reset("nothing"), Err(MergeError::NoCommit { .. })));
}

#[test]
fn the_hooks_and_preferences_of_the_user_play_no_part() {
    let yard = Yard::new();
    let hooks = yard.rig.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for name in ["pre-merge-commit", "commit-msg", "prepare-commit-msg", "post-merge", "post-checkout"] {
        fs::write(hooks.join(name), format!("#!/bin/sh\ntouch {}\nexit 1\n", yard.path("hooked").display())).unwrap();
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (key, value) in [("commit.gpgSign", "true"), ("gpg.program", "false"), ("merge.ff", "only"), ("user.name", "")]
    {
        git(&yard.rig, &["config", key, value]);
    }
    let tree = yard.tip("main^{tree}");
    let plumbing = ["-c", "user.name=Test", "commit-tree", &tree, "-p", "main", "-m", "one"];
    let one = git(&yard.rig, &plumbing);
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    let Stacked::Done { tip } = bench.merge(&one, "# Merge one").unwrap() else { panic!("no conflict") };
    let expected = "Gasworks refinery, Gasworks refinery: # Merge one";
    assert_eq!(git(&yard.rig, &["log", "-1", "--format=%an, %cn: %s", &tip]), expected);
    assert!(!yard.path("hooked").exists());
}

#[test]
fn a_workbench_is_found_again_with_its_ignored_files() {
    let yard = Yard::new();
    commit(&yard.rig, ".gitignore", "cache\n");
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    for (name, text) in [("cache", "warm"), ("junk", "junk"), ("file", "changed")] {
        fs::write(bench.path().join(name), text).unwrap();
    }
    git(bench.path(), &["init", "--quiet", "clone-of-a-gate"]);
    let again = Workbench::open(&yard.rig, &bench_path(&yard)).unwrap();
    again.reset("main").unwrap();
    assert_eq!(text(again.path().join("cache")), "warm");
    assert_eq!(text(again.path().join("file")), "one\n");
    assert!(!again.path().join("junk").exists() && !again.path().join("clone-of-a-gate").exists());
}

#[test]
fn what_a_killed_refinery_left_does_not_matter() {
    let yard = Yard::new();
    let (one, two) = (yard.work("gt/one", "file", "1\n"), yard.work("gt/two", "file", "2\n"));
    let bench = bench(&yard);
    bench.reset(&one).unwrap();
    // In the middle of a merge with a conflict, with locks of a git that is no more.
    let merge = std::process::Command::new("git").arg("-C").arg(bench.path()).args(["merge", "--quiet", &two]).output();
    assert!(!merge.unwrap().status.success());
    for lock in ["index.lock", "HEAD.lock"] {
        fs::write(desk(&yard).join(lock), "").unwrap();
    }
    let again = Workbench::open(&yard.rig, &bench_path(&yard)).unwrap();
    again.reset("main").unwrap();
    assert_eq!(text(again.path().join("file")), "one\n");
    assert_eq!(git(again.path(), &["status", "--porcelain"]), "");
    assert!(matches!(again.merge(&two, "Merge two").unwrap(), Stacked::Done { .. }));

    // Before it was all made: with git's desk only, with the link only, without the mark.
    fs::remove_dir_all(bench_path(&yard)).unwrap();
    self::bench(&yard).reset("main").unwrap();
    fs::write(desk(&yard).join("locked"), "initializing").unwrap();
    self::bench(&yard).reset("main").unwrap();
    git(&yard.rig, &["worktree", "remove", "--force", bench_path(&yard).to_str().unwrap()]);
    let path = bench_path(&yard);
    git(&yard.rig, &["worktree", "add", "--quiet", "--detach", "--no-checkout", path.to_str().unwrap()]);
    self::bench(&yard).reset("main").unwrap();
    assert_eq!(text(path.join("file")), "one\n");
}

#[test]
fn a_branch_that_a_gate_checked_out_in_the_workbench_is_not_moved() {
    let yard = Yard::new();
    let one = yard.work("gt/one", "file", "1\n");
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    git(bench.path(), &["checkout", "--quiet", "gt/one"]);
    bench.reset("main").unwrap();
    assert_eq!(yard.tip("gt/one"), one);
    assert_eq!(git(bench.path(), &["rev-parse", "HEAD"]), yard.tip("main"));
}

#[test]
fn a_worktree_of_somebody_else_is_no_workbench() {
    let yard = Yard::new();
    let theirs = yard.worktree("gt/one");
    fs::write(theirs.join("precious"), "text").unwrap();
    let refused = Workbench::open(&yard.rig, &theirs).unwrap_err();
    assert!(matches!(refused, MergeError::ForeignWorktree { .. }));
    fs::create_dir(yard.path("dir")).unwrap();
    fs::write(yard.path("dir/precious"), "text").unwrap();
    assert!(matches!(Workbench::open(&yard.rig, &yard.path("dir")), Err(MergeError::Worktree(_))));
    assert_eq!(text(theirs.join("precious")) + &text(yard.path("dir/precious")), "texttext");
}

#[test]
fn a_bare_repository_has_a_workbench_too() {
    let yard = Yard::with_origin();
    let bare = yard.path("origin.git");
    git(&bare, &["symbolic-ref", "HEAD", "refs/heads/nowhere"]);
    let bench = Workbench::open(&bare, &bench_path(&yard)).unwrap();
    bench.reset("main").unwrap();
    assert_eq!(text(bench.path().join("file")), "one\n");
    git(yard.root.path(), &["init", "--quiet", "--bare", "empty.git"]);
    let empty = Workbench::open(&yard.path("empty.git"), &yard.path("other/main")).unwrap_err();
    assert!(empty.to_string().ends_with("has no commits yet"), "{empty}");
}

#[test]
fn what_git_has_no_room_for_is_not_the_works_fault() {
    let yard = Yard::new();
    let work = yard.work("gt/one", "one", "1\n");
    let bench = bench(&yard);
    bench.reset("main").unwrap();
    fs::write(yard.rig.join(".git/info/attributes"), "one filter=full\n").unwrap();
    git(&yard.rig, &["config", "filter.full.smudge", "echo No space left on device >&2; false"]);
    git(&yard.rig, &["config", "filter.full.required", "true"]);
    match bench.merge(&work, "Merge one") {
        Err(MergeError::Git { doing, .. }) => assert!(doing.starts_with("merge in "), "{doing}"),
        other => panic!("there is no room, but: {other:?}"),
    }
    assert_eq!(git(bench.path(), &["rev-parse", "HEAD"]), yard.tip("main"));
}
