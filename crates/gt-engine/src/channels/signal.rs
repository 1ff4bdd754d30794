//! What a thread of a channel waits for: something to do, or its end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wakes a thread, and tells it to end.
#[derive(Debug, Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    is_given: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_nudged: bool,
    is_stopped: bool,
}

impl Signal {
    pub(super) fn new() -> Arc<Signal> {
        Arc::default()
    }

    pub(super) fn nudge(&self) {
        self.lock().is_nudged = true;
        self.is_given.notify_all();
    }

    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.is_given.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits until there is something to do, at most so long; `false`: it is over.
    pub(super) fn wait(&self, at_most: Option<Duration>) -> bool {
        let is_quiet = |state: &mut State| !state.is_nudged && !state.is_stopped;
        let state = self.lock();
        let mut state = match at_most {
            None => self.is_given.wait_while(state, is_quiet).unwrap_or_else(PoisonError::into_inner),
            Some(span) => {
                self.is_given.wait_timeout_while(state, span, is_quiet).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.is_nudged = false;
        !state.is_stopped
    }

    /// Waits so long whatever there is to do, unless it is over.
    pub(super) fn rest(&self, span: Duration) {
        let deadline = Instant::now() + span;
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if !self.wait(Some(left)) {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
