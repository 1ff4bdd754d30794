//! `gt activity`: the event log, once or as it grows. // SPEC B7

use clap::Args;
use gt_core::event::Event;
use gt_core::text::one_line;
use gt_store::Store;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{DIM, paint};
use gt_engine::news::News;

/// Events read at a time.
const BATCH: usize = 1000;

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
    let news = if args.follow { Some(News::of(&town)?) } else { None };
    let mut seq = print_new(context, &mut store, args.since)?;
    let Some(mut news) = news else { return Ok(()) };
    while news.wait(None) {
        seq = print_new(context, &mut store, seq)?;
    }
    Ok(())
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
    // Always as many digits, so that the columns stay where they are.
    let ts = format!("{:.6}", gt_core::time::truncate(event.ts));
    let (actor, bead) = (one_line(&event.actor), event.bead.as_deref().unwrap_or("-"));
    let line = format!("{:>6}  {}  {:<17} {:<14} {actor}", event.seq, paint(DIM, &ts), event.kind, one_line(bead));
    if data.is_empty() { line } else { format!("{line}  {}", paint(DIM, &one_line(&data))) }
}
