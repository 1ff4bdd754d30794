//! `gt rig`: the repositories of the town. // SPEC T3

use std::path::Path;

use clap::{Args, Subcommand};
use gt_core::event::EventType;
use gt_core::rig::{Rig, RigState};
use gt_engine::config::join;
use gt_engine::git;
use gt_engine::rigs::{self, RigRequest};
use gt_engine::settings::Settings;
use gt_engine::surroundings::Machine;
use gt_engine::{Town, agents, chain, in_force};
use gt_store::Store;
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
///
/// Agents' work is merged into the branch. It is pushed to the origin only in a clone that gt made, or if you say so:
/// with `--push`, at the terminal, or later with `gt config set rigs.NAME.push true`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig add gastown ~/src/gastown
  gt rig add gastown ~/src/gastown --push
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
    /// Push merged work to the repository's origin
    #[arg(long)]
    push: bool,
    /// Never push: merged work stays in the repository
    #[arg(long, conflicts_with = "push")]
    no_push: bool,
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

/// Take a rig off the registry, with its settings; its repository and beads stay
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
    let wanted = if args.push { Some(true) } else { args.no_push.then_some(false) };
    let request = RigRequest { name: args.name, source: args.source, prefix: args.prefix, branch: args.branch };
    let new = rigs::add(&town, &mut store, &request, context.is_dry_run(), &context.stamp())?;
    if let Some(warning) = &new.warning {
        context.note(&format!("{} {warning}", paint(YELLOW, "warning:")));
    }
    let rig = &new.rig;
    let settings = context.settings_or_defaults(&town, &mut store);
    let is_default = settings.push(rig);
    let has_origin = rig.url.is_some() || git::origin(Path::new(&rig.path))?.is_some();
    let wanted = wanted.or_else(|| (has_origin && !is_default && asks_to_push(context, rig)).then_some(true));
    if let Some(is_wanted) = wanted {
        set_push(context, &mut store, rig, is_wanted)?;
    }
    let is_pushed = wanted.unwrap_or(is_default);
    if context.wants_json() {
        return context.json(&rig_json(rig, is_pushed));
    }
    let Rig { name, prefix, path, branch, .. } = rig;
    let registered = format!("Registered rig {}: {path}, prefix {prefix}, branch {branch}.", paint(BOLD, name));
    let mut lines = vec![registered, merged_work_words(rig, is_pushed, has_origin)];
    // For the first rig: what agents may do is the same in all of them.
    if store.rigs()?.len() <= 1 {
        lines.extend(agent_words(&settings, &town));
    }
    context.say(&lines.join("\n"))
}

/// What the default agent may do without asking, if it is a built-in one.
fn agent_words(settings: &Settings, town: &Town) -> Option<String> {
    let agent = settings.default_agent();
    let is_own = !settings.config.texts(&join(&["agents", &agent, "command"])).is_empty();
    if is_own || agents::PRESETS.iter().all(|preset| preset.name != agent || preset.name == "shell") {
        return None;
    }
    let words = format!(
        "Agents run without permission prompts: {agent} may do all that you may. Change that with \
         `{}` (docs/agents.md).",
        join(&["agents", &agent, "command"])
    );
    let trust =
        format!("\nClaude Code must trust the town once: start `claude` in {} and confirm.", town.root().display());
    Some(if agent == "claude" { words + &trust } else { words })
}

fn asks_to_push(context: &Context, rig: &Rig) -> bool {
    let question =
        format!("Merged work lands on branch {} of {}. Push it to the repository's origin too?", rig.branch, rig.path);
    !context.is_dry_run() && context.is_confirmed(&question)
}

/// Sets whether merged work is pushed. A rig for which that cannot be written is not registered.
fn set_push(context: &Context, store: &mut Store, rig: &Rig, is_wanted: bool) -> Result<(), Failure> {
    if context.is_dry_run() {
        return Ok(());
    }
    let written = super::config::change(context, &push_key(rig), &is_wanted.to_string());
    if written.is_err() {
        store.remove_rig(&rig.name, false, &context.stamp())?;
    }
    written.map(drop)
}

fn push_key(rig: &Rig) -> String {
    join(&["rigs", &rig.name, "push"])
}

/// What becomes of merged work, and how to change that.
fn merged_work_words(rig: &Rig, is_pushed: bool, has_origin: bool) -> String {
    let lands = format!("Merged work lands on branch {} of {}", rig.branch, rig.path);
    let key = push_key(rig);
    match (has_origin, is_pushed) {
        (false, _) => format!("{lands}. It has no origin, so nothing is pushed."),
        (true, true) => format!("{lands} and is pushed to origin. Stop pushing with `gt config set {key} false`."),
        (true, false) => format!("{lands} and is not pushed. Push it to origin with `gt config set {key} true`."),
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let rigs = store.rigs()?;
    if context.wants_json() {
        let settings = context.settings_or_defaults(&town, &mut store);
        return context.json(&rigs.iter().map(|rig| rig_json(rig, settings.push(rig))).collect::<Vec<_>>());
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
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let rig = store.rig(name)?;
    let is_pushed = context.settings_or_defaults(&town, &mut store).push(&rig);
    if context.wants_json() {
        return context.json(&rig_json(&rig, is_pushed));
    }
    let mut text = paint(BOLD, &rig.name);
    let fields = [
        ("prefix", rig.prefix.as_str()),
        ("path", &rig.path),
        ("url", rig.url.as_deref().unwrap_or("")),
        ("branch", &rig.branch),
        ("push", if is_pushed { "merged work is pushed to origin" } else { "merged work is not pushed" }),
        ("state", rig.state.as_str()),
    ];
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        text.extend(["\n  ", &paint(DIM, &format!("{name:<7}")), " ", value]);
    }
    context.say(&text)
}

fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    store.remove_rig(&args.name, args.force, &context.stamp())?;
    let settings_removed = remove_settings(context, &town, &mut store, &args.name);
    if context.wants_json() {
        let answer = json!({ "rig": args.name, "outcome": "removed", "settings_removed": settings_removed });
        return context.json(&answer);
    }
    let settings = if settings_removed { " and its settings out of town.toml" } else { "" };
    context.say(&format!("Took rig {} off the registry{settings}; its repository and beads stay.", args.name))
}

/// Removes the settings of a rig that is no longer registered, unless this is a dry run; says whether there were any.
fn remove_settings(context: &Context, town: &Town, store: &mut Store, rig: &str) -> bool {
    let removed = if context.is_dry_run() {
        in_force::has_rig_settings(town, rig)
    } else {
        in_force::remove_rig_settings(town, store, &*Machine::here(), rig, &context.stamp())
    };
    removed.unwrap_or_else(|error| {
        context.note(&format!("note: the settings of this rig stay in town.toml: {}", chain(&error)));
        false
    })
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

fn rig_json(rig: &Rig, is_pushed: bool) -> Value {
    json!({
        "name": rig.name,
        "prefix": rig.prefix,
        "path": rig.path,
        "url": rig.url,
        "branch": rig.branch,
        "push": is_pushed,
        "state": rig.state.as_str(),
    })
}
