//! `gt done`: an agent ends its run. // SPEC P7

use clap::{Args, ValueEnum};
use gt_core::run::Outcome;
use gt_store::Report;
use serde_json::json;

use super::bead::checked_body;
use super::prime::own_run;
use crate::context::Context;
use crate::failure::Failure;

/// End the run of the agent that asks
///
/// Completed closes the bead, or ends the step of a bead that is done step by step. Failed and deferred leave it to others: a failed one is tried again by the rules, a
/// deferred one waits for a person. Work stays on the run's branch.
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
    let run = own_run()?;
    let outcome = match args.status {
        Status::Completed => Outcome::Completed,
        Status::Failed => Outcome::Failed,
        Status::Deferred => Outcome::Deferred,
    };
    let note = args.note.map(|note| checked_body("note", note)).transpose()?;
    let report = Report { run: run.clone(), outcome, note, cost: args.cost, merge: None };
    let mut store = context.store()?;
    let became_ready = store.report(&report, &context.stamp())?;
    let reported = store.run(&run)?;
    let step = reported.as_ref().filter(|run| run.said == Some(Outcome::StepDone)).and_then(|run| run.step.clone());
    let bead = reported.map(|run| run.bead).unwrap_or_default();
    if context.wants_json() {
        return context.json(&json!({ "run": run, "bead": bead, "status": outcome.as_str(), "step": step,
                                     "became_ready": became_ready.clone().unwrap_or_default(),
                                     "changed": became_ready.is_some() }));
    }
    context.say(&match (&became_ready, outcome) {
        (None, _) => format!("{bead} was reported already; nothing was changed."),
        (Some(_), Outcome::Completed) if step.is_some() => {
            let step = gt_core::text::one_line(&step.unwrap_or_default());
            format!("{bead} goes on with its next step; yours is done ({step}). End your process now.")
        }
        (Some(_), Outcome::Failed) => format!("{bead} is given back: it could not be done. End your process now."),
        (Some(_), Outcome::Deferred) => format!("{bead} is put off. End your process now."),
        (Some(ready), _) if ready.is_empty() => format!("{bead} is done. End your process now."),
        (Some(ready), _) => format!("{bead} is done, and {} became ready. End your process now.", ready.join(", ")),
    })
}
