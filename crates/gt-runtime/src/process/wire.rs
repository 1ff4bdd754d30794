//! What client and keeper say to each other: one JSON object per line, each way.
//!
//! The keeper speaks first ([`Greeting`]): a connection that was never greeted was never seen, so that a client whose
//! call met a keeper just going away can safely call again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Ending, Handle, Known, Launch, Sighting, StartError, Stop};

pub(super) const PROTOCOL: u32 = 2;

/// A line longer than this is not a request.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// What the keeper says before anything is asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    pub protocol: u32,
    pub pid: u32,
}

/// What a client asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    Start(Batch),
    Survey(Vec<Known>),
    Stop(Known, Stop),
    Acknowledge(Vec<String>),
    /// From now on this connection is told of every ending.
    Watch,
}

/// What the keeper says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Started(Vec<Result<Handle, StartError>>),
    Surveyed(BTreeMap<String, Sighting>),
    Done,
    /// News, not an answer.
    Ended(String, Ending),
}

/// Launches, with what their environments have in common said once.
#[derive(Debug, Serialize, Deserialize)]
pub struct Batch {
    pub shared_env: Vec<(String, String)>,
    pub launches: Vec<Launch>,
}

impl Batch {
    pub(super) fn new(launches: &[Launch]) -> Self {
        let Some((first, others)) = launches.split_first() else {
            return Self { shared_env: Vec::new(), launches: Vec::new() };
        };
        let mut shared: BTreeSet<&(String, String)> = first.env.iter().collect();
        for launch in others {
            let own: BTreeSet<_> = launch.env.iter().collect();
            shared.retain(|pair| own.contains(pair));
        }
        let without_shared = |launch: &Launch| Launch {
            env: launch.env.iter().filter(|pair| !shared.contains(pair)).cloned().collect(),
            ..launch.clone_without_env()
        };
        let launches = launches.iter().map(without_shared).collect();
        Self { shared_env: shared.into_iter().cloned().collect(), launches }
    }
}

impl Launch {
    fn clone_without_env(&self) -> Self {
        Self {
            run: self.run.clone(),
            session: self.session.clone(),
            argv: self.argv.clone(),
            dir: self.dir.clone(),
            env: Vec::new(),
            stdin: self.stdin.clone(),
            log: self.log.clone(),
            errors: self.errors.clone(),
            place: self.place,
        }
    }
}

/// A message as the line that carries it.
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have string keys only, and paths are UTF-8");
    line.push(b'\n');
    line
}
