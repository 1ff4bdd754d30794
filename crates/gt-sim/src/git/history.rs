//! Commits, and the questions that are asked of their history.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The name of a commit: 40 hexadecimal digits.
pub type Id = String;

/// Files with what they contain.
pub type Tree = BTreeMap<String, String>;

/// Whose work a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    Agent,
    Person,
    Refinery,
}

#[derive(Debug, Clone)]
pub struct Commit {
    pub parents: Vec<Id>,
    pub tree: Tree,
    pub title: String,
    pub author: Author,
    /// In seconds since 1970.
    pub at: i64,
    /// The later a commit was made, the greater.
    pub number: usize,
}

/// What a commit changes: per path what was there, and what is there now.
pub(super) type Changes = BTreeMap<String, (Option<String>, Option<String>)>;

#[derive(Debug, Default)]
pub struct Objects {
    commits: BTreeMap<Id, Commit>,
}

impl Objects {
    pub fn add(&mut self, parents: &[Id], tree: Tree, title: &str, author: Author, at: i64) -> Id {
        let number = self.commits.len();
        let mut hasher = DefaultHasher::new();
        (parents, &tree, title, author, number).hash(&mut hasher);
        let hash = hasher.finish();
        let id = format!("{hash:016x}{number:08x}{:016x}", hash.rotate_left(17));
        let commit = Commit { parents: parents.to_vec(), tree, title: title.to_owned(), author, at, number };
        self.commits.insert(id.clone(), commit);
        id
    }

    pub fn has(&self, id: &str) -> bool {
        self.commits.contains_key(id)
    }

    pub fn get(&self, id: &str) -> &Commit {
        self.commits.get(id).unwrap_or_else(|| panic!("there is no commit {id}"))
    }

    pub fn tree(&self, id: &str) -> &Tree {
        &self.get(id).tree
    }

    /// The commit and all before it.
    pub fn history(&self, id: &str) -> BTreeSet<Id> {
        self.history_of([id])
    }

    pub fn history_of<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> BTreeSet<Id> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<Id> = ids.into_iter().map(str::to_owned).collect();
        while let Some(id) = open.pop() {
            let Some(commit) = self.commits.get(&id) else { continue };
            if seen.insert(id) {
                open.extend(commit.parents.iter().cloned());
            }
        }
        seen
    }

    pub fn is_part_of(&self, commit: &str, of: &str) -> bool {
        // A commit is younger than all before it.
        let (Some(wanted), Some(_)) = (self.commits.get(commit), self.commits.get(of)) else { return false };
        let (mut seen, mut open) = (BTreeSet::new(), vec![of]);
        while let Some(id) = open.pop() {
            if id == commit {
                return true;
            }
            let younger = self.get(id).parents.iter().filter(|parent| self.get(parent).number >= wanted.number);
            open.extend(younger.map(String::as_str).filter(|parent| seen.insert(*parent)));
        }
        false
    }

    /// The youngest commit that both have.
    pub fn merge_base(&self, one: &str, other: &str) -> Option<Id> {
        let shared = self.history(one).intersection(&self.history(other)).cloned().collect::<Vec<_>>();
        shared.into_iter().max_by_key(|id| self.get(id).number)
    }

    /// Those that `of` has and none of the others.
    pub fn beyond<'a>(&self, of: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<Id> {
        let known = self.history_of(known);
        let mut beyond: Vec<Id> = self.history(of).difference(&known).cloned().collect();
        beyond.sort_by_key(|id| std::cmp::Reverse(self.get(id).number));
        beyond
    }

    pub fn changes(&self, from: &Tree, to: &Tree) -> Changes {
        let paths: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let differ = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
        differ.map(|path| (path.clone(), (from.get(path).cloned(), to.get(path).cloned()))).collect()
    }

    /// What a commit with one parent, or none, changes.
    fn patch(&self, id: &str) -> Changes {
        let commit = self.get(id);
        let before = commit.parents.first().map(|parent| self.tree(parent).clone()).unwrap_or_default();
        self.changes(&before, &commit.tree)
    }

    /// Merges `theirs` into `ours`; where both have changed a path differently, those paths.
    pub fn merge_trees(&self, ours: &str, theirs: &str) -> Option<Result<Tree, Vec<String>>> {
        let base = self.merge_base(ours, theirs)?;
        let (base, ours, theirs) = (self.tree(&base), self.tree(ours), self.tree(theirs));
        let mine = self.changes(base, ours);
        let (mut merged, mut conflicts) = (ours.clone(), Vec::new());
        for (path, (old, new)) in self.changes(base, theirs) {
            if mine.get(&path).is_some_and(|(_, own)| *own != new) {
                conflicts.push(path);
                continue;
            }
            debug_assert!(mine.contains_key(&path) || ours.get(&path) == old.as_ref());
            match new {
                Some(content) => merged.insert(path, content),
                None => merged.remove(&path),
            };
        }
        Some(if conflicts.is_empty() { Ok(merged) } else { Err(conflicts) })
    }

    /// Whether `of` has the commits of `commit`, or for each one that makes the same changes.
    pub fn has_work_of(&self, commit: &str, of: &str) -> bool {
        if self.is_part_of(commit, of) {
            return true;
        }
        let is_merge = |id: &Id| self.get(id).parents.len() > 1;
        let missing: Vec<Id> = self.beyond(commit, [of]).into_iter().filter(|id| !is_merge(id)).collect();
        let there = self.beyond(of, [commit]);
        let patches: Vec<Changes> = there.iter().filter(|id| !is_merge(id)).map(|id| self.patch(id)).collect();
        let is_there = |id: &Id| {
            let patch = self.patch(id);
            patch.is_empty() || patches.contains(&patch)
        };
        !missing.is_empty() && missing.iter().all(is_there)
    }

    /// The name of the files of a commit.
    pub fn tree_id(&self, id: &str) -> String {
        tree_id(self.tree(id))
    }
}

pub fn tree_id(tree: &Tree) -> String {
    let mut hasher = DefaultHasher::new();
    tree.hash(&mut hasher);
    format!("{:040x}", hasher.finish())
}
