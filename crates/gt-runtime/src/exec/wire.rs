//! What is said to the program and what it may answer: JSON, with a version. Unknown fields are ignored.
//!
//! What might be secret stands last in a request, so that the first bytes of it can be shown when a program only
//! repeats what it was told.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::program::legible;
use crate::{Ending, Known};

pub(super) const PROTOCOL: u32 = 1;

#[derive(Serialize)]
pub(super) struct Request<'a, T> {
    protocol: u32,
    /// Runs of other towns are none of this one's business.
    town: &'a Path,
    #[serde(flatten)]
    asked: &'a T,
}

impl<'a, T> Request<'a, T> {
    pub(super) fn new(town: &'a Path, asked: &'a T) -> Self {
        Self { protocol: PROTOCOL, town, asked }
    }
}

#[derive(Serialize)]
pub(super) struct Launches<'a> {
    pub launches: Vec<Launch<'a>>,
}

#[derive(Serialize)]
pub(super) struct Launch<'a> {
    run: &'a str,
    session: &'a str,
    dir: &'a Path,
    log: &'a Path,
    errors: Option<&'a Path>,
    argv: &'a [String],
    stdin: Option<&'a str>,
    env: BTreeMap<&'a str, &'a str>,
}

impl<'a> Launch<'a> {
    pub(super) fn new(launch: &'a crate::Launch) -> Self {
        let mut env: BTreeMap<_, _> = launch.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        env.insert("GT_RUN", &launch.run);
        Self {
            run: &launch.run,
            session: &launch.session,
            dir: &launch.dir,
            log: &launch.log,
            errors: launch.errors.as_deref(),
            argv: &launch.argv,
            stdin: launch.stdin.as_deref(),
            env,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Survey<'a> {
    pub known: Vec<KnownRun<'a>>,
}

#[derive(Serialize)]
pub(super) struct KnownRun<'a> {
    run: &'a str,
    /// Whether its start is recorded.
    started: bool,
}

impl<'a> KnownRun<'a> {
    pub(super) fn new(known: &'a Known) -> Self {
        Self { run: &known.run, started: known.handle.is_some() }
    }
}

#[derive(Serialize)]
pub(super) struct Stop<'a> {
    pub run: &'a str,
    pub how: &'static str,
}

#[derive(Serialize)]
pub(super) struct Acknowledge<'a> {
    pub runs: &'a [String],
}

#[derive(Serialize)]
pub(super) struct Watch {}

#[derive(Serialize)]
pub(super) struct Peek<'a> {
    pub run: &'a str,
    pub lines: usize,
}

#[derive(Serialize)]
pub(super) struct Send<'a> {
    pub run: &'a str,
    pub text: &'a str,
}

#[derive(Serialize)]
pub(super) struct Run<'a> {
    pub run: &'a str,
}

/// An answer may say which version it speaks.
pub(super) trait Answer {
    fn protocol(&self) -> Option<u32>;
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $field:ident: $kind:ty })*) => {
        $(
            $(#[$doc])*
            #[derive(Deserialize)]
            pub(super) struct $name {
                protocol: Option<u32>,
                pub $field: $kind,
            }

            impl Answer for $name {
                fn protocol(&self) -> Option<u32> {
                    self.protocol
                }
            }
        )*
    };
}

answers! {
    Started { results: Vec<Start> }
    Surveyed { runs: BTreeMap<String, Seen> }
    Peeked { text: String }
    Attached { argv: Vec<String> }
}

#[derive(Deserialize)]
pub(super) struct Start {
    /// Whose result this is, so that a mixed-up order is noticed.
    pub run: String,
    pub error: Option<Refusal>,
}

#[derive(Deserialize)]
pub(super) struct Refusal {
    pub kind: String,
    #[serde(default)]
    pub cause: String,
}

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum Seen {
    Running {},
    Ended(End),
}

#[derive(Deserialize)]
pub(super) struct End {
    code: Option<i32>,
    signal: Option<i32>,
    at: Option<Timestamp>,
    #[serde(default)]
    leftover: u32,
}

impl End {
    pub(super) fn ending(&self, now: Timestamp) -> Ending {
        Ending {
            code: self.code,
            signal: self.signal,
            at: self.at.unwrap_or(now),
            leftover: self.leftover,
            is_lost: false,
        }
    }
}

/// A line of `watch`; without a run it says that somebody should look.
#[derive(Deserialize)]
pub(super) struct Told {
    pub run: Option<String>,
    #[serde(flatten)]
    pub end: End,
}

/// Reads an answer; the error continues a sentence that begins with who gave it.
pub(super) fn read<A: DeserializeOwned + Answer>(printed: &[u8]) -> Result<A, String> {
    if printed.trim_ascii().is_empty() {
        return Err("printed no answer".to_owned());
    }
    let answer: A = serde_json::from_slice(printed)
        // The error, too, repeats what was printed.
        .map_err(|error| (legible(error.to_string().as_bytes()), legible(printed)))
        .map_err(|(error, printed)| format!("printed what is no answer ({error}): `{printed}`"))?;
    match answer.protocol() {
        Some(other) if other != PROTOCOL => Err(format!("speaks version {other} of the protocol, this is {PROTOCOL}")),
        _ => Ok(answer),
    }
}
