//! `gt convoy check|close|land|cancel`: how a convoy ends.

use clap::Args;
use gt_store::Checked;
use serde_json::json;

use super::n_beads;
use crate::context::Context;
use crate::failure::Failure;

/// Land what is complete
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy check\n  gt convoy check hq-cv-a1b2c --dry-run")]
pub(super) struct CheckArgs {
    /// The convoy; else every one
    convoy: Option<String>,
}

/// Close a convoy by hand
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy close hq-cv-a1b2c --reason \"no longer needed\"")]
pub(super) struct CloseArgs {
    /// The convoy
    convoy: String,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
    /// Though beads in it are open
    #[arg(long, short)]
    force: bool,
}

/// Land a convoy that you own
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy land hq-cv-a1b2c")]
pub(super) struct LandArgs {
    /// The convoy
    convoy: String,
    /// Though beads in it are open
    #[arg(long, short)]
    force: bool,
}

/// End a convoy, and take off the queue what has not started
///
/// Whoever works goes on. Beads of another convoy stay in line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy cancel hq-cv-a1b2c --reason \"wrong plan\"")]
pub(super) struct CancelArgs {
    /// The convoy
    convoy: String,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn check(context: &Context, args: &CheckArgs) -> Result<(), Failure> {
    let checked = context.store()?.check_convoys(args.convoy.as_deref(), &context.stamp())?;
    if context.wants_json() {
        let line = |one: &Checked| {
            json!({ "id": one.convoy.id, "title": one.convoy.title, "status": one.convoy.status,
                    "landed": one.has_landed, "completed": one.convoy.n_done, "total": one.convoy.n_total })
        };
        return context.json(&checked.iter().map(line).collect::<Vec<_>>());
    }
    if checked.is_empty() {
        return context.say("No open convoys.");
    }
    let lines: Vec<String> = checked.iter().map(outcome).collect();
    context.say(&lines.join("\n"))
}

fn outcome(checked: &Checked) -> String {
    let convoy = &checked.convoy;
    let left = usize::try_from(convoy.n_total - convoy.n_done).unwrap_or(0);
    let id = &convoy.id;
    match convoy.status.as_str() {
        _ if checked.has_landed => format!("{id} has landed: {}", convoy.title),
        "closed" => format!("{id} is closed."),
        "open" if convoy.n_total == 0 => format!("{id} is empty, and does not land by itself."),
        "open" if left == 0 && convoy.is_owned => {
            format!("{id} is complete, and its owner's to land: `gt convoy land {id}`")
        }
        "open" => format!("{id} waits for {} of {}.", left, convoy.n_total),
        status => format!("{id} is {status}."),
    }
}

pub(super) fn close(context: &Context, args: &CloseArgs) -> Result<(), Failure> {
    let reason = args.reason.as_deref();
    let changed = context.store()?.close_convoy(&args.convoy, reason, args.force, &context.stamp())?;
    tell_end(context, &args.convoy, "closed", changed)
}

pub(super) fn land(context: &Context, args: &LandArgs) -> Result<(), Failure> {
    let changed = context.store()?.land_convoy(&args.convoy, args.force, &context.stamp())?;
    tell_end(context, &args.convoy, "landed", changed)
}

fn tell_end(context: &Context, convoy: &str, how: &str, changed: bool) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "id": convoy, "outcome": how, "changed": changed }));
    }
    let ended = if how == "landed" { "landed" } else { "been closed" };
    context.say(&if changed {
        format!("Convoy {convoy} has {ended}.")
    } else {
        format!("Convoy {convoy} is closed already; nothing was changed.")
    })
}

pub(super) fn cancel(context: &Context, args: &CancelArgs) -> Result<(), Failure> {
    let withdrawn = context.store()?.cancel_convoy(&args.convoy, args.reason.as_deref(), &context.stamp())?;
    let changed = withdrawn.is_some();
    let withdrawn = withdrawn.unwrap_or_default();
    if context.wants_json() {
        return context.json(&json!({ "id": args.convoy, "changed": changed, "withdrawn": withdrawn.beads,
                                     "running": withdrawn.running }));
    }
    if !changed {
        return tell_end(context, &args.convoy, "closed", false);
    }
    let mut text =
        format!("Convoy {} is cancelled; {} taken off the queue.", args.convoy, n_beads(withdrawn.beads.len()));
    if !withdrawn.running.is_empty() {
        let running = withdrawn.running.join(", ");
        text.extend(["\nStill being worked on: ", &running, "; `gt polecat stop NAME` ends a worker."]);
    }
    context.say(&text)
}
