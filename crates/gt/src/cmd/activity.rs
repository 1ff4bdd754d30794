//! `gt activity`: the event log, once or as it grows. // SPEC B7

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use gt_core::event::Event;
use gt_core::text::one_line;
use gt_engine::Town;
use gt_store::Store;
use notify::{RecursiveMode, Watcher};

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{DIM, paint};

/// Events read at a time.
const BATCH: usize = 1000;

/// How long after a write the log is looked at again.
const SOON: Duration = Duration::from_millis(5);
/// How often it is looked at when nothing is heard of.
const RARELY: Duration = Duration::from_secs(30);

/// Show what happened in the town
///
/// Every change is an event with a sequence number. With --json each event is one object on a line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt activity                     everything so far
  gt activity --since 120         what came after event 120
  gt activity --follow --json     a feed for another program")]
pub(crate) struct ActivityArgs {
    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    since: i64,
    /// Keep printing as things happen
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(context: &Context, args: &ActivityArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = town.open_store()?;
    // Watching starts before the first read, so nothing falls between the two.
    let changes = if args.follow { Some(watch(&town)?) } else { None };
    let mut seq = print_new(context, &mut store, args.since)?;
    let Some((_watcher, changes)) = changes else { return Ok(()) };
    let mut pause = SOON;
    loop {
        // A write is heard of before its commit can be seen: look again, soon at first, then ever more rarely,
        // in the end only when something else is written.
        pause = match wait(&changes, pause) {
            Ok(()) => SOON,
            Err(RecvTimeoutError::Timeout) => pause * 2,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        while changes.try_recv().is_ok() {} // one read serves them all
        seq = print_new(context, &mut store, seq)?;
    }
}

/// Waits for news: for `pause`, or, when that has grown long, for as long as it takes.
fn wait(changes: &mpsc::Receiver<()>, pause: Duration) -> Result<(), RecvTimeoutError> {
    if pause <= RARELY { changes.recv_timeout(pause) } else { changes.recv().map_err(RecvTimeoutError::from) }
}

/// Prints everything after `seq`; returns the last number printed.
fn print_new(context: &Context, store: &mut Store, mut seq: i64) -> Result<i64, Failure> {
    loop {
        let events = store.events(seq, BATCH)?;
        for event in &events {
            if context.wants_json() {
                context.json(event)?;
            } else {
                context.say(&line(event))?;
            }
        }
        match events.last() {
            Some(last) => seq = last.seq,
            None => return Ok(seq),
        }
    }
}

fn line(event: &Event) -> String {
    let data = if event.data.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        event.data.to_string()
    };
    let ts = gt_core::time::format(event.ts);
    let (actor, bead) = (one_line(&event.actor), event.bead.as_deref().unwrap_or("-"));
    let line = format!("{:>6}  {}  {:<17} {:<14} {actor}", event.seq, paint(DIM, &ts), event.kind, one_line(bead));
    if data.is_empty() { line } else { format!("{line}  {}", paint(DIM, &one_line(&data))) }
}

type Watch = (notify::RecommendedWatcher, mpsc::Receiver<()>);

/// Hears of every write to the store, whoever makes it.
fn watch(town: &Town) -> Result<Watch, Failure> {
    let (sender, receiver) = mpsc::channel();
    let failed = |error: notify::Error| {
        Failure::new(Kind::Unreachable, format!("cannot watch {}: {error}", town.state_dir().display()))
    };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the store also touches its files; only writes are news. A reader that is gone needs no news.
        if event.is_ok_and(|event| event.kind.is_modify() || event.kind.is_create()) {
            sender.send(()).unwrap_or_default();
        }
    })
    .map_err(failed)?;
    watcher.watch(&town.state_dir(), RecursiveMode::NonRecursive).map_err(failed)?;
    Ok((watcher, receiver))
}
