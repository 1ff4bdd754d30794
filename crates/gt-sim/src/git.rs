//! A simulated git: commits with parents and trees, refs, checkouts, an origin, and locks that a killed git leaves.
//!
//! What a call does is here and in the files below it, without chance. `doors.rs` is what the engine sees: there every call
//! may be refused, cut off half-way, or die with its process. Each move of a branch and each gate is written down for the judge.

pub mod checkout;
pub mod doors;
pub mod gates;
mod history;
pub mod origin;
mod worktrees;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_runtime::merge::MergeError;

pub use self::checkout::{Checkout, Head};
pub use self::history::{Author, Commit, Id, Objects, Tree, tree_id};
pub use self::origin::{Mood, Origin, Request, RequestState};

/// A branch that was moved.
#[derive(Debug, Clone)]
pub struct Move {
    pub repository: PathBuf,
    pub at_origin: bool,
    pub branch: String,
    pub old: Option<Id>,
    pub new: Id,
    /// Whether the refinery did it, and not a person.
    pub by_refinery: bool,
}

/// A ref of ours, or a branch, that the town has deleted.
#[derive(Debug, Clone)]
pub struct Deleted {
    pub repository: PathBuf,
    pub name: String,
    pub commit: Id,
}

/// A gate that was run.
#[derive(Debug, Clone)]
pub struct GateRun {
    pub repository: PathBuf,
    pub head: Id,
    pub tree: String,
    pub command: String,
    pub has_passed: bool,
    pub was_killed: bool,
    /// Whether its files were those of the commit.
    pub is_on_commit: bool,
}

/// Everything that git knows in this world.
#[derive(Debug, Default)]
pub struct GitWorld {
    pub objects: Objects,
    pub repositories: BTreeMap<PathBuf, Repository>,
    pub moves: Vec<Move>,
    pub deleted: Vec<Deleted>,
    pub gates: Vec<GateRun>,
    /// What could not be merged: what was checked out, and what came on top.
    pub conflicts: BTreeSet<(Id, Id)>,
    /// What people have edited in their checkouts and not committed.
    pub edits: BTreeMap<PathBuf, BTreeMap<String, String>>,
}

impl GitWorld {
    /// Whether this is a town with a git.
    pub fn is_used(&self) -> bool {
        !self.repositories.is_empty()
    }

    /// The branch that is checked out.
    pub fn branch(&self, path: &Path) -> Option<String> {
        match &self.find(path)?.checkouts.get(path)?.head {
            Head::Branch(branch) => Some(branch.clone()),
            Head::Detached(_) => None,
        }
    }

    /// The repository that a path is in, itself or as one of its worktrees.
    pub fn find(&self, path: &Path) -> Option<&Repository> {
        let own = self.repositories.get(path);
        own.or_else(|| self.repositories.values().find(|one| one.checkouts.contains_key(path)))
    }

    pub fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let has = |(root, one): &(&PathBuf, &Repository)| *root == path || one.checkouts.contains_key(path);
        self.repositories.iter().find(has).map(|(root, _)| root.clone())
    }

    /// Both parts, since most questions need them.
    pub fn at(&mut self, path: &Path) -> Result<(&mut Objects, &mut Repository), MergeError> {
        let root = self.root_of(path).ok_or_else(|| no_repository(path))?;
        let repository = self.repositories.get_mut(&root).ok_or_else(|| no_repository(path))?;
        Ok((&mut self.objects, repository))
    }

    /// The commit that a name stands for.
    pub fn resolve(&self, path: &Path, name: &str) -> Option<Id> {
        if self.objects.has(name) {
            return Some(name.to_owned());
        }
        let repository = self.find(path)?;
        if name == "HEAD" {
            return repository.head_of(path);
        }
        repository.refs.get(name).cloned()
    }

    pub fn commit_of(&self, path: &Path, name: &str) -> Result<Id, MergeError> {
        let none = || MergeError::NoCommit { repository: path.to_owned(), commit: name.to_owned() };
        self.resolve(path, name).ok_or_else(none)
    }

    /// Every ref of a repository and its origin that has a commit in its history.
    pub fn holders(&self, root: &Path, commit: &str) -> Vec<String> {
        let Some(repository) = self.repositories.get(root) else { return Vec::new() };
        let at_origin = repository.origin.iter().flat_map(|origin| origin.refs.iter());
        let heads = repository.checkouts.values().filter_map(|checkout| match &checkout.head {
            Head::Detached(id) if !checkout.is_bench => Some(id),
            _ => None,
        });
        let refs = repository.refs.iter().chain(at_origin).map(|(name, id)| (name.clone(), id));
        let all = refs.chain(heads.map(|id| ("a checkout".to_owned(), id)));
        all.filter(|(_, id)| self.objects.is_part_of(commit, id)).map(|(name, _)| name).collect()
    }
}

fn no_repository(path: &Path) -> MergeError {
    MergeError::Git { doing: "find the repository".to_owned(), said: format!("{} is none", path.display()) }
}

/// One repository.
#[derive(Debug, Default)]
pub struct Repository {
    /// By their whole names.
    pub refs: BTreeMap<String, Id>,
    /// What each branch was, the latest last, and whether a commit was made then.
    pub logs: BTreeMap<String, Vec<(Id, bool)>>,
    pub checkouts: BTreeMap<PathBuf, Checkout>,
    pub origin: Option<Origin>,
    /// Locks that a killed git has left, and since when.
    pub locks: BTreeMap<String, Duration>,
    pub requests: BTreeMap<String, Request>,
}

impl Repository {
    pub fn tip(&self, branch: &str) -> Option<&Id> {
        self.refs.get(&here(branch))
    }

    pub fn head_of(&self, path: &Path) -> Option<Id> {
        match &self.checkouts.get(path)?.head {
            Head::Branch(branch) => self.tip(branch).cloned(),
            Head::Detached(id) => Some(id.clone()),
        }
    }

    /// Moves a branch, and remembers where it was.
    pub fn set_branch(&mut self, branch: &str, to: &str, is_commit: bool) {
        self.refs.insert(here(branch), to.to_owned());
        self.logs.entry(branch.to_owned()).or_default().push((to.to_owned(), is_commit));
    }

    /// Where a branch is checked out.
    pub fn checkouts_of(&self, branch: &str) -> Vec<PathBuf> {
        let has = |checkout: &Checkout| checkout.rebases.as_deref() == Some(branch) || checkout.is_on(branch);
        self.checkouts.iter().filter(|(_, checkout)| has(checkout)).map(|(path, _)| path.clone()).collect()
    }
}

pub fn here(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

pub fn there(branch: &str) -> String {
    format!("refs/remotes/origin/{branch}")
}
