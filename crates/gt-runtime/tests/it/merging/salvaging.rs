//! Salvage: whatever was not committed is saved, and nothing in the worktree changes.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use gt_runtime::merge::{MergeError, Salvage, salvage};

use super::{Yard, commit, git, text};

const NAME: &str = "refs/gt/salvage/r1";

fn save(yard: &Yard, worktree: &Path) -> Option<Salvage> {
    let before = state_of(worktree);
    let saved = salvage(worktree, NAME, &patch(yard)).unwrap();
    assert_eq!(state_of(worktree), before, "the worktree stays as it is");
    if let Some(saved) = &saved {
        assert_eq!(git(worktree, &["rev-parse", NAME]), saved.commit);
    }
    saved
}

fn patch(yard: &Yard) -> PathBuf {
    yard.path("r1.patch")
}

fn state_of(worktree: &Path) -> (String, Vec<u8>) {
    let index = git(worktree, &["rev-parse", "--path-format=absolute", "--git-path", "index"]);
    let status = git(worktree, &["--no-optional-locks", "status", "--porcelain=v2", "--branch", "--ignored"]);
    (status, fs::read(index).unwrap_or_default())
}

fn shown(worktree: &Path, commit: &str, path: &str) -> String {
    git(worktree, &["show", &format!("{commit}:{path}")])
}

#[test]
fn changes_and_new_files_become_a_commit_and_a_patch() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    commit(&worktree, ".gitignore", "ignored\n");
    commit(&worktree, "gone", "");
    let head = git(&worktree, &["rev-parse", "HEAD"]);
    fs::write(worktree.join("file"), "changed\n").unwrap();
    fs::write(worktree.join("staged"), "staged\n").unwrap();
    git(&worktree, &["add", "staged"]);
    fs::create_dir(worktree.join("ä dir")).unwrap();
    fs::write(worktree.join("ä dir/new\nline"), [0, 255, 1]).unwrap();
    symlink("nowhere", worktree.join("link")).unwrap();
    fs::write(worktree.join("ignored"), "cache").unwrap();
    fs::remove_file(worktree.join("gone")).unwrap();
    git(&worktree, &["config", "core.hooksPath", "/nowhere"]);

    let saved = save(&yard, &worktree).unwrap();
    assert_eq!(saved.left_out, [""; 0]);
    assert_eq!(git(&worktree, &["rev-parse", &format!("{}^", saved.commit)]), head);
    let files = git(&worktree, &["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", &saved.commit]);
    assert_eq!(files, ".gitignore\nfile\nlink\nstaged\n\"ä dir/new\\nline\"");
    assert_eq!(shown(&worktree, &saved.commit, "file"), "changed");

    git(&yard.rig, &["checkout", "--quiet", "--detach", &head]);
    git(&yard.rig, &["apply", "--index", patch(&yard).to_str().unwrap()]);
    let tree = git(&yard.rig, &["write-tree"]);
    assert_eq!(tree, yard.tip(&format!("{}^{{tree}}", saved.commit)), "the patch says the same");
}

#[test]
fn where_nothing_is_uncommitted_nothing_is_saved() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    commit(&worktree, ".gitignore", "ignored\n");
    fs::write(worktree.join("ignored"), "cache").unwrap();
    // Touched, but the same.
    fs::write(worktree.join("file"), "one\n").unwrap();
    assert_eq!(save(&yard, &worktree), None);
    assert!(!patch(&yard).exists());
    assert_eq!(git(&worktree, &["for-each-ref", "refs/gt"]), "");
}

#[test]
fn the_same_again_is_the_same_commit_and_something_else_keeps_what_was_saved() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    fs::write(worktree.join("new"), "one\n").unwrap();
    let first = save(&yard, &worktree).unwrap();
    assert_eq!(save(&yard, &worktree).unwrap(), first);
    fs::write(worktree.join("new"), "two\n").unwrap();
    let second = save(&yard, &worktree).unwrap();
    assert_eq!(shown(&worktree, &second.commit, "new"), "two");
    assert_eq!(git(&worktree, &["rev-parse", &format!("{}^2", second.commit)]), first.commit);
    assert_eq!(save(&yard, &worktree).unwrap(), second);
}

#[test]
fn commits_that_are_on_no_branch_are_saved_too() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    git(&worktree, &["checkout", "--quiet", "--detach"]);
    assert_eq!(save(&yard, &worktree), None);
    let astray = commit(&worktree, "work", "done\n");
    assert_eq!(save(&yard, &worktree).unwrap().commit, astray);
    fs::write(worktree.join("work"), "more\n").unwrap();
    let saved = save(&yard, &worktree).unwrap();
    assert_eq!(git(&worktree, &["rev-parse", &format!("{}^1", saved.commit)]), astray);
    assert!(text(patch(&yard)).contains("+more"));
}

/// Git goes by size and time, unless the index is as old as the file: then it looks into it.
#[test]
fn what_was_changed_in_the_second_in_which_the_index_was_written_is_saved() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    git(&worktree, &["config", "core.trustctime", "false"]);
    let (file, then) = (worktree.join("work"), SystemTime::now() - Duration::from_hours(1));
    let index = PathBuf::from(git(&worktree, &["rev-parse", "--path-format=absolute", "--git-path", "index"]));
    let date = |path: &Path| File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    fs::write(&file, "done\n").unwrap();
    date(&file);
    git(&worktree, &["add", "work"]);
    git(&worktree, &["commit", "--quiet", "--message=work"]);
    fs::write(&file, "more\n").unwrap();
    date(&file);
    date(&index);
    assert!(save(&yard, &worktree).is_some());
    assert!(text(patch(&yard)).contains("+more"));
}

