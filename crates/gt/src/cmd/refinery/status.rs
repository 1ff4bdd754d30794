//! `gt refinery status`: per branch how many wait, who is at it, what holds it up; what came back.

use std::collections::BTreeMap;

use clap::Args;
use gt_core::merge::MergeState;
use gt_core::text::one_line;
use gt_core::time;
use gt_engine::refinery::{self, AtWork};
use gt_engine::{Town, TownError};
use gt_store::{Merge, RefineryPause, Store, Target, TargetHold};
use serde_json::{Value, json};

use super::merge_json;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Show what waits, what is being merged, and what is held up
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt refinery status\n  gt refinery status --json")]
pub(super) struct StatusArgs {}

/// The whole queue.
pub(crate) struct Queue {
    pub(crate) targets: Vec<TargetView>,
    pub(crate) pauses: Vec<RefineryPause>,
    pub(crate) returned: Vec<Merge>,
}

/// One branch that something waits for.
pub(crate) struct TargetView {
    pub(crate) target: Target,
    pub(crate) merges: Vec<Merge>,
    pub(crate) hold: Option<TargetHold>,
    pub(crate) at_work: Option<AtWork>,
}

impl Queue {
    pub(crate) fn look(town: &Town, store: &mut Store) -> Result<Queue, TownError> {
        let mut by_target: BTreeMap<Target, Vec<Merge>> = BTreeMap::new();
        for merge in store.merges(false)? {
            let target = Target { rig: merge.rig.clone(), branch: merge.target.clone() };
            by_target.entry(target).or_default().push(merge);
        }
        let mut holds: BTreeMap<Target, TargetHold> = store.target_holds()?.into_iter().collect();
        let view = |(target, merges): (Target, Vec<Merge>)| TargetView {
            hold: holds.remove(&target),
            at_work: refinery::at_work(town, &target),
            target,
            merges,
        };
        let targets = by_target.into_iter().map(view).collect();
        Ok(Queue { targets, pauses: store.refinery_pauses()?, returned: store.returned_merges()? })
    }

    pub(crate) fn n_waiting(&self) -> usize {
        self.targets.iter().map(|view| view.merges.len()).sum()
    }

    pub(crate) fn pause_of(&self, rig: &str) -> Option<&RefineryPause> {
        self.pauses.iter().find(|pause| pause.rig.as_deref().is_none_or(|name| name == rig))
    }
}

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let queue = Queue::look(&town, &mut store)?;
    if context.wants_json() {
        return context.json(&queue_json(&queue));
    }
    context.say(&text(&queue))?;
    if queue.targets.iter().any(|view| queue.pause_of(&view.target.rig).is_none()) {
        context.note_missing_refinery(&town);
    }
    Ok(())
}

fn text(queue: &Queue) -> String {
    let mut lines = vec![paint(BOLD, "Refinery")];
    if queue.pauses.is_empty() {
        lines.push(format!("  State:  {}", paint(GREEN, "active")));
    }
    lines.extend(queue.pauses.iter().map(|pause| format!("  State:  {}", paint(YELLOW, &pause_words(pause)))));
    lines.push(format!("  Queued: {} to merge, {} came back", queue.n_waiting(), queue.returned.len()));
    for view in &queue.targets {
        lines.extend(target_lines(queue, view));
    }
    lines.extend(queue.returned.iter().map(returned_line));
    lines.join("\n")
}

/// The lines of the town's one screen: each branch, and what came back.
pub(crate) fn screen_lines(queue: &Queue) -> Vec<String> {
    let targets = queue.targets.iter().map(|view| target_lines(queue, view).join("\n"));
    targets.chain(queue.returned.iter().map(returned_line)).collect()
}

