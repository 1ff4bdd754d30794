//! `gt rig`: the repositories of the town. // SPEC T3

use clap::{Args, Subcommand};
use gt_core::event::EventType;
use gt_core::rig::{Rig, RigState};
use gt_engine::rigs::{self, RigRequest};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BOLD, DIM, YELLOW, paint};

/// Register and look after repositories
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig add gastown ~/src/gastown
  gt rig list
  gt rig park gastown")]
pub(crate) struct RigArgs {
    #[command(subcommand)]
    command: RigCommand,
}

#[derive(Debug, Subcommand)]
enum RigCommand {
    Add(AddArgs),
    List(ListArgs),
    Show(ShowArgs),
    Remove(RemoveArgs),
    Park(ParkArgs),
    Unpark(UnparkArgs),
    Dock(DockArgs),
    Undock(UndockArgs),
}

/// Register a git repository
///
/// A local path is used where it is; a URL is cloned into the town. Beads whose id starts with the prefix belong
/// to the rig.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig add gastown ~/src/gastown
  gt rig add shop https://example.org/shop.git --prefix sh --branch develop")]
struct AddArgs {
    /// The rig's name
    name: String,
    /// A path or a URL
    #[arg(value_name = "PATH|URL")]
    source: String,
    /// The prefix of its beads; made from the name if not given
    #[arg(long)]
    prefix: Option<String>,
    /// The branch new work starts from; the repository's default if not given
    #[arg(long)]
    branch: Option<String>,
}

/// List the rigs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig list\n  gt rig list --json")]
struct ListArgs {}

/// Show one rig
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig show gastown")]
struct ShowArgs {
    /// The rig's name
    name: String,
}

/// Take a rig off the registry; its repository and beads stay
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig remove gastown")]
struct RemoveArgs {
    /// The rig's name
    name: String,
    /// Even when it has active beads, which are then without a rig
    #[arg(long)]
    force: bool,
}

/// Stop giving work to a rig for a while
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig park gastown")]
struct ParkArgs {
    /// The rig's name
    name: String,
}

/// Give work to a parked rig again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig unpark gastown")]
struct UnparkArgs {
    /// The rig's name
    name: String,
}

/// Take a rig out of service
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig dock gastown")]
struct DockArgs {
    /// The rig's name
    name: String,
}

/// Put a docked rig back into service
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt rig undock gastown")]
struct UndockArgs {
    /// The rig's name
    name: String,
}

pub(crate) fn run(context: &Context, args: RigArgs) -> Result<(), Failure> {
    match args.command {
        RigCommand::Add(args) => add(context, args),
        RigCommand::List(_) => list(context),
        RigCommand::Show(args) => show(context, &args.name),
        RigCommand::Remove(args) => remove(context, &args),
        RigCommand::Park(args) => set_state(context, &args.name, RigState::Parked, EventType::RigParked),
        RigCommand::Unpark(args) => set_state(context, &args.name, RigState::Active, EventType::RigUnparked),
        RigCommand::Dock(args) => set_state(context, &args.name, RigState::Docked, EventType::RigDocked),
        RigCommand::Undock(args) => set_state(context, &args.name, RigState::Active, EventType::RigUndocked),
    }
}

fn add(context: &Context, args: AddArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let request = RigRequest { name: args.name, source: args.source, prefix: args.prefix, branch: args.branch };
    let new = rigs::add(&town, &mut store, &request, context.is_dry_run(), &context.stamp())?;
    if let Some(warning) = &new.warning {
        context.note(&format!("{} {warning}", paint(YELLOW, "warning:")));
    }
    if context.wants_json() {
        return context.json(&rig_json(&new.rig));
    }
    let Rig { name, prefix, path, branch, .. } = &new.rig;
    context.say(&format!("Registered rig {}: {path}, prefix {prefix}, branch {branch}.", paint(BOLD, name)))
}

fn list(context: &Context) -> Result<(), Failure> {
    let rigs = context.store()?.rigs()?;
    if context.wants_json() {
        return context.json(&rigs.iter().map(rig_json).collect::<Vec<_>>());
    }
    if rigs.is_empty() {
        return context.say("No rigs yet. `gt rig add NAME PATH` registers one.");
    }
    let lines: Vec<String> = rigs.iter().map(line).collect();
    context.say(&lines.join("\n"))
}

fn line(rig: &Rig) -> String {
    let state = if rig.state == RigState::Active { String::new() } else { format!("  {}", rig.state.as_str()) };
    format!("{:<16} {:<8} {}{}", rig.name, rig.prefix, paint(DIM, &rig.path), paint(YELLOW, &state))
}

fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let rig = context.store()?.rig(name)?;
    if context.wants_json() {
        return context.json(&rig_json(&rig));
    }
    let mut text = paint(BOLD, &rig.name);
    let fields = [
        ("prefix", rig.prefix.as_str()),
        ("path", &rig.path),
        ("url", rig.url.as_deref().unwrap_or("")),
        ("branch", &rig.branch),
        ("state", rig.state.as_str()),
    ];
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        text.extend(["\n  ", &paint(DIM, &format!("{name:<7}")), " ", value]);
    }
    context.say(&text)
}

fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    context.store()?.remove_rig(&args.name, args.force, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "rig": args.name, "outcome": "removed" }));
    }
    context.say(&format!("Took rig {} off the registry; its repository and beads stay.", args.name))
}

fn set_state(context: &Context, name: &str, wanted: RigState, event: EventType) -> Result<(), Failure> {
    let mut store = context.store()?;
    let changed = store.set_rig_state(name, wanted, event, &context.stamp())?;
    let state = store.rig(name)?.state; // undocking a parked rig leaves it parked
    if context.wants_json() {
        return context.json(&json!({ "rig": name, "state": state.as_str(), "changed": changed }));
    }
    let aside = match (changed, state == wanted) {
        (true, _) => "",
        (false, true) => " already; nothing was changed",
        (false, false) => "; nothing was changed",
    };
    context.say(&format!("Rig {name} is {}{aside}.", state.as_str()))
}

fn rig_json(rig: &Rig) -> Value {
    json!({
        "name": rig.name,
        "prefix": rig.prefix,
        "path": rig.path,
        "url": rig.url,
        "branch": rig.branch,
        "state": rig.state.as_str(),
    })
}
