//! Worktrees of polecats and the refinery's workbench, and what is saved of them.

use std::path::Path;

use gt_runtime::merge::{Look, MergeError, Stacked};
use gt_runtime::worktree::WorktreeError;

use super::checkout::put;
use super::{Author, Checkout, GitWorld, Head, Id, Tree, here, there};

impl GitWorld {
    /// A worktree on this branch, which is made where it is not there.
    pub fn prepare(&mut self, root: &Path, path: &Path, branch: &str, base: &str) -> Result<(), WorktreeError> {
        let checkout = self.find(path).and_then(|repository| repository.checkouts.get(path));
        if checkout.is_some_and(|checkout| checkout.is_on(branch)) {
            return Ok(());
        }
        if self.is_dirty(path) {
            return Err(WorktreeError::Dirty { path: path.to_owned() });
        }
        let no_base = || WorktreeError::NoBase { repository: root.to_owned(), base: base.to_owned() };
        let names = [here(branch), here(base), there(base)];
        let tip = names.iter().find_map(|name| self.resolve(root, name)).ok_or_else(no_base)?;
        let tree = self.objects.tree(&tip).clone();
        let repository = self.repositories.get_mut(root).ok_or_else(no_base)?;
        if repository.tip(branch).is_none() {
            repository.set_branch(branch, &tip, false);
        }
        let checkout = Checkout::new(Head::Branch(branch.to_owned()), &tree);
        repository.checkouts.insert(path.to_owned(), checkout);
        Ok(())
    }

    pub fn is_dirty(&self, path: &Path) -> bool {
        let Some(checkout) = self.find(path).and_then(|repository| repository.checkouts.get(path)) else {
            return false;
        };
        let head = self.head_tree(path);
        checkout.files != head || checkout.index != head
    }

    pub fn head_tree(&self, path: &Path) -> Tree {
        self.resolve(path, "HEAD").map(|head| self.objects.tree(&head).clone()).unwrap_or_default()
    }

    pub fn look(&self, path: &Path, target: &str) -> Result<Look, MergeError> {
        let commit = self.commit_of(path, "HEAD")?;
        let known: Vec<Id> = [here(target), there(target)].iter().filter_map(|name| self.resolve(path, name)).collect();
        if known.is_empty() {
            return Err(MergeError::NoTarget { repository: path.to_owned(), target: target.to_owned() });
        }
        let n_ahead = self.objects.beyond(&commit, known.iter().map(String::as_str)).len();
        let unsaved = self.is_dirty(path).then_some("it has uncommitted changes");
        let checkout = self.find(path).and_then(|repository| repository.checkouts.get(path));
        let branch = checkout.and_then(|checkout| match &checkout.head {
            Head::Branch(branch) => Some(branch.clone()),
            Head::Detached(_) => None,
        });
        Ok(Look { branch, commit, n_ahead: n_ahead as u32, unsaved, lone_submodule: None })
    }

    /// Commits everything that lies in a worktree.
    pub fn commit_all(&mut self, path: &Path, title: &str, author: Author, at: i64) -> Option<Id> {
        let (parents, tree) = {
            let checkout = self.find(path)?.checkouts.get(path)?;
            (self.resolve(path, "HEAD").into_iter().collect::<Vec<_>>(), checkout.files.clone())
        };
        self.commit(path, &parents, tree, title, author, at)
    }

    /// Makes a commit of these files and these parents, and checks it out.
    pub fn commit(
        &mut self,
        path: &Path,
        parents: &[Id],
        tree: Tree,
        title: &str,
        author: Author,
        at: i64,
    ) -> Option<Id> {
        let (objects, repository) = self.at(path).ok()?;
        let id = objects.add(parents, tree.clone(), title, author, at);
        let checkout = repository.checkouts.get_mut(path)?;
        (checkout.index, checkout.files) = (tree.clone(), tree);
        match checkout.head.clone() {
            Head::Branch(branch) => repository.set_branch(&branch, &id, true),
            Head::Detached(_) => checkout.head = Head::Detached(id.clone()),
        }
        Some(id)
    }