fn target_lines(queue: &Queue, view: &TargetView) -> Vec<String> {
    let TargetView { target: Target { rig, branch }, merges, hold, at_work } = view;
    let n_open = merges.iter().filter(|merge| merge.state == MergeState::Requested).count();
    let n_waiting = merges.len() - n_open;
    let waiting = (n_waiting > 0).then(|| format!("{n_waiting} {} to be merged", verb(n_waiting, "waits", "wait")));
    let open = (n_open > 0).then(|| format!("{n_open} {} for a pull request", verb(n_open, "waits", "wait")));
    let counts: Vec<String> = waiting.into_iter().chain(open).collect();
    let mut lines = vec![format!("  ○ {}: {}", paint(BOLD, &format!("{rig}, into {branch}")), counts.join(", "))];
    if let Some(AtWork { pid, merges }) = at_work {
        let what = if merges.is_empty() { String::new() } else { format!(": {}", few(merges)) };
        lines.push(format!("      {} process {pid} is at it{what}", paint(BLUE, "▶")));
    }
    if let Some(pause) = queue.pause_of(rig) {
        lines.push(format!("      {} {}", paint(YELLOW, "⏸"), pause_words(pause)));
    }
    lines.extend(hold.as_ref().map(|hold| format!("      {}", hold_words(hold))));
    lines
}

/// A target that only a person can set free, if this is one.
pub(crate) fn held_line(view: &TargetView) -> Option<String> {
    let Target { rig, branch } = &view.target;
    let hold = view.hold.as_ref().filter(|hold| refinery::needs_a_person(hold))?;
    Some(format!("merging into {branch} of {rig} is held: {}", one_line(&hold.reason)))
}

pub(super) fn hold_words(hold: &TargetHold) -> String {
    let (since, until) = (time::format(hold.since), time::format(hold.until));
    let sign = if refinery::needs_a_person(hold) { paint(RED, "!") } else { paint(YELLOW, "⏸") };
    format!("{sign} held since {since}: {}; next try {until}", one_line(&hold.reason))
}

fn pause_words(pause: &RefineryPause) -> String {
    let what = pause.rig.as_ref().map(|rig| format!("{rig} is ")).unwrap_or_default();
    let why = pause.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    format!("{what}PAUSED by {} since {}{why}", one_line(&pause.by), time::format(pause.at))
}

fn returned_line(merge: &Merge) -> String {
    let why = one_line(merge.reason.as_deref().unwrap_or("no reason was given"));
    let rework = merge.rework.as_ref().map(|rework| format!("; {rework} is about it")).unwrap_or_default();
    let (bead, title) = (&merge.bead, one_line(&merge.title));
    format!("  {} {bead} {title}\n      {}", paint(YELLOW, "↩"), paint(DIM, &format!("came back: {why}{rework}")))
}

fn verb(n: usize, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

/// The first three ids, and how many more.
fn few(ids: &[String]) -> String {
    let shown = ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

pub(crate) fn queue_json(queue: &Queue) -> Value {
    json!({
        "waiting": queue.n_waiting(),
        "paused": queue.pauses.iter().any(|pause| pause.rig.is_none()),
        "pauses": queue.pauses.iter().map(pause_json).collect::<Vec<_>>(),
        "targets": targets_json(queue),
        "returned": queue.returned.iter().map(merge_json).collect::<Vec<_>>(),
    })
}

fn targets_json(queue: &Queue) -> Vec<Value> {
    let target = |view: &TargetView| {
        let n_open = view.merges.iter().filter(|merge| merge.state == MergeState::Requested).count();
        json!({
            "rig": view.target.rig,
            "target": view.target.branch,
            "waiting": view.merges.len() - n_open,
            "requested": n_open,
            "merges": view.merges.iter().map(|merge| &merge.id).collect::<Vec<_>>(),
            "working": view.at_work.as_ref().map(|at| json!({ "pid": at.pid, "merges": at.merges })),
            "held": view.hold.as_ref().map(|hold| json!({
                "reason": hold.reason,
                "since": time::format(hold.since),
                "until": time::format(hold.until),
                "tries": hold.tries,
                "needs_person": refinery::needs_a_person(hold),
            })),
            "paused": queue.pause_of(&view.target.rig).is_some(),
        })
    };
    queue.targets.iter().map(target).collect()
}

fn pause_json(pause: &RefineryPause) -> Value {
    json!({ "rig": pause.rig, "by": pause.by, "at": time::format(pause.at), "reason": pause.reason })
}
