//! The launch of a run: command line, environment, and the files that belong to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gt_core::agent::{Vendor, conversation_of};
use gt_core::formula::Cooked;
use gt_core::names;
use gt_runtime::program::NOT_ON_PATH;
use gt_runtime::{Launch, Place, StartError};
use gt_store::Assignment;

use super::presets::{Call, Prompt};
use super::{Agent, hooks, no_command};
use crate::config::join;
use crate::town::Town;

/// Variables of a surrounding agent, run or terminal that would mislead a new one.
const NOT_INHERITED: [&str; 21] = [
    "CLAUDECODE",
    "TMUX",
    "TMUX_PANE",
    "GT_CRASH_AT",
    "GT_ACTOR",
    "BD_ACTOR",
    "GT_RUN",
    "GT_BEAD",
    "GT_RIG",
    "GT_POLECAT",
    "GT_AGENT",
    "GT_AGENT_SETTINGS",
    "GT_ACCOUNT",
    "GT_BRANCH",
    "GT_BASE_BRANCH",
    "GT_SESSION",
    "GT_CONVERSATION",
    "GT_JOB",
    "GT_SLOT",
    "GT_FIRE",
    "GT_ATTEMPT",
];
/// The kernel takes arguments of up to 128 KiB.
const ARG_BYTES_MAX: usize = 120 * 1024;

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workplace<'a> {
    pub dir: &'a Path,
    pub branch: Option<&'a str>,
    pub log: &'a Path,
    /// Whether it draws on a terminal, where a person can answer it.
    pub in_terminal: bool,
}

/// Why there is nothing to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It lies in the agent.
    Agent(String),
    /// It lies in this machine.
    Machine(String),
}

/// What to start for an assignment.
pub fn launch(
    agent: &Agent,
    assignment: &Assignment,
    place: &Workplace<'_>,
    town: &Town,
    cooked: Option<&Cooked>,
) -> Result<Launch, Unfit> {
    let call = call(agent, place.in_terminal).map_err(Unfit::Agent)?;
    let gt = own_program();
    write_files(agent, assignment, place, town, &gt)
        .map_err(|(path, error)| Unfit::Machine(format!("cannot write {}: {error}", path.display())))?;
    let mut argv: Vec<String> = call.argv.iter().flat_map(|word| fill(word, assignment, place, town, &gt)).collect();
    let stdin = match call.prompt {
        Prompt::Arg => {
            argv.push(argument(crate::prompt::text(assignment, cooked, place.branch)));
            None
        }
        Prompt::Stdin => Some(crate::prompt::text(assignment, cooked, place.branch)),
        Prompt::None => None,
    };
    Ok(Launch {
        run: assignment.run.clone(),
        session: names::session(&assignment.rig.prefix, &assignment.polecat.name),
        argv,
        dir: place.dir.to_owned(),
        env: environment(agent, assignment, place, town),
        stdin,
        log: place.log.to_owned(),
        errors: None,
        place: if place.in_terminal { Place::Terminal } else { Place::Process },
    })
}

/// What would be executed for a bead; the error says why nothing would.
pub fn program(agent: &Agent, in_terminal: bool) -> Result<&str, String> {
    let call = call(agent, in_terminal)?;
    call.argv.first().map(String::as_str).ok_or_else(|| no_command(&agent.name))
}

/// The `PATH` on which its program is looked up.
pub fn search_path(agent: &Agent) -> String {
    inherited(agent).remove("PATH").unwrap_or_default()
}

/// Who looks for a program. The daemon's `PATH` is that of the shell in which it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeker {
    Command,
    Daemon,
}

/// That the program of an agent cannot be executed, and what to do about it.
pub fn cannot_start(agent: &str, leaf: &str, error: &StartError, seeker: Seeker) -> String {
    let key = join(&["agents", agent, leaf]);
    match (error, seeker) {
        (StartError::NoProgram { program, cause }, Seeker::Daemon) if cause == NOT_ON_PATH => format!(
            "agent `{agent}` cannot start `{program}`: not found on the daemon's PATH; install it, set `{key}`, or run \
             `gt daemon restart` if it is on your PATH"
        ),
        (StartError::NoProgram { program, cause }, _) => {
            format!("agent `{agent}` cannot start `{program}`: {cause}; install it or set `{key}`")
        }
        (error, _) => format!("agent `{agent}`: {error}; install it or set `{key}`"),
    }
}

/// The command line for this place; the error says why there is none.
fn call(agent: &Agent, in_terminal: bool) -> Result<&Call, String> {
    let name = &agent.name;
    match (&agent.terminal, &agent.headless) {
        (Some(call), _) if in_terminal => Ok(call),
        (_, Some(call)) if !in_terminal => Ok(call),
        (Some(_), _) => Err(format!(
            "agent `{name}` needs a terminal; set `agents.{name}.command`, or `gt config set runtime tmux`"
        )),
        (None, _) => Err(no_command(name)),
    }
}

