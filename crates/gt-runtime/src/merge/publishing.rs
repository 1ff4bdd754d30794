//! Which commits a push would publish, and which of them a merge brings to its target.

use std::path::Path;

use super::{MergeError, commit_of, here};
use crate::git::{Git, text_of};

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

/// The commits that `commit` brings to `target`, which is at `base`. A commit that the target has had before, as git's own log of the
/// branch says, is not among them: somebody has taken it back since.
pub fn brought(repository: &Path, target: &str, base: &str, commit: &str) -> Result<Vec<String>, MergeError> {
    let commit = commit_of(repository, commit)?;
    let log = Git::at(repository).args(["reflog", "show", "--format=%H", &here(target), "--"]).output()?;
    let had = text_of(&log.stdout);
    let known = std::iter::once(base).chain(had.lines());
    let input: Vec<String> = std::iter::once(commit).chain(known.map(|known| format!("^{known}"))).collect();
    // What a log names may have been cleared away by git.
    let asked =
        Git::at(repository).args(["rev-list", "--ignore-missing", "--stdin"]).input(input.join("\n").as_bytes())?;
    Ok(asked.run("look for what a merge brings")?.lines().map(str::to_owned).collect())
}
