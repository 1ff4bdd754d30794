//! Questions about commits, and the one commit that lands.

use std::path::Path;

use super::{MergeError, commit_of, find_commit, here, identified, io_error, there};
use crate::git::{Git, complaint};
use crate::whole_file::Draft;
use crate::worktree;

/// What somebody has to hand over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// `None` when no branch is checked out.
    pub branch: Option<String>,
    pub commit: String,
    /// Commits that the target has neither here nor, as far as is known, at the origin.
    pub n_ahead: u32,
    /// What would be lost if the worktree were used for something else.
    pub unsaved: Option<&'static str>,
    /// A submodule that is at a commit which only this worktree has.
    pub lone_submodule: Option<String>,
}

/// Looks at what a worktree has for `target`, and changes nothing.
pub fn look(worktree: &Path, target: &str) -> Result<Look, MergeError> {
    let commit = commit_of(worktree, "HEAD")?;
    let mut known = Vec::new();
    for name in [here(target), there(target)] {
        known.extend(find_commit(worktree, &name)?);
    }
    if known.is_empty() {
        return Err(no_target(worktree, target));
    }
    let asked = Git::at(worktree).args(["rev-list", "--count", &commit, "--not"]).args(&known);
    let counted = asked.run("count commits")?;
    let n_ahead = counted.parse().map_err(|_| MergeError::Git { doing: "count commits".to_owned(), said: counted })?;
    let lone_submodule = lone_submodule(worktree, &known[0], &commit)?;
    let (branch, unsaved) = (worktree::branch(worktree)?, worktree::uncommitted(worktree)?);
    Ok(Look { branch, commit, n_ahead, unsaved, lone_submodule })
}

