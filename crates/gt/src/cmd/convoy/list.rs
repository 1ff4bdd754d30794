//! `gt convoy list|stranded`: the convoys, and where work is left that nobody is on.

use clap::Args;
use gt_core::text::one_line;
use gt_core::time;
use gt_store::{ConvoyProgress, Stranded};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::fit;
use crate::render::{BOLD, DIM, GREEN, YELLOW, paint};

/// So much of a title is shown, however narrow the terminal.
const TITLE_COLUMNS_MIN: usize = 12;

/// List convoys and how far they have come
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy list\n  gt convoy list --all --json")]
pub(super) struct ListArgs {
    /// Closed ones too
    #[arg(long)]
    all: bool,
    /// Only those of this status: open, closed, staged:ready, staged:warnings
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
}

/// List open convoys with the beads that are ready and that nobody is on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy stranded\n  gt convoy stranded --json")]
pub(super) struct StrandedArgs {}

pub(super) fn list(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let mut convoys = context.store()?.convoys(args.all || args.status.is_some())?;
    if let Some(status) = &args.status {
        let wanted = status.trim().to_lowercase().replace('_', ":");
        convoys.retain(|convoy| convoy.status.replace('_', ":") == wanted);
    }
    if context.wants_json() {
        return context.json(&convoys.iter().map(convoy_json).collect::<Vec<_>>());
    }
    if convoys.is_empty() {
        let which = if args.all || args.status.is_some() { "" } else { "open " };
        return context
            .say(&format!("No {which}convoys. `gt convoy stage EPIC` plans one, a sling makes one by itself."));
    }
    let id_width = convoys.iter().map(|convoy| fit::columns(&convoy.id)).max().unwrap_or(0);
    let lines: Vec<String> = convoys.iter().map(|convoy| line(convoy, id_width)).collect();
    context.say(&lines.join("\n"))
}

fn line(convoy: &ConvoyProgress, id_width: usize) -> String {
    let ConvoyProgress { id, title, status, n_done, n_deleted, n_total, .. } = convoy;
    let style = match status.as_str() {
        "open" => GREEN,
        "closed" => DIM,
        _ => YELLOW,
    };
    let owned = if convoy.is_owned { "  owned" } else { "" };
    let id = fit::pad(id, id_width);
    let status = format!("{:<15}", one_line(status));
    let progress = format!("{:>7}", format!("{}/{n_total}", n_done - n_deleted));
    let taken = [&id, &status, &progress, owned].map(fit::columns).iter().sum::<usize>() + 5;
    let title = fit::cut(title, fit::width().saturating_sub(taken).max(TITLE_COLUMNS_MIN));
    format!("{}  {} {progress}  {title}{}", paint(BOLD, &id), paint(style, &status), paint(DIM, owned))
}

fn convoy_json(convoy: &ConvoyProgress) -> Value {
    json!({
        "id": convoy.id,
        "title": convoy.title,
        "status": convoy.status,
        "owned": convoy.is_owned,
        "created_at": convoy.created_at.map(time::format),
        "completed": convoy.n_done,
        "total": convoy.n_total,
    })
}

pub(super) fn stranded(context: &Context) -> Result<(), Failure> {
    let convoys = context.store()?.stranded()?;
    if context.wants_json() {
        return context.json(&convoys.iter().map(stranded_json).collect::<Vec<_>>());
    }
    let lines: Vec<String> = convoys.iter().filter(|convoy| !convoy.ready.is_empty()).map(stranded_line).collect();
    if lines.is_empty() {
        return context.say("Nothing is stranded: whatever is ready in an open convoy is in line or being worked on.");
    }
    context.say(&lines.join("\n"))
}

fn stranded_line(convoy: &Stranded) -> String {
    const SHOWN: usize = 10;
    let mut beads = convoy.ready.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if convoy.ready.len() > SHOWN {
        beads.extend([" and ", &(convoy.ready.len() - SHOWN).to_string(), " more"]);
    }
    let way = paint(DIM, "the daemon's next sweep puts them in line; `gt deacon feed-stranded` does it now");
    format!("{}  {}\n  {beads}\n  {way}", paint(BOLD, &convoy.id), one_line(&convoy.title))
}

fn stranded_json(convoy: &Stranded) -> Value {
    json!({
        "id": convoy.id,
        "title": convoy.title,
        "tracked_count": convoy.n_tracked,
        "ready_count": convoy.ready.len(),
        "ready_issues": convoy.ready,
    })
}
