//! Agents are data: what to start for a run, and what it is told. // SPEC P5
//!
//! Looks up an agent kind in the config, else among the built-in ones, and makes its launch. Starting it is the runtime's.

use std::collections::BTreeMap;
use std::path::Path;

use gt_core::formula::Cooked;
use gt_core::names;
use gt_runtime::Launch;
use gt_store::Assignment;

use crate::config::{Config, Value, join};
use crate::town::Town;

/// How the assignment reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompt {
    Arg,
    Stdin,
    None,
}

/// What is known of an agent kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    argv: Vec<String>,
    prompt: Prompt,
    env: BTreeMap<String, String>,
}

/// Headless calls of the agents that are known without config.
const BUILT_IN: [(&str, &[&str]); 4] = [
    ("claude", &["claude", "--dangerously-skip-permissions", "-p"]),
    ("codex", &["codex", "exec", "--dangerously-bypass-approvals-and-sandbox"]),
    ("gemini", &["gemini", "--approval-mode", "yolo", "-p"]),
    ("opencode", &["opencode", "run"]),
];

/// Variables of a surrounding agent or run that would mislead a new one.
const NOT_INHERITED: [&str; 4] = ["CLAUDECODE", "GT_CRASH_AT", "GT_ACTOR", "BD_ACTOR"];

/// Looks an agent kind up; the error says what is missing.
pub fn find(config: &Config, name: &str) -> Result<Agent, String> {
    let key = |leaf: &str| join(&["agents", name, leaf]);
    let mut argv = config.texts(&key("command"));
    if argv.is_empty() {
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
        argv = built_in.map(|(_, argv)| argv.iter().map(|word| (*word).to_owned()).collect()).unwrap_or_default();
    }
    if argv.is_empty() {
        return Err(format!("agent `{name}` has no command; set `{}`", key("command")));
    }
    let prompt = match config.text(&key("prompt")).as_deref() {
        Some("stdin") => Prompt::Stdin,
        Some("none") => Prompt::None,
        _ => Prompt::Arg,
    };
    let env = match config.value(&key("env")) {
        Some(Value::Table(env)) => env.into_iter().map(|(name, secret)| (name, secret.reveal().to_owned())).collect(),
        _ => BTreeMap::new(),
    };
    Ok(Agent { argv, prompt, env })
}

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workplace<'a> {
    pub dir: &'a Path,
    pub branch: Option<&'a str>,
    pub log: &'a Path,
}

/// What to start for an assignment.
pub fn launch(
    agent: &Agent,
    assignment: &Assignment,
    place: &Workplace<'_>,
    town: &Town,
    cooked: Option<&Cooked>,
) -> Launch {
    let mut argv = agent.argv.clone();
    let text = || crate::prompt::text(assignment, cooked, place.branch);
    let stdin = match agent.prompt {
        Prompt::Arg => {
            argv.push(text());
            None
        }
        Prompt::Stdin => Some(text()),
        Prompt::None => None,
    };
    Launch {
        run: assignment.run.clone(),
        session: names::session(&assignment.rig.prefix, &assignment.polecat.name),
        argv,
        dir: place.dir.to_owned(),
        env: environment(agent, assignment, place, town),
        stdin,
        log: place.log.to_owned(),
    }
}

/// Ours, less what would mislead, with what the run has to know.
fn environment(agent: &Agent, assignment: &Assignment, place: &Workplace<'_>, town: &Town) -> Vec<(String, String)> {
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !NOT_INHERITED.contains(&name.as_str()))
        .collect();
    env.insert("PATH".to_owned(), path_with_gt(env.get("PATH").map(String::as_str)));
    env.extend(agent.env.clone());
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
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
    ];
    env.extend(ours.into_iter().map(|(name, value)| (name.to_owned(), value)));
    env.into_iter().collect()
}

/// The branch that the work starts from.
pub fn base_branch(assignment: &Assignment) -> &str {
    assignment.fields.base_branch.as_deref().unwrap_or(&assignment.rig.branch)
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
