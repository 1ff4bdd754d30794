//! `gt bead create`, `gt create`.

use clap::Args;
use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::rig::{Home, Rig, TOWN_PREFIX, home};
use gt_core::text::one_line;
use gt_store::{NewBead, Store};

use super::texts::TextArgs;
use super::{checked_body, checked_word, parse_priority, parse_type};
use crate::context::{Context, variable};
use crate::failure::Failure;
use crate::render::{self, BOLD, paint};
use crate::when;

/// Write down a piece of work
///
/// The bead belongs to the rig of --rig, of its parent, of GT_RIG, or of the repository you are in; otherwise it
/// is a town bead (hq-…), which is never given to an agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt create \"Fix the login\" --rig gastown --priority 1
  gt create \"Write the tests\" --parent gt-a1b2
  gt create \"Deploy\" --blocked-by gt-a1b2 --type chore --label release")]
pub(crate) struct CreateArgs {
    /// What is to be done, in one line
    title: String,
    /// The rig it belongs to; else GT_RIG
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// task, bug, feature, chore, epic, decision, …
    #[arg(long = "type", short = 't', value_name = "TYPE", value_parser = parse_type)]
    issue_type: Option<String>,
    /// The bead it is a part of
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// 0 is the most urgent, 4 the least
    #[arg(long, short, default_value = "2", value_parser = parse_priority)]
    priority: i64,
    /// A label; may be given more than once
    #[arg(long = "label", short = 'l', alias = "labels", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    #[command(flatten)]
    texts: TextArgs,
    /// Who has it
    #[arg(long, short)]
    assignee: Option<String>,
    /// A bead that must be closed first; may be given more than once
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    blocked_by: Vec<String>,
    /// Not before this time: 2h, 2026-12-01, …
    #[arg(long, value_name = "TIME")]
    defer: Option<String>,
    /// When it is due
    #[arg(long, value_name = "TIME")]
    due: Option<String>,
    /// A short-lived record, not work
    #[arg(long)]
    ephemeral: bool,
    /// Print only the id
    #[arg(long, short, alias = "silent")]
    quiet: bool,
}

pub(crate) fn run(context: &Context, args: CreateArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let quiet = args.quiet;
    let new = new_bead(context, &mut store, args)?;
    let id = store.create_bead(&new, &context.stamp())?;
    let view = store.bead(&id)?;
    match () {
        () if context.wants_json() => context.json(&render::row(&view)),
        () if quiet => context.say(&id),
        () => {
            let place = view.rig.map_or(" (a town bead)".to_owned(), |rig| format!(" in {rig}"));
            let place = if id.starts_with("hq-") || !place.ends_with("bead)") { place } else { " (no rig)".to_owned() };
            let verb = if context.is_dry_run() { "Would create" } else { "Created" };
            context.say(&format!("{verb} {}{place}: {}", paint(BOLD, &id), one_line(&view.bead.title)))
        }
    }
}

fn new_bead(context: &Context, store: &mut Store, args: CreateArgs) -> Result<NewBead, Failure> {
    let mut bead = Bead::new("", args.title);
    bead.priority = args.priority;
    bead.issue_type = Some(args.issue_type.unwrap_or_else(|| "task".to_owned()));
    bead.assignee = args.assignee.map(|who| checked_word("assignee", who)).transpose()?;
    bead.labels = args.labels.into_iter().map(|label| checked_word("label", label)).collect::<Result<_, _>>()?;
    bead.defer_until = args.defer.map(|text| when::parse(&text, context.now())).transpose()?;
    bead.edges = args.blocked_by.into_iter().map(|id| Edge::new(id, EdgeType::Blocks)).collect();
    for (field, words) in args.texts.given() {
        bead.body.put(field, &checked_body(field, words)?);
    }
    if let Some(due) = args.due {
        bead.body.put("due_at", &gt_core::time::format(when::parse(&due, context.now())?));
    }
    bead.set_flag("ephemeral", args.ephemeral);
    let (prefix, binding) = place(store, args.rig.as_deref(), args.parent.as_deref())?;
    bead.rig = binding;
    Ok(NewBead { prefix, parent: args.parent, bead })
}

/// The prefix of the new id, and the rig to bind to where the id alone would not say it.
fn place(store: &mut Store, rig: Option<&str>, parent: Option<&str>) -> Result<(String, Option<String>), Failure> {
    let rigs = store.rigs()?;
    let above = parent.map(|id| store.bead(id)).transpose()?.and_then(|view| view.rig);
    let rig = match (rig, above, variable("GT_RIG")) {
        (Some(name), _, _) => Some(store.rig(name)?),
        (None, Some(name), _) => rigs.iter().find(|rig| rig.name == name).cloned(),
        (None, None, Some(name)) => Some(store.rig(&name)?),
        (None, None, None) => rig_around(&rigs),
    };
    let prefix = rig.as_ref().map_or(TOWN_PREFIX.to_owned(), |rig| rig.prefix.clone());
    // A child has its parent's prefix, whatever rig it is for.
    let inherited = parent.and_then(|id| match home(id, None, &rigs) {
        Home::Rig(rig) => Some(rig.name.clone()),
        Home::Town | Home::Nowhere => None,
    });
    let binding = rig.filter(|_| parent.is_some()).map(|rig| rig.name);
    Ok((prefix, binding.filter(|name| Some(name) != inherited.as_ref())))
}

/// The rig whose repository we stand in; a directory that is gone is in none.
fn rig_around(rigs: &[Rig]) -> Option<Rig> {
    let here = std::env::current_dir().ok()?;
    rigs.iter().find(|rig| here.starts_with(&rig.path)).cloned()
}
