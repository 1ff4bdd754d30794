//! News of the store: waits until somebody has written to it, whoever that was.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::TownError;
use crate::town::Town;

/// How long after a write the store is looked at again.
const SOON: Duration = Duration::from_millis(5);
/// How often it is looked at when nothing is heard of.
const RARELY: Duration = Duration::from_secs(30);

/// Hears of every write to a town's store.
#[derive(Debug)]
pub struct News {
    _watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
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
        std::fs::create_dir_all(&logs).map_err(|source| TownError::io("make", &logs, source))?;
        News::watch(&[town.state_dir(), logs])
    }

    fn watch(dirs: &[PathBuf]) -> Result<News, TownError> {
        let (sender, changes) = mpsc::channel();
        let failed = |error: notify::Error| TownError::io("watch", &dirs[0], std::io::Error::other(error));
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the store also touches its files; only writes are news. A reader that is gone needs no news.
            if event.is_ok_and(|event| event.kind.is_modify() || event.kind.is_create()) {
                sender.send(()).unwrap_or_default();
            }
        })
        .map_err(failed)?;
        for dir in dirs {
            watcher.watch(dir, RecursiveMode::NonRecursive).map_err(failed)?;
        }
        Ok(News { _watcher: watcher, changes, pause: SOON })
    }

    /// Waits until it is worth looking again, at most so long; `false`: there will be no more news.
    ///
    /// A write is heard of before its commit can be seen: look again, soon at first, then ever more rarely, in the end
    /// only when something else is written.
    pub fn wait(&mut self, at_most: Option<Duration>) -> bool {
        let own = (self.pause <= RARELY).then_some(self.pause);
        let heard = match own.into_iter().chain(at_most).min() {
            Some(pause) => self.changes.recv_timeout(pause),
            None => self.changes.recv().map_err(RecvTimeoutError::from),
        };
        self.pause = match heard {
            Ok(()) => SOON,
            Err(RecvTimeoutError::Timeout) if self.pause <= RARELY => self.pause * 2,
            Err(RecvTimeoutError::Timeout) => self.pause,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        while self.changes.try_recv().is_ok() {} // one look serves them all
        true
    }
}
