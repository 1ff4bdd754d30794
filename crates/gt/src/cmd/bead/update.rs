//! `gt bead update`.

use clap::Args;
use gt_core::status::Status;
use gt_core::{near, text};
use gt_store::{BeadPatch, Store};

use super::texts::TextArgs;
use super::{checked_body, checked_word, parse_priority, parse_type};
use crate::context::Context;
use crate::dashes;
use crate::failure::Failure;
use crate::render;
use crate::when;

/// Change a bead
///
/// An empty text (\"\") clears a field.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead update gt-a1b2 --priority 0 --assignee ada
  gt bead update gt-a1b2 --claim            take it, unless somebody else has it
  gt bead update gt-a1b2 --defer 2026-12-01
  gt bead update gt-a1b2 --parent gt-e1     make it a part of gt-e1
  gt bead update gt-a1b2 --add-label release")]
pub(crate) struct UpdateArgs {
    /// The bead's id
    id: String,
    /// What is to be done, in one line
    #[arg(long, allow_hyphen_values = true, value_parser = dashes::text)]
    title: Option<String>,
    /// open, in_progress, blocked, deferred, pinned, closed, …
    #[arg(long, short, value_parser = parse_status)]
    status: Option<Status>,
    /// 0 is the most urgent, 4 the least
    #[arg(long, short, value_parser = parse_priority)]
    priority: Option<i64>,
    /// task, bug, feature, chore, epic, decision, …
    #[arg(long = "type", short = 't', value_name = "TYPE", value_parser = parse_type)]
    issue_type: Option<String>,
    /// Who has it
    #[arg(long, short)]
    assignee: Option<String>,
    /// Take it for the actor: of several at once, one wins
    #[arg(long, conflicts_with_all = ["status", "assignee"])]
    claim: bool,
    /// The bead it is a part of
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// The rig it is bound to, whatever its prefix
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// Not before this time: 2h, 2026-12-01, …
    #[arg(long, value_name = "TIME")]
    defer: Option<String>,
    /// When it is due
    #[arg(long, value_name = "TIME")]
    due: Option<String>,
    /// Keep it out of the flow of work, or no longer
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pinned: Option<bool>,
    /// A short-lived record, or no longer
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    ephemeral: Option<bool>,
    /// A label to add; may be given more than once
    #[arg(long = "add-label", value_name = "LABEL", value_delimiter = ',')]
    add_labels: Vec<String>,
    /// A label to take away; may be given more than once
    #[arg(long = "remove-label", value_name = "LABEL", value_delimiter = ',')]
    remove_labels: Vec<String>,
    #[command(flatten)]
    texts: TextArgs,
}

fn parse_status(word: &str) -> Result<Status, String> {
    let status = Status::parse(word);
    if !matches!(status, Status::Custom(_)) {
        return Ok(status);
    }
    let known = Status::NAMED.iter().map(Status::as_str).collect::<Vec<_>>();
    let near = near::closest(word, known.iter().copied());
    Err(match near.first() {
        Some(near) => format!("there is no such status; did you mean {near}?"),
        None => format!("there is no such status; use one of {}", known.join(", ")),
    })
}

pub(crate) fn run(context: &Context, args: UpdateArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let (id, claim) = (args.id.clone(), args.claim);
    let patch = patch(context, &mut store, args)?;
    let stamp = context.stamp();
    let changed = store.update_bead(&id, &patch, &stamp)?;
    let view = store.bead(&id)?;
    if context.wants_json() {
        return context.json(&render::row(&view));
    }
    context.say(&match (claim, !changed.beads.is_empty()) {
        (true, true) if context.is_dry_run() => format!("{} would have {id}.", context.actor()),
        (false, true) if context.is_dry_run() => format!("{id} would be updated."),
        (true, true) => format!("{} has {id}.", context.actor()),
        (false, true) => format!("{id} updated."),
        (true, false) => format!("{} has {id} already; nothing was changed.", context.actor()),
        (false, false) => format!("{id} is like that already; nothing was changed."),
    })?;
    let others: Vec<String> = changed.became_ready.into_iter().filter(|ready| *ready != id).collect();
    if !others.is_empty() {
        super::say_ready(context, &others)?;
    }
    Ok(())
}

fn patch(context: &Context, store: &mut Store, args: UpdateArgs) -> Result<BeadPatch, Failure> {
    let assignee = args.assignee.map(|who| clearable(who, |who| checked_word("assignee", who))).transpose()?;
    let rig = args.rig.map(|name| clearable(name, |name| Ok(store.rig(&name)?.name))).transpose()?;
    let defer = args.defer.map(|time| clearable(time, |time| when::parse(&time, context.now()))).transpose()?;
    let due = args.due.map(|time| clearable(time, |time| when::parse(&time, context.now()))).transpose()?;
    let mut patch = BeadPatch {
        claim_for: args.claim.then(|| context.actor()),
        title: args.title,
        status: args.status,
        priority: args.priority,
        issue_type: args.issue_type,
        assignee,
        defer_until: defer,
        rig,
        pinned: args.pinned,
        ephemeral: args.ephemeral,
        parent: args.parent.map(|id| Some(id).filter(|id| !id.is_empty())),
        texts: Vec::new(),
        add_labels: args.add_labels,
        remove_labels: args.remove_labels,
    };
    for (field, words) in args.texts.given() {
        patch.texts.push((field, clearable(words, |words| checked_body(field, words))?));
    }
    patch.texts.extend(due.map(|at| ("due_at", at.map(gt_core::time::format))));
    Ok(patch)
}

/// An empty text clears; any other is checked.
fn clearable<T>(words: String, check: impl FnOnce(String) -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    if text::one_line(&words).trim().is_empty() { Ok(None) } else { check(words).map(Some) }
}
