//! A lock file that no git holds, and that only its maker takes away again.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct StaleLock {
    path: PathBuf,
    /// Kept open, so that no other file gets the same inode.
    file: File,
}

impl StaleLock {
    /// None if a lock is there already.
    pub(super) fn place(path: &Path) -> Option<StaleLock> {
        let file = File::options().write(true).create_new(true).open(path).ok()?;
        Some(StaleLock { path: path.to_owned(), file })
    }

    /// Removes it, unless it is gone and a git holds the lock by now.
    pub(super) fn remove(&self) {
        let inode = |found: fs::Metadata| (found.dev(), found.ino());
        let (own, there) = (self.file.metadata().map(inode).ok(), fs::symlink_metadata(&self.path).map(inode).ok());
        if own.is_some() && own == there {
            fs::remove_file(&self.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_a_git_holds_by_now_stays() {
        let path = std::env::temp_dir().join(format!("chaos-lock-{:016x}", fastrand::u64(..)));
        let stale = StaleLock::place(&path).expect("nothing is there");
        assert!(StaleLock::place(&path).is_none(), "the lock is taken");
        stale.remove();
        assert!(!path.exists());

        let stale = StaleLock::place(&path).expect("nothing is there any more");
        fs::remove_file(&path).expect("it is there");
        fs::write(&path, "").expect("a git takes the lock");
        stale.remove();
        assert!(path.exists());
        fs::remove_file(&path).ok();
    }
}
