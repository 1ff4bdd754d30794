//! Noticing that the town was deleted under a running daemon.
//!
//! Owns: telling a deleted town from one that was moved. The directory is kept open: one that was moved still has a name
//! somewhere, a deleted one has none. Nothing is asked before the store has lost its own name.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::fs::fstat;

use super::Cause;
use crate::town::Town;
use crate::wait;

/// Between two looks: a large town takes a while to delete.
const PAUSE: Duration = Duration::from_secs(1);

/// The state directory of a town, open for as long as the daemon runs.
pub(super) struct Home {
    dir: File,
    store: PathBuf,
}

impl Home {
    pub(super) fn open(town: &Town) -> io::Result<Home> {
        Ok(Home { dir: File::open(town.state_dir())?, store: town.store_path() })
    }

    /// Has the daemon told when the town turns out to be deleted; a store that comes back ends the looking.
    pub(super) fn look_after_removal(&self, sender: &Sender<Cause>) -> io::Result<()> {
        let (dir, store, sender) = (self.dir.try_clone()?, self.store.clone(), sender.clone());
        thread::spawn(move || {
            loop {
                wait::pause(PAUSE);
                if fstat(&dir).is_ok_and(|dir| dir.st_nlink == 0) {
                    return sender.send(Cause::TownDeleted).unwrap_or_default();
                }
                if store.exists() {
                    return;
                }
            }
        });
        Ok(())
    }
}
