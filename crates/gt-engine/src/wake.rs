//! Waking the daemon: a datagram after each commit, and a watch on the files for those who died before sending it.
//!
//! A datagram says nothing but "look"; what there is to see is in the store. (DESIGN decision 7)

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{Mode, OFlags};

use crate::error::TownError;
use crate::jobs;
use crate::town::{CONFIG_FILE, STORE_FILE, Town};
use crate::wait;

const SOCKET: &str = "daemon.sock";
/// What a socket's address has room for.
const ADDRESS_BYTES_MAX: usize = 100;

/// How long the writes of others are left to gather. Whoever lives rings; this is for the rest.
const BETWEEN_WRITES: Duration = Duration::from_millis(20);

/// How long the words of agents are left to gather.
const BETWEEN_WORDS: Duration = Duration::from_millis(500);

/// The way to wake a town's daemon.
#[derive(Debug, Clone)]
pub struct Bell {
    dir: PathBuf,
}

impl Bell {
    pub fn new(town: &Town) -> Bell {
        Bell { dir: town.state_dir() }
    }

    /// Wakes the daemon, if there is one. If not, nobody needs to know.
    pub fn ring(&self) {
        self.try_ring().unwrap_or_default();
    }

    fn try_ring(&self) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // A daemon that has not read its last datagrams is awake.
        socket.set_nonblocking(true)?;
        with_address(&self.dir, |address| socket.send_to(b"!", address))?;
        Ok(())
    }

    /// Takes the place of the one who is woken.
    pub fn listen(&self) -> io::Result<UnixDatagram> {
        match fs::remove_file(self.dir.join(SOCKET)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        with_address(&self.dir, |address| UnixDatagram::bind(address))
    }
}

/// Calls with the socket's path, or, where that is too long for an address, with a way around.
fn with_address<T>(dir: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(SOCKET);
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return call(&path);
    }
    let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    call(Path::new(&format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd())))
}

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Store,
    Config,
    /// What the town's own heartbeat looks after.
    Heartbeat,
    /// The store lost its name, perhaps with the whole town.
    StoreRemoved,
}

/// Hears that agents print something or that their hooks do.
#[derive(Debug)]
pub struct WordWatch {
    inotify: Arc<OwnedFd>,
}

/// Adds files to those that are watched.
#[derive(Debug, Clone)]
pub struct Follow(Arc<OwnedFd>);

/// A file that is watched until this is dropped.
#[derive(Debug)]
pub struct Followed {
    inotify: Arc<OwnedFd>,
    watch: i32,
}

impl Follow {
    /// `None`: it is not there yet, or there are too many already.
    pub fn file(&self, path: &Path) -> Option<Followed> {
        let watch = inotify::add_watch(&self.0, path, WatchFlags::MODIFY).ok()?;
        Some(Followed { inotify: Arc::clone(&self.0), watch })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // A file that was removed is watched no more.
        inotify::remove_watch(&self.inotify, self.watch).unwrap_or_default();
    }
}

impl WordWatch {
    pub fn new(town: &Town) -> Result<WordWatch, TownError> {
        let dir = town.logs_dir();
        fs::create_dir_all(&dir).map_err(|source| TownError::io("make", &dir, source))?;
        let failed = |error: rustix::io::Errno| TownError::io("watch", &dir, error.into());
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC).map_err(failed)?;
        inotify::add_watch(&inotify, &dir, WatchFlags::MODIFY).map_err(failed)?;
        Ok(WordWatch { inotify: Arc::new(inotify) })
    }

    /// The way to have more files watched.
    pub fn follow(&self) -> Follow {
        Follow(Arc::clone(&self.inotify))
    }

    /// Calls when something was written, and however much is written not too often, until the call says that nobody
    /// listens.
    pub fn for_each(self, mut heard: impl FnMut() -> bool) {
        // Room for many, so that a flood is soon over.
        let mut space = vec![MaybeUninit::uninit(); 64 * 1024];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        loop {
            if reader.next().is_err() {
                return;
            }
            if reader.is_buffer_empty() {
                if !heard() {
                    return;
                }
                wait::pause(BETWEEN_WORDS);
            }
        }
    }
}

/// Hears of writes to the store by those who did not live to ring, of edits to the config and to the town's list for
/// heartbeats, and of the store's removal.
#[derive(Debug)]
pub struct FileWatch {
    inotify: OwnedFd,
    town_dir: i32,
    state_dir: i32,
}

impl FileWatch {
    /// Watches a town whose store is in use.
    pub fn new(town: &Town) -> Result<FileWatch, TownError> {
        let failed = |path: &Path, error: rustix::io::Errno| TownError::io("watch", path, error.into());
        let root = town.root();
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC).map_err(|error| failed(root, error))?;
        // A whole edit, not each piece of it; editors write another file and give it the name.
        let edits = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        let town_dir = inotify::add_watch(&inotify, root, edits).map_err(|error| failed(root, error))?;
        let state_dir = town.state_dir();
        let state_dir =
            inotify::add_watch(&inotify, &state_dir, WatchFlags::DELETE).map_err(|error| failed(&state_dir, error))?;
        let log = town.store_path().with_extension("db-wal");
        inotify::add_watch(&inotify, &log, WatchFlags::MODIFY).map_err(|error| failed(&log, error))?;
        Ok(FileWatch { inotify, town_dir, state_dir })
    }

    /// Calls for each file that is written, until the call says that nobody listens.
    pub fn for_each(self, mut heard: impl FnMut(Written) -> bool) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        loop {
            let Ok(event) = reader.next() else { return };
            let is_named = |file: &str| event.file_name().is_some_and(|name| name.to_bytes() == file.as_bytes());
            let written = match event.wd() {
                dir if dir == self.town_dir && is_named(CONFIG_FILE) => Written::Config,
                dir if dir == self.town_dir && is_named(jobs::FILE) => Written::Heartbeat,
                dir if dir == self.state_dir && is_named(STORE_FILE) => Written::StoreRemoved,
                dir if dir == self.town_dir || dir == self.state_dir => continue,
                _ => Written::Store,
            };
            if !heard(written) {
                return;
            }
            // One commit is many writes. Meanwhile the rest of them become one.
            if written == Written::Store && reader.is_buffer_empty() {
                wait::pause(BETWEEN_WRITES);
            }
        }
    }
}