/// A submodule that was moved to a commit which no branch of its remotes has: nobody else could ever check it out.
fn lone_submodule(worktree: &Path, base: &str, commit: &str) -> Result<Option<String>, MergeError> {
    const IS_SUBMODULE: &str = "160000";
    let asked = Git::at(worktree).args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, commit]);
    let changed = asked.run("look for submodules")?;
    let mut words = changed.split('\0');
    while let (Some(entry), Some(path)) = (words.next(), words.next()) {
        let mut entry = entry.split(' ').skip(1);
        let (Some(IS_SUBMODULE), _, Some(to)) = (entry.next(), entry.next(), entry.next()) else { continue };
        let submodule = worktree.join(path);
        if !submodule.join(".git").exists() {
            continue; // whoever moved it did not do so here
        }
        let holders = Git::at(&submodule).args(["branch", "--remotes", "--contains", to]).output()?;
        if holders.status.success() && holders.stdout.is_empty() {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

/// The files of a commit, by their name in git.
pub fn tree_of(repository: &Path, commit: &str) -> Result<String, MergeError> {
    let tree = format!("{commit}^{{tree}}");
    Ok(Git::at(repository).args(["rev-parse", "--verify", tree.as_str()]).run("find the files of a commit")?)
}

/// Whether the history of `of` has `commit` in it.
pub fn is_part_of(repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
    let (commit, of) = (commit_of(repository, commit)?, commit_of(repository, of)?);
    let asked = Git::at(repository).args(["merge-base", "--is-ancestor", &commit, &of]).output()?;
    match asked.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(complaint(repository, "compare commits", &asked).into()),
    }
}

/// Whether `of` has the work of `commit`: the commit itself, or for each commit that leads to it one that makes the same changes.
pub fn has_work_of(repository: &Path, commit: &str, of: &str) -> Result<bool, MergeError> {
    if is_part_of(repository, commit, of)? {
        return Ok(true);
    }
    let listed = |selection: &[&str]| {
        let asked = Git::at(repository).args(["rev-list", "--no-merges"]).args(selection).arg("--");
        let listed = asked.run("compare changes")?;
        Ok::<_, MergeError>(listed.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    if listed(&[commit, &format!("^{of}")])?.is_empty() {
        return Ok(false); // nothing but merges, of which git cannot say whether they are the same
    }
    for missing in listed(&["--cherry-pick", "--right-only", &format!("{of}...{commit}")])? {
        if !is_empty(repository, &missing)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a commit changes nothing.
fn is_empty(repository: &Path, commit: &str) -> Result<bool, MergeError> {
    let asked = Git::at(repository).args(["diff-tree", "--root", "-r", "--no-commit-id", "--name-only", commit]);
    Ok(asked.run("look at what a commit changes")?.is_empty())
}

/// Makes the one commit that lands: it has the files of `tip`, and as parents `base` and `tip`. A `tip` that is such a
/// commit itself is returned as it is.
pub fn seal(repository: &Path, base: &str, tip: &str, message: &str) -> Result<String, MergeError> {
    let (base, tip) = (commit_of(repository, base)?, commit_of(repository, tip)?);
    if !is_part_of(repository, &base, &tip)? {
        return Err(MergeError::NotOnTop { commit: tip, on: base });
    }
    let parents = parents_of(repository, &tip)?;
    if tip == base || (parents.len() > 1 && parents.first() == Some(&base)) {
        return Ok(tip);
    }
    commit_tree(repository, &format!("{tip}^{{tree}}"), &[&base, &tip], message)
}

/// Makes a commit of a tree, which nothing refers to yet.
pub(super) fn commit_tree(dir: &Path, tree: &str, parents: &[&str], message: &str) -> Result<String, MergeError> {
    let parents = parents.iter().flat_map(|parent| ["-p", *parent]);
    let asked = Git::at(dir).args(["commit-tree", "--no-gpg-sign", tree, "-m", message]).args(parents);
    Ok(identified(asked, dir)?.run("make a commit")?)
}

/// Writes the commits that `commit` has and `from_base` has not as one file of mails, for `git am`.
pub fn patch(repository: &Path, from_base: &str, commit: &str, path: &Path) -> Result<(), MergeError> {
    let (from_base, commit) = (commit_of(repository, from_base)?, commit_of(repository, commit)?);
    let range = match merge_base(repository, &from_base, &commit)? {
        Some(start) => vec![format!("{start}..{commit}")],
        None => vec!["--root".to_owned(), commit],
    };
    // As it is understood everywhere, whatever the user prefers to read.
    let plainly =
        ["--no-attach", "--no-thread", "--no-cover-letter", "--no-signature", "--no-ext-diff", "--no-textconv"];
    let asked = Git::at(repository).args(["format-patch", "--quiet", "--stdout", "--binary", "--full-index"]);
    let asked = asked.args(plainly).args(["--src-prefix=a/", "--dst-prefix=b/", "--no-renames"]);
    into_whole_file(asked.args(range), "write a patch", path)
}

/// The youngest commit that both have in their history.
pub(super) fn merge_base(repository: &Path, one: &str, other: &str) -> Result<Option<String>, MergeError> {
    let asked = Git::at(repository).args(["merge-base", one, other]).output()?;
    match asked.status.code() {
        Some(0) => Ok(Some(crate::git::text_of(&asked.stdout))),
        Some(1) => Ok(None),
        _ => Err(complaint(repository, "compare commits", &asked).into()),
    }
}

/// Puts what git prints into a file that is there as a whole or not at all.
pub(super) fn into_whole_file(git: Git, doing: &str, path: &Path) -> Result<(), MergeError> {
    let draft = Draft::of(path).map_err(io_error("write", path))?;
    git.into_file(draft.file.try_clone().map_err(io_error("write", path))?).run(doing)?;
    draft.publish().map_err(io_error("write", path))
}

pub(super) fn no_target(repository: &Path, target: &str) -> MergeError {
    MergeError::NoTarget { repository: repository.to_owned(), target: target.to_owned() }
}

fn parents_of(repository: &Path, commit: &str) -> Result<Vec<String>, MergeError> {
    let listed =
        Git::at(repository).args(["rev-list", "--parents", "--max-count=1", commit]).run("look at a commit")?;
    Ok(listed.split_ascii_whitespace().skip(1).map(str::to_owned).collect())
}
