//! `gt polecat peek|logs|attach|send`: a worker's screen, and its log where it has none. // SPEC P5, P8

use std::io::{IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;

use gt_core::text::many_lines;
use gt_engine::places::Screen;
use gt_engine::{Town, TownError};
use gt_runtime::terminal::Sent;
use gt_store::Run;
use serde_json::json;

use super::{AttachArgs, PeekArgs, SendArgs, Worker, find, log_of, open};
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// The most bytes of a log that `peek` reads.
const PEEK_BYTES: u64 = 64 * 1024;
/// More than any screen has, with what has left it.
const SCREEN_LINES: usize = 100_000;

pub(super) fn peek(context: &Context, args: &PeekArgs) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, &args.name)?;
    let live = worker.run.as_ref().filter(|run| run.is_live());
    let n_lines = args.lines as usize;
    let shown = match live {
        Some(run) => Screen::of(&town, &settings.config, run).peek(n_lines)?,
        None => None,
    };
    let text = match shown {
        Some(text) => text,
        None => tail(&worker, &town, n_lines)?,
    };
    let text = text.trim_end_matches('\n');
    if context.wants_json() {
        return context.json(&json!({ "name": worker.polecat.name, "rig": worker.polecat.rig, "text": text }));
    }
    context.say(&many_lines(text))
}

/// The last lines of its log.
fn tail(worker: &Worker, town: &Town, n_lines: usize) -> Result<String, Failure> {
    let mut log = log_of(worker, town)?;
    let failed = |source| TownError::Io { doing: "read", path: town.logs_dir(), source };
    let length = log.seek(SeekFrom::End(0)).map_err(failed)?;
    log.seek(SeekFrom::Start(length.saturating_sub(PEEK_BYTES))).map_err(failed)?;
    let mut bytes = Vec::new();
    log.take(PEEK_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(n_lines)..].join("\n"))
}

/// All that its live or last run has printed. What is on a screen is written down when its run ends.
pub(super) fn logs(context: &Context, name: &str) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, name)?;
    let mut log = log_of(&worker, &town)?;
    let is_empty = log.metadata().is_ok_and(|data| data.len() == 0);
    let shown = match worker.run.as_ref().filter(|run| is_empty && run.is_live()) {
        Some(run) => {
            Some(many_lines(&Screen::of(&town, &settings.config, run).peek(SCREEN_LINES)?.unwrap_or_default()))
        }
        None => None,
    };
    if !context.wants_json() {
        return match shown {
            Some(shown) => context.copy(&mut shown.as_bytes()),
            None => context.copy(&mut log),
        };
    }
    let mut bytes = shown.unwrap_or_default().into_bytes();
    log.read_to_end(&mut bytes).map_err(|source| TownError::Io { doing: "read", path: town.logs_dir(), source })?;
    let run = worker.run.as_ref().map(|run| &run.id);
    let text = String::from_utf8_lossy(&bytes);
    context.json(&json!({ "name": worker.polecat.name, "rig": worker.polecat.rig, "run": run, "text": text }))
}

/// Becomes the terminal's client; comes back only if that cannot be.
pub(super) fn attach(context: &Context, args: &AttachArgs) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, &args.name)?;
    let run = live(&worker)?;
    let command = Screen::of(&town, &settings.config, run).attach_command()?;
    let mut command = command.ok_or_else(|| no_screen(&worker))?;
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if context.wants_json() {
        return context.json(&json!({ "name": worker.polecat.name, "rig": worker.polecat.rig, "command": words }));
    }
    if context.is_dry_run() {
        return context.say(&words.join(" "));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::new(Kind::Refused, "attaching needs a terminal, and this is none")
            .hint(format!("see its screen with `gt polecat peek {}`", args.name)));
    }
    drop(store);
    context.note("Leave it running with Ctrl-b d.");
    let error = command.exec();
    Err(Failure::new(Kind::Refused, format!("cannot start `{}`: {error}", words[0])))
}

pub(super) fn send(context: &Context, args: &SendArgs) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, &args.name)?;
    let run = live(&worker)?;
    let who = format!("{}/{}", worker.polecat.rig, worker.polecat.name);
    if context.is_dry_run() {
        return context.say(&format!("It would be typed into the terminal of {who}."));
    }
    let sent = Screen::of(&town, &settings.config, run).send(&args.text)?;
    let sent = sent.ok_or_else(|| no_screen(&worker))?;
    if context.wants_json() {
        let outcome = if sent == Sent::Shown { "shown" } else { "unseen" };
        return context.json(&json!({ "polecat": who, "outcome": outcome }));
    }
    match sent {
        Sent::Shown => context.say(&format!("{who} was told.")),
        Sent::Unseen => context
            .say(&format!("It was typed and submitted, but {who} did not show it: `gt polecat peek {}`", args.name)),
    }
}

/// The run that has a screen, if anything has.
fn live(worker: &Worker) -> Result<&Run, Failure> {
    worker.run.as_ref().filter(|run| run.is_live()).ok_or_else(|| {
        let name = format!("{}/{}", worker.polecat.rig, worker.polecat.name);
        Failure::new(Kind::Refused, format!("{name} has no run"))
            .hint(format!("what its last one printed: `gt polecat logs {name}`"))
    })
}

fn no_screen(worker: &Worker) -> Failure {
    let name = format!("{}/{}", worker.polecat.rig, worker.polecat.name);
    Failure::new(Kind::Refused, format!("{name} runs without a terminal"))
        .hint(format!("see what it prints with `gt polecat peek {name}`"))
}
