//! `gt done`: an agent ends its run. // SPEC P7, M1

use clap::{Args, ValueEnum};
use gt_core::run::Outcome;
use gt_engine::done::{self, Done, Word};
use gt_engine::refinery::Worked;
use gt_engine::surroundings::Machine;
use gt_store::{Merge, Run};
use serde_json::json;

use super::bead::checked_body;
use super::prime::own_run;
use crate::context::Context;
use crate::failure::Failure;

/// End the run of the agent that asks
///
/// Completed work goes to the refinery, which merges it and closes the bead; with other strategies, and where there is no
/// branch, the bead closes at once. A bead that is done step by step goes on with its next step. Failed and deferred leave the
/// work to others: a failed one is tried again by the rules, a deferred one waits for a person. Commits stay on the run's branch.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt done
  gt done --note \"three tables are enough\"
  gt done --status failed --note \"the API does not exist\"")]
pub(crate) struct DoneArgs {
    /// How it ended
    #[arg(long, value_enum, default_value = "completed", ignore_case = true)]
    status: Status,
    /// What to remember
    #[arg(long, short, value_name = "TEXT")]
    note: Option<String>,
    /// What it has cost, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    cost: Option<f64>,
    /// There was nothing to change, and that is all right
    #[arg(long)]
    no_changes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Status {
    Completed,
    Failed,
    Deferred,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(cost) if cost.is_finite() && (0.0..=1_000_000.0).contains(&cost) => Ok(cost),
        _ => Err("it must be an amount such as 1.25".to_owned()),
    }
}

pub(crate) fn run(context: &Context, args: DoneArgs) -> Result<(), Failure> {
    let outcome = match args.status {
        Status::Completed => Outcome::Completed,
        Status::Failed => Outcome::Failed,
        Status::Deferred => Outcome::Deferred,
    };
    let note = args.note.map(|note| checked_body("note", note)).transpose()?;
    let is_rehearsal = context.is_dry_run();
    let word = Word { run: own_run()?, outcome, note, cost: args.cost, no_changes: args.no_changes, is_rehearsal };
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let settings = context.settings_or_defaults(&town);
    let done = done::done(&Machine::here(), &town, &settings, &mut store, &word, &context.stamp())?;
    let reported = store.run(&word.run)?;
    let step = reported.as_ref().filter(|run| run.said == Some(Outcome::StepDone)).and_then(|run| run.step.clone());
    let bead = reported.as_ref().map(|run| run.bead.clone()).unwrap_or_default();
    if context.wants_json() {
        let became_ready = match &done {
            Done::Reported { became_ready, .. } => became_ready.clone(),
            _ => Vec::new(),
        };
        let merge = match &done {
            Done::Queued { merge } | Done::Tried { merge, .. } => Some(&merge.id),
            _ => None,
        };
        return context.json(&json!({ "run": word.run, "bead": bead, "status": outcome.as_str(), "step": step,
                                     "became_ready": became_ready, "merge": merge,
                                     "changed": !matches!(done, Done::Before) }));
    }
    let is_done = reported.as_ref().is_some_and(|run: &Run| run.is_bead_done);
    context.say(&words(&bead, outcome, &done, step.as_deref(), is_done))
}

fn words(bead: &str, outcome: Outcome, done: &Done, step: Option<&str>, is_done: bool) -> String {
    match (done, outcome) {
        (Done::Before, _) => format!("{bead} was reported already; nothing was changed."),
        (Done::Queued { merge: Merge { target, id, .. } }, _) => {
            format!("{bead} is done and waits to be merged into {target} ({id}). End your process now.")
        }
        (Done::Closed { kept_on: None }, _) => format!("{bead} was closed meanwhile. End your process now."),
        (Done::Closed { kept_on: Some(branch) }, _) => {
            format!(
                "{bead} was closed meanwhile; your commits stay on {branch}, and nobody merges them. End your process now."
            )
        }
        (Done::Tried { merge, worked }, _) => tried(bead, merge, worked),
        (Done::Reported { .. }, Outcome::Completed) if step.is_some() => {
            let step = gt_core::text::one_line(step.unwrap_or_default());
            format!("{bead} goes on with its next step; yours is done ({step}). End your process now.")
        }
        (Done::Reported { .. }, Outcome::Failed) => {
            format!("{bead} is given back: it could not be done. End your process now.")
        }
        (Done::Reported { .. }, Outcome::Deferred) => format!("{bead} is put off. End your process now."),
        (Done::Reported { became_ready, kept_on }, _) => {
            let ready = match became_ready.as_slice() {
                [] => String::new(),
                ready => format!(", and {} became ready", ready.join(", ")),
            };
            let branch = kept_on.as_ref().filter(|_| is_done).map(|branch| format!("; its work stays on {branch}"));
            format!("{bead} is done{ready}{}. End your process now.", branch.unwrap_or_default())
        }
    }
}

fn tried(bead: &str, merge: &Merge, worked: &Worked) -> String {
    let target = &merge.target;
    let returned = worked.returned.iter().find(|(other, _)| other == bead);
    match (returned, &worked.held) {
        _ if worked.merged.iter().any(|merged| merged == bead) => {
            format!("{bead} is merged into {target}. End your process now.")
        }
        (Some((_, reason)), _) => format!("{bead} comes back: {reason}. Others go on with it. End your process now."),
        (None, Some(reason)) => {
            format!("{bead} is done and waits to be merged into {target}: {reason}. End your process now.")
        }
        (None, None) => format!("{bead} is done and waits to be merged into {target}. End your process now."),
    }
}
