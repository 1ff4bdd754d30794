//! Locks that a git that was killed has left in a repository.
//!
//! Every `git commit` takes the lock of `packed-refs` for a moment, which all worktrees of a repository share: whoever is killed
//! just then leaves it to all others, whose every change of a ref then takes a second or fails. It is cleared away when
//! nobody can have it any more. What is a worktree's own is `worktree`'s.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{MergeError, here, there};
use crate::process::{Entry, table};
use crate::worktree;

/// How long git may have a lock before anybody wonders; it gives up waiting for one after a second.
pub const LOCK_AGE: Duration = Duration::from_secs(10);

/// A process is born by a coarser clock than files are.
const SLACK: Duration = Duration::from_millis(100);

/// Removes the locks of `packed-refs` and of these branches, here and as the origin has them, that are older than `age` and that
/// no git which still runs can have taken. Returns them.
pub fn clear_dead_locks<'a>(
    repository: &Path,
    branches: impl IntoIterator<Item = &'a str>,
    age: Duration,
) -> Result<Vec<PathBuf>, MergeError> {
    let common_dir = worktree::common_dir(repository)?;
    let refs = branches.into_iter().flat_map(|branch| [here(branch), there(branch)]);
    let mut cleared = Vec::new();
    for name in std::iter::once("packed-refs".to_owned()).chain(refs) {
        let path = common_dir.join(name + ".lock");
        if is_dead(&path, &common_dir, age) && fs::remove_file(&path).is_ok() {
            cleared.push(path);
        }
    }
    Ok(cleared)
}

/// Whoever has a lock is older than it. Where that cannot be told, somebody has it.
fn is_dead(lock: &Path, common_dir: &Path, age: Duration) -> bool {
    let Some(lock_age) = fs::metadata(lock).ok().as_ref().and_then(age_of) else { return false };
    let Some(uptime) = table::uptime() else { return false };
    let may_have_it = |git: &Entry| uptime.saturating_sub(git.born_at()) + SLACK >= lock_age && is_at(git, common_dir);
    lock_age >= age && !table::named("git").iter().any(may_have_it)
}

fn age_of(lock: &Metadata) -> Option<Duration> {
    SystemTime::now().duration_since(lock.modified().ok()?).ok()
}

/// Whether a process may be at work in this repository.
fn is_at(git: &Entry, common_dir: &Path) -> bool {
    match fs::read_link(format!("/proc/{}/cwd", git.pid)) {
        Ok(dir) => worktree::common_dir(&dir).is_ok_and(|dir| dir == common_dir),
        // It has ended meanwhile, or it is another user's.
        Err(_) => table::is_there(git),
    }
}
