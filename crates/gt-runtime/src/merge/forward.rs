//! Moving a checkout forward with its files, and settling what is left of that when git is killed half-way.
//!
//! Git writes files, then the index, then moves the branch. Before it begins, the commit is noted in a file beside the index, and the
//! files it changes are seen to have no uncommitted work. So as long as that note is there, a file or an entry of the index
//! that is as in the noted commit is ours, and so is what git had begun to write before it ended; everything else is a person's work
//! and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::changes::{Blob, Change, changes_between, empty_tree};
use super::checkout::{busy, checkout_of, is_file, refuse_locked, refuse_obstacles, strangers, top};
use super::history::merge_base;
use super::landing::{is_merged, swap};
use super::{MergeError, find_commit, git_dir, here, io_error, moved};
use crate::git::{Git, complaint, reason};
use crate::index::{self, differing, terminated};
use crate::whole_file::Draft;

/// Beside the index of a checkout that is being moved: the commit that it is moved to.
pub(super) const NOTE: &str = "gt-landing";
/// A git that is killed while it writes a file has written whole pages of it.
const PAGE: usize = 4096;

/// What was done about a move that was left half-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    Finished,
    Undone,
}

/// Moves a checkout and its branch, if no uncommitted work would be lost.
pub(super) fn forward(path: &Path, target: &str, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    refuse_obstacles(path, target, old, commit)?;
    unmark_unchanged(path, old, commit)?;
    let note = Note::of(path)?;
    note.write(commit)?;
    // Git overwrites ignored files when it is not told otherwise, and somebody's settings are among them.
    let ignored =
        if gt_core::defect!("ignored-file-overwritten") { "--overwrite-ignore" } else { "--no-overwrite-ignore" };
    let plainly = ["merge", "--quiet", "--ff-only", ignored, "--no-autostash", "--no-stat", "--no-squash"];
    let asked = Git::without_hooks_at(path).args(["-c", "submodule.recurse=false"]).args(plainly);
    let merged = asked.args(["--no-verify-signatures", commit]).output()?;
    note.mark_ended();
    let now = find_commit(path, &here(target))?;
    if now.as_deref() == Some(commit) {
        return note.remove();
    }
    if now.as_deref() != old || merged.status.success() {
        return Err(moved(target));
    }
    if !Leftover::of(path, commit, &note)?.is_nothing() {
        return Err(MergeError::HalfWay { path: path.to_owned(), why: obstacle(&merged) });
    }
    note.remove()?;
    let files = overwritten(&String::from_utf8_lossy(&merged.stderr));
    if files.is_empty() {
        return Err(busy(path, &obstacle(&merged)));
    }
    Err(MergeError::InTheWay { path: path.to_owned(), files })
}

/// Git refuses to change a file that is marked `assume-unchanged` or `skip-worktree` and was ever written, even with what it had. Those
/// that are about to be changed are seen to be as committed, and git takes their marks away anyway.
fn unmark_unchanged(path: &Path, old: Option<&str>, commit: &str) -> Result<(), MergeError> {
    let root = top(path)?;
    let touched: BTreeSet<Vec<u8>> =
        changes_between(path, old, commit)?.into_iter().map(|change| change.path).collect();
    let entries = index::entries(Git::at(path))?.into_iter();
    let marked: Vec<_> = entries.filter(|entry| touched.contains(&entry.path) && entry.is_overlooked(&root)).collect();
    if marked.is_empty() {
        return Ok(());
    }
    let git = || Git::without_hooks_at(&root);
    index::unmark(git, marked.into_iter().map(|entry| entry.path))?;
    // Others may differ.
    git().args(["update-index", "-q", "--refresh"]).answers("look for changes")?;
    Ok(())
}

/// Settles what a move of the target's checkout left behind: it is finished if only the branch has to be moved and the commit
/// `is_wanted` or part of the target anyway, else undone.
pub fn resume(repository: &Path, target: &str, is_wanted: bool) -> Result<Option<Resumed>, MergeError> {
    let path = match checkout_of(repository, target) {
        // Nothing can be landed there either, and who tries is told why.
        Ok(None) | Err(MergeError::Checkout { .. }) => return Ok(None),
        found => found?.unwrap_or_default(),
    };
    let note = Note::of(&path)?;
    let Some(commit) = note.read()? else { return Ok(None) };
    if find_commit(&path, &commit)?.is_none() {
        note.remove()?;
        return Ok(None);
    }
    let left = Leftover::of(&path, &commit, &note)?;
    if left.is_nothing() {
        note.remove()?;
        return Ok(None);
    }
    refuse_locked(&path, target)?;
    let resumed = if left.is_complete && (is_wanted || is_merged(&path, &commit, target)?) {
        swap(&path, target, left.tip.as_deref(), &commit)?;
        Resumed::Finished
    } else {
        note.mark_begun();
        let undone = left.undo();
        note.mark_ended();
        undone?;
        Resumed::Undone
    };
    note.remove()?;
    Ok(Some(resumed))
}

