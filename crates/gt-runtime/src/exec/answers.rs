//! What the bytes mean that a program prints. Nothing is called here, and no bytes can do harm.
//!
//! An error continues a sentence that begins with who gave the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::program::legible;
use super::wire;
use crate::{Ending, Handle, Known, Launch, Sighting, StartError};

/// The answer to `start`: one result for each launch, in order.
pub fn started(launches: &[Launch], printed: &[u8]) -> Result<Vec<Result<Handle, StartError>>, String> {
    let answer: wire::Started = wire::read(printed)?;
    let (n_asked, n_told) = (launches.len(), answer.results.len());
    if n_asked != n_told {
        return Err(format!("gave {n_told} results for {n_asked} launches"));
    }
    let is_other = |(launch, start): &(&Launch, &wire::Start)| launch.run != start.run;
    if let Some((launch, start)) = launches.iter().zip(&answer.results).find(is_other) {
        return Err(format!("answered for `{}`, not `{}`", legible(start.run.as_bytes()), launch.run));
    }
    Ok(launches.iter().zip(answer.results).map(|(launch, start)| outcome(launch, start)).collect())
}

/// The answer to `survey`. What was started once and is neither running nor kept as ended is gone, and nobody knows how.
pub fn surveyed(known: &[Known], printed: &[u8], now: Timestamp) -> Result<BTreeMap<String, Sighting>, String> {
    let answer: wire::Surveyed = wire::read(printed)?;
    let sighting = |seen: wire::Seen| match seen {
        wire::Seen::Running {} => Sighting::Running(Handle::ELSEWHERE),
        wire::Seen::Ended(end) => Sighting::Ended(end.ending(now)),
    };
    let mut sightings: BTreeMap<_, _> = answer.runs.into_iter().map(|(run, seen)| (run, sighting(seen))).collect();
    for started in known.iter().filter(|known| known.handle.is_some()) {
        let unseen = || Sighting::Ended(Ending { code: None, signal: None, at: now, leftover: 0, is_lost: false });
        sightings.entry(started.run.clone()).or_insert_with(unseen);
    }
    Ok(sightings)
}

/// A line of `watch`: a run that ended, or nothing, when somebody should look.
pub fn told(line: &[u8], now: Timestamp) -> Option<(String, Ending)> {
    let told: wire::Told = serde_json::from_slice(line).ok()?;
    told.run.map(|run| (run, told.end.ending(now)))
}

fn outcome(launch: &Launch, start: wire::Start) -> Result<Handle, StartError> {
    let Some(refusal) = start.error else { return Ok(Handle::ELSEWHERE) };
    let cause = match legible(refusal.cause.as_bytes()) {
        said if said.is_empty() => "no cause was given".to_owned(),
        said => said,
    };
    Err(match refusal.kind.as_str() {
        "no-program" => StartError::NoProgram { program: launch.argv.first().cloned().unwrap_or_default(), cause },
        "no-room" => StartError::NoRoom { cause },
        "failed" => StartError::Failed { cause },
        _ => StartError::Unknown { cause },
    })
}
