//! What runs on behalf of the daemon, and ends when it stops.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is killed is gone in no time.
const END_MAX: Duration = Duration::from_secs(5);

/// Holds errands; once it is let go all of them end, and no other begins.
#[derive(Debug)]
pub(super) struct Leash {
    /// Whoever runs an errand waits for its other end to be closed, too.
    end: PipeReader,
    held: Mutex<Held>,
    is_free: Condvar,
}

#[derive(Debug)]
struct Held {
    /// `None`: let go.
    other_end: Option<PipeWriter>,
    n_errands: usize,
}

impl Leash {
    pub(super) fn new() -> io::Result<Leash> {
        let (end, other_end) = io::pipe()?;
        let held = Mutex::new(Held { other_end: Some(other_end), n_errands: 0 });
        Ok(Leash { end, held, is_free: Condvar::new() })
    }

    /// Runs an errand that ends when something comes from what it is given; `None`: it was let go before that was done.
    pub(super) fn run<T, E>(&self, errand: impl FnOnce(BorrowedFd<'_>) -> Result<T, E>) -> Option<Result<T, E>> {
        {
            let mut held = self.lock();
            held.other_end.as_ref()?;
            held.n_errands += 1;
        }
        let done = errand(self.end.as_fd());
        let mut held = self.lock();
        held.n_errands -= 1;
        self.is_free.notify_all();
        // One that was done in spite of it was done.
        (held.other_end.is_some() || done.is_ok()).then_some(done)
    }

    /// Lets go, and waits until everything has ended.
    pub(super) fn end(&self) {
        let mut held = self.lock();
        held.other_end = None;
        let ended = self.is_free.wait_timeout_while(held, END_MAX, |held| held.n_errands > 0);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
