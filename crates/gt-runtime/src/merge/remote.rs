//! What is shared with others: where a target stands, here and at the origin, and pushing to it.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use super::history::{is_part_of, no_target};
use super::{MergeError, commit_of, find_commit, here, there};
use crate::child::seconds;
use crate::git::{Git, complaint, reason, text_of};

/// What is merged onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub commit: String,
    /// Whether there is an origin that was asked.
    pub has_remote: bool,
}

/// Finds where `target` stands. With `asks_origin`, and if there is one, that is here or there, whichever is ahead; else it is here.
pub fn base(repository: &Path, target: &str, asks_origin: bool, timeout: Duration) -> Result<Base, MergeError> {
    let has_remote = asks_origin && has_origin(repository)?;
    if has_remote {
        fetch(repository, target, timeout)?;
    }
    let ours = find_commit(repository, &here(target))?;
    // A branch that only the origin has is made here.
    let theirs = if has_remote || ours.is_none() { find_commit(repository, &there(target))? } else { None };
    let commit = match (ours, theirs) {
        (Some(ours), Some(theirs)) => whichever_is_ahead(repository, target, ours, theirs)?,
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => return Err(no_target(repository, target)),
    };
    Ok(Base { commit, has_remote })
}

fn has_origin(repository: &Path) -> Result<bool, MergeError> {
    const NO_SUCH_REMOTE: i32 = 2;
    let asked = Git::at(repository).args(["remote", "get-url", "origin"]).output()?;
    match asked.status.code() {
        Some(0) => Ok(true),
        Some(NO_SUCH_REMOTE) => Ok(false),
        _ => Err(complaint(repository, "look for the origin", &asked).into()),
    }
}

fn whichever_is_ahead(repository: &Path, target: &str, here: String, there: String) -> Result<String, MergeError> {
    if is_part_of(repository, &there, &here)? {
        return Ok(here);
    }
    if is_part_of(repository, &here, &there)? {
        return Ok(there);
    }
    Err(MergeError::Parted { repository: repository.to_owned(), target: target.to_owned(), here, there })
}

/// Learns where the origin has its target. Named refs and no others, whatever the repository is set up to fetch: a bare
/// one has nothing set, and a mirror would move branches here.
fn fetch(repository: &Path, target: &str, timeout: Duration) -> Result<(), MergeError> {
    let quietly = ["fetch", "--quiet", "--no-tags", "--no-auto-maintenance", "--no-recurse-submodules"];
    let refs = format!("+{}:{}", here(target), there(target));
    let asked =
        Git::without_hooks_at(repository).args(quietly).args(["--no-write-fetch-head", "--refmap=", "origin", &refs]);
    let output = bounded(asked, timeout)?;
    // A branch that is not there will be made by the push.
    let is_absent = text_of(&output.stderr).contains("couldn't find remote ref");
    if output.status.success() || is_absent { Ok(()) } else { Err(refusal(&output)) }
}

/// Moves the target at the origin to `commit`, forwards only.
pub fn push(repository: &Path, commit: &str, target: &str, timeout: Duration) -> Result<(), MergeError> {
    let commit = commit_of(repository, commit)?;
    push_refs(repository, target, &[format!("{commit}:{}", here(target))], timeout)
}

