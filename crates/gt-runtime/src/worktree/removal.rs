//! Deleting a worktree that holds nothing alone any more: it is taken out of its place, looked at once more, then deleted.
//!
//! Both happen under names of their own beside its place. A removal that is killed leaves a directory that is put back
//! (`.checking-NAME`), or one that is deleted with the next removal (`.discarded-NAME`). What cannot be deleted stays beside and
//! is in nobody's way.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::fingerprint::Fingerprint;

/// Directories that are out of their place and not looked at yet begin so.
const CHECKING: &str = ".checking-";
/// And those of which everything is seen to be kept elsewhere.
const DISCARDED: &str = ".discarded-";

/// Deletes a worktree and its desk if it is still as it was `seen`. Returns what could not be deleted.
pub(super) fn discard(path: &Path, desk: &Path, seen: &Fingerprint) -> Result<Option<PathBuf>, WorktreeError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    sweep(folder);
    let checking = free_place(folder, CHECKING, name);
    rename(path, &checking)?;
    if Fingerprint::of(&checking) != *seen {
        rename(&checking, path)?;
        return Err(WorktreeError::Changed { path: path.to_owned() });
    }
    let discarded = free_place(folder, DISCARDED, name);
    rename(&checking, &discarded)?;
    delete(desk).map_err(|source| WorktreeError::Io { doing: "clear", path: desk.to_owned(), source })?;
    Ok(delete(&discarded).is_err().then_some(discarded))
}

/// Puts back what a removal had taken out of its place when it was killed.
pub(super) fn put_back(path: &Path) -> Result<(), WorktreeError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let checking = folder.join(named(CHECKING, name));
    if checking.exists() && !path.exists() { rename(&checking, path) } else { Ok(()) }
}

/// What removals have left beside the places of worktrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// It could not be deleted. Everything in it is kept elsewhere.
    Undeleted(PathBuf),
    /// The removal was killed before it had looked at it once more.
    Unchecked(PathBuf),
}

/// What removals have left in a folder of worktrees.
pub fn leftovers(folder: &Path) -> Vec<Leftover> {
    let undeleted = beginning_with(folder, DISCARDED).into_iter().map(Leftover::Undeleted);
    undeleted.chain(beginning_with(folder, CHECKING).into_iter().map(Leftover::Unchecked)).collect()
}

/// Deletes a directory with everything in it, also where a part of it is write-protected.
pub fn delete(dir: &Path) -> io::Result<()> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(inner) = dirs.pop() {
        let Some(found) = fs::symlink_metadata(&inner).ok().filter(fs::Metadata::is_dir) else { continue };
        let mode = found.permissions().mode();
        if mode & 0o700 != 0o700 {
            // If it is another user's, deleting it says so.
            fs::set_permissions(&inner, Permissions::from_mode(mode | 0o700)).ok();
        }
        let entries = fs::read_dir(&inner).into_iter().flatten().flatten();
        dirs.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes what earlier removals have left; what cannot be deleted is told by [`leftovers`].
fn sweep(folder: &Path) {
    for left in beginning_with(folder, DISCARDED) {
        delete(&left).ok();
    }
}

fn beginning_with(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let begins = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut paths: Vec<PathBuf> = entries.filter(begins).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn free_place(folder: &Path, prefix: &str, name: &OsStr) -> PathBuf {
    let first = folder.join(named(prefix, name));
    let numbered = |n: u32| {
        let mut name = named(prefix, name);
        name.push(format!(".{n}"));
        folder.join(name)
    };
    let mut places = std::iter::once(first.clone()).chain((2..=u32::MAX).map(numbered));
    places.find(|place| fs::symlink_metadata(place).is_err()).unwrap_or(first)
}

fn named(prefix: &str, name: &OsStr) -> OsString {
    let mut whole = OsString::from(prefix);
    whole.push(name);
    whole
}

fn rename(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    fs::rename(from, to).map_err(|source| WorktreeError::Io { doing: "move", path: from.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_at_the_last_moment_is_put_back_with_the_worktree() {
        let root = tempfile::tempdir().unwrap();
        let (path, desk) = (root.path().join("nux"), root.path().join("desk"));
        fs::create_dir_all(path.join("deep")).unwrap();
        fs::create_dir(&desk).unwrap();
        fs::write(path.join("deep/file"), "one").unwrap();
        let seen = Fingerprint::of(&path);
        fs::write(path.join("deep/file"), "two").unwrap();
        let refused = discard(&path, &desk, &seen);
        assert!(matches!(refused, Err(WorktreeError::Changed { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(path.join("deep/file")).unwrap(), "two");
        assert!(desk.exists() && leftovers(root.path()).is_empty());
        assert_eq!(discard(&path, &desk, &Fingerprint::of(&path)).unwrap(), None);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