    /// Writes a file in a worktree.
    pub fn write(&mut self, path: &Path, file: &str, content: Option<&str>) {
        if let Ok((_, repository)) = self.at(path)
            && let Some(checkout) = repository.checkouts.get_mut(path)
        {
            put(&mut checkout.files, file, content.map(str::to_owned).as_ref());
        }
    }

    /// Makes what is not committed a commit under a ref; `None` where there is nothing.
    pub fn salvage(&mut self, path: &Path, name: &str, at: i64) -> Option<Id> {
        let before = self.resolve(path, name);
        let files = self.find(path)?.checkouts.get(path)?.files.clone();
        if !self.is_dirty(path) {
            return before;
        }
        if before.as_ref().is_some_and(|before| *self.objects.tree(before) == files) {
            return before;
        }
        let parents: Vec<Id> = self.resolve(path, "HEAD").into_iter().chain(before).collect();
        let (objects, repository) = self.at(path).ok()?;
        let id = objects.add(&parents, files, "What was left uncommitted", Author::Agent, at);
        repository.refs.insert(name.to_owned(), id.clone());
        Some(id)
    }

    /// The workbench, made where it is not there.
    pub fn open_bench(&mut self, root: &Path, path: &Path) -> Result<(), MergeError> {
        let (_, repository) = self.at(root)?;
        let any = repository.refs.values().next().cloned().unwrap_or_default();
        repository.checkouts.entry(path.to_owned()).or_insert_with(|| {
            let mut bench = Checkout::new(Head::Detached(any), &Tree::new());
            bench.is_bench = true;
            bench
        });
        Ok(())
    }

    pub fn reset(&mut self, path: &Path, commit: &str) -> Result<(), MergeError> {
        let commit = self.commit_of(path, commit)?;
        let (objects, repository) = self.at(path)?;
        let tree = objects.tree(&commit).clone();
        if let Some(bench) = repository.checkouts.get_mut(path) {
            *bench = Checkout { is_bench: true, ..Checkout::new(Head::Detached(commit), &tree) };
        }
        Ok(())
    }

    /// Merges into what is checked out on the workbench.
    pub fn merge(&mut self, path: &Path, commit: &str, message: &str, at: i64) -> Result<Stacked, MergeError> {
        let (before, commit) = (self.commit_of(path, "HEAD")?, self.commit_of(path, commit)?);
        if self.objects.is_part_of(&commit, &before) {
            return Ok(Stacked::Done { tip: before });
        }
        match self.objects.merge_trees(&before, &commit) {
            None => {
                self.conflicts.insert((before, commit.clone()));
                Err(MergeError::Unrelated { commit })
            }
            Some(Err(files)) => {
                self.conflicts.insert((before, commit));
                Ok(Stacked::Conflict { files })
            }
            Some(Ok(tree)) => {
                let tip = self.commit(path, &[before, commit], tree, message, Author::Refinery, at);
                Ok(Stacked::Done { tip: tip.unwrap_or_default() })
            }
        }
    }

    /// The one commit that lands.
    pub fn seal(&mut self, base: &str, tip: &str, message: &str, at: i64) -> Result<Id, MergeError> {
        if !self.objects.is_part_of(base, tip) {
            return Err(MergeError::NotOnTop { commit: tip.to_owned(), on: base.to_owned() });
        }
        let parents = self.objects.get(tip).parents.clone();
        if tip == base || (parents.len() > 1 && parents.first().is_some_and(|first| first == base)) {
            return Ok(tip.to_owned());
        }
        let tree = self.objects.tree(tip).clone();
        Ok(self.objects.add(&[base.to_owned(), tip.to_owned()], tree, message, Author::Refinery, at))
    }
}
