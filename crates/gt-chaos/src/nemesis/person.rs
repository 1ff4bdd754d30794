//! A person who works on the target branch too: commits in the checkout, or moves a branch that is not checked out.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dirt::Dirt;
use super::{Nemesis, Remedy};
use crate::command::run;
use crate::town::{Rig, Shell};

/// A commit that git acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    pub(crate) rig: Rig,
    pub(crate) commit: String,
}

/// Somebody at work in a rig.
#[derive(Debug, Clone)]
pub(super) struct Person(pub(super) Shell);

impl Person {
    /// What git printed, if it succeeded.
    pub(super) fn git(&self, words: &[&str]) -> Option<String> {
        let mut git = self.0.command(Path::new("git"));
        run(git.args(words), None).success().map(|printed| printed.trim().to_owned())
    }

    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.0.dir.join(path)
    }
}

impl Nemesis {
    pub(super) fn person(&self, rig: Rig) -> Person {
        let town = &self.targets.town;
        Person(town.shell(town.rig(rig)))
    }

    /// A person's commit may fail for a lock or a race, as it may for people; then it counts for nothing.
    pub(super) fn commit_as_person(&mut self, rig: Rig) -> Option<String> {
        self.n_commits += 1;
        let name = format!("person-{}", self.n_commits);
        let commit = if rig.is_checked_out {
            self.commit_in_checkout(self.person(rig), &name)
        } else {
            move_branch(&self.person(rig), &name)
        };
        let commit = commit?;
        self.note(|deeds| deeds.commits.push(Committed { rig, commit: commit.clone() }));
        Some(format!("{} gets {commit}", rig.name))
    }

    fn commit_in_checkout(&mut self, person: Person, name: &str) -> Option<String> {
        let (path, message) = (format!("person/{name}"), format!("--message={name}"));
        fs::create_dir_all(person.file("person")).ok()?;
        let made = fs::write(person.file(&path), name)
            .ok()
            .and_then(|()| person.git(&["add", &path]))
            .and_then(|_| person.git(&["commit", "--quiet", &message, "--only", &path]));
        if made.is_none() {
            // The person puts it off.
            self.later(Duration::ZERO, Remedy::PutAway(Dirt::leftover(person, path)));
            return None;
        }
        person.git(&["log", "-1", "--format=%H", "--", &path])
    }
}

fn move_branch(person: &Person, name: &str) -> Option<String> {
    let before = person.git(&["rev-parse", "refs/heads/main"])?;
    let tree = person.git(&["rev-parse", "refs/heads/main^{tree}"])?;
    let commit = person.git(&["commit-tree", &tree, "-p", &before, "-m", name])?;
    person.git(&["update-ref", "refs/heads/main", &commit, &before])?;
    Some(commit)
}
