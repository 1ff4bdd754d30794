//! Locks that a git that was killed has left in a repository.
//!
//! Every `git commit` takes the lock of `packed-refs` for a moment, which all worktrees of a repository share: whoever is killed
//! just then leaves it to all others, whose every change of a ref then takes a second or fails. It is cleared away when
//! nobody can have it any more. The lock of an index goes only where a landing was left half-way; any other index is its owner's.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags};

use super::forward::NOTE;
use super::{MergeError, here, there};
use crate::process::{Entry, table};
use crate::worktree;
use crate::{child, patience};

/// How long git may have a lock before anybody wonders; it gives up waiting for one after a second.
const LOCK_AGE: Duration = Duration::from_secs(10);
/// How long those are waited for who may have one.
const PATIENCE: Duration = Duration::from_secs(3);

/// Removes the locks of `packed-refs`, of every `HEAD`, of these branches, here and as the origin has them, and of an index that was
/// being moved, if they have been there for a while and no git which still runs can have taken them. Returns them.
pub fn clear_dead_locks<'a>(
    repository: &Path,
    branches: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<PathBuf>, MergeError> {
    let common_dir = worktree::common_dir(repository)?;
    let refs = branches.into_iter().flat_map(|branch| [here(branch), there(branch)]);
    let shared = refs.map(|name| common_dir.join(name + ".lock"));
    let all = [common_dir.join("packed-refs.lock")].into_iter().chain(locks_of_checkouts(&common_dir)).chain(shared);
    let mut old: Vec<Lock> = all.filter_map(Lock::old).collect();
    if old.is_empty() || !have_ended(&who_may_have_them(&common_dir)) {
        return Ok(Vec::new());
    }
    // One who clears away at a time: what another one has removed may be somebody's again.
    let _lock = worktree::lock(&common_dir)?;
    old.retain(|lock| lock.is_same() && fs::remove_file(&lock.path).is_ok());
    Ok(old.into_iter().map(|lock| lock.path).collect())
}

/// The locks of each checkout's own that may be in the way of moving it.
fn locks_of_checkouts(common_dir: &Path) -> Vec<PathBuf> {
    let worktrees = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let dirs = [common_dir.to_owned()].into_iter().chain(worktrees.map(|dir| dir.path()));
    let of_one = |dir: PathBuf| {
        let index = dir.join(NOTE).exists().then(|| dir.join("index.lock"));
        [dir.join("HEAD.lock")].into_iter().chain(index)
    };
    dirs.flat_map(of_one).collect()
}

/// A lock as it was seen.
struct Lock {
    path: PathBuf,
    seen: [i64; 5],
}

impl Lock {
    /// One that has been there for a while.
    fn old(path: PathBuf) -> Option<Lock> {
        let found = fs::metadata(&path).ok()?;
        let age = SystemTime::now().duration_since(found.modified().ok()?).ok()?;
        (age >= LOCK_AGE).then(|| Lock { path, seen: marks(&found) })
    }

    fn is_same(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| marks(&found) == self.seen)
    }
}

/// What two locks of the same name do not have in common.
fn marks(found: &Metadata) -> [i64; 5] {
    [found.ino() as i64, found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()]
}

/// Whoever has a lock that is there now runs now.
fn who_may_have_them(common_dir: &Path) -> Vec<Entry> {
    table::named("git").into_iter().filter(|git| !is_elsewhere(git, common_dir)).collect()
}

/// Whether a git is certainly not at work in this repository.
fn is_elsewhere(git: &Entry, common_dir: &Path) -> bool {
    let words = table::words(git.pid);
    // Who serves or watches for others, for as long as the machine runs, takes no locks.
    if words.iter().any(|word| word.ends_with("daemon")) {
        return true;
    }
    let Ok(dir) = fs::read_link(format!("/proc/{}/cwd", git.pid)) else { return false };
    let sent = git_dir_in(&words).or_else(|| table::variable(git.pid, "GIT_DIR"));
    let dir = sent.iter().fold(dir, |dir, sent| dir.join(sent));
    worktree::common_dir(&dir).is_ok_and(|dir| dir != common_dir)
}

/// The repository that git was sent to by its words.
fn git_dir_in(words: &[String]) -> Option<String> {
    let place = words.iter().position(|word| word.starts_with("--git-dir"))?;
    words[place].strip_prefix("--git-dir=").or(words.get(place + 1).map(String::as_str)).map(str::to_owned)
}

/// Waits a while for processes to end. Who waits for the lock, as anybody does, gives up soon.
fn have_ended(gits: &[Entry]) -> bool {
    let deadline = Instant::now() + patience::of(PATIENCE);
    gits.iter().all(|git| {
        let Some(pidfd) = table::open(&git.handle()) else { return true };
        let left = deadline.saturating_duration_since(Instant::now());
        matches!(child::wait_for(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(left)), Ok(1..))
    })
}
