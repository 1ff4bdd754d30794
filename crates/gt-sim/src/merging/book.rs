//! What the judge of merging remembers: which commits targets have had, what was handed over, and what gates said.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gt_core::event::Event;
use serde_json::Value;

use crate::git::{GateRun, GitWorld, Id, Move, tree_id};

#[derive(Debug, Default)]
pub(super) struct Book {
    /// The last event that was read.
    pub(super) seq: i64,
    /// Where targets have stood, here or at an origin.
    pub(super) stood: BTreeSet<Id>,
    /// What has been in a target.
    pub(super) contained: BTreeSet<Id>,
    /// What an origin has had.
    pub(super) published: BTreeMap<PathBuf, BTreeSet<Id>>,
    pub(super) gates: Vec<GateRun>,
    /// What was handed over, by merge: its repository and its commit, the latest last.
    pub(super) handed: BTreeMap<String, (String, Vec<Id>)>,
    /// Merges that have landed.
    pub(super) landed: BTreeSet<String>,
    /// Merges that a person has taken out of the line, or whose bead was closed.
    pub(super) dropped: BTreeMap<String, String>,
    /// Beads that were ever put in line.
    pub(super) scheduled: BTreeSet<String>,
}

pub(super) fn text<'a>(event: &'a Event, key: &str) -> &'a str {
    event.data.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Book {
    pub(super) fn of(git: &GitWorld) -> Book {
        let mut book = Book::default();
        for (root, repository) in &git.repositories {
            for tip in repository.refs.values() {
                book.stood.insert(tip.clone());
                book.contained.extend(git.objects.history(tip));
            }
            let origin = repository.origin.iter().flat_map(|origin| origin.refs.values());
            let published = git.objects.history_of(origin.map(String::as_str));
            book.published.insert(root.clone(), published);
        }
        book
    }

    /// A branch was moved, and all was well with that.
    pub(super) fn note(&mut self, git: &GitWorld, moved: &Move, is_target: bool) {
        let history = git.objects.history(&moved.new);
        if moved.at_origin {
            self.published.entry(moved.repository.clone()).or_default().extend(history.iter().cloned());
        }
        if is_target {
            self.stood.insert(moved.new.clone());
            self.contained.extend(history);
        }
    }

    /// Whether these gates have all passed on the files of a commit.
    pub(super) fn has_passed(&self, root: &Path, tree: &str, gates: &[&str]) -> bool {
        let is_it = |run: &&GateRun| run.has_passed && run.repository == root && run.tree == tree;
        gates.iter().all(|gate| self.gates.iter().filter(is_it).any(|run| run.command == *gate))
    }

    /// Whether a gate failed on the files of a target with nothing but this on top, and the target itself passes.
    pub(super) fn failed_alone(&self, git: &GitWorld, root: &Path, tip: &str, gates: &[&str]) -> bool {
        let files_on = |base: &Id| match git.objects.merge_trees(base, tip) {
            Some(Ok(tree)) => Some(tree_id(&tree)),
            _ => None,
        };
        let is_fine = |base: &&Id| self.has_passed(root, &git.objects.tree_id(base), gates);
        let alone: BTreeSet<String> = self.stood.iter().filter(is_fine).filter_map(files_on).collect();
        let is_alone = |run: &&GateRun| run.repository == root && alone.contains(&run.tree);
        let runs: Vec<&GateRun> = self.gates.iter().filter(is_alone).collect();
        // Whoever killed it once may have had other reasons.
        let n_killed = runs.iter().filter(|run| run.was_killed).count();
        n_killed > 1 || runs.iter().any(|run| !run.has_passed && !run.was_killed)
    }

    /// Takes in what happened next.
    pub(super) fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        let merge = text(event, "merge").to_owned();
        match event.kind.as_str() {
            "merge.queued" => {
                let handed = self.handed.entry(merge.clone()).or_default();
                text(event, "rig").clone_into(&mut handed.0);
                handed.1.push(text(event, "commit").to_owned());
                self.dropped.remove(&merge);
            }
            "context.scheduled" => self.scheduled.extend(event.bead.clone()),
            "merge.landed" => drop(self.landed.insert(merge)),
            "merge.dropped" => drop(self.dropped.insert(merge, text(event, "reason").to_owned())),
            _ => {}
        }
    }
}
