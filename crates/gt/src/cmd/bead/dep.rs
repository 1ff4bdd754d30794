//! `gt bead dep`: what waits for what. // SPEC B3, B5

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use gt_core::edge::{Edge, EdgeType, KNOWN_OTHERS, READINESS_TYPES};
use gt_core::near;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{self, GREEN, paint};

/// Say what waits for what
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead dep add gt-b2 gt-a1     gt-b2 waits until gt-a1 is closed
  gt bead dep tree gt-e1")]
pub(crate) struct DepArgs {
    #[command(subcommand)]
    command: DepCommand,
}

#[derive(Debug, Subcommand)]
enum DepCommand {
    Add(AddArgs),
    Remove(RemoveArgs),
    Tree(TreeArgs),
}

/// Make one bead depend on another
///
/// Types that hold a bead back: blocks, conditional-blocks (both: until the other is closed), waits-for (until the
/// other's children are closed), merge-blocks (until the other's work is merged). parent-child makes it a part of
/// the other. tracks, related, discovered-from and the like only say that they have to do with each other.
/// An edge that would close a cycle is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead dep add gt-b2 gt-a1
  gt bead dep add gt-b2 gt-e1 --type waits-for --gate any-children
  gt bead dep add gt-b2 gt-e1 --type parent-child")]
struct AddArgs {
    /// The bead that waits
    #[arg(value_name = "A")]
    source: String,
    /// The bead it waits for
    #[arg(value_name = "B")]
    target: String,
    /// How it depends on it
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "blocks", value_parser = parse_edge_type)]
    kind: EdgeType,
    /// With waits-for: when it opens
    #[arg(long, value_enum)]
    gate: Option<GateArg>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GateArg {
    AllChildren,
    AnyChildren,
}

/// Remove a dependency
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead dep remove gt-b2 gt-a1
  gt bead dep remove gt-b2 gt-a1 --type tracks")]
struct RemoveArgs {
    /// The bead that waits
    #[arg(value_name = "A")]
    source: String,
    /// The bead it waits for
    #[arg(value_name = "B")]
    target: String,
    /// Only of this type; every type if not given
    #[arg(long = "type", short = 't', value_name = "TYPE", value_parser = parse_edge_type)]
    kind: Option<EdgeType>,
}

/// Draw what a bead waits for and what it is made of
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead dep tree gt-e1\n  gt bead dep tree gt-e1 --depth 2 --json")]
struct TreeArgs {
    /// The bead at the top
    id: String,
    /// How deep to go, at most 100
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100))]
    depth: usize,
}

/// Any word is a type, but a near miss of a known one is a mistake.
fn parse_edge_type(word: &str) -> Result<EdgeType, String> {
    let kind = EdgeType::parse(word);
    if kind.is_known() {
        return Ok(kind);
    }
    let known: Vec<&str> = READINESS_TYPES.iter().map(EdgeType::as_str).chain(KNOWN_OTHERS).collect();
    let near = near::closest(&word.replace('_', "-"), known.iter().copied());
    match near.first() {
        Some(near) => Err(format!("there is no such type; did you mean {near}?")),
        None if word.is_empty() || word.chars().count() > 50 || word.chars().any(char::is_control) => {
            Err("a type is one word of at most 50 characters".to_owned())
        }
        None => Ok(kind),
    }
}

pub(crate) fn run(context: &Context, args: DepArgs) -> Result<(), Failure> {
    match args.command {
        DepCommand::Add(args) => add(context, args),
        DepCommand::Remove(args) => remove(context, &args),
        DepCommand::Tree(args) => tree(context, &args),
    }
}

fn add(context: &Context, args: AddArgs) -> Result<(), Failure> {
    let mut edge = Edge::new(args.target, args.kind);
    if let Some(GateArg::AnyChildren) = args.gate {
        edge.extra.put("metadata", &json!({ "gate": "any-children" }));
    }
    let is_new = context.store()?.add_edge(&args.source, &edge, &context.stamp())?;
    if context.wants_json() {
        let (source, target, kind) = (&args.source, &edge.target, edge.kind.as_str());
        return context.json(&json!({ "issue_id": source, "depends_on_id": target, "type": kind, "changed": is_new }));
    }
    let (source, target) = (&args.source, &edge.target);
    let sentence = match &edge.kind {
        EdgeType::ParentChild => format!("{source} is a part of {target}"),
        EdgeType::MergeBlocks => format!("{source} waits for the merge of {target}"),
        EdgeType::WaitsFor => format!("{source} waits for the children of {target}"),
        kind if kind.is_blocking() => format!("{source} waits for {target}"),
        kind => format!("{source} is linked to {target} ({kind})"),
    };
    context.say(&if is_new { format!("{sentence}.") } else { format!("{sentence} already; nothing was changed.") })
}

fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let changed = context.store()?.remove_edges(&args.source, &args.target, args.kind.as_ref(), &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "changed": changed.beads, "became_ready": changed.became_ready }));
    }
    context.say(&format!("{} no longer depends on {}.", args.source, args.target))?;
    if !changed.became_ready.is_empty() {
        context.say(&format!("{} {}", paint(GREEN, "Now ready:"), super::named(&changed.became_ready)))?;
    }
    Ok(())
}

fn tree(context: &Context, args: &TreeArgs) -> Result<(), Failure> {
    let tree = context.store()?.tree(&args.id, args.depth)?;
    if context.wants_json() {
        return context.json(&render::tree_json(&tree));
    }
    context.say(&render::tree(&tree, context.now()))
}
