//! `gt lane`: how many turns run at once, and where. // SPEC L1

use clap::{Args, Subcommand};
use gt_core::lane::POLECAT;
use gt_core::text::one_line;
use gt_engine::config::join;
use gt_engine::talk::shape;
use gt_store::LaneFigure;
use serde_json::json;

use super::config;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{DIM, YELLOW, paint};

/// See and set lanes: named limits for how many turns run at once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt lane list
  gt lane set main 4
  gt lane set research 8           makes a lane of your own
  GT_LANE_MAIN=4 gt daemon run     the same for one daemon")]
pub(crate) struct LaneArgs {
    #[command(subcommand)]
    command: LaneCommand,
}

#[derive(Debug, Subcommand)]
enum LaneCommand {
    List(ListArgs),
    Set(SetArgs),
}

/// List lanes with what runs and waits in them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt lane list
  gt lane list --json")]
struct ListArgs {}

/// Set how many run at once in a lane, and make it if it is not there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt lane set main 4
  gt lane set polecat 10           the scheduler's cap")]
struct SetArgs {
    #[arg(value_name = "LANE")]
    name: String,
    /// How many run at once; at least 1
    #[arg(value_name = "N")]
    limit: u32,
}

pub(crate) fn run(context: &Context, args: LaneArgs) -> Result<(), Failure> {
    match args.command {
        LaneCommand::List(ListArgs {}) => list(context),
        LaneCommand::Set(args) => set(context, &args),
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let town = context.town()?;
    let policy = context.settings(&town)?.policy(town.root());
    let lanes = context.store()?.lanes(&policy)?;
    if context.wants_json() {
        return context.json(&lanes.iter().map(shape::lane).collect::<Vec<_>>());
    }
    let width = lanes.iter().map(|lane| one_line(&lane.name).chars().count()).max().unwrap_or(0);
    let line = |lane: &LaneFigure| {
        let limit = lane.limit.map_or("no limit".to_owned(), |limit| format!("of {limit}"));
        let waiting = format!("{} waiting", lane.pending);
        let waiting = if lane.pending > 0 { paint(YELLOW, &waiting) } else { paint(DIM, &waiting) };
        format!("{:<width$}  {:>3} running {limit:<8}  {waiting}", one_line(&lane.name), lane.active)
    };
    context.say(&lanes.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn set(context: &Context, args: &SetArgs) -> Result<(), Failure> {
    let name = one_line(&args.name);
    let key = if args.name == POLECAT { "scheduler.max_polecats".to_owned() } else { join(&["lanes", &args.name]) };
    if args.limit == 0 {
        return Err(Failure::new(
            Kind::Refused,
            format!("a lane runs at least one at a time, so `{name}` cannot have 0"),
        )
        .hint("hold everything with `gt scheduler pause`"));
    }
    config::change(context, &key, &args.limit.to_string())?;
    if context.wants_json() {
        return context.json(&json!({ "name": args.name, "limit": args.limit }));
    }
    context.say(&format!("{name} runs up to {} at once.", args.limit))
}
