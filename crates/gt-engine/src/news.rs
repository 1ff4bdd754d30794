//! News of the store: waits until somebody has written to it, whoever that was.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;

use crate::error::TownError;
use crate::town::Town;
use crate::wait;

/// How long after a write the store is looked at again.
const SOON: Duration = Duration::from_millis(5);
/// How often it is looked at when nothing is heard of.
const RARELY: Duration = Duration::from_secs(30);
/// How long writes are left to gather: one commit is many of them.
const TOGETHER: Duration = Duration::from_millis(2);

/// Hears of every write to a town's store.
#[derive(Debug)]
pub struct News {
    inotify: OwnedFd,
    pause: Duration,
}

impl News {
    /// From now on hears of every write to the town's store.
    pub fn of(town: &Town) -> Result<News, TownError> {
        News::watch(&[town.state_dir()])
    }

    /// The same, and of all that agents print.
    pub fn with_logs(town: &Town) -> Result<News, TownError> {
        let logs = town.logs_dir();
        fs::create_dir_all(&logs).map_err(|source| TownError::io("make", &logs, source))?;
        News::watch(&[town.state_dir(), logs])
    }

    fn watch(dirs: &[PathBuf]) -> Result<News, TownError> {
        let failed = |error: Errno| TownError::io("watch", &dirs[0], error.into());
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let inotify = inotify::init(flags).map_err(failed)?;
        for dir in dirs {
            // Whatever is made is written to soon.
            inotify::add_watch(&inotify, dir, WatchFlags::MODIFY).map_err(failed)?;
        }
        Ok(News { inotify, pause: SOON })
    }

    /// Waits until it is worth looking again, at most so long; `false`: there will be no more news.
    ///
    /// A write is heard of before its commit can be seen: look again, soon at first, then ever more rarely, in the end
    /// only when something else is written.
    pub fn wait(&mut self, at_most: Option<Duration>) -> bool {
        let own = (self.pause <= RARELY).then_some(self.pause);
        let pause = own.into_iter().chain(at_most).min();
        let timeout = pause.map(|pause| Timespec::try_from(pause).expect("no pause is that long"));
        let mut fds = [PollFd::new(&self.inotify, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) if self.pause <= RARELY => self.pause *= 2,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                wait::pause(TOGETHER);
                self.pause = SOON;
                return self.is_read();
            }
            Err(_) => return false,
        }
        true
    }

    /// One look serves all that was written.
    fn is_read(&self) -> bool {
        let mut space = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        loop {
            match reader.next() {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}
