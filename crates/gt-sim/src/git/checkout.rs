//! A place where files are checked out: a person's, a polecat's, or the refinery's workbench.

use std::path::{Path, PathBuf};

use gt_runtime::merge::{MergeError, Resumed};

use super::history::Changes;
use super::{GitWorld, Id, Tree, here};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    Branch(String),
    Detached(Id),
}

#[derive(Debug, Clone)]
pub struct Checkout {
    pub head: Head,
    pub index: Tree,
    pub files: Tree,
    /// The commit that it is being moved to.
    pub note: Option<Id>,
    /// The branch that somebody is rebasing in it.
    pub rebases: Option<String>,
    pub is_bench: bool,
    /// Whether a git that was killed left its lock here.
    pub is_locked: bool,
}

impl Checkout {
    pub fn new(head: Head, tree: &Tree) -> Checkout {
        let (index, files) = (tree.clone(), tree.clone());
        Checkout { head, index, files, note: None, rebases: None, is_bench: false, is_locked: false }
    }

    pub fn is_on(&self, branch: &str) -> bool {
        self.head == Head::Branch(branch.to_owned())
    }

    /// Files with uncommitted work among those that are about to change.
    fn in_the_way(&self, changes: &Changes) -> Vec<String> {
        let is_dirty = |path: &str, old: Option<&String>| self.files.get(path) != old || self.index.get(path) != old;
        let dirty = changes.iter().filter(|(path, (old, _))| is_dirty(path, old.as_ref()));
        dirty.map(|(path, _)| path.clone()).collect()
    }
}

/// How far git comes when it moves a checkout before it is killed: after so many files, after the index, or to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Files(usize),
    Index,
    All,
}

impl GitWorld {
    /// The one place where a branch is checked out.
    pub fn checkout_of(&self, root: &Path, branch: &str) -> Result<Option<PathBuf>, MergeError> {
        let Some(repository) = self.repositories.get(root) else { return Ok(None) };
        let places = repository.checkouts_of(branch);
        match &places[..] {
            [] => Ok(None),
            [only] if repository.checkouts[only].rebases.is_some() => Err(busy(only, "is in the middle of a rebase")),
            [only] => Ok(Some(only.clone())),
            [_, second, ..] => Err(busy(second, "so has another worktree")),
        }
    }

    pub fn can_land(&self, root: &Path, target: &str, commit: &str) -> Result<(), MergeError> {
        let old = self.resolve(root, &here(target));
        if old.as_ref().is_some_and(|old| !self.objects.is_part_of(old, commit)) {
            return Err(moved(target));
        }
        match self.checkout_of(root, target)? {
            Some(path) => self.refuse_overwriting(&path, old.as_deref(), commit),
            None => Ok(()),
        }
    }

    fn changes_from(&self, old: Option<&str>, commit: &str) -> Changes {
        let before = old.map(|old| self.objects.tree(old).clone()).unwrap_or_default();
        self.objects.changes(&before, self.objects.tree(commit))
    }

    pub fn refuse_overwriting(&self, path: &Path, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
        let Some(checkout) = self.find(path).and_then(|repository| repository.checkouts.get(path)) else {
            return Ok(());
        };
        let files = checkout.in_the_way(&self.changes_from(old, commit));
        if files.is_empty() { Ok(()) } else { Err(MergeError::InTheWay { path: path.to_owned(), files }) }
    }

    /// Moves a checkout with its branch, as far as git comes. What was written down before stays to be settled.
    pub fn forward(&mut self, path: &Path, target: &str, commit: &str, reach: Reach) -> Result<(), MergeError> {
        let old = self.resolve(path, &here(target));
        if old.as_ref().is_some_and(|old| !self.objects.is_part_of(old, commit)) {
            return Err(moved(target));
        }
        self.refuse_overwriting(path, old.as_deref(), commit)?;
        let changes = self.changes_from(old.as_deref(), commit);
        let (_, repository) = self.at(path)?;
        let Some(checkout) = repository.checkouts.get_mut(path) else { return Err(moved(target)) };
        let n_files = if let Reach::Files(n) = reach { n } else { changes.len() };
        for (file, (_, new)) in changes.iter().take(n_files) {
            put(&mut checkout.files, file, new.as_ref());
        }
        if matches!(reach, Reach::Files(_)) {
            return Err(half_way(path, n_files > 0));
        }
        for (file, (_, new)) in &changes {
            put(&mut checkout.index, file, new.as_ref());
        }
        if reach == Reach::Index {
            return Err(half_way(path, true));
        }
        repository.set_branch(target, commit, false);
        Ok(())
    }