/// An assignment that does not fit into an argument is read by the agent itself.
fn argument(text: String) -> String {
    if text.len() <= ARG_BYTES_MAX {
        return text;
    }
    "Your assignment is too long to be given here. Run `gt prime` first: it prints all of it. Then do what it says."
        .to_owned()
}

/// What has to be there before the agent starts, beside its log.
fn write_files(
    agent: &Agent,
    assignment: &Assignment,
    place: &Workplace<'_>,
    town: &Town,
    gt: &Path,
) -> Result<(), (PathBuf, std::io::Error)> {
    if agent.speaks == Some(Vendor::Claude) {
        let path = town.agent_settings_path(&assignment.run);
        hooks::write_settings(&path, gt).map_err(|error| (path, error))?;
    }
    if place.in_terminal && agent.speaks.is_some() {
        let path = town.events_path(&assignment.run);
        let words = agent.terminal.iter().flat_map(|call| &call.argv);
        let is_hooked = words.into_iter().any(|word| word == "{settings}" || word == "{codex-hooks}");
        hooks::begin_events(&path, is_hooked).map_err(|error| (path, error))?;
    }
    Ok(())
}

/// A word of a command line with what belongs to this run.
fn fill(word: &str, assignment: &Assignment, place: &Workplace<'_>, town: &Town, gt: &Path) -> Vec<String> {
    match word {
        "{conversation}" => vec![conversation_of(&assignment.run)],
        "{settings}" => vec![town.agent_settings_path(&assignment.run).display().to_string()],
        "{codex-trust}" => hooks::codex_trust(&[place.dir, Path::new(&assignment.rig.path)]),
        "{codex-hooks}" => hooks::codex_hooks(gt),
        word => vec![word.to_owned()],
    }
}

/// Ours, less what would mislead, with what the agent is given.
pub(super) fn inherited(agent: &Agent) -> BTreeMap<String, String> {
    let mut env = inherited_plain();
    env.retain(|name, _| is_inherited(agent, name));
    env.extend(agent.env.clone());
    env
}

/// Ours, less what would mislead whoever is started.
pub(super) fn inherited_plain() -> BTreeMap<String, String> {
    // It never changes.
    static PLAIN: LazyLock<BTreeMap<String, String>> = LazyLock::new(read_plain);
    PLAIN.clone()
}

fn read_plain() -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !NOT_INHERITED.contains(&name.as_str()))
        .collect();
    env.insert("PATH".to_owned(), path_with_gt(env.get("PATH").map(String::as_str)));
    env.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
    env
}

pub(super) fn is_inherited(agent: &Agent, name: &str) -> bool {
    !NOT_INHERITED.contains(&name) && !agent.cleared.iter().any(|cleared| cleared == name)
}

/// What is inherited, with what the run has to know.
fn environment(agent: &Agent, assignment: &Assignment, place: &Workplace<'_>, town: &Town) -> Vec<(String, String)> {
    let mut env = inherited(agent);
    let who = names::assignee(&assignment.rig.name, &assignment.polecat.name);
    let ours = [
        ("GT_TOWN", town.root().display().to_string()),
        ("GT_RUN", assignment.run.clone()),
        ("GT_BEAD", assignment.bead.clone()),
        ("GT_RIG", assignment.rig.name.clone()),
        ("GT_POLECAT", assignment.polecat.name.clone()),
        ("GT_AGENT", assignment.agent.clone()),
        ("GT_BRANCH", place.branch.unwrap_or_default().to_owned()),
        ("GT_BASE_BRANCH", base_branch(assignment).to_owned()),
        ("GT_ACTOR", who.clone()),
        ("BD_ACTOR", who),
    ];
    env.extend(ours.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let settings = (agent.speaks == Some(Vendor::Claude)).then(|| town.agent_settings_path(&assignment.run));
    let more = [
        ("GT_AGENT_SETTINGS", settings.map(|path| path.display().to_string())),
        ("GT_ACCOUNT", assignment.fields.account.clone()),
    ];
    env.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    env.into_iter().collect()
}

/// The branch that the work starts from.
pub fn base_branch(assignment: &Assignment) -> &str {
    assignment.fields.base_branch.as_deref().unwrap_or(&assignment.rig.branch)
}

pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("gt"))
}

/// An agent finds the very `gt` that started it.
fn path_with_gt(path: Option<&str>) -> String {
    let own = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.display().to_string()));
    match (own, path) {
        (Some(own), Some(path)) if path.split(':').next() != Some(&own) => format!("{own}:{path}"),
        (Some(own), None) => own,
        (_, path) => path.unwrap_or_default().to_owned(),
    }
}
