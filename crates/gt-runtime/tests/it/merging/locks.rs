//! Locks that a killed git leaves: they go when nobody can have them, and not before.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use gt_runtime::merge::{LOCK_AGE, clear_dead_locks};

use super::{Yard, git};

/// A lock that has been there for so long.
fn lock(yard: &Yard, name: &str, age: Duration) -> PathBuf {
    let path = yard.rig.join(".git").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    path.canonicalize().unwrap()
}

/// A git that waits for questions, as one does that somebody has stopped.
fn waiting_git(dir: &Path) -> Child {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn end(mut git: Child) {
    git.kill().unwrap();
    git.wait().unwrap();
}

#[test]
fn locks_that_a_killed_git_has_left_are_cleared_away() {
    let yard = Yard::with_origin();
    let names = ["packed-refs.lock", "refs/heads/main.lock", "refs/remotes/origin/main.lock"];
    let locks = names.map(|name| lock(&yard, name, LOCK_AGE * 2));
    let other = lock(&yard, "refs/heads/other.lock", LOCK_AGE * 2);
    git(&yard.rig, &["update-ref", "refs/gt/one", "main"]);
    assert_eq!(clear_dead_locks(&yard.rig, ["main"], LOCK_AGE).unwrap(), locks);
    assert!(other.exists(), "nobody asked about it");
    git(&yard.rig, &["update-ref", "-d", "refs/gt/one"]);
    git(&yard.rig, &["pack-refs", "--all"]);
    assert_eq!(clear_dead_locks(&yard.rig, ["main"], LOCK_AGE).unwrap(), [""; 0].map(PathBuf::from));
}

#[test]
fn a_lock_that_somebody_may_have_just_taken_stays() {
    let yard = Yard::new();
    let young = lock(&yard, "packed-refs.lock", Duration::ZERO);
    assert_eq!(clear_dead_locks(&yard.rig, ["main"], LOCK_AGE).unwrap(), [""; 0].map(PathBuf::from));
    assert!(young.exists());
}

#[test]
fn a_lock_stays_while_a_git_runs_that_is_older_and_at_work_in_the_same_repository() {
    let (yard, elsewhere) = (Yard::new(), Yard::new());
    let worktree = yard.worktree("gt/one");
    for dir in [&yard.rig, &worktree] {
        let elder = waiting_git(dir);
        let lock = lock(&yard, "packed-refs.lock", Duration::ZERO);
        assert_eq!(clear_dead_locks(&yard.rig, ["main"], Duration::ZERO).unwrap(), [""; 0].map(PathBuf::from));
        assert!(lock.exists());
        end(elder);
        let stranger = waiting_git(&elsewhere.rig);
        assert_eq!(clear_dead_locks(&yard.rig, ["main"], Duration::ZERO).unwrap(), [lock]);
        end(stranger);
    }
}

#[test]
fn a_git_that_began_after_a_lock_was_left_does_not_keep_it() {
    let yard = Yard::new();
    let lock = lock(&yard, "packed-refs.lock", LOCK_AGE * 2);
    let younger = waiting_git(&yard.rig);
    assert_eq!(clear_dead_locks(&yard.rig, ["main"], LOCK_AGE).unwrap(), [lock]);
    end(younger);
}
