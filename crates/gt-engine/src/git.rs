//! Git as its users call it: as a program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::TownError;

/// The version that `git` reports.
pub fn version() -> Result<String, TownError> {
    let output = run(Command::new("git").arg("--version"))?;
    Ok(text(&output.stdout).trim_start_matches("git version ").to_owned())
}

/// The top of the repository at `path`, or `None` when it is none.
pub fn repository_at(path: &Path) -> Result<Option<PathBuf>, TownError> {
    let inside = git(path, &["rev-parse", "--show-toplevel"])?;
    if inside.status.success() {
        let top = PathBuf::from(text(&inside.stdout));
        // A directory somewhere inside a repository is not one itself.
        return Ok((top.canonicalize().ok() == path.canonicalize().ok()).then_some(top));
    }
    Ok(is_bare(path)?.then(|| path.to_owned()))
}

/// Whether a repository has no working tree.
pub fn is_bare(path: &Path) -> Result<bool, TownError> {
    let bare = git(path, &["rev-parse", "--is-bare-repository"])?;
    Ok(bare.status.success() && text(&bare.stdout) == "true")
}

/// The branch new work starts from: the remote's default, else the one checked out.
pub fn default_branch(repository: &Path) -> Result<Option<String>, TownError> {
    let remote = git(repository, &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"])?;
    if remote.status.success() {
        return Ok(text(&remote.stdout).strip_prefix("origin/").map(str::to_owned));
    }
    let head = git(repository, &["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    Ok(head.status.success().then(|| text(&head.stdout)))
}

pub fn has_branch(repository: &Path, branch: &str) -> Result<bool, TownError> {
    for name in [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")] {
        if git(repository, &["show-ref", "--verify", "--quiet", &name])?.status.success() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn has_commits(repository: &Path) -> Result<bool, TownError> {
    Ok(git(repository, &["rev-parse", "--quiet", "--verify", "HEAD"])?.status.success())
}

/// Clones `url`; on failure nothing is left at `target`.
pub fn clone(url: &str, target: &Path) -> Result<(), TownError> {
    let mut command = Command::new("git");
    command.args(["clone", "--quiet", "--"]).arg(url).arg(target).env("GIT_TERMINAL_PROMPT", "0");
    let output = run(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(TownError::Git { doing: format!("clone {url}"), said: complaint(&output.stderr) })
}

/// Where a clone came from.
pub fn origin(repository: &Path) -> Result<Option<String>, TownError> {
    let url = git(repository, &["config", "--get", "remote.origin.url"])?;
    Ok(url.status.success().then(|| text(&url.stdout)))
}

/// The top of the repository around `path`, if there is one.
pub fn top_around(path: &Path) -> Result<Option<PathBuf>, TownError> {
    let inside = git(path, &["rev-parse", "--show-toplevel"])?;
    Ok(inside.status.success().then(|| PathBuf::from(text(&inside.stdout))))
}

fn git(repository: &Path, arguments: &[&str]) -> Result<Output, TownError> {
    run(Command::new("git").arg("-C").arg(repository).args(arguments))
}

fn run(command: &mut Command) -> Result<Output, TownError> {
    // What a surrounding git command exports would point at the wrong repository.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE").env("LC_ALL", "C");
    command.output().map_err(|source| TownError::NoGit { source })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// The line in which git says what is wrong; advice may come before and after it.
fn complaint(bytes: &[u8]) -> String {
    let said = text(bytes);
    let fatal = said.lines().find_map(|line| line.strip_prefix("fatal: "));
    fatal.or_else(|| said.lines().last()).unwrap_or("it gave no reason").to_owned()
}