/// Why git does not move a checkout.
fn obstacle(merged: &Output) -> String {
    match merged.status.signal() {
        Some(signal) => format!("git was killed by signal {signal} while it moved it, which is tried again"),
        None => format!("git does not move it: {}", reason(merged)),
    }
}

/// The files that git says it would have overwritten: it lists them below a line that says so, each after a tab.
fn overwritten(said: &str) -> Vec<String> {
    let is_list =
        |line: &str| ["would be overwritten", "would be removed", "would lose"].iter().any(|it| line.contains(it));
    let (mut files, mut is_listed) = (BTreeSet::new(), false);
    for line in said.lines() {
        match line.strip_prefix('\t') {
            Some(file) if is_listed => {
                files.insert(file.to_owned());
            }
            _ => is_listed = is_list(line),
        }
    }
    files.into_iter().collect()
}

/// The file that says which commit a checkout is being moved to. It is made read-only when git has ended, which no full disk prevents.
struct Note(PathBuf);

impl Note {
    fn of(path: &Path) -> Result<Note, MergeError> {
        Ok(Note(git_dir(path)?.join(NOTE)))
    }

    fn read(&self) -> Result<Option<String>, MergeError> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("read", &self.0)(error)),
        }
    }

    fn write(&self, commit: &str) -> Result<(), MergeError> {
        let draft = Draft::of(&self.0).and_then(|mut draft| {
            draft.file.write_all(commit.as_bytes())?;
            Ok(draft)
        });
        draft.and_then(Draft::publish).map_err(io_error("write", &self.0))
    }

    fn mark_begun(&self) {
        self.allow(0o600);
    }

    fn mark_ended(&self) {
        self.allow(0o400);
    }

    /// Where that fails, nobody knows when git ended, as after a crash.
    fn allow(&self, mode: u32) {
        fs::set_permissions(&self.0, fs::Permissions::from_mode(mode)).unwrap_or_default();
    }

    /// When git ended, if that is known: what is written later is not its.
    fn ended_at(&self) -> Option<[i64; 2]> {
        let found = fs::symlink_metadata(&self.0).ok().filter(|found| found.permissions().readonly())?;
        Some([found.ctime(), found.ctime_nsec()])
    }

    fn remove(&self) -> Result<(), MergeError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", &self.0)(error)),
            _ => Ok(()),
        }
    }
}

/// Whose a file or an entry of the index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// As it was before.
    Old,
    /// As in the commit that the checkout is being moved to.
    New,
    /// Missing, or the first pages of either.
    Part,
    /// Somebody has written it.
    Theirs,
    /// A sparse checkout leaves it out.
    Sparse,
}

/// What a move to a commit has left in a checkout.
struct Leftover<'a> {
    path: &'a Path,
    root: PathBuf,
    tip: Option<String>,
    /// Whether only the branch has to be moved.
    is_complete: bool,
    /// Put back in the index.
    staged: Vec<Change>,
    /// Those of them that a sparse checkout leaves out.
    sparse: Vec<Change>,
    /// Put back on disk, if they are still as they were seen.
    files: Vec<(Change, Option<Seen>)>,
    /// Paths that are marked `skip-worktree`.
    marked: BTreeSet<Vec<u8>>,
}

