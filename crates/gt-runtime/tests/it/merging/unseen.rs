//! Salvage of work that `git status` does not show: hidden files, repositories inside, unfinished rebases. // SPEC P8

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gt_runtime::merge::{MergeError, Salvage, salvage};
use gt_runtime::worktree::unsaved;

use super::{Yard, commit, git, identify, text};
use crate::it::privileges::without_privileges;

const NAME: &str = "refs/gt/salvage/r1";

fn save(yard: &Yard, worktree: &Path) -> Option<Salvage> {
    salvage(worktree, NAME, &yard.path("r1.patch")).unwrap()
}

fn shown(worktree: &Path, file: &str) -> String {
    git(worktree, &["show", &format!("{NAME}:{file}")])
}

/// Runs git where it is expected to stop half-way.
fn fails(worktree: &Path, arguments: &[&str]) {
    let output = Command::new("git").arg("-C").arg(worktree).args(arguments).output().unwrap();
    assert!(!output.status.success(), "git {arguments:?} was to fail");
}

/// A repository inside a worktree, with a commit that is nowhere else.
fn repository_at(path: &Path) {
    fs::create_dir_all(path).unwrap();
    git(path, &["init", "--quiet"]);
    identify(path);
    commit(path, "precious", "precious\n");
}

fn assert_left_out(saved: Option<Salvage>, expected: &[&str]) {
    assert_eq!(saved.map(|saved| saved.left_out).unwrap_or_default(), expected);
}

#[test]
fn changes_in_files_that_git_is_told_to_overlook_are_saved() {
    for option in ["--assume-unchanged", "--skip-worktree"] {
        for has_other_changes in [false, true] {
            let yard = Yard::new();
            let worktree = yard.worktree("gt/one");
            git(&worktree, &["update-index", option, "file"]);
            assert_eq!((unsaved(&worktree).unwrap(), save(&yard, &worktree)), (None, None), "nothing is changed yet");
            fs::write(worktree.join("file"), "precious\n").unwrap();
            if has_other_changes {
                fs::write(worktree.join("new"), "half\n").unwrap();
            }
            assert!(unsaved(&worktree).unwrap().is_some());
            assert_eq!(save(&yard, &worktree).unwrap().left_out, [""; 0]);
            assert_eq!(shown(&worktree, "file"), "precious");
            assert!(text(yard.path("r1.patch")).contains("+precious"));
            let flags = git(&worktree, &["ls-files", "-v", "file"]);
            assert_eq!(
                flags,
                if option == "--skip-worktree" { "S file" } else { "h file" },
                "its index stays as it is"
            );
        }
    }
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_taken_for_removed() {
    let yard = Yard::new();
    for dir in ["in", "out"] {
        fs::create_dir(yard.rig.join(dir)).unwrap();
        commit(&yard.rig, &format!("{dir}/file"), "one\n");
    }
    let worktree = yard.worktree("gt/one");
    git(&worktree, &["sparse-checkout", "set", "in"]);
    assert_eq!((unsaved(&worktree).unwrap(), save(&yard, &worktree)), (None, None));
    fs::write(worktree.join("in/file"), "two\n").unwrap();
    fs::create_dir(worktree.join("out")).unwrap();
    fs::write(worktree.join("out/new"), "two\n").unwrap();
    save(&yard, &worktree).unwrap();
    assert_eq!(["in/file", "out/file", "out/new"].map(|file| shown(&worktree, file)), ["two", "one", "two"]);
}

#[test]
fn a_repository_inside_that_was_added_like_a_file_is_not_saved_by_that() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    repository_at(&worktree.join("inner"));
    git(&worktree, &["add", "inner"]);
    assert_left_out(save(&yard, &worktree), &["inner"]);
    git(&worktree, &["commit", "--quiet", "--message=inner"]);
    assert_eq!(unsaved(&worktree).unwrap(), Some("it has a repository inside with work that is nowhere else"));
    assert_left_out(save(&yard, &worktree), &["inner"]);

    // On a branch of a remote its commits are safe, its stash is not.
    let inner = worktree.join("inner");
    git(&inner, &["clone", "--quiet", "--bare", ".", yard.path("inner.git").to_str().unwrap()]);
    git(&inner, &["remote", "add", "origin", yard.path("inner.git").to_str().unwrap()]);
    git(&inner, &["fetch", "--quiet", "origin"]);
    assert_eq!((unsaved(&worktree).unwrap(), save(&yard, &worktree).map(|saved| saved.left_out)), (None, None));
    fs::write(inner.join("precious"), "more\n").unwrap();
    git(&inner, &["stash", "--quiet"]);
    assert_left_out(save(&yard, &worktree), &["inner"]);
}

#[test]
fn a_file_that_became_a_repository_is_not_saved_as_a_mere_link_to_it() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    fs::remove_file(worktree.join("file")).unwrap();
    repository_at(&worktree.join("file"));
    assert_left_out(save(&yard, &worktree), &["file"]);
}

