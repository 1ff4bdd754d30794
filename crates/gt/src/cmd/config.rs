//! `gt config`: the town's settings. // SPEC T5

use clap::{Args, Subcommand};
use gt_core::text::one_line;
use gt_engine::config::{self, Config, ConfigError, Edit, Ineffective, KnownNames, Setting, Source, Value};
use gt_engine::surroundings::Machine;
use gt_engine::{Town, TownError, in_force};
use gt_store::Store;
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Kind};
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
    let (config, names) = in_force(context)?;
    let setting = config.get(key).map_err(TownError::from)?;
    if let Some(names) = &names {
        note_without_effect(context, &config, names, &setting)?;
    }
    if context.wants_json() {
        return context.json(&setting_json(&setting));
    }
    context.say(&setting.value.map(|value| value.to_string()).unwrap_or_default())
}

/// Notes that a setting has no effect, and refuses one that is not set and names what does not exist.
fn note_without_effect(
    context: &Context,
    config: &Config,
    names: &KnownNames,
    setting: &Setting,
) -> Result<(), Failure> {
    let missing = config::missing_owner(config, names, &setting.key).filter(|_| setting.source != Source::File);
    if let Some(missing) = missing {
        return Err(Failure::new(Kind::NotFound, missing.why).hint(missing.hint));
    }
    for one in config::ineffective(config, names).iter().filter(|one| one.key == setting.key) {
        note(context, one);
    }
    Ok(())
}

fn set(context: &Context, args: &SetArgs) -> Result<(), Failure> {
    let setting = change(context, &args.key, &args.value)?;
    if context.wants_json() {
        return context.json(&setting_json(&setting));
    }
    let value = setting.value.map(|value| value.to_string()).unwrap_or_default();
    context.say(&format!("Set {} = {value}", setting.key))
}

/// The config in force, with a warning where that is not the file, and the names that the store knows. If the store cannot
/// be opened, the file decides.
fn in_force(context: &Context) -> Result<(Config, Option<KnownNames>), Failure> {
    let town = context.town()?;
    let Ok(mut store) = town.open_store() else {
        return Ok((town.config_file().load().map_err(TownError::from)?, None));
    };
    let config = context.config(&town, &mut store)?;
    let names = in_force::known_names(&town, &mut store, &config)?;
    Ok((config, Some(names)))
}

fn note(context: &Context, one: &Ineffective) {
    context.note(&format!("note: {one}\nhint: {}", one.hint));
}

/// Sets a key, whoever asks for it, and records that.
pub(crate) fn change(context: &Context, key: &str, value: &str) -> Result<Setting, Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?; // first: a change that cannot be recorded is not made
    let edit = town.config_file().plan_set(key, value).map_err(TownError::from)?;
    let after = edit.config().map_err(TownError::from)?;
    let setting = after.get(key).map_err(TownError::from)?;
    let names = in_force::known_names(&town, &mut store, &after)?;
    let part = config::refuse_ineffective(&after, &names, &setting.key).map_err(TownError::from)?;
    write(context, &town, &mut store, &setting.key, edit, |text| config::set(text, key, value).map(Some))?;
    if let Some(part) = &part {
        note(context, part);
    }
    note_missing_variable(context, &setting);
    Ok(setting)
}

/// Notes that a secret is to be read from a variable that is not there for this command.
fn note_missing_variable(context: &Context, setting: &Setting) {
    let Some(Value::Secret(secret)) = &setting.value else { return };
    let variable = secret.variable().filter(|name| crate::context::variable(name).is_none());
    if let Some(name) = variable {
        let name = one_line(name);
        context.note(&format!(
            "note: this command has no {name} in its environment, and the daemon needs it\nhint: `export {name}=…`, then \
             `gt daemon restart`"
        ));
    }
}

fn unset(context: &Context, key: &str) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let edit = town.config_file().plan_unset(key).map_err(TownError::from)?;
    let was_set = write(context, &town, &mut store, key, edit, |text| config::unset(text, key))?;
    if context.wants_json() {
        return context.json(&json!({ "key": key, "changed": was_set }));
    }
    context.say(&if was_set {
        format!("Unset {key}; its default counts again.")
    } else {
        format!("{key} was not set; nothing was changed.")
    })
}

/// Writes and records an edit, unless this is a dry run; says whether it changes anything. Whatever troubled an agent may
/// have been mended by it, with a daemon or without.
fn write(
    context: &Context,
    town: &Town,
    store: &mut Store,
    key: &str,
    edit: Edit,
    again: impl Fn(&str) -> Result<Option<String>, ConfigError>,
) -> Result<bool, Failure> {
    if context.is_dry_run() {
        return Ok(edit.changes() || in_force::is_pending(town, store, again)?);
    }
    let has_changed = in_force::change(town, store, &*Machine::here(), key, edit, again, &context.stamp())?;
    if has_changed {
        store.forget_troubles(&context.stamp())?;
    }
    Ok(has_changed)
}

fn list(context: &Context) -> Result<(), Failure> {
    let (config, names) = in_force(context)?;
    for one in names.iter().flat_map(|names| config::ineffective(&config, names)) {
        note(context, &one);
    }
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
