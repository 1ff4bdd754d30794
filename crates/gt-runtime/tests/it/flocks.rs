//! Locks of files, as the kernel lists them: who has one is the test's business, that another waits for it is seen here.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread::ScopedJoinHandle;

use rustix::fs::{FlockOperation, flock};

use super::town::until;

/// A file's lock, held until this is dropped.
pub(crate) struct Held {
    file: File,
}

impl Held {
    pub(crate) fn take(path: &Path) -> Held {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        Held { file }
    }

    /// Waits until a thread waits for the lock; one that ends without it has not asked for it.
    pub(crate) fn until_awaited_by<T>(&self, thread: &ScopedJoinHandle<'_, T>) {
        let inode = self.file.metadata().unwrap().ino().to_string();
        until("the lock is waited for", || thread.is_finished() || is_awaited(&inode));
        assert!(!thread.is_finished(), "it did not wait for the lock");
    }
}

fn is_awaited(inode: &str) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let is_it = |line: &&str| line.contains("->") && line.split([' ', ':']).any(|word| word == inode);
    locks.lines().any(|line| is_it(&line))
}
