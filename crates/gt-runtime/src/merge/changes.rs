//! What one commit changes against another, path by path.

use std::path::Path;

use super::MergeError;
use crate::git::Git;
use crate::index::{Entry, SUBMODULE};

/// How git writes the mode of what is not there.
const NOTHING: &str = "000000";

/// A path that two commits do not agree about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub path: Vec<u8>,
    pub old: Option<Blob>,
    pub new: Option<Blob>,
}

impl Change {
    /// Where a submodule is at is written in the index only; its files are never touched.
    pub(super) fn is_submodule(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|blob| blob.mode == SUBMODULE)
    }
}

/// A file as git has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub mode: String,
    pub id: String,
}

impl Blob {
    fn of(mode: &str, id: &str) -> Option<Blob> {
        (mode != NOTHING).then(|| Blob { mode: mode.to_owned(), id: id.to_owned() })
    }

    /// As `update-index --index-info` reads it.
    pub(super) fn line(&self, path: &[u8]) -> Vec<u8> {
        Entry::line(&self.mode, &self.id, path)
    }
}

/// What `to` changes against `from`, or against nothing.
pub(super) fn changes_between(dir: &Path, from: Option<&str>, to: &str) -> Result<Vec<Change>, MergeError> {
    let from = match from {
        Some(from) => from.to_owned(),
        None => empty_tree(dir)?,
    };
    let asked = Git::at(dir).args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", &from, to]);
    let listed = asked.run_for_bytes("look at what a commit changes")?;
    let mut words = listed.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let (Some(entry), Some(path)) = (words.next().filter(|entry| !entry.is_empty()), words.next()) {
        let entry = String::from_utf8_lossy(entry);
        if let [old_mode, new_mode, old, new, ..] = entry.trim_start_matches(':').split(' ').collect::<Vec<_>>()[..] {
            changes.push(Change { path: path.to_vec(), old: Blob::of(old_mode, old), new: Blob::of(new_mode, new) });
        }
    }
    Ok(changes)
}

pub(super) fn empty_tree(dir: &Path) -> Result<String, MergeError> {
    Ok(Git::at(dir).arg("mktree").run("make an empty tree")?)
}