#[test]
fn an_unborn_branch_has_something_to_save_as_well() {
    let yard = Yard::new();
    let new = yard.path("new");
    git(yard.root.path(), &["init", "--quiet", "new"]);
    assert_eq!(save(&yard, &new), None);
    fs::write(new.join("first"), "text\n").unwrap();
    let saved = save(&yard, &new).unwrap();
    assert_eq!(git(&new, &["log", "--format=%P|%s", &saved.commit]), "|What was left uncommitted");
    assert_eq!(save(&yard, &new).unwrap(), saved);
    assert!(text(patch(&yard)).contains("+text"));
}

#[test]
fn conflicts_and_dead_locks_are_no_obstacle() {
    let yard = Yard::new();
    let theirs = yard.work("gt/theirs", "file", "theirs\n");
    let worktree = yard.worktree("gt/one");
    commit(&worktree, "file", "ours\n");
    let merge = Command::new("git").arg("-C").arg(&worktree).args(["merge", "--quiet", &theirs]).output().unwrap();
    assert!(!merge.status.success());
    let desk = yard.rig.join(".git/worktrees/gt-one");
    for leftover in ["index.lock", "gt-salvage.index", "gt-salvage.index.lock"] {
        fs::write(desk.join(leftover), "").unwrap();
    }
    let saved = save(&yard, &worktree).unwrap();
    assert!(shown(&worktree, &saved.commit, "file").starts_with("<<<<<<<"));
    assert!(!desk.join("gt-salvage.index").exists());
    assert!(desk.join("MERGE_HEAD").exists());
}

#[test]
fn what_cannot_be_saved_is_named() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    fs::write(worktree.join("new"), "text\n").unwrap();
    File::create(worktree.join("huge")).unwrap().set_len((50 << 20) + 1).unwrap();
    File::create(worktree.join("large")).unwrap().set_len(50 << 20).unwrap();
    git(&worktree, &["init", "--quiet", "nested"]);
    let nested = worktree.join("nested");
    super::identify(&nested);
    commit(&nested, "inner", "");
    fs::write(worktree.join("secret"), "text").unwrap();
    fs::set_permissions(worktree.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = File::open(worktree.join("secret")).is_ok();

    let saved = save(&yard, &worktree).unwrap();
    let mut expected = vec!["huge", "nested/"];
    expected.extend((!is_root).then_some("secret"));
    assert_eq!(saved.left_out, expected);
    let files = git(&worktree, &["ls-tree", "--name-only", &saved.commit]);
    assert_eq!(files, if is_root { "file\nlarge\nnew\nsecret" } else { "file\nlarge\nnew" });
}

#[test]
fn a_tracked_file_that_grew_too_large_is_named_and_stays_as_committed() {
    let yard = Yard::new();
    let theirs = yard.work("gt/theirs", "file", "theirs\n");
    for has_conflict in [false, true] {
        let worktree = yard.worktree(&format!("gt/{has_conflict}"));
        commit(&worktree, "file", "ours\n");
        if has_conflict {
            Command::new("git").arg("-C").arg(&worktree).args(["merge", "--quiet", &theirs]).output().unwrap();
        }
        File::options().write(true).open(worktree.join("file")).unwrap().set_len(51 << 20).unwrap();
        let saved = save(&yard, &worktree).unwrap();
        assert_eq!(saved.left_out, ["file"]);
        assert_eq!(shown(&worktree, &saved.commit, "file"), "ours");
    }
}

#[test]
fn files_that_became_something_else_are_saved_as_what_they_are() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    commit(&worktree, "other", "");
    fs::remove_file(worktree.join("file")).unwrap();
    fs::create_dir(worktree.join("file")).unwrap();
    fs::write(worktree.join("file/inner"), "text\n").unwrap();
    fs::remove_file(worktree.join("other")).unwrap();
    assert!(Command::new("mkfifo").arg(worktree.join("other")).status().unwrap().success());
    git(&worktree, &["add", "--intent-to-add", "file/inner"]);
    let saved = save(&yard, &worktree).unwrap();
    assert_eq!(shown(&worktree, &saved.commit, "file/inner"), "text");
    assert_eq!(saved.left_out, ["other"]);
}

#[test]
fn only_names_of_ours_are_taken() {
    let yard = Yard::new();
    fs::write(yard.rig.join("new"), "").unwrap();
    let refused = salvage(&yard.rig, "refs/heads/main", &patch(&yard));
    assert!(matches!(refused, Err(MergeError::ForeignRef { .. })));
}

#[test]
fn a_submodule_with_changes_is_named() {
    let yard = Yard::with_origin();
    let origin = yard.path("origin.git");
    let submodule = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    git(&yard.rig, &[&submodule[..], &["add", origin.to_str().unwrap(), "lib"]].concat());
    git(&yard.rig, &["commit", "--quiet", "-m", "a submodule"]);
    let worktree = yard.worktree("gt/one");
    git(&worktree, &[&submodule[..], &["update", "--init"]].concat());
    assert_eq!(save(&yard, &worktree), None);
    fs::write(worktree.join("lib/file"), "changed\n").unwrap();
    assert_eq!(save(&yard, &worktree).unwrap().left_out, ["lib"]);
}
