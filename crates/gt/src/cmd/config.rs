//! `gt config`: the town's settings. // SPEC T5

use clap::{Args, Subcommand};
use gt_core::event::EventType;
use gt_engine::TownError;
use gt_engine::config::{Edit, Setting, Source, Value};
use gt_store::Store;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BOLD, DIM, paint};

/// Read and change settings
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config list
  gt config set scheduler.max_polecats 3
  gt config get scheduler.max_polecats")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Get(GetArgs),
    Set(SetArgs),
    Unset(UnsetArgs),
    List(ListArgs),
}

/// Print one setting, with its default applied
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt config get scheduler.max_polecats")]
struct GetArgs {
    /// For example scheduler.max_polecats
    key: String,
}

/// Change a setting in town.toml; comments there are kept
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config set scheduler.max_polecats 3
  gt config set rigs.gastown.isolation none
  gt config set rigs.gastown.gates '[\"cargo test\"]'")]
struct SetArgs {
    /// For example scheduler.max_polecats
    key: String,
    /// The new value
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Go back to a setting's default
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt config unset scheduler.max_polecats")]
struct UnsetArgs {
    /// For example scheduler.max_polecats
    key: String,
}

/// List every setting with its value and meaning
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt config list\n  gt config list --json")]
struct ListArgs {}

pub(crate) fn run(context: &Context, args: ConfigArgs) -> Result<(), Failure> {
    match args.command {
        ConfigCommand::Get(args) => get(context, &args.key),
        ConfigCommand::Set(args) => set(context, &args),
        ConfigCommand::Unset(args) => unset(context, &args.key),
        ConfigCommand::List(_) => list(context),
    }
}

fn get(context: &Context, key: &str) -> Result<(), Failure> {
    let setting = context.town()?.config_file().load().and_then(|config| config.get(key)).map_err(TownError::from)?;
    if context.wants_json() {
        return context.json(&setting_json(&setting));
    }
    context.say(&setting.value.map(|value| value.to_string()).unwrap_or_default())
}

fn set(context: &Context, args: &SetArgs) -> Result<(), Failure> {
    let setting = change(context, &args.key, &args.value)?;
    if context.wants_json() {
        return context.json(&setting_json(&setting));
    }
    let value = setting.value.map(|value| value.to_string()).unwrap_or_default();
    context.say(&format!("Set {} = {value}", setting.key))
}

/// Sets a key, whoever asks for it, and records that.
pub(crate) fn change(context: &Context, key: &str, value: &str) -> Result<Setting, Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?; // first: a change that cannot be recorded is not made
    let edit = town.config_file().plan_set(key, value).map_err(TownError::from)?;
    let setting = edit.config().and_then(|config| config.get(key)).map_err(TownError::from)?;
    if write(context, edit)? {
        note_change(context, &mut store, &setting.key)?;
    }
    Ok(setting)
}

fn unset(context: &Context, key: &str) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let was_set = write(context, town.config_file().plan_unset(key).map_err(TownError::from)?)?;
    if was_set {
        note_change(context, &mut store, key)?;
    }
    if context.wants_json() {
        return context.json(&json!({ "key": key, "changed": was_set }));
    }
    context.say(&if was_set {
        format!("Unset {key}; its default counts again.")
    } else {
        format!("{key} was not set; nothing was changed.")
    })
}

/// Records a change; whatever troubled an agent may have been mended by it, with a daemon or without.
fn note_change(context: &Context, store: &mut Store, key: &str) -> Result<(), Failure> {
    store.record(EventType::ConfigChanged, &json!({ "key": key }), &context.stamp())?;
    Ok(store.forget_troubles(&context.stamp())?)
}

/// Writes an edit, unless this is a dry run; says whether it changes anything.
fn write(context: &Context, edit: Edit) -> Result<bool, Failure> {
    let changes = edit.changes();
    if !context.is_dry_run() {
        edit.write().map_err(TownError::from)?;
    }
    Ok(changes)
}

fn list(context: &Context) -> Result<(), Failure> {
    let config = context.town()?.config_file().load().map_err(TownError::from)?;
    let settings = config.list();
    if context.wants_json() {
        return context.json(&settings.iter().map(setting_json).collect::<Vec<_>>());
    }
    let lines: Vec<String> = settings.iter().map(line).collect();
    context.say(&lines.join("\n"))
}

fn line(setting: &Setting) -> String {
    let value = setting.value.as_ref().map_or("-".to_owned(), Value::to_string);
    let value = if setting.source == Source::File { paint(BOLD, &value) } else { value };
    format!("{} = {value}  {}", setting.key, paint(DIM, &format!("# {}", setting.help)))
}

fn setting_json(setting: &Setting) -> serde_json::Value {
    let value = setting.value.as_ref().map(|value| match value {
        Value::Integer(number) => json!(number),
        Value::Boolean(truth) => json!(truth),
        Value::List(texts) => json!(texts),
        other => json!(other.to_string()),
    });
    let source = if setting.source == Source::File { "file" } else { "default" };
    json!({ "key": setting.key, "value": value, "source": source, "help": setting.help })
}
