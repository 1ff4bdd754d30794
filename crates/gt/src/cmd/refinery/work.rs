//! `gt refinery run`: merges what can be merged now, in the foreground.

use std::process::ExitCode;

use clap::Args;
use gt_core::text::one_line;
use gt_engine::lock::{Holder, Lock};
use gt_engine::refinery::{self, Worked};
use gt_engine::surroundings::Machine;
use gt_engine::tidy::cleared_words;
use gt_engine::{Town, TownError};
use gt_store::{Store, Target};
use serde_json::{Value, json};

use super::status::Queue;
use crate::context::{After, Context};
use crate::failure::{Failure, Kind};
use crate::render::{DIM, GREEN, RED, YELLOW, paint};

/// Merge what can be merged now, with or without a daemon
///
/// What is held up is tried again at once. A branch that somebody else is at is left to them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt refinery run
  gt refinery run --dry-run     look first")]
pub(super) struct RunArgs {}

/// What came of one branch.
struct Tried {
    target: Target,
    worked: Worked,
    /// The process that is at it, if another one is.
    by: Option<u32>,
}

pub(super) fn run(context: &Context) -> Result<ExitCode, Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let before = Queue::look(&town, &mut store)?;
    if context.is_dry_run() {
        return rehearse(context, &before);
    }
    context.note_config(&town, &mut store);
    let tried = work(context, &town, &mut store, &before)?;
    let after = Queue::look(&town, &mut store)?;
    if context.wants_json() {
        context.json(&json!({
            "targets": tried.iter().map(tried_json).collect::<Vec<_>>(),
            "waiting": after.n_waiting(),
        }))?;
    } else {
        context.say(&text(&town, &tried, &after))?;
    }
    context.carry_on(&town, &mut store, After::Command)?;
    let n_done: usize = tried.iter().map(|one| one.worked.merged.len() + one.worked.returned.len()).sum();
    let is_stuck = n_done == 0 && after.n_waiting() > 0;
    Ok(if is_stuck { Kind::NotNow.exit_code() } else { ExitCode::SUCCESS })
}

/// Target by target, also those that are to be left alone for a while: whoever asks may have mended what was wrong.
fn work(context: &Context, town: &Town, store: &mut Store, before: &Queue) -> Result<Vec<Tried>, TownError> {
    if before.targets.iter().any(|view| view.hold.is_some()) {
        store.retry_held_targets(&context.stamp())?;
    }
    let tried = refinery::work_all(&Machine::here(), town, &context.actor())?;
    let one = |(target, worked): (Target, Worked)| Tried {
        by: worked.is_busy.then(|| refinery::at_work(town, &target)).flatten().map(|at| at.pid),
        target,
        worked,
    };
    Ok(tried.into_iter().map(one).collect())
}

fn text(town: &Town, tried: &[Tried], after: &Queue) -> String {
    let mut lines = Vec::new();
    for Tried { target: Target { rig, branch }, worked, by } in tried {
        for bead in &worked.merged {
            lines.push(format!("{} {bead} is merged into {branch} ({rig})", paint(GREEN, "✓")));
        }
        for (bead, reason) in &worked.returned {
            lines.push(format!("{} {bead} comes back: {}", paint(YELLOW, "↩"), one_line(reason)));
        }
        for lock in &worked.unlocked {
            lines.push(format!("{} {}", paint(YELLOW, "!"), cleared_words(lock)));
        }
        lines.extend(worked.resumed.iter().map(|words| format!("{} {words} of {rig}", paint(YELLOW, "!"))));
        if let Some(reason) = &worked.held {
            lines.push(format!("{} {branch} of {rig} is held: {}", paint(RED, "!"), one_line(reason)));
        }
        if worked.is_busy {
            lines.push(format!("{} {} is at {branch} of {rig}", paint(YELLOW, "⏸"), who(town, *by)));
        }
    }
    let is_paused = |rig: &str| after.pause_of(rig).is_some();
    let n_paused: usize =
        after.targets.iter().filter(|view| is_paused(&view.target.rig)).map(|view| view.merges.len()).sum();
    if n_paused > 0 {
        let waits = if n_paused == 1 { "1 merge waits" } else { &format!("{n_paused} merges wait") };
        lines.push(format!("{} {waits} and merging is paused: `gt refinery resume`", paint(YELLOW, "⏸")));
    }
    if lines.is_empty() {
        lines.push(paint(DIM, "Nothing waits to be merged."));
    }
    lines.join("\n")
}

fn who(town: &Town, pid: Option<u32>) -> String {
    let daemon = Lock::Daemon.holder(town).ok().flatten();
    match (pid, daemon) {
        (Some(pid), Some(Holder { pid: Some(other) })) if pid == other => format!("the daemon (process {pid})"),
        (Some(pid), _) => format!("another process ({pid})"),
        (None, _) => "somebody else".to_owned(),
    }
}

fn tried_json(tried: &Tried) -> Value {
    let Tried { target, worked, by } = tried;
    json!({
        "rig": target.rig,
        "target": target.branch,
        "merged": worked.merged,
        "returned": worked.returned.iter().map(|(bead, reason)| json!({ "bead": bead, "reason": reason }))
            .collect::<Vec<_>>(),
        "unlocked": worked.unlocked,
        "resumed": worked.resumed,
        "held": worked.held,
        "busy": worked.is_busy,
        "pid": by,
    })
}

/// What would be tried; whether it can be merged is not known before.
fn rehearse(context: &Context, queue: &Queue) -> Result<ExitCode, Failure> {
    let open = || queue.targets.iter().filter(|view| queue.pause_of(&view.target.rig).is_none());
    if context.wants_json() {
        let tried = open().map(|view| {
            let beads: Vec<&String> = view.merges.iter().map(|merge| &merge.bead).collect();
            json!({ "rig": view.target.rig, "target": view.target.branch, "beads": beads })
        });
        context.json(&json!({ "would_try": tried.collect::<Vec<_>>(), "waiting": queue.n_waiting() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Vec::new();
    for view in open() {
        let Target { rig, branch } = &view.target;
        for merge in &view.merges {
            lines.push(format!("○ {} {} would be tried on {branch} ({rig})", merge.bead, one_line(&merge.title)));
        }
    }
    if lines.is_empty() {
        lines.push(paint(DIM, "Nothing would be tried: `gt refinery status` says why."));
    }
    context.say(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
