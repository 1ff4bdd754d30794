//! Whether the keeper's directory is still there. A town that was deleted has no use for its agents.
//!
//! Owns: noticing that the directory was deleted, without looking again and again while it is there. A directory that was
//! moved is the same directory, and stays.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;

/// From the first file that goes to the look whether all went, and from look to look.
const PAUSE: Duration = Duration::from_secs(1);

/// From look to look where the kernel watches no more directories for this user.
const UNWATCHED_PAUSE: Duration = Duration::from_secs(5);

/// The file that is there as long as the directory is a keeper's.
const LOCK: &str = "lock";

#[derive(Debug)]
pub(super) struct Home {
    dir: File,
    news: Option<OwnedFd>,
    look_at: Option<Instant>,
}

impl Home {
    /// Looks once in any case: it may have been deleted before it was watched.
    pub(super) fn watch(path: &Path, now: Instant) -> io::Result<Self> {
        Ok(Self { dir: File::open(path)?, news: watched(path).ok(), look_at: Some(now + PAUSE) })
    }

    /// What tells that something in it was deleted; nothing where it cannot be watched.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().map(AsFd::as_fd)
    }

    /// Something in it was deleted.
    pub(super) fn handle_news(&mut self, now: Instant) {
        let Some(news) = &self.news else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(news, &mut buffer);
        while reader.next().is_ok() {}
        self.look_at.get_or_insert(now + PAUSE);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Whether it is time to look, and it is gone. Looks again until it is whole, or for as long as the keeper lives.
    pub(super) fn is_found_deleted(&mut self, now: Instant) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        // No name leads to it any more. One that was moved has a name.
        let is_deleted = fstat(&self.dir).is_ok_and(|dir| dir.st_nlink == 0);
        let is_whole = !is_deleted && statat(&self.dir, LOCK, AtFlags::empty()).is_ok();
        let pause = if is_whole { self.news.is_none().then_some(UNWATCHED_PAUSE) } else { Some(PAUSE) };
        self.look_at = pause.map(|pause| now + pause);
        is_deleted
    }
}

fn watched(path: &Path) -> Result<OwnedFd, Errno> {
    let news = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&news, path, WatchFlags::DELETE | WatchFlags::DELETE_SELF)?;
    Ok(news)
}
