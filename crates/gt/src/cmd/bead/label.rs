//! `gt bead label`.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;

/// Add, remove and list labels
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead label add gt-a1b2 release\n  gt bead label list gt-a1b2")]
pub(crate) struct LabelArgs {
    #[command(subcommand)]
    command: LabelCommand,
}

#[derive(Debug, Subcommand)]
enum LabelCommand {
    Add(AddArgs),
    Remove(RemoveArgs),
    List(ListArgs),
}

/// Add labels to a bead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead label add gt-a1b2 release urgent")]
struct AddArgs {
    /// The bead's id
    id: String,
    /// Labels
    #[arg(required = true, value_name = "LABEL")]
    labels: Vec<String>,
}

/// Remove labels from a bead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead label remove gt-a1b2 urgent")]
struct RemoveArgs {
    /// The bead's id
    id: String,
    /// Labels
    #[arg(required = true, value_name = "LABEL")]
    labels: Vec<String>,
}

/// List a bead's labels
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead label list gt-a1b2")]
struct ListArgs {
    /// The bead's id
    id: String,
}

pub(crate) fn run(context: &Context, args: LabelArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let stamp = context.stamp();
    let (id, changed) = match args.command {
        LabelCommand::Add(args) => (args.id.clone(), Some(store.relabel(&args.id, &args.labels, &[], &stamp)?)),
        LabelCommand::Remove(args) => (args.id.clone(), Some(store.relabel(&args.id, &[], &args.labels, &stamp)?)),
        LabelCommand::List(args) => (args.id, None),
    };
    let labels = store.bead(&id)?.bead.labels;
    if context.wants_json() {
        return context.json(&json!({ "id": id, "labels": labels, "changed": changed.unwrap_or(false) }));
    }
    let shown = if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") };
    context.say(&match changed {
        Some(false) => format!("{id} is like that already ({shown}); nothing was changed."),
        Some(true) | None => format!("{id}: {shown}"),
    })
}