impl<'a> Leftover<'a> {
    fn of(path: &'a Path, commit: &str, note: &Note) -> Result<Leftover<'a>, MergeError> {
        let ended_at = note.ended_at();
        let (tip, root) = (find_commit(path, "HEAD")?, top(path)?);
        let base = match &tip {
            Some(tip) => merge_base(path, tip, commit)?,
            None => None,
        };
        let mut changes = changes_between(path, base.as_deref(), commit)?;
        if base != tip {
            // What somebody has committed meanwhile as it is in the commit is not in question any more.
            let open = changes_between(path, tip.as_deref(), commit)?;
            let open: BTreeSet<Vec<u8>> = open.into_iter().map(|change| change.path).collect();
            changes.retain(|change| open.contains(&change.path));
        }
        let (index, marked) = in_index(path, &changes)?;
        // Before they are looked into: what is written later is seen to be.
        let seen: Vec<Option<Seen>> = changes.iter().map(|change| Seen::at(&place(&root, &change.path))).collect();
        let disk = on_disk(path, &root, &changes, &marked)?;
        let is_complete = base == tip && index.iter().all(|found| *found == Found::New);
        let (mut staged, mut sparse, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for ((change, seen), (index, disk)) in changes.into_iter().zip(seen).zip(index.into_iter().zip(disk)) {
            if index == Found::Theirs {
                continue;
            }
            if index == Found::New {
                staged.push(change.clone());
            }
            let is_later = |seen: Seen| ended_at.is_some_and(|ended_at| seen.times[2..] > ended_at[..]);
            match disk {
                Found::Part if seen.is_some_and(is_later) => {}
                Found::Sparse if index == Found::New => sparse.push(change),
                Found::New | Found::Part => files.push((change, seen)),
                _ => {}
            }
        }
        let mut left = Leftover { path, root, tip, is_complete, staged, sparse, files, marked };
        left.spare_strangers();
        Ok(left)
    }

    /// What lies where a file is to be put back and is not ours stays, and that file is not put back.
    fn spare_strangers(&mut self) {
        loop {
            let ours: BTreeSet<Vec<u8>> = self.files.iter().map(|(change, _)| change.path.clone()).collect();
            let ours: BTreeSet<&[u8]> = ours.iter().map(Vec::as_slice).collect();
            let n_before = ours.len();
            self.files.retain(|(change, _)| strangers(&self.root, &change.path, &ours).is_empty());
            if self.files.len() == n_before {
                return;
            }
        }
    }

    /// Whether git has changed nothing, or everything that it changed is somebody's by now.
    fn is_nothing(&self) -> bool {
        self.staged.is_empty() && self.files.is_empty()
    }

    /// Puts back what git had changed. Files are removed only if nobody has written them since they were looked at, and then written only
    /// where nothing is.
    fn undo(&self) -> Result<(), MergeError> {
        self.restore_index()?;
        for (change, seen) in &self.files {
            let file = place(&self.root, &change.path);
            if seen.is_some() && Seen::at(&file) == *seen {
                fs::remove_file(&file).map_err(io_error("remove", &file))?;
            }
        }
        let gone =
            self.files.iter().map(|(change, _)| change).chain(&self.staged).filter(|change| change.old.is_none());
        gone.for_each(|change| remove_empty_dirs(&self.root, &change.path));
        let missing = self.missing();
        let marked: Vec<Vec<u8>> = missing.iter().filter(|path| self.marked.contains(*path)).cloned().collect();
        self.mark("--no-skip-worktree", &marked)?;
        let write = ["checkout-index", "--quiet", "--index", "-z", "--stdin"];
        let write = Git::without_hooks_at(&self.root).args(write).input(&terminated(missing))?.output()?;
        self.mark("--skip-worktree", &marked)?;
        // It also complains of files that somebody has written meanwhile.
        if !write.status.success() && !self.missing().is_empty() {
            return Err(complaint(self.path, "undo what was begun", &write).into());
        }
        Ok(())
    }

    /// Files that are to be put back and that nobody else has written.
    fn missing(&self) -> Vec<Vec<u8>> {
        let back = self.files.iter().map(|(change, _)| change).filter(|change| change.old.is_some());
        let missing = back.filter(|change| !is_file(&place(&self.root, &change.path)));
        missing.map(|change| change.path.clone()).collect()
    }

    fn mark(&self, how: &str, paths: &[Vec<u8>]) -> Result<(), MergeError> {
        let list = terminated(paths.to_vec());
        let asked = Git::without_hooks_at(&self.root).args(["update-index", how, "-z", "--stdin"]).input(&list)?;
        asked.run("undo what was begun")?;
        Ok(())
    }

    fn restore_index(&self) -> Result<(), MergeError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let source = match &self.tip {
            Some(tip) => tip.clone(),
            None => empty_tree(self.path)?,
        };
        let paths = terminated(self.staged.iter().map(|change| change.path.clone()));
        let asked = Git::without_hooks_at(self.path).args(["-c", "submodule.recurse=false", "--literal-pathspecs"]);
        let asked = asked.args(["restore", "--quiet", &format!("--source={source}"), "--staged"]);
        let asked = asked.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).input(&paths)?;
        asked.run("undo what was begun")?;
        let left_out = self.sparse.iter().filter(|change| change.old.is_some());
        self.mark("--skip-worktree", &left_out.map(|change| change.path.clone()).collect::<Vec<_>>())
    }
}

