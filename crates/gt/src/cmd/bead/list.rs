//! `gt bead list`.

use clap::Args;
use gt_core::status::Status;
use gt_store::Filter;

use super::{nothing_matches, parse_priority, print_listing};
use crate::context::Context;
use crate::failure::Failure;

/// List beads
///
/// Shows active beads unless told otherwise, the most urgent first, then the oldest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead list
  gt bead list --status closed --limit 20
  gt bead list --label release --assignee ada
  gt bead list --all --limit 0 --json")]
pub(crate) struct ListArgs {
    /// Closed, pinned and deleted ones too
    #[arg(long)]
    all: bool,
    /// Only these statuses
    #[arg(long, short, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<String>,
    /// Only this type
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    issue_type: Option<String>,
    /// Only this priority
    #[arg(long, short, value_parser = parse_priority)]
    priority: Option<i64>,
    /// Only what this one has
    #[arg(long, short, value_name = "WHO")]
    assignee: Option<String>,
    /// Only what nobody has
    #[arg(long)]
    unassigned: bool,
    /// Only with this label; several: all of them
    #[arg(long = "label", short = 'l', alias = "labels", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    /// Only children of this bead
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only beads of this rig
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// Only titles with these words in them
    #[arg(long, value_name = "WORDS")]
    title_contains: Option<String>,
    /// At most so many; 0 means all
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: usize,
}

pub(crate) fn run(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let empty = nothing_matches(
        &args.status,
        args.issue_type.as_deref(),
        "No beads match. `gt create \"…\"` writes one down, `--all` shows finished ones too.",
    );
    let filter = Filter {
        all: args.all || args.status.iter().any(|word| word == "all"),
        statuses: args.status.iter().filter(|word| *word != "all").map(|word| Status::parse(word)).collect(),
        issue_type: args.issue_type,
        priority: args.priority,
        assignee: args.assignee,
        unassigned: args.unassigned,
        labels: args.labels,
        parent: args.parent,
        rig: args.rig,
        title_contains: args.title_contains,
    };
    let listing = context.store()?.list(&filter, args.limit)?;
    print_listing(context, &listing, &empty)
}
