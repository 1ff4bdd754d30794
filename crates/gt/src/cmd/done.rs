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
use crate::failure::{Failure, Kind};

/// End the run of the agent that asks
///
/// Completed work goes to the refinery, which merges it and closes the bead; with other strategies, and where there is no
/// branch, the bead closes at once. A bead that is done step by step goes on with its next step. Failed and deferred leave the
/// work to others: a failed one is tried again by the rules, a deferred one waits for a person. Commits stay on the run's branch.
///
/// Whoever works again on what could not be merged brings its commits along, by a merge, rebase or cherry-pick. If the new
/// work takes their place instead, say why with `--replaces`; otherwise the bead that it was made for stays open.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt done
  gt done --note \"three tables are enough\"
  gt done --status failed --note \"the API does not exist\"
  gt done --replaces \"the parser is gone, so its fix is not needed\"")]
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
    /// Your work takes the place of the commits that could not be merged, because of this
    #[arg(long, value_name = "WHY", conflicts_with = "no_changes")]
    replaces: Option<String>,
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
    let replaces = args.replaces.map(|why| checked_body("reason", why)).transpose()?;
    if replaces.is_some() && outcome != Outcome::Completed {
        return Err(Failure::new(Kind::Usage, "`--replaces` is about work that is completed"));
    }
    let (run, is_rehearsal) = (own_run()?, context.is_dry_run());
    let word = Word { run, outcome, note, cost: args.cost, no_changes: args.no_changes, replaces, is_rehearsal };
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let settings = context.settings_or_defaults(&town, &mut store);
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
            Done::Queued { merge, .. } | Done::Tried { merge, .. } => Some(&merge.id),
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
        (Done::Queued { merge: Merge { target, id, .. }, left_out }, _) => {
            let waits = format!("{bead} is done and waits to be merged into {target} ({id}).");
            format!("{waits}{} End your process now.", left_out_words(left_out, true))
        }
        (Done::Closed { kept_on: None }, _) => format!("{bead} was closed meanwhile. End your process now."),
        (Done::Closed { kept_on: Some(branch) }, _) => {
            format!(
                "{bead} was closed meanwhile; your commits stay on {branch}, and nobody merges them. End your process now."
            )
        }
        (Done::Tried { merge, worked, left_out }, _) => tried(bead, merge, worked) + &left_out_words(left_out, false),
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

/// What becomes of the beads that a rework was made for and whose commits it has not.
fn left_out_words(left_out: &[String], is_waiting: bool) -> String {
    let (stays, their) = if left_out.len() == 1 { ("stays", "its") } else { ("stay", "their") };
    let way_on = if is_waiting {
        " If this work takes their place, say so before it is merged: `gt done --replaces WHY`."
    } else {
        ""
    };
    match left_out {
        [] => String::new(),
        beads => format!(" {} {stays} open: {their} commits are not part of this work.{way_on}", beads.join(", ")),
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
