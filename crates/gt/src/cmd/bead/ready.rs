//! `gt bead ready`, `gt ready`.

use clap::Args;
use gt_store::ReadyFilter;

use super::{nothing_matches, parse_priority, print_listing};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{self, BOLD, paint};

/// List what could be worked on now
///
/// The most urgent first, then the oldest. A bead is ready when it is open, nothing holds it or a parent of it
/// back, and it is neither pinned, deferred, short-lived nor bookkeeping.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt ready
  gt ready --rig gastown --unassigned
  gt ready --claim --actor ada     take the first one nobody has
  gt ready --json --limit 0")]
pub(crate) struct ReadyArgs {
    /// Only beads of this rig
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// Only what this one has
    #[arg(long, short, value_name = "WHO")]
    assignee: Option<String>,
    /// Only what nobody has; beats --assignee
    #[arg(long, short)]
    unassigned: bool,
    /// Only this type
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    issue_type: Option<String>,
    /// Only this priority
    #[arg(long, short, value_parser = parse_priority)]
    priority: Option<i64>,
    /// Only with this label; several: all of them
    #[arg(long = "label", short = 'l', alias = "labels", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    /// Also what is deferred into the future
    #[arg(long)]
    include_deferred: bool,
    /// Also short-lived records
    #[arg(long)]
    include_ephemeral: bool,
    /// Take the first one nobody has, for the actor
    #[arg(long, conflicts_with_all = ["include_deferred", "include_ephemeral"])]
    claim: bool,
    /// At most so many; 0 means all
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
}

pub(crate) fn run(context: &Context, args: ReadyArgs) -> Result<(), Failure> {
    let usual = "Nothing is ready. `gt bead blocked` shows what waits for what.";
    let empty = nothing_matches(&[], args.issue_type.as_deref(), usual);
    let filter = ReadyFilter {
        assignee: args.assignee,
        unassigned: args.unassigned,
        issue_type: args.issue_type,
        priority: args.priority,
        labels: args.labels,
        rig: args.rig,
        include_deferred: args.include_deferred,
        include_ephemeral: args.include_ephemeral,
    };
    if args.claim {
        return claim(context, &filter);
    }
    let listing = context.store()?.ready(&filter, args.limit, context.now())?;
    print_listing(context, &listing, &empty)
}

fn claim(context: &Context, filter: &ReadyFilter) -> Result<(), Failure> {
    let mut store = context.store()?;
    let actor = context.actor();
    let Some(id) = store.claim_first_ready(filter, &actor, &context.stamp())? else {
        return if context.wants_json() {
            context.json(&serde_json::Value::Null)
        } else {
            context.say("Nothing is ready that nobody has; nothing was claimed.")
        };
    };
    let view = store.bead(&id)?;
    if context.wants_json() {
        return context.json(&render::row(&view));
    }
    let title = gt_core::text::one_line(&view.bead.title);
    context.say(&format!("{actor} has {}: {title}", paint(BOLD, &id)))
}