#[test]
fn hidden_changes_in_a_submodule_are_changes() {
    let yard = Yard::with_origin();
    let origin = yard.path("origin.git");
    let submodule = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    git(&yard.rig, &[&submodule[..], &["add", origin.to_str().unwrap(), "lib"]].concat());
    git(&yard.rig, &["commit", "--quiet", "-m", "a submodule"]);
    let worktree = yard.worktree("gt/one");
    git(&worktree, &[&submodule[..], &["update", "--init"]].concat());
    git(&worktree.join("lib"), &["update-index", "--assume-unchanged", "file"]);
    assert_eq!((unsaved(&worktree).unwrap(), save(&yard, &worktree)), (None, None));
    fs::write(worktree.join("lib/file"), "precious\n").unwrap();
    assert!(unsaved(&worktree).unwrap().is_some());
    assert_left_out(save(&yard, &worktree), &["lib"]);
}

#[test]
fn what_was_staged_is_kept_beside_what_is_on_disk() {
    let yard = Yard::new();
    let worktree = yard.worktree("gt/one");
    for name in ["file", "gone"] {
        fs::write(worktree.join(name), "staged\n").unwrap();
        git(&worktree, &["add", name]);
    }
    fs::write(worktree.join("file"), "later\n").unwrap();
    fs::remove_file(worktree.join("gone")).unwrap();
    let saved = save(&yard, &worktree).unwrap();
    assert_eq!(shown(&worktree, "file"), "later");
    let staged = ["file", "gone"].map(|name| git(&worktree, &["show", &format!("{NAME}^2:{name}")]));
    assert_eq!(staged, ["staged", "staged"]);
    assert_eq!(save(&yard, &worktree).unwrap(), saved, "the same again is the same commit");
    // Also where nothing on disk differs from what is committed.
    fs::write(worktree.join("file"), "one\n").unwrap();
    let saved = save(&yard, &worktree).unwrap();
    assert_eq!(git(&worktree, &["show", &format!("{NAME}^2:gone")]), "staged");
    assert_eq!(save(&yard, &worktree).unwrap(), saved);
}

/// A worktree whose commit conflicts with `main`.
fn conflicting(yard: &Yard) -> PathBuf {
    let worktree = yard.worktree("gt/one");
    commit(&yard.rig, "file", "theirs\n");
    commit(&worktree, "file", "ours\n");
    worktree
}

fn is_kept(worktree: &Path, commit: &str) -> bool {
    !git(worktree, &["for-each-ref", "--contains", commit, NAME]).is_empty()
}

#[test]
fn what_an_unfinished_rebase_has_put_away_is_kept() {
    let yard = Yard::new();
    let worktree = conflicting(&yard);
    commit(&worktree, "other", "one\n");
    fs::write(worktree.join("other"), "precious\n").unwrap();
    fails(&worktree, &["rebase", "--quiet", "--autostash", "main"]);
    let stash = text(yard.rig.join(".git/worktrees/gt-one/rebase-merge/autostash")).trim().to_owned();
    git(&worktree, &["checkout", "--quiet", "--ours", "file"]);
    git(&worktree, &["add", "file"]);
    assert_eq!(git(&worktree, &["status", "--porcelain"]), "");
    assert_eq!(unsaved(&worktree).unwrap(), Some("a rebase in it is not finished"));
    save(&yard, &worktree).unwrap();
    assert!(is_kept(&worktree, &stash));
    assert_eq!(save(&yard, &worktree), save(&yard, &worktree), "the same again is the same commit");
}

#[test]
fn commits_that_an_unfinished_rebase_has_yet_to_replay_are_kept() {
    let yard = Yard::new();
    let worktree = conflicting(&yard);
    git(&worktree, &["checkout", "--quiet", "--detach"]);
    let lone = commit(&worktree, "other", "precious\n");
    fails(&worktree, &["rebase", "--quiet", "main"]);
    save(&yard, &worktree).unwrap();
    assert!(is_kept(&worktree, &lone));
}

#[test]
fn what_an_unfinished_merge_has_put_away_is_kept() {
    let yard = Yard::new();
    let worktree = conflicting(&yard);
    commit(&worktree, "other", "one\n");
    fs::write(worktree.join("other"), "precious\n").unwrap();
    fails(&worktree, &["merge", "--quiet", "--autostash", "main"]);
    let stash = git(&worktree, &["rev-parse", "MERGE_AUTOSTASH"]);
    assert!(unsaved(&worktree).unwrap().is_some());
    save(&yard, &worktree).unwrap();
    assert!(is_kept(&worktree, &stash));
}

#[test]
fn a_directory_that_is_no_worktree_any_more_is_not_taken_for_a_part_of_what_lies_around_it() {
    let yard = Yard::new();
    let worktree = yard.rig.join("inside");
    git(&yard.rig, &["worktree", "add", "--quiet", "-b", "gt/one", "inside", "main"]);
    fs::remove_file(worktree.join(".git")).unwrap();
    fs::write(worktree.join("file"), "precious\n").unwrap();
    let refused = salvage(&worktree, NAME, &yard.path("r1.patch"));
    assert!(matches!(refused, Err(MergeError::Git { .. } | MergeError::Worktree(_))), "{refused:?}");
    assert!(unsaved(&worktree).is_err());
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_named() {
    without_privileges(|| {
        let yard = Yard::new();
        let worktree = yard.worktree("gt/one");
        let closed = worktree.join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("precious"), "precious\n").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let saved = save(&yard, &worktree);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert_left_out(saved, &["closed"]);
    });
}
