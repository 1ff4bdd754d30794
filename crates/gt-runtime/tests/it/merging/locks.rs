//! Locks that a killed git leaves: they go when nobody can have them, and not before.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use gt_runtime::merge::clear_dead_locks;

use super::{Yard, git};
use crate::it::flocks::Held;
use crate::it::town::until;

/// A lock that has been there for a minute.
fn lock(yard: &Yard, name: &str) -> PathBuf {
    lock_of_age(yard, name, Duration::from_mins(1))
}

fn lock_of_age(yard: &Yard, name: &str, age: Duration) -> PathBuf {
    let path = yard.rig.join(".git").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    path.canonicalize().unwrap()
}

/// A git that waits for questions, as one does that somebody has stopped.
fn waiting_git(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new("git");
    command.current_dir(dir).args(arguments).args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn end(mut git: Child) {
    git.kill().unwrap();
    git.wait().unwrap();
}

fn cleared(yard: &Yard) -> Vec<PathBuf> {
    clear_dead_locks(&yard.rig, ["main"]).unwrap()
}

/// Nothing is cleared while any git of this machine may be at work in the repository, so strangers' are waited for.
fn assert_cleared(yard: &Yard, locks: &[PathBuf]) {
    let mut gone = Vec::new();
    until("the locks to be cleared away", || {
        gone.extend(cleared(yard));
        !gone.is_empty()
    });
    assert_eq!(gone, locks);
}

#[test]
fn locks_that_a_killed_git_has_left_are_cleared_away() {
    let yard = Yard::with_origin();
    let names = ["packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "refs/remotes/origin/main.lock"];
    let locks = names.map(|name| lock(&yard, name));
    let others = ["refs/heads/other.lock", "index.lock"].map(|name| lock(&yard, name));
    git(&yard.rig, &["update-ref", "refs/gt/one", "main"]);
    assert_cleared(&yard, &locks);
    assert!(others.iter().all(|other| other.exists()), "nobody asked about them");
    git(&yard.rig, &["update-ref", "-d", "refs/gt/one"]);
    git(&yard.rig, &["pack-refs", "--all"]);
    assert_eq!(cleared(&yard).len(), 0);
}

#[test]
fn a_lock_that_somebody_may_have_just_taken_stays() {
    let yard = Yard::new();
    let young = lock_of_age(&yard, "packed-refs.lock", Duration::ZERO);
    assert_eq!(cleared(&yard).len(), 0);
    assert!(young.exists());
}

/// However old it seems: somebody may have set the clock.
#[test]
fn a_lock_stays_while_a_git_runs_that_may_be_at_work_in_the_repository() {
    let (yard, elsewhere) = (Yard::new(), Yard::new());
    let worktree = yard.worktree("gt/one");
    let git_dir = format!("--git-dir={}", yard.rig.join(".git").display());
    let (none, sent) = (&[][..], &[git_dir.as_str()][..]);
    for (dir, arguments) in [(&yard.rig, none), (&worktree, none), (&elsewhere.rig, sent)] {
        let lock = lock(&yard, "packed-refs.lock");
        let owner = waiting_git(dir, arguments);
        assert_eq!(cleared(&yard).len(), 0, "{dir:?} {arguments:?}");
        assert!(lock.exists());
        end(owner);
        let other_dir = format!("--git-dir={}", elsewhere.rig.join(".git").display());
        let strangers = [waiting_git(&elsewhere.rig, none), waiting_git(&yard.rig, &[&other_dir])];
        assert_cleared(&yard, &[lock]);
        strangers.into_iter().for_each(end);
    }
}

#[test]
fn whoever_ends_soon_is_waited_for() {
    let yard = Yard::new();
    let lock = lock(&yard, "packed-refs.lock");
    git(&yard.rig, &["update-ref", "refs/gt/one", "main"]);
    // It gives up after a second.
    let mut waiting = Command::new("git");
    waiting.current_dir(&yard.rig).args(["update-ref", "-d", "refs/gt/one"]).stderr(Stdio::null());
    let mut waiting = waiting.spawn().unwrap();
    assert_cleared(&yard, &[lock]);
    waiting.wait().unwrap();
}

/// What was looked at may have gone meanwhile, and another git may have a lock of the same name.
#[test]
fn a_lock_that_another_git_has_taken_since_it_was_looked_at_stays() {
    let yard = Yard::new();
    let lock = lock(&yard, "packed-refs.lock");
    let others_turn = Held::take(&yard.rig.join(".git/gt-worktree.lock"));
    let is_replaced = AtomicBool::new(false);
    let cleared = std::thread::scope(|scope| {
        let clearing = scope.spawn(|| {
            let mut all = Vec::new();
            // A git elsewhere on this machine may be in the way for a moment.
            until("the lock is looked at and waited for", || {
                all = cleared(&yard);
                is_replaced.load(Ordering::SeqCst) || !all.is_empty()
            });
            all
        });
        others_turn.until_awaited_by(&clearing);
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "another git's").unwrap();
        is_replaced.store(true, Ordering::SeqCst);
        drop(others_turn);
        clearing.join().unwrap()
    });
    assert_eq!(cleared, Vec::<PathBuf>::new());
    assert_eq!(fs::read_to_string(&lock).unwrap(), "another git's");
}
