//! Which commits a push would publish, and which of them a merge brings to its target.

use std::path::Path;

use jiff::Timestamp;

use super::{MergeError, commit_of, here};
use crate::git::{Git, text_of};

const HEADS: &str = "refs/heads/";

/// A commit as people recognise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Titled {
    pub id: String,
    pub title: String,
}

/// The commits that a push of `commit` would publish, the newest first: no branch of the origin has them, as far as is known here.
pub fn unpublished(repository: &Path, commit: &str) -> Result<Vec<Titled>, MergeError> {
    let asked = Git::at(repository).args(["log", "--no-show-signature", "--no-color", "--format=%H %s"]);
    let listed = asked.args([commit, "--not", "--remotes=origin", "--"]).run("look for what is not published")?;
    let titled = |line: &str| {
        let (id, title) = line.split_once(' ').unwrap_or((line, ""));
        Titled { id: id.to_owned(), title: title.to_owned() }
    };
    Ok(listed.lines().map(titled).collect())
}

/// By whom a merge was made.
#[derive(Debug, Clone, Copy)]
pub struct Makers<'a> {
    /// The branches on which they worked. Those that begin with `folder` are agents', too.
    pub branches: &'a [&'a str],
    pub folder: &'a str,
    /// When the last of them began: what is on other branches that were there before is a person's.
    pub since: Timestamp,
}

/// The commits that `commit` brings to `target`, which is at `base`, as far as they are the makers'. A commit that the target has had
/// before, as git's own log of the branch says, is not among them: it was taken back since. Neither is one on a branch of a person's.
pub fn brought(
    repository: &Path,
    target: &str,
    base: &str,
    commit: &str,
    makers: Makers<'_>,
) -> Result<Vec<String>, MergeError> {
    let commit = commit_of(repository, commit)?;
    let log = Git::at(repository).args(["reflog", "show", "--format=%H", &here(target), "--"]).output()?;
    let mut known = text_of(&log.stdout);
    known.insert_str(0, &format!("{base}\n"));
    let new = beyond(repository, &commit, known.lines())?;
    if new.is_empty() {
        return Ok(new);
    }
    let mut others = other_branches(repository, target, base, makers)?;
    // Most have nothing to do with it, so only then it is asked when they were made.
    if beyond(repository, &commit, known.lines().chain(others.iter().map(|(_, tip)| tip.as_str())))?.len() == new.len()
    {
        return Ok(new);
    }
    // Git's log knows seconds: one that was made in the same second may have been there before.
    others.retain(|(name, _)| made_at(repository, name).is_none_or(|at| at <= makers.since.as_second()));
    beyond(repository, &commit, known.lines().chain(others.iter().map(|(_, tip)| tip.as_str())))
}

/// The commits of `commit` that none of these has.
fn beyond<'a>(
    repository: &Path,
    commit: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<Vec<String>, MergeError> {
    let input: Vec<String> = std::iter::once(commit.to_owned()).chain(known.map(|known| format!("^{known}"))).collect();
    // What a log names may have been cleared away by git.
    let asked =
        Git::at(repository).args(["rev-list", "--ignore-missing", "--stdin"]).input(input.join("\n").as_bytes())?;
    Ok(asked.run("look for what a merge brings")?.lines().map(str::to_owned).collect())
}

/// The branches that are neither the target nor the makers' and have something that the base has not, with their tips.
fn other_branches(
    repository: &Path,
    target: &str,
    base: &str,
    makers: Makers<'_>,
) -> Result<Vec<(String, String)>, MergeError> {
    let unmerged = format!("--no-merged={base}");
    let asked = Git::at(repository).args(["for-each-ref", "--format=%(objectname) %(refname)", &unmerged, HEADS]);
    let listed = asked.run("look at the branches")?;
    let is_others = |name: &str| name != target && !name.starts_with(makers.folder) && !makers.branches.contains(&name);
    let read = |line: &str| {
        let (tip, name) = line.split_once(' ')?;
        let name = name.strip_prefix(HEADS)?;
        is_others(name).then(|| (name.to_owned(), tip.to_owned()))
    };
    Ok(listed.lines().filter_map(read).collect())
}

/// In seconds, if git's log of the branch says it.
fn made_at(repository: &Path, branch: &str) -> Option<i64> {
    let asked = Git::at(repository).args(["reflog", "show", "--date=unix", "--format=%gd", &here(branch), "--"]);
    let said = text_of(&asked.output().ok()?.stdout);
    said.lines().last()?.rsplit_once("@{")?.1.strip_suffix('}')?.parse().ok()
}