/// A file as it was found: when it is written, one of these changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    inode: u64,
    size: u64,
    times: [i64; 4],
}

impl Seen {
    /// `None` where no file is.
    fn at(file: &Path) -> Option<Seen> {
        let found = fs::symlink_metadata(file).ok().filter(|found| !found.is_dir())?;
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Some(Seen { inode: found.ino(), size: found.size(), times })
    }
}

fn place(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// Removes the directories that were made for a file and are empty.
fn remove_empty_dirs(root: &Path, path: &[u8]) {
    let place = place(root, path);
    let made = place.ancestors().take_while(|dir| *dir != root);
    for dir in made {
        // One that is not empty stays, and so does what is no directory.
        fs::remove_dir(dir).ok();
    }
}

/// What the index has of each change, and which paths are marked `skip-worktree`, as those are that a sparse checkout leaves out.
fn in_index(path: &Path, changes: &[Change]) -> Result<(Vec<Found>, BTreeSet<Vec<u8>>), MergeError> {
    let (mut entries, mut marked) = (BTreeMap::new(), BTreeSet::new());
    for entry in index::entries(Git::at(path))? {
        if entry.is_skipped {
            marked.insert(entry.path.clone());
        }
        // One in conflict is neither side's.
        let blob = (!entry.is_in_conflict).then_some(Blob { mode: entry.mode, id: entry.id });
        entries.insert(entry.path, blob);
    }
    let found = |change: &Change| match entries.get(&change.path) {
        Some(None) => Found::Theirs,
        entry => match entry.and_then(Option::as_ref) {
            entry if entry == change.new.as_ref() => Found::New,
            entry if entry == change.old.as_ref() => Found::Old,
            _ => Found::Theirs,
        },
    };
    Ok((changes.iter().map(found).collect(), marked))
}

/// What is on disk of each change.
fn on_disk(path: &Path, root: &Path, changes: &[Change], marked: &BTreeSet<Vec<u8>>) -> Result<Vec<Found>, MergeError> {
    let not_old = not_as(path, changes, |change| change.old.as_ref())?;
    let not_new = not_as(path, changes, |change| change.new.as_ref())?;
    let mut all = Vec::new();
    for change in changes {
        let file = place(root, &change.path);
        let is_there = is_file(&file);
        let is_as = |blob: Option<&Blob>, differing: &BTreeSet<Vec<u8>>| match blob {
            Some(_) => !differing.contains(&change.path),
            None => !is_there,
        };
        all.push(match change {
            change if marked.contains(&change.path) && !is_there => Found::Sparse,
            // Git leaves its files alone, so they say nothing.
            change if change.is_submodule() => Found::Old,
            change if is_as(change.old.as_ref(), &not_old) => Found::Old,
            change if is_as(change.new.as_ref(), &not_new) => Found::New,
            change if !is_there || is_part(path, &file, change)? => Found::Part,
            _ => Found::Theirs,
        });
    }
    Ok(all)
}

/// Whether git was killed while it wrote a file: it holds whole pages, and nothing that the file of either side does not begin with.
fn is_part(path: &Path, file: &Path, change: &Change) -> Result<bool, MergeError> {
    let Ok(found) = fs::symlink_metadata(file) else { return Ok(false) };
    if !found.is_file() || found.len() % PAGE as u64 != 0 {
        return Ok(false);
    }
    let bytes = fs::read(file).map_err(io_error("read", file))?;
    for blob in [&change.old, &change.new].into_iter().flatten() {
        let mut name = std::ffi::OsString::from("--path=");
        name.push(OsStr::from_bytes(&change.path));
        let asked = Git::at(path).args(["cat-file", "--filters"]).arg(name).arg(&blob.id);
        let whole = asked.run_for_bytes("look at a file")?;
        if whole.len() > bytes.len() && whole.starts_with(&bytes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which files are not as one side of these changes has them.
fn not_as(
    path: &Path,
    changes: &[Change],
    side: impl Fn(&Change) -> Option<&Blob>,
) -> Result<BTreeSet<Vec<u8>>, MergeError> {
    let lines = changes.iter().filter_map(|change| Some(side(change)?.line(&change.path)));
    Ok(differing(path, &git_dir(path)?, lines)?)
}
