//! Whom it concerns that work was recovered, or cannot go on: letters and notices. // SPEC R1–R3, P5
//!
//! Each is put into the transaction of what it tells of, so that neither comes without the other.

use std::fmt::Write as _;

use gt_core::agent::Need;
use gt_core::event::EventType;
use gt_core::run::Outcome;
use gt_core::text::one_line;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::dispatch::merges::Merge;
use crate::dispatch::records::Record;
use crate::dispatch::runs::Run;
use crate::error::Result;
use crate::mail::{self, DEACON, MAYOR, NewLetter};
use crate::notices;
use crate::store::Stamp;

/// The deacon is told of a run that ended without a word, whose bead was released.
pub(crate) fn recovered(
    tx: &Connection,
    run: &Run,
    outcome: Outcome,
    reason: &str,
    last_output: Option<&str>,
    stamp: &Stamp,
) -> Result<()> {
    if !matches!(outcome, Outcome::Died | Outcome::TimedOut | Outcome::Lost) || gt_core::defect!("recovery-untold") {
        return Ok(());
    }
    let mut body = format!("{}\n\n{}", one_line(&run.title), of_run(run, run.branch.as_deref()));
    note(&mut body, "ended", &format!("{}: {reason}", outcome.as_str()));
    note_output(&mut body, last_output);
    send(tx, DEACON, &format!("RECOVERED_BEAD {}", run.bead), body, run, stamp)
}

/// The mayor is asked: as many runs as may have ended unfinished.
pub(crate) fn out_of_attempts(
    tx: &Connection,
    run: &Run,
    record: &Record,
    last_output: Option<&str>,
    stamp: &Stamp,
) -> Result<()> {
    let mut body = format!("{}\n\n{} attempts ended unfinished.\n\n", one_line(&run.title), record.attempts);
    body.push_str(&of_run(run, record.branch.as_deref()));
    if let Some(last) = &record.last_failure {
        note(&mut body, "last", last);
    }
    note(&mut body, "then", &format!("gt scheduler retry {}", run.bead));
    note_output(&mut body, last_output);
    let subject = no_more_attempts(&run.bead);
    if !gt_core::defect!("mayor-not-asked") {
        send(tx, MAYOR, &subject, body, run, stamp)?;
    }
    let text = format!("{subject}: {}", one_line(&run.title));
    let data = json!({ "attempts": record.attempts, "reason": record.last_failure, "branch": record.branch,
                       "run": run.id, "rig": run.rig });
    notices::put(tx, EventType::BeadEscalated, Some(&run.bead), &text, &data, stamp)
}

/// The mayor is asked: what came back is worked on by nobody.
pub(crate) fn not_merged(tx: &Connection, merge: &Merge, why: &str, stamp: &Stamp) -> Result<()> {
    let subject = format!("{} is not merged", merge.bead);
    let mut body =
        format!("{}\n\nIts work is not merged, and nobody works on it again: {why}.\n\n", one_line(&merge.title));
    for (name, value) in [("bead", &merge.bead), ("merge", &merge.id), ("branch", &merge.branch)] {
        note(&mut body, name, value);
    }
    note(&mut body, "then", &format!("gt scheduler retry {0}, or gt close {0}", merge.bead));
    let run = Some(merge.run.clone());
    let letter =
        NewLetter { to: MAYOR.to_owned(), subject: subject.clone(), body, bead: Some(merge.bead.clone()), run };
    mail::put(tx, &letter, stamp)?;
    let data = json!({ "reason": why, "branch": merge.branch, "rig": merge.rig });
    notices::put(tx, EventType::BeadEscalated, Some(&merge.bead), &format!("{subject}: {why}"), &data, stamp)
}

/// Whether the mayor was asked, when this run was the last that could be.
pub(crate) fn is_mayor_asked(tx: &Connection, run: &Run) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM mail WHERE recipient = ?1 AND run = ?2 AND subject = ?3)";
    Ok(tx.prepare_cached(sql)?.query_row([MAYOR, &run.id, &no_more_attempts(&run.bead)], |row| row.get(0))?)
}

fn no_more_attempts(bead: &str) -> String {
    format!("{bead} is out of attempts")
}

/// The mayor is asked: every start has failed.
pub(crate) fn circuit_broken(tx: &Connection, bead: &str, n_failures: i64, error: &str, stamp: &Stamp) -> Result<()> {
    let subject = format!("the circuit of {bead} is broken");
    let body = format!("{n_failures} starts have failed.\n\nlast: {error}\nthen: gt scheduler retry {bead}\n");
    let letter = NewLetter { to: MAYOR.to_owned(), subject, body, bead: Some(bead.to_owned()), run: None };
    mail::put(tx, &letter, stamp)?;
    let text = format!("the circuit of {bead} is broken: {}", one_line(error));
    let data = json!({ "failures": n_failures, "error": error });
    notices::put(tx, EventType::BeadEscalated, Some(bead), &text, &data, stamp)
}

/// The mayor is asked by an agent, or by anybody.
pub(crate) fn asked(tx: &Connection, bead: &str, run: Option<&str>, words: &str, stamp: &Stamp) -> Result<()> {
    let letter = NewLetter {
        to: MAYOR.to_owned(),
        subject: format!("{bead} needs a person"),
        body: words.to_owned(),
        bead: Some(bead.to_owned()),
        run: run.map(str::to_owned),
    };
    mail::put(tx, &letter, stamp)?;
    let text = format!("{bead} needs a person: {}", one_line(words));
    notices::put(tx, EventType::BeadEscalated, Some(bead), &text, &json!({ "text": words, "run": run }), stamp)
}

/// A run waits for somebody.
pub(crate) fn waiting(tx: &Connection, run: &Run, need: Need, data: &Value, stamp: &Stamp) -> Result<()> {
    let text = format!("{}/{} {} on {}", run.rig, run.polecat, need.words(), run.bead);
    notices::put(tx, EventType::RunWaiting, Some(&run.bead), &text, data, stamp)
}

/// A run has been silent for too long.
pub(crate) fn stalled(tx: &Connection, run: &Run, data: &Value, stamp: &Stamp) -> Result<()> {
    let text = format!("{}/{} gives no sign of life on {}", run.rig, run.polecat, run.bead);
    notices::put(tx, EventType::RunStalled, Some(&run.bead), &text, data, stamp)
}

fn send(tx: &Connection, to: &str, subject: &str, body: String, run: &Run, stamp: &Stamp) -> Result<()> {
    let letter = NewLetter {
        to: to.to_owned(),
        subject: subject.to_owned(),
        body,
        bead: Some(run.bead.clone()),
        run: Some(run.id.clone()),
    };
    mail::put(tx, &letter, stamp).map(drop)
}

fn of_run(run: &Run, branch: Option<&str>) -> String {
    let mut text = String::new();
    note(&mut text, "bead", &run.bead);
    note(&mut text, "polecat", &format!("{}/{}", run.rig, run.polecat));
    note(&mut text, "run", &run.id);
    if let Some(branch) = branch {
        note(&mut text, "branch", branch);
    }
    text
}

fn note_output(text: &mut String, last_output: Option<&str>) {
    if let Some(output) = last_output {
        text.push_str("\nlast output:\n");
        text.extend(output.lines().map(|line| format!("    {line}\n")));
    }
}

fn note(text: &mut String, name: &str, value: &str) {
    writeln!(text, "{name}: {value}").expect("a string takes everything");
}
