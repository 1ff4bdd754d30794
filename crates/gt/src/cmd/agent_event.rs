//! `gt agent-event`: called by the hooks of an agent, never by hand. // SPEC P5
//!
//! An agent never suffers from us: this prints nothing, ends with 0 on every path, and takes no time.

use std::io::{self, IsTerminal as _, Read};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;
use gt_core::agent::Vendor;
use gt_engine::agents::event;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde::de::IgnoredAny;

use crate::context::variable;

/// The most that a hook is read of; a longer call tells nothing.
const GIVEN_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a hook that says nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Take in what an agent tells (called by its hooks)
#[derive(Debug, Args)]
pub(crate) struct AgentEventArgs {
    /// Whose hook it is
    #[arg(value_name = "VENDOR")]
    words: Vec<String>,
}

pub(crate) fn run(args: &AgentEventArgs) {
    take(&args.words).unwrap_or_default();
}

/// Whether a command line calls this; then it is read here, so that nothing about it can be refused.
pub(crate) fn is_called(arguments: &[std::ffi::OsString]) -> Option<AgentEventArgs> {
    let (name, words) = arguments.get(1..)?.split_first()?;
    let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    (name == "agent-event").then_some(AgentEventArgs { words })
}

/// The vendor, and where the hook is called with an argument instead of standard input, that.
fn take(words: &[String]) -> Option<()> {
    let vendor = Vendor::parse(words.first()?)?;
    let (town, run) = (PathBuf::from(variable("GT_TOWN")?), variable("GT_RUN")?);
    let given = words.get(1).cloned().or_else(read_input)?;
    event::take(&town, &run, vendor, &given, gt_core::time::truncate(Timestamp::now()));
    Some(())
}

/// The first JSON value on standard input. Whoever leaves that open, or says nothing, is not waited for.
fn read_input() -> Option<String> {
    if io::stdin().is_terminal() {
        return None;
    }
    let (sender, given) = mpsc::channel();
    thread::spawn(move || sender.send(first_value(io::stdin().lock().take(GIVEN_BYTES_MAX))));
    given.recv_timeout(PATIENCE).ok()?
}

/// The text of the first JSON value, and nothing that follows it; `None`: there is none.
fn first_value(input: impl Read) -> Option<String> {
    let mut heard = Heard { input, bytes: Vec::new() };
    IgnoredAny::deserialize(&mut serde_json::Deserializer::from_reader(&mut heard)).ok()?;
    Some(String::from_utf8_lossy(&heard.bytes).into_owned())
}

/// Keeps what was read.
struct Heard<R> {
    input: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..n]);
        Ok(n)
    }
}
