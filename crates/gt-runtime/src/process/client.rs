//! The client side: what the engine calls, each call one request to the keeper.
//!
//! Everything but a start may be asked twice without harm, and is when the connection breaks. A start whose answer is
//! lost is not: the keeper that ran it may be dead, and only looking tells what it did.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::door::{self, Line, no_keeper};
use super::watcher::Watcher;
use super::wire::{Batch, Reply, Request, line};
use crate::{Handle, Known, Launch, News, Runtime, RuntimeError, Sighting, StartError, Stop};

/// A keeper answers in milliseconds; one that is stopped or stuck must not hold up everything else for ever.
const ANSWER_MAX: Duration = Duration::from_mins(1);

/// Runs agents as processes, through the keeper of one town.
#[derive(Debug)]
pub struct ProcessRuntime {
    dir: PathBuf,
    keeper_argv: Vec<OsString>,
    line: Option<Line>,
    watcher: Option<Watcher>,
}

/// Why a request has no answer.
enum NoAnswer {
    /// The keeper has not got it.
    NotSent(RuntimeError),
    /// The keeper may have done it.
    Lost(RuntimeError),
}

impl ProcessRuntime {
    /// Nothing is started yet. `keeper_argv` is the command whose process calls [`super::keep`] with `dir`.
    pub fn new(dir: PathBuf, keeper_argv: Vec<OsString>) -> Self {
        Self { dir, keeper_argv, line: None, watcher: None }
    }

    /// Asks something that may be asked twice.
    fn ask_again_if_lost(&mut self, request: &Request) -> Result<Reply, RuntimeError> {
        match self.ask(request) {
            Err(NoAnswer::Lost(_)) => self.ask(request).map_err(NoAnswer::into_error),
            answer => answer.map_err(NoAnswer::into_error),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, NoAnswer> {
        let text = line(request);
        let mut line = match self.line.take().filter(is_open) {
            Some(line) => line,
            None => self.reach()?,
        };
        if line.stream.write_all(&text).is_err() {
            // It broke before the last byte, so the keeper has no whole line to act on.
            line = self.reach()?;
            line.stream.write_all(&text).map_err(|error| NoAnswer::NotSent(no_keeper(error.to_string())))?;
        }
        let reply = read_reply(&mut line).map_err(|error| NoAnswer::Lost(no_keeper(error.to_string())))?;
        self.line = Some(line);
        Ok(reply)
    }

    fn reach(&self) -> Result<Line, NoAnswer> {
        let line = door::reach(&self.dir, &self.keeper_argv).map_err(NoAnswer::NotSent)?;
        let limited = line.stream.set_read_timeout(Some(ANSWER_MAX));
        let limited = limited.and_then(|()| line.stream.set_write_timeout(Some(ANSWER_MAX)));
        limited.map_err(|error| NoAnswer::NotSent(no_keeper(error.to_string())))?;
        Ok(line)
    }
}

impl Runtime for ProcessRuntime {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        if launches.is_empty() {
            return Vec::new();
        }
        if let Some(refused) = crate::refuse_odd_paths(launches) {
            return refused;
        }
        let cause = match self.ask(&Request::Start(Batch::new(launches))) {
            Ok(Reply::Started(results)) if results.len() == launches.len() => return results,
            Ok(other) => StartError::Unknown { cause: unexpected(&other).to_string() },
            Err(NoAnswer::Lost(error)) => StartError::Unknown { cause: error.to_string() },
            Err(NoAnswer::NotSent(error)) => StartError::NoRoom { cause: with_source(&error) },
        };
        vec![Err(cause); launches.len()]
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        if let Some(there) = known.iter().find(|known| known.handle.as_ref().is_some_and(|handle| !handle.is_here())) {
            // It would seem to be gone.
            let cause = format!("run {} is in another place; until it has ended `runtime` stays as it was", there.run);
            return Err(RuntimeError::Elsewhere { cause });
        }
        match self.ask_again_if_lost(&Request::Survey(known.to_vec()))? {
            Reply::Surveyed(sightings) => Ok(sightings),
            other => Err(unexpected(&other)),
        }
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        done(&self.ask_again_if_lost(&Request::Stop(known.clone(), how))?)
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        if runs.is_empty() {
            return Ok(());
        }
        done(&self.ask_again_if_lost(&Request::Acknowledge(runs.to_vec()))?)
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        self.watcher = Some(Watcher::start(self.dir.clone(), self.keeper_argv.clone(), news)?);
        Ok(())
    }
}

impl NoAnswer {
    fn into_error(self) -> RuntimeError {
        let (Self::NotSent(error) | Self::Lost(error)) = self;
        error
    }
}

/// Whether the other end is still there. Between requests the keeper says nothing, so anything to read is the end.
fn is_open(line: &Line) -> bool {
    let mut waiting = [PollFd::new(&line.stream, PollFlags::IN)];
    line.incoming.buffer().is_empty() && poll(&mut waiting, Some(&Timespec::default())) == Ok(0)
}

pub(super) fn read_reply(line: &mut Line) -> io::Result<Reply> {
    let mut text = Vec::new();
    if line.incoming.read_until(b'\n', &mut text)? == 0 || text.last() != Some(&b'\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it went away without an answer"));
    }
    Ok(serde_json::from_slice(&text)?)
}

fn done(reply: &Reply) -> Result<(), RuntimeError> {
    match reply {
        Reply::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(reply: &Reply) -> RuntimeError {
    no_keeper(format!("it answered something else: {reply:?}"))
}

/// An error in one line, for places that keep text only.
fn with_source(error: &RuntimeError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
