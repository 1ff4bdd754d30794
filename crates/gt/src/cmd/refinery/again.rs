//! `gt refinery retry|drop`: a merge that goes into line again, or out of it.

use std::path::Path;

use clap::Args;
use gt_core::text::one_line;
use gt_engine::refinery::{self, NotRetried};
use gt_engine::surroundings::Machine;
use gt_runtime::merge;
use gt_store::Merge;
use serde_json::json;

use super::short;
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Put a merge that came back or was dropped into line again
///
/// What is merged is the branch as it is now, so mend it first. A bead that was made to work on it again is closed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt refinery retry gt-mr-a1b2")]
pub(super) struct RetryArgs {
    /// The merge's id
    id: String,
}

/// Take a merge out of the queue: its bead is open again, its branch stays
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt refinery drop gt-mr-a1b2 --reason \"we do not want it\"")]
pub(super) struct DropArgs {
    /// The merge's id
    id: String,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn retry(context: &Context, args: &RetryArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let tried = refinery::retry(&*Machine::here(), &town, &args.id, context.is_dry_run(), &context.stamp());
    let (merge, tip) = tried.map_err(|error| match error {
        NotRetried::BranchGone { merge, repository } => branch_gone(&repository, &merge),
        NotRetried::Town(error) => error.into(),
    })?;
    if context.wants_json() {
        return context.json(&json!({
            "id": merge.id, "bead": merge.bead, "state": "waiting", "branch": merge.branch, "commit": tip,
        }));
    }
    let moved = if tip == merge.tip { "as it was" } else { "as it is now" };
    context.say(&format!(
        "{} waits to be merged into {} again: {} {moved}, at {}.",
        merge.bead,
        merge.target,
        merge.branch,
        short(&tip)
    ))?;
    context.note_missing_refinery(&town);
    Ok(())
}

fn branch_gone(repository: &Path, merge: &Merge) -> Failure {
    let gone = format!("the branch `{}` of {} is gone", merge.branch, merge.id);
    let there = repository.display();
    match merge::find_commit(repository, &merge.tip) {
        Ok(Some(commit)) => {
            Failure::new(Kind::Refused, format!("{gone}; its commit {} is still there", short(&commit)))
                .hint(format!("make it again with `git -C {there} branch {} {commit}`, then retry", merge.branch))
        }
        _ => Failure::new(Kind::Refused, format!("{gone}, and so is its commit {}", short(&merge.tip))).hint(
            match &merge.patch {
                Some(patch) => format!("its commits are in {} (`git am`)", one_line(patch)),
                None => format!("sling its bead again: `gt sling {}`", merge.bead),
            },
        ),
    }
}

pub(super) fn drop_one(context: &Context, args: &DropArgs) -> Result<(), Failure> {
    if let Some(reason) = &args.reason {
        gt_core::text::check_body("reason", reason)?;
    }
    let mut store = context.store()?;
    let merge = store.merge(&args.id)?;
    let reason = args.reason.clone().unwrap_or_else(|| format!("{} dropped it", context.actor()));
    store.drop_merge(&merge.id, &reason, &context.stamp())?;
    if context.wants_json() {
        return context
            .json(&json!({ "id": merge.id, "bead": merge.bead, "state": "dropped", "branch": merge.branch }));
    }
    let Merge { id, bead, branch, .. } = &merge;
    let status = store.bead(bead)?.bead.status;
    let bead = if status.is_active() { format!("{bead} is open again") } else { format!("{bead} stays as it is") };
    let request = merge
        .request
        .as_deref()
        .map(|request| format!(" Its pull request {} is still open: close it where it is.", one_line(request)));
    context.say(&format!(
        "{id} will not be merged; {bead}, and its commits stay on {branch}.{} `gt refinery retry {id}` puts it back.",
        request.unwrap_or_default()
    ))
}