    pub fn note(&mut self, path: &Path, commit: Option<&str>) -> Result<(), MergeError> {
        let (_, repository) = self.at(path)?;
        if let Some(checkout) = repository.checkouts.get_mut(path) {
            checkout.note = commit.map(str::to_owned);
        }
        Ok(())
    }

    /// Settles what a git that was killed has left; returns where the branch was moved to.
    pub fn resume(
        &mut self,
        root: &Path,
        target: &str,
        is_wanted: bool,
    ) -> Result<Option<(Resumed, Option<Id>)>, MergeError> {
        let path = match self.checkout_of(root, target) {
            Ok(None) | Err(MergeError::Checkout { .. }) => return Ok(None),
            found => found?.unwrap_or_default(),
        };
        let tip = self.resolve(root, &here(target));
        let Some(checkout) = self.repositories[root].checkouts.get(&path) else { return Ok(None) };
        let Some(commit) = checkout.note.clone() else { return Ok(None) };
        let left = self.leftover(&path, tip.as_deref(), &commit);
        if left.staged.is_empty() && left.files.is_empty() {
            self.note(&path, None)?;
            return Ok(None);
        }
        if checkout.is_locked || self.repositories[root].locks.contains_key(&here(target)) {
            return Err(busy(&path, "git is at work there, or was killed and left `index.lock`"));
        }
        let is_merged = [here(target), super::there(target)]
            .iter()
            .any(|name| self.resolve(root, name).is_some_and(|target| self.objects.is_part_of(&commit, &target)));
        if left.is_complete && (is_wanted || is_merged) {
            let (_, repository) = self.at(root)?;
            repository.set_branch(target, &commit, false);
            self.note(&path, None)?;
            return Ok(Some((Resumed::Finished, Some(commit))));
        }
        let before = tip.map(|tip| self.objects.tree(&tip).clone()).unwrap_or_default();
        let (_, repository) = self.at(root)?;
        if let Some(checkout) = repository.checkouts.get_mut(&path) {
            left.staged.iter().for_each(|file| put(&mut checkout.index, file, before.get(file)));
            left.files.iter().for_each(|file| put(&mut checkout.files, file, before.get(file)));
            checkout.note = None;
        }
        Ok(Some((Resumed::Undone, None)))
    }

    fn leftover(&self, path: &Path, tip: Option<&str>, commit: &str) -> Leftover {
        let base = tip.and_then(|tip| self.objects.merge_base(tip, commit));
        let open = self.changes_from(tip, commit);
        let mut changes = self.changes_from(base.as_deref(), commit);
        changes.retain(|path, _| base.as_deref() == tip || open.contains_key(path));
        let mut left = Leftover { is_complete: base.as_deref() == tip, staged: Vec::new(), files: Vec::new() };
        let Some(checkout) = self.find(path).and_then(|repository| repository.checkouts.get(path)) else {
            return left;
        };
        for (path, (old, new)) in changes {
            let (index, file) = (checkout.index.get(&path), checkout.files.get(&path));
            left.is_complete &= index == new.as_ref();
            if index != new.as_ref() && index != old.as_ref() {
                continue;
            }
            if file != old.as_ref() && (file == new.as_ref() || file.is_none()) {
                left.files.push(path.clone());
            }
            if index == new.as_ref() {
                left.staged.push(path);
            }
        }
        left
    }
}

struct Leftover {
    is_complete: bool,
    staged: Vec<String>,
    files: Vec<String>,
}

pub fn put(tree: &mut Tree, path: &str, content: Option<&String>) {
    match content {
        Some(content) => tree.insert(path.to_owned(), content.clone()),
        None => tree.remove(path),
    };
}

fn half_way(path: &Path, has_begun: bool) -> MergeError {
    let why = "git was killed by signal 9 while it moved it, which is tried again".to_owned();
    let path = path.to_owned();
    if has_begun { MergeError::HalfWay { path, why } } else { MergeError::Checkout { path, why } }
}

pub fn busy(path: &Path, why: &str) -> MergeError {
    MergeError::Checkout { path: path.to_owned(), why: why.to_owned() }
}

pub fn moved(target: &str) -> MergeError {
    MergeError::Moved { target: target.to_owned() }
}