/// Puts `commit` on a branch of ours at the origin, for a pull request. What it was before is replaced if it came from
/// here; what others added to it is not. If the origin refuses a new branch, it is asked whether it takes one with `base`, which it has
/// already: if not, the branch is refused, not the commit.
pub fn push_branch(
    repository: &Path,
    commit: &str,
    base: &str,
    branch: &str,
    timeout: Duration,
) -> Result<(), MergeError> {
    let commit = commit_of(repository, commit)?;
    let name = here(branch);
    let listed = bounded(Git::at(repository).args(["ls-remote", "origin", &name]), timeout)?;
    if !listed.status.success() {
        return Err(refusal(&listed));
    }
    let listed = text_of(&listed.stdout);
    let old = listed.lines().find_map(|line| line.strip_suffix(&name)).unwrap_or_default().trim();
    if old == commit {
        return Ok(());
    }
    if !old.is_empty() && find_commit(repository, old)?.is_none() {
        return Err(moved(branch));
    }
    let put = |was: &str, commit: &str| {
        let lease = format!("--force-with-lease={name}:{was}");
        push_refs(repository, branch, &[lease, format!("{commit}:{name}")], timeout)
    };
    let pushed = put(old, &commit);
    if !(old.is_empty() && matches!(pushed, Err(MergeError::Refused { .. }))) {
        return pushed;
    }
    match put("", base) {
        Err(MergeError::Refused { said }) => Err(MergeError::Closed { said }),
        Ok(()) => {
            // An origin that lets nobody delete keeps a branch that has nothing new.
            put(base, "").unwrap_or_default();
            pushed
        }
        other => other,
    }
}

fn push_refs(repository: &Path, branch: &str, what: &[String], timeout: Duration) -> Result<(), MergeError> {
    let (options, refs) = what.split_at(what.len() - 1);
    let plainly = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"];
    let asked = Git::without_hooks_at(repository).args(plainly).args(options).arg("origin").args(refs);
    let output = bounded(asked, timeout)?;
    if output.status.success() {
        return Ok(());
    }
    match refused_ref(&text_of(&output.stdout)) {
        Some(why) if is_race(&why) || is_race(&text_of(&output.stderr)) => Err(moved(branch)),
        Some(why) => Err(rejection(&why, &text_of(&output.stderr))),
        None => Err(refusal(&output)),
    }
}

/// Why the remote did not take the ref: what follows the `!` and the names in git's table.
fn refused_ref(table: &str) -> Option<String> {
    let line = table.lines().find(|line| line.starts_with('!'))?;
    line.splitn(3, '\t').nth(2).map(str::to_owned)
}

/// Somebody else was faster: seen beforehand, or by the remote while it took the push.
fn is_race(why: &str) -> bool {
    const SAID: [&str; 5] =
        ["(non-fast-forward)", "(fetch first)", "(stale info)", "but expected", "reference already exists"];
    SAID.iter().any(|said| why.contains(said))
}

/// Whether a commit is refused or every one is: that shows in the line in which the origin says so.
fn rejection(why: &str, stderr: &str) -> MergeError {
    let words = stderr.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    let words: Vec<&str> = words.filter(|line| !line.is_empty()).collect();
    if is_closed(why) || why.contains("denied") {
        return MergeError::Closed { said: why.to_owned() };
    }
    match words.iter().find(|line| is_closed(line)) {
        Some(line) => MergeError::Closed { said: format!("{why}: {line}") },
        None if words.is_empty() => MergeError::Refused { said: why.to_owned() },
        // Its first words are on the first line, which is shown where only one is.
        None => MergeError::Refused { said: format!("{why}: {}", words.join("\n")) },
    }
}

/// Nobody may push to that branch, or the origin cannot take anything. Hosts say the first in words of their own, and leave
/// it to git to say that a hook declined.
fn is_closed(said: &str) -> bool {
    const SAID: [&str; 12] = [
        "protected branch",
        "branch is currently checked out",
        "not allowed to push",
        "through a pull request",
        "through pull requests",
        "no space left on device",
        "disk quota exceeded",
        "read-only file system",
        "permission denied",
        "creations being restricted",
        "cannot lock ref",
        "failed to update ref",
    ];
    let said = said.to_ascii_lowercase();
    SAID.iter().any(|known| said.contains(known))
}

fn bounded(git: Git, timeout: Duration) -> Result<Output, MergeError> {
    let too_slow = || MergeError::Remote { said: format!("it took longer than {}", seconds(timeout)) };
    git.output_within(timeout)?.ok_or_else(too_slow)
}

fn refusal(output: &Output) -> MergeError {
    MergeError::Remote { said: reason(output) }
}

fn moved(branch: &str) -> MergeError {
    MergeError::Moved { target: branch.to_owned() }
}
