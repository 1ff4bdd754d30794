//! `gt deacon feed-stranded`: what is ready in open convoys, and nobody took. // SPEC R2, C5

use std::time::Duration;

use clap::Args;
use gt_core::text::one_line;
use gt_core::time;
use gt_store::FedConvoy;
use serde_json::{Value, json};

use super::{duration, signed};
use crate::context::{After, Context};
use crate::failure::{Failure, Kind};

/// Put ready work of open convoys in line that nobody took
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt deacon feed-stranded
  gt deacon feed-stranded --max 10 --cooldown 0s
  gt deacon feed-stranded --dry-run --json")]
pub(super) struct FeedArgs {
    /// Convoys at the most; else deacon.feed_max
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max: Option<u32>,
    /// How long a convoy is left alone that was fed; else deacon.feed_cooldown
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    cooldown: Option<Duration>,
}

pub(super) fn run(context: &Context, args: &FeedArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let cooldown = args.cooldown.unwrap_or_else(|| settings.config.duration("deacon.feed_cooldown"));
    let max = args.max.map_or_else(|| settings.config.integer("deacon.feed_max"), i64::from);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut store = context.open(&town)?;
    let found = store.feed_stranded(signed(cooldown), max, &context.stamp())?;
    if let Some(until) = only_cooling(&found) {
        let message = format!("every stranded convoy was fed a while ago; the next may be at {}", time::format(until));
        return Err(Failure::new(Kind::NotNow, message).hint("`--cooldown 0s` does not wait"));
    }
    if context.wants_json() {
        context.json(&json!({ "convoys": found.iter().map(convoy_json).collect::<Vec<_>>() }))?;
    } else if found.is_empty() {
        return context.say("No convoy is stranded.");
    } else {
        for convoy in &found {
            context.say(&line(convoy))?;
        }
    }
    context.carry_on(&town, &mut store, After::Command)
}

/// When the first of them may be fed, if all of them have to wait.
fn only_cooling(found: &[FedConvoy]) -> Option<jiff::Timestamp> {
    let is_waiting = found.iter().all(|convoy| convoy.cooling_until.is_some());
    found.iter().filter_map(|convoy| convoy.cooling_until).min().filter(|_| is_waiting)
}

fn line(convoy: &FedConvoy) -> String {
    let title = one_line(&convoy.title);
    match convoy.cooling_until {
        Some(until) => format!("{} {title}: left alone until {}", convoy.id, time::format(until)),
        None => format!("Fed {} {title}: {}", convoy.id, convoy.beads.join(", ")),
    }
}

fn convoy_json(convoy: &FedConvoy) -> Value {
    json!({
        "id": convoy.id,
        "title": convoy.title,
        "beads": convoy.beads,
        "cooling_until": convoy.cooling_until.map(time::format),
    })
}
