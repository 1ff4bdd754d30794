//! Agents that run in other places: a program of the user's is called with a verb and JSON, and owns what it started.
//!
//! Here its answers become what the trait promises; nothing that it does can hang or panic the caller. The protocol is
//! written down in `docs/runtimes.md`. Which program that is, and where runs are remembered, is decided elsewhere.

pub mod answers;
mod errand;
mod program;
mod watcher;
mod wire;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

pub use self::errand::Errand;
use self::program::{Mishap, Program};
use self::watcher::Watcher;
use self::wire::Request;
use crate::{Handle, Known, Launch, News, Runtime, RuntimeError, Sighting, StartError, Stop};

/// How long a call may take unless told otherwise.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs agents wherever the user's program puts them.
#[derive(Debug)]
pub struct ExecRuntime {
    program: Program,
    watcher: Option<Watcher>,
}

impl ExecRuntime {
    /// Nothing is called yet. `dir` is the town's directory; the program is called in it, and found from it.
    pub fn new(argv: Vec<OsString>, dir: PathBuf) -> Self {
        Self { program: Program { argv, dir, env: Vec::new(), timeout: TIMEOUT }, watcher: None }
    }

    /// Another limit for the time that a call may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.program.timeout = timeout;
        self
    }

    /// The last lines that a run has printed; `None` when the program has no way to tell.
    pub fn peek(&mut self, run: &str, lines: usize) -> Result<Option<String>, RuntimeError> {
        let answer: Option<wire::Peeked> = optional(self.ask("peek", &wire::Peek { run, lines }, wire::read))?;
        Ok(answer.map(|peeked| peeked.text))
    }

    /// Types something into a run's terminal; false when the program has no way to do it.
    pub fn send(&mut self, run: &str, text: &str) -> Result<bool, RuntimeError> {
        Ok(optional(self.tell("send", &wire::Send { run, text }))?.is_some())
    }

    /// The command that attaches a person to a run; `None` when the program has no way to do it.
    pub fn attach(&mut self, run: &str) -> Result<Option<Vec<String>>, RuntimeError> {
        let answer: Option<wire::Attached> = optional(self.ask("attach", &wire::Run { run }, wire::read))?;
        match answer {
            Some(attached) if attached.argv.is_empty() => {
                Err(error(&Mishap::Lost(format!("{} named no command", self.program.called("attach")))))
            }
            answer => Ok(answer.map(|attached| attached.argv)),
        }
    }

    /// Calls the program for an answer.
    fn ask<A>(
        &self,
        verb: &'static str,
        asked: &impl Serialize,
        read: impl FnOnce(&[u8]) -> Result<A, String>,
    ) -> Result<A, Mishap> {
        let printed = self.program.call(verb, &Request::new(&self.program.dir, asked))?;
        read(&printed).map_err(|cause| Mishap::Lost(format!("{} {cause}", self.program.called(verb))))
    }

    /// Calls the program for what it does; what it prints does not matter.
    fn tell(&self, verb: &'static str, asked: &impl Serialize) -> Result<(), Mishap> {
        self.program.call(verb, &Request::new(&self.program.dir, asked)).map(drop)
    }
}

impl Runtime for ExecRuntime {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        if launches.is_empty() {
            return Vec::new();
        }
        if let Some(refused) = crate::refuse_odd_paths(launches) {
            return refused;
        }
        let asked = wire::Launches { launches: launches.iter().map(wire::Launch::new).collect() };
        let results = self.ask("start", &asked, |printed| answers::started(launches, printed));
        results.unwrap_or_else(|mishap| {
            let error = match mishap {
                Mishap::NotCalled(cause) | Mishap::NotKnown(cause) | Mishap::NothingDone(cause) => {
                    StartError::NoRoom { cause }
                }
                Mishap::Lost(cause) => StartError::Unknown { cause },
            };
            vec![Err(error); launches.len()]
        })
    }

    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        if let Some(here) = known.iter().find(|known| known.handle.as_ref().is_some_and(Handle::is_here)) {
            // It would seem to be gone.
            let cause =
                format!("run {} is a process of this machine; until it has ended `runtime` stays as it was", here.run);
            return Err(RuntimeError::Elsewhere { cause });
        }
        let asked = wire::Survey { known: known.iter().map(wire::KnownRun::new).collect() };
        let read = |printed: &[u8]| answers::surveyed(known, printed, Timestamp::now());
        self.ask("survey", &asked, read).map_err(|mishap| error(&mishap))
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        let how = match how {
            // Not every place can do it; then it is as if the agent had ignored it.
            Stop::Interrupt => {
                let told = self.tell("interrupt", &wire::Run { run: &known.run });
                return optional(told).map(|_| ());
            }
            Stop::Gently => "gently",
            Stop::Now => "now",
        };
        self.tell("stop", &wire::Stop { run: &known.run, how }).map_err(|mishap| error(&mishap))
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        if runs.is_empty() {
            return Ok(());
        }
        self.tell("acknowledge", &wire::Acknowledge { runs }).map_err(|mishap| error(&mishap))
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        // One at a time: the old one is over before the new one begins.
        self.watcher = None;
        let started = Watcher::start(self.program.clone(), news);
        let no_thread = |cause: std::io::Error| RuntimeError::Elsewhere { cause: format!("cannot watch: {cause}") };
        self.watcher = Some(started.map_err(no_thread)?);
        Ok(())
    }
}

/// A verb that a program need not know.
fn optional<T>(answer: Result<T, Mishap>) -> Result<Option<T>, RuntimeError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Mishap::NotKnown(_)) => Ok(None),
        Err(mishap) => Err(error(&mishap)),
    }
}

fn error(mishap: &Mishap) -> RuntimeError {
    RuntimeError::Elsewhere { cause: format!("the program that runs agents elsewhere does not answer: {mishap}") }
}
