//! The origin of a repository: its branches, whether it answers, what it takes, and pull requests.

use std::collections::BTreeMap;
use std::path::Path;

use gt_runtime::merge::{Base, MergeError};

use super::checkout::moved;
use super::{GitWorld, Id, Move, here, there};

/// An origin takes no files that say this.
pub const SECRET: &str = "secret";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mood {
    #[default]
    Well,
    /// It does not answer.
    Away,
    /// It lets nobody push.
    Closed,
}

#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub refs: BTreeMap<String, Id>,
    pub mood: Mood,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    Open,
    Merged,
    Closed,
}

/// A pull request.
#[derive(Debug, Clone)]
pub struct Request {
    pub merge: String,
    pub branch: String,
    pub target: String,
    pub tip: Id,
    pub state: RequestState,
}

impl GitWorld {
    /// Learns where the origin has a branch.
    pub fn fetch(&mut self, root: &Path, branch: &str) -> Result<(), MergeError> {
        let (_, repository) = self.at(root)?;
        let Some(origin) = &repository.origin else { return Ok(()) };
        if origin.mood == Mood::Away {
            return Err(MergeError::Remote { said: "Could not resolve host".to_owned() });
        }
        if let Some(tip) = origin.refs.get(&here(branch)).cloned() {
            repository.refs.insert(there(branch), tip);
        }
        Ok(())
    }

    /// Where a target stands, by what is known here.
    pub fn base(&mut self, root: &Path, target: &str, has_remote: bool) -> Result<Base, MergeError> {
        let ours = self.resolve(root, &here(target));
        let theirs = if has_remote || ours.is_none() { self.resolve(root, &there(target)) } else { None };
        let commit = match (ours, theirs) {
            (Some(ours), Some(theirs)) if self.objects.is_part_of(&theirs, &ours) => ours,
            (Some(ours), Some(theirs)) if self.objects.is_part_of(&ours, &theirs) => theirs,
            (Some(here), Some(there)) => {
                let (repository, target) = (root.to_owned(), target.to_owned());
                return Err(MergeError::Parted { repository, target, here, there });
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => {
                return Err(MergeError::NoTarget { repository: root.to_owned(), target: target.to_owned() });
            }
        };
        Ok(Base { commit, has_remote })
    }

    /// Commits that no branch of the origin has, as far as is known here.
    pub fn unpublished(&self, root: &Path, commit: &str) -> Vec<Id> {
        let Some(repository) = self.repositories.get(root) else { return Vec::new() };
        let published = repository.refs.iter().filter(|(name, _)| name.starts_with("refs/remotes/origin/"));
        self.objects.beyond(commit, published.map(|(_, id)| id.as_str()))
    }

    pub fn brought(&self, root: &Path, target: &str, base: &str, commit: &str) -> Vec<Id> {
        let log = self.repositories.get(root).and_then(|repository| repository.logs.get(target));
        let had = log.into_iter().flatten().map(|(id, _)| id.as_str());
        self.objects.beyond(commit, had.chain([base]))
    }

    /// Moves a branch of the origin; with `force` also where that takes something off it.
    pub fn push(&mut self, root: &Path, commit: &str, branch: &str, force: bool, by: By) -> Result<(), MergeError> {
        let name = here(branch);
        let (objects, repository) = self.at(root)?;
        let Some(origin) = &mut repository.origin else {
            return Err(MergeError::Remote { said: "there is no origin".to_owned() });
        };
        match origin.mood {
            Mood::Away => return Err(MergeError::Remote { said: "Could not resolve host".to_owned() }),
            Mood::Closed => return Err(MergeError::Closed { said: "protected branch hook declined".to_owned() }),
            Mood::Well => {}
        }
        let old = origin.refs.get(&name).cloned();
        if old.as_ref().is_some_and(|old| !force && !objects.is_part_of(old, commit)) {
            return Err(moved(branch));
        }
        let is_known =
            |content: &String| origin.refs.values().any(|id| objects.tree(id).values().any(|one| one == content));
        let is_new_secret = |content: &String| content.starts_with(SECRET) && !is_known(content);
        if by == By::Refinery && objects.tree(commit).values().any(is_new_secret) {
            return Err(MergeError::Refused { said: "pre-receive hook declined\nno secrets here".to_owned() });
        }
        origin.refs.insert(name, commit.to_owned());
        let (repository, branch) = (root.to_owned(), branch.to_owned());
        let by_refinery = by == By::Refinery;
        self.moves.push(Move { repository, at_origin: true, branch, old, new: commit.to_owned(), by_refinery });
        Ok(())
    }
}

/// Who pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Refinery,
    Person,
}
