//! Telling of endings: a thread with a connection of its own.
//!
//! When the connection is lost something may have been missed, so the owner is told too, and again once a keeper is
//! there to be surveyed. It ends with the runtime it belongs to.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::client::read_reply;
use super::door::{self, Line, no_keeper};
use super::wire::{Reply, Request, line};
use crate::{News, RuntimeError};

const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(30);

/// A connection that lasted this long was a good one: the next loss is repaired at once.
const GOOD_CONNECTION: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Watcher {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    /// What the thread reads from, to wake it when it shall stop.
    stream: Option<UnixStream>,
}

struct Post {
    dir: PathBuf,
    keeper_argv: Vec<OsString>,
    news: News,
    shared: Arc<Shared>,
}

impl Watcher {
    /// Returns once the keeper tells of endings.
    pub(super) fn start(dir: PathBuf, keeper_argv: Vec<OsString>, news: News) -> Result<Self, RuntimeError> {
        let shared = Arc::new(Shared::default());
        let post = Post { dir, keeper_argv, news, shared: Arc::clone(&shared) };
        // A keeper that dies between its greeting and its answer is replaced by the next call.
        let line = post.connect().or_else(|_| post.connect())?;
        let thread = std::thread::Builder::new().name("keeper-news".to_owned());
        thread.spawn(move || post.stay(line)).map_err(|error| no_keeper(error.to_string()))?;
        Ok(Self { shared })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_stopped = true;
        if let Some(stream) = &state.stream {
            // It may be closed already, which is what is wanted.
            stream.shutdown(Shutdown::Both).ok();
        }
        self.shared.stopped.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; true as soon as it shall stop.
    fn is_stopped_within(&self, delay: Duration) -> bool {
        let waited = self.stopped.wait_timeout_while(self.lock(), delay, |state| !state.is_stopped);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_stopped
    }
}

impl Post {
    fn stay(&self, first: Line) {
        let mut line = Some(first);
        let mut delay = Duration::ZERO;
        loop {
            let since = Instant::now();
            if let Some(mut line) = line.take() {
                self.pass_on(&mut line);
                if self.shared.lock().is_stopped {
                    return;
                }
                (self.news)(None);
            }
            delay = if since.elapsed() >= GOOD_CONNECTION { Duration::ZERO } else { longer(delay) };
            if self.shared.is_stopped_within(delay) {
                return;
            }
            line = self.connect().ok();
            if line.is_some() {
                (self.news)(None);
            }
        }
    }

    /// Calls for every ending, until the connection is lost.
    fn pass_on(&self, line: &mut Line) {
        while let Ok(reply) = read_reply(line) {
            if let Reply::Ended(run, ending) = reply {
                (self.news)(Some((run, ending)));
            }
        }
    }

    fn connect(&self) -> Result<Line, RuntimeError> {
        let lost = |error: std::io::Error| no_keeper(error.to_string());
        let mut reached = door::reach(&self.dir, &self.keeper_argv)?;
        reached.stream.write_all(&line(&Request::Watch)).map_err(lost)?;
        read_reply(&mut reached).map_err(lost)?;
        let mut state = self.shared.lock();
        if state.is_stopped {
            return Err(no_keeper("nobody asks any more".to_owned()));
        }
        state.stream = Some(reached.stream.try_clone().map_err(lost)?);
        Ok(reached)
    }
}

fn longer(delay: Duration) -> Duration {
    (delay * 2).clamp(DELAY_MIN, DELAY_MAX)
}
