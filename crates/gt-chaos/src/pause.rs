//! Waiting: for an end that another thread declares, or for a moment.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Something that ends once, and that threads can wait for.
#[derive(Debug, Default)]
pub(crate) struct End {
    has_come: Mutex<bool>,
    came: Condvar,
}

impl End {
    pub(crate) fn declare(&self) {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.came.notify_all();
    }

    pub(crate) fn has_come(&self) -> bool {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end, but not longer than this; says whether it has come.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let guard = self.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) =
            self.came.wait_timeout_while(guard, at_most, |come| !*come).unwrap_or_else(PoisonError::into_inner);
        *guard
    }
}

/// Waits for a moment, between two looks at something that tells nobody when it changes.
pub(crate) fn pause(span: Duration) {
    End::default().wait(span);
}
