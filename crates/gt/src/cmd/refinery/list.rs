//! `gt refinery list|show`: merges one by one.

use std::collections::BTreeMap;

use clap::Args;
use gt_core::merge::MergeState;
use gt_core::text::one_line;
use gt_core::time;
use gt_store::{Merge, Target, TargetHold};
use serde_json::{Value, json};

use super::short;
use super::status::hold_words;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BLUE, BOLD, DIM, GREEN, YELLOW, paint};

/// List what waits to be merged, in its order
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt refinery list
  gt refinery list --all --rig shop
  gt refinery list --json")]
pub(super) struct ListArgs {
    /// Also what was merged, came back or was dropped
    #[arg(long)]
    all: bool,
    /// Only what goes to this rig
    #[arg(long, value_name = "RIG")]
    rig: Option<String>,
}

/// Show one merge
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt refinery show gt-mr-a1b2\n  gt refinery show gt-mr-a1b2 --json")]
pub(super) struct ShowArgs {
    /// The merge's id
    id: String,
}

pub(super) fn list(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    if let Some(rig) = &args.rig {
        store.rig(rig)?;
    }
    let mut merges = store.merges(args.all)?;
    merges.retain(|merge| args.rig.as_ref().is_none_or(|rig| merge.rig == *rig));
    if context.wants_json() {
        return context.json(&merges.iter().map(merge_json).collect::<Vec<_>>());
    }
    if merges.is_empty() {
        let more = if args.all { "" } else { " `--all` shows what was merged or came back." };
        let where_to = args.rig.as_ref().map(|rig| format!(" in {rig}")).unwrap_or_default();
        let what = if args.all { "was ever handed over to be merged" } else { "waits to be merged" };
        return context.say(&format!("Nothing {what}{where_to}.{more}"));
    }
    let mut by_target: BTreeMap<(&str, &str), Vec<&Merge>> = BTreeMap::new();
    for merge in &merges {
        by_target.entry((&merge.rig, &merge.target)).or_default().push(merge);
    }
    let holds: BTreeMap<Target, TargetHold> = store.target_holds()?.into_iter().collect();
    let mut lines = Vec::new();
    for ((rig, target), merges) in by_target {
        lines.push(paint(BOLD, &format!("{rig}, into {target}")));
        let hold = holds.get(&Target { rig: rig.to_owned(), branch: target.to_owned() });
        let hold = hold.filter(|_| merges.iter().any(|merge| merge.state.is_live()));
        lines.extend(hold.map(|hold| format!("  {}", hold_words(hold))));
        lines.extend(merges.into_iter().map(line));
    }
    context.say(&lines.join("\n"))?;
    if merges.iter().any(|merge| merge.state.is_live()) {
        context.note_missing_refinery(&town);
    }
    Ok(())
}

fn line(merge: &Merge) -> String {
    let sign = match merge.state {
        MergeState::Waiting => "○".to_owned(),
        MergeState::Requested => paint(BLUE, "▶"),
        MergeState::Merged => paint(GREEN, "✓"),
        MergeState::Returned => paint(YELLOW, "↩"),
        MergeState::Dropped => paint(DIM, "✗"),
    };
    let Merge { id, bead, title, .. } = merge;
    format!("  {sign} {id}  {bead} {}\n      {}", one_line(title), paint(DIM, &standing(merge)))
}

/// Where a merge is, in words.
fn standing(merge: &Merge) -> String {
    let Merge { queued_at, ended_at, .. } = merge;
    let ended = ended_at.map(time::format).unwrap_or_default();
    let reason = one_line(merge.reason.as_deref().unwrap_or("no reason was given"));
    match merge.state {
        MergeState::Waiting => format!("waits since {}", time::format(*queued_at)),
        MergeState::Requested => {
            format!("waits for the pull request {}", one_line(merge.request.as_deref().unwrap_or("?")))
        }
        MergeState::Merged => format!("merged in {} at {ended}", short(merge.merged.as_deref().unwrap_or("?"))),
        MergeState::Returned => match &merge.rework {
            Some(rework) => format!("came back at {ended}: {reason}; {rework} is about it"),
            None => format!("came back at {ended}: {reason}"),
        },
        MergeState::Dropped => format!("dropped at {ended}: {reason}"),
    }
}

pub(super) fn show(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let merge = context.store()?.merge(&args.id)?;
    if context.wants_json() {
        return context.json(&merge_json(&merge));
    }
    let head = format!("{} · {}", paint(BOLD, &merge.id), paint(BOLD, &one_line(&merge.title)));
    context.say(&(head + &card(&merge)))
}

/// All there is to say of a merge, line by line, each after a line break.
pub(crate) fn card(merge: &Merge) -> String {
    let fields = [
        ("state", Some(merge.state.as_str().to_owned())),
        ("bead", Some(merge.bead.clone())),
        ("run", Some(merge.run.clone())),
        ("into", Some(format!("{} of {}", merge.target, merge.rig))),
        ("branch", Some(merge.branch.clone())),
        ("commit", Some(merge.tip.clone())),
        ("strategy", Some(merge.strategy.as_str().to_owned())),
        ("queued", Some(time::format(merge.queued_at))),
        ("ended", merge.ended_at.map(time::format)),
        ("request", merge.request.clone()),
        ("merged in", merge.merged.clone()),
        ("reason", merge.reason.clone()),
        ("rework", merge.rework.clone()),
        ("patch", merge.patch.clone()),
        ("replaces", merge.replaces.clone()),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("\n  {} {}", paint(DIM, &format!("{name:<11}")), one_line(&value)))
    };
    fields.into_iter().filter_map(line).collect()
}

pub(crate) fn merge_json(merge: &Merge) -> Value {
    json!({
        "id": merge.id,
        "bead": merge.bead,
        "title": merge.title,
        "run": merge.run,
        "rig": merge.rig,
        "target": merge.target,
        "branch": merge.branch,
        "commit": merge.tip,
        "strategy": merge.strategy.as_str(),
        "state": merge.state.as_str(),
        "queued_at": time::format(merge.queued_at),
        "ended_at": merge.ended_at.map(time::format),
        "reason": merge.reason,
        "merged": merge.merged,
        "request": merge.request,
        "rework": merge.rework,
        "patch": merge.patch,
        "replaces": merge.replaces,
    })
}
