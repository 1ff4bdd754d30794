//! What was done in a worktree since it was made, and branches that somebody has taken away.

use std::path::Path;

use super::WorktreeError;
use super::git::{run_git, text_of};
use crate::git::Git;

/// How many commits are checked out in a worktree that none of these has.
pub fn n_beyond(path: &Path, known: &[&str]) -> Result<u32, WorktreeError> {
    let counted = Git::at(path).args(["rev-list", "--count", "HEAD", "--not"]).args(known).run("count commits")?;
    counted.parse().map_err(|_| WorktreeError::Git { doing: "count commits".to_owned(), said: counted })
}

/// The latest commit that was made on a branch here, as git's own log of it says; `None` where none was, or no log is kept.
pub fn last_made(path: &Path, branch: &str) -> Result<Option<String>, WorktreeError> {
    let name = format!("refs/heads/{branch}");
    let log = Git::at(path).args(["reflog", "show", "--format=%H %gs", &name, "--"]).output()?;
    let log = text_of(&log.stdout);
    let made = log.lines().filter_map(|line| line.split_once(' ')).find(|(_, what)| what.starts_with("commit"));
    Ok(made.map(|(commit, _)| commit.to_owned()))
}

/// Makes a branch again that is no more there.
pub fn restore_branch(repository: &Path, branch: &str, commit: &str) -> Result<(), WorktreeError> {
    let arguments = ["branch", "--no-track", branch, commit].map(AsRef::as_ref);
    run_git(repository, "make a branch again", &arguments).map(drop)
}

/// Brings a branch to what is checked out in a worktree, if that builds on it and nobody has it checked out: whoever worked on
/// another branch, or on none, has left their commits there too. One that is gone is made again if nobody else has them.
pub fn bring_along(path: &Path, branch: &str) -> Result<(), WorktreeError> {
    let current = super::branch(path)?;
    if current.as_deref() == Some(branch) {
        return Ok(());
    }
    let is_wanted = if let Some(tip) = super::commit_of(path, &format!("refs/heads/{branch}"))? {
        Git::at(path).args(["merge-base", "--is-ancestor", &tip, "HEAD"]).answers("compare commits")?
    } else {
        let asked = ["for-each-ref", "--format=%(refname)", "--contains=HEAD", "refs/heads", "refs/remotes"];
        let own = current.map(|current| format!("refs/heads/{current}"));
        let holders = Git::at(path).args(asked).run("look for branches")?;
        holders.lines().all(|holder| Some(holder) == own.as_deref())
    };
    if is_wanted {
        let brings = ["branch", "--quiet", "--force", "--no-track", branch, "HEAD"];
        Git::without_hooks_at(path).args(brings).run("bring a branch along")?;
    }
    Ok(())
}
