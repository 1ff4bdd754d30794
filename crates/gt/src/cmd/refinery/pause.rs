//! `gt refinery pause|resume`: the switch, for a rig or for all.

use clap::Args;
use gt_core::text::one_line;
use gt_core::time;
use gt_store::{RefineryPause, Store};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;

/// Merge nothing more, in one rig or in all; what is being merged comes to its end
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt refinery pause
  gt refinery pause shop --reason \"release day\"")]
pub(super) struct PauseArgs {
    /// Only this rig
    rig: Option<String>,
    /// Why, for everybody to see
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

/// Go on merging, in one rig or in all
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt refinery resume\n  gt refinery resume shop")]
pub(super) struct ResumeArgs {
    /// Only this rig
    rig: Option<String>,
}

pub(super) fn pause(context: &Context, args: &PauseArgs) -> Result<(), Failure> {
    if let Some(reason) = &args.reason {
        gt_core::text::check_body("reason", reason)?;
    }
    let mut store = context.store()?;
    let rig = known(&mut store, args.rig.as_deref())?;
    let changed = store.pause_refinery(rig.as_deref(), args.reason.as_deref(), &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "paused": true, "rig": rig, "changed": changed }));
    }
    let what = rig.as_ref().map(|rig| format!(" in {rig}")).unwrap_or_default();
    let again = rig.as_ref().map(|rig| format!(" {rig}")).unwrap_or_default();
    if changed {
        return context.say(&format!(
            "Nothing more is merged{what}; what is under way comes to its end. `gt refinery resume{again}` goes on."
        ));
    }
    let pause = store.refinery_pauses()?.into_iter().find(|pause| pause.rig == rig);
    let by = pause.map(|pause| whose(&pause)).unwrap_or_default();
    context.say(&format!("It is paused already{what}{by}; nothing was changed."))
}

pub(super) fn resume(context: &Context, args: &ResumeArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let rig = known(&mut store, args.rig.as_deref())?;
    let changed = store.resume_refinery(rig.as_deref(), &context.stamp())?;
    let all = store.refinery_pauses()?.into_iter().find(|pause| pause.rig.is_none());
    if context.wants_json() {
        return context.json(&json!({ "paused": all.is_some(), "rig": rig, "changed": changed }));
    }
    let what = rig.as_ref().map(|rig| format!(" in {rig}")).unwrap_or_default();
    context.say(&match (changed, all) {
        (_, Some(pause)) => {
            let and = if changed { "" } else { "; nothing was changed" };
            format!("Every rig is paused{}{and}: `gt refinery resume`.", whose(&pause))
        }
        (true, None) => format!("Merging goes on{what}."),
        (false, None) => format!("It was not paused{what}; nothing was changed."),
    })?;
    if changed && !store.merges(false)?.is_empty() {
        context.note_missing_refinery(&town);
    }
    Ok(())
}

/// A rig that there is.
fn known(store: &mut Store, rig: Option<&str>) -> Result<Option<String>, Failure> {
    Ok(rig.map(|rig| store.rig(rig)).transpose()?.map(|rig| rig.name))
}

fn whose(pause: &RefineryPause) -> String {
    format!(" by {} since {}", one_line(&pause.by), time::format(pause.at))
}
