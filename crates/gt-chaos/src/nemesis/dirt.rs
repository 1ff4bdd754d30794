//! A person's uncommitted files in the checkout: what is written where, and whether it is still there byte for byte.
//!
//! The paths are those that merges touch: files that merges change, files that agents are about to hand over, and files
//! where merges need a directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};

use super::Nemesis;
use super::person::Person;
use crate::evidence::{Script, lines};
use crate::town::RIGS;

/// A file with uncommitted work, which its person takes away again.
#[derive(Debug)]
pub(super) struct Dirt {
    person: Person,
    path: String,
    bytes: Vec<u8>,
    /// What the index has of it, if it is staged.
    staged: Option<String>,
    /// Whether it was compared before it was taken away.
    is_compared: bool,
}

impl Nemesis {
    /// Writes a file, and says where.
    pub(super) fn dirty_checkout(&mut self) -> Option<Dirt> {
        let person = self.person(RIGS[0]);
        self.n_files += 1;
        let line = format!("file {} of a person, {:016x}\n", self.n_files, self.rng.u64(..));
        let bytes = line.repeat(self.rng.usize(1..400)).into_bytes();
        let (is_edit, is_staged, is_directory) = (self.rng.bool(), self.rng.bool(), self.rng.bool());
        let choice = self.rng.usize(..1 << 20);
        if is_edit && let Some(path) = tracked_file(&person, choice) {
            return Dirt::edit(person, path, bytes, is_staged);
        }
        let (bead, run) = self.bead_at_work()?;
        let directory = format!("work/{}", bead.get(bead.len().checked_sub(2)?..)?);
        // A plain file of that name is ignored, and in the way of every file in the directory.
        let is_directory = is_directory && !person.file(&directory).exists();
        let path = if is_directory { directory } else { format!("{directory}/{bead}.{run}") };
        Dirt::new(person, path, bytes, is_staged && !is_directory)
    }

    /// The bead and the run of an agent that works for the target that is checked out, or of the last that did.
    fn bead_at_work(&self) -> Option<(String, String)> {
        let lines = lines(&self.targets.town.evidence, Script::Agent);
        let alive: BTreeSet<String> = self.targets.watch.alive(Script::Agent).into_iter().map(|(_, run)| run).collect();
        let mut starts = lines.iter().rev().filter(|line| line.what == "start" && line.rest == RIGS[0].name);
        let last = starts.clone().next()?;
        let line = starts.find(|line| alive.contains(&line.run)).unwrap_or(last);
        Some((line.subject.clone(), line.run.clone()))
    }
}

/// The file that merges change again and again, or any that they have brought.
fn tracked_file(person: &Person, choice: usize) -> Option<String> {
    let listed = person.git(&["ls-files", "--", "shared.txt", "work"])?;
    let files: Vec<&str> = listed.lines().collect();
    let shared = files.iter().find(|file| **file == "shared.txt").filter(|_| choice.is_multiple_of(2));
    let any = || files.get((choice / 2).checked_rem(files.len())?);
    shared.or_else(any).map(|file| (*file).to_owned())
}

impl Dirt {
    /// Changes a tracked file, unless it has uncommitted work already.
    fn edit(person: Person, path: String, bytes: Vec<u8>, is_staged: bool) -> Option<Dirt> {
        person.git(&["diff", "--quiet", "HEAD", "--", &path])?;
        let file = File::create(person.file(&path)).ok()?;
        Dirt { person, path, bytes, staged: None, is_compared: false }.written(file, is_staged)
    }

    /// Makes a file, unless something is there already.
    fn new(person: Person, path: String, bytes: Vec<u8>, is_staged: bool) -> Option<Dirt> {
        let full = person.file(&path);
        fs::create_dir_all(full.parent()?).ok()?;
        let file = File::create_new(full).ok()?;
        Dirt { person, path, bytes, staged: None, is_compared: false }.written(file, is_staged)
    }

    /// What a commit that failed has left: nothing of it is to be kept.
    pub(super) fn leftover(person: Person, path: String) -> Dirt {
        Dirt { person, path, bytes: Vec::new(), staged: None, is_compared: true }
    }

    fn written(mut self, mut file: File, is_staged: bool) -> Option<Dirt> {
        if file.write_all(&self.bytes).is_err() {
            // A full disk takes a part of it at the most.
            self.bytes = fs::read(self.person.file(&self.path)).ok()?;
        }
        if is_staged && self.person.git(&["add", "--", &self.path]).is_some() {
            self.staged = self.person.git(&["rev-parse", &format!(":{}", self.path)]);
        }
        Some(self)
    }

    pub(super) fn describe(&self) -> String {
        let how = if self.staged.is_some() { "staged" } else { "not staged" };
        format!("{}, {} bytes, {how}", self.path, self.bytes.len())
    }

    /// What happened to it meanwhile, if it is not as it was written.
    pub(super) fn damage(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_compared, true) {
            return None;
        }
        match fs::read(self.person.file(&self.path)) {
            Ok(bytes) if bytes == self.bytes => {}
            Ok(bytes) => return Some(format!("{} was overwritten: {}", self.describe(), shown(&bytes))),
            Err(error) => return Some(format!("{} is gone: {error}", self.describe())),
        }
        let staged = self.staged.as_ref()?;
        let entry = self.person.git(&["ls-files", "--stage", "--", &self.path])?;
        let is_staged = entry.split_whitespace().any(|word| word == staged);
        (!is_staged).then(|| format!("{}: it was staged as {staged}, and the index has `{entry}`", self.describe()))
    }

    /// Leaves the path as it is in the last commit; says whether that could be done.
    pub(super) fn is_put_away(&self) -> bool {
        let is_tracked = self.person.git(&["ls-files", "--error-unmatch", "--", &self.path]).is_some();
        let is_committed = || self.person.git(&["cat-file", "-e", &format!("HEAD:{}", self.path)]).is_some();
        if is_tracked || is_committed() {
            let restore = ["restore", "--quiet", "--source=HEAD", "--staged", "--worktree", "--", &self.path];
            return self.person.git(&restore).is_some();
        }
        match fs::remove_file(self.person.file(&self.path)) {
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(()) => true,
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("{:?}", text.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests;
