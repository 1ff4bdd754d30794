//! `gt doctor`: what is wrong with the town, and the remedy for each finding. // SPEC T6

mod merging;
mod workers;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::terminal::{self, Server, TerminalError};
use gt_store::{Stamp, Store, StoreError};
use jiff::SignedDuration;

use crate::agents::{self, PRESETS, Preset};
use crate::channels;
use crate::config::{self, Config, ConfigError, Ineffective};
use crate::error::TownError;
use crate::git;
use crate::in_force::{self, InForce, Notice};
use crate::lock::{Holder, Lock};
use crate::places;
use crate::surroundings::Machine;
use crate::town::Town;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    /// Works, but somebody should know.
    Warning,
    Broken,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Broken => "broken",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    pub level: Level,
    pub message: String,
    pub remedy: Option<String>,
    /// It was broken and has been mended.
    pub fixed: bool,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, message: message.into(), remedy: None, fixed: false }
    }

    fn bad(check: &'static str, level: Level, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check, level, message: message.into(), remedy: Some(remedy.into()), fixed: false }
    }

    fn fixed(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { fixed: true, ..Finding::ok(check, message) }
    }
}

/// Looks at everything; with `fix` it mends what it safely can.
pub fn examine(town: &Town, fix: bool, stamp: &Stamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut store = town.open_store();
    let config = config_finding(town, store.as_mut().ok(), &mut findings);
    // A store that cannot be read has a finding of its own.
    if let Some(names) = store.as_mut().ok().and_then(|store| in_force::known_names(town, store, &config).ok()) {
        let finding = |one: Ineffective| Finding::bad("config", Level::Warning, one.to_string(), one.hint);
        findings.extend(config::ineffective(&config, &names).into_iter().map(finding));
    }
    match &mut store {
        Ok(store) => store_findings(town, store, &config, fix, stamp, &mut findings),
        Err(error) => findings.push(unopened(error)),
    }
    findings.push(git_finding());
    findings.push(tmux_finding(town));
    findings.extend(exec_finding(town, &config));
    findings.push(agent_finding(&config));
    findings.extend(disk_finding(town, &config));
    findings
}

/// What is in force; without a store to ask, the file as it is.
fn config_finding(town: &Town, store: Option<&mut Store>, findings: &mut Vec<Finding>) -> Config {
    let path = town.config_path();
    let in_force = match store {
        Some(store) => in_force::look(town, store, &*Machine::here()),
        None => town.config_file().load().map_err(TownError::from).map(InForce::of_file),
    };
    match in_force {
        Ok(InForce { config, notice: None, .. }) => {
            findings.push(Finding::ok("config", format!("{} is fine", path.display())));
            config
        }
        Ok(InForce { config, notice: Some(notice), .. }) => {
            let is_there = !matches!(notice, Notice::Broken { problem: ConfigError::Missing { .. } });
            let is_broken = is_there && matches!(notice, Notice::Broken { .. });
            let level = if is_broken { Level::Broken } else { Level::Warning };
            let remedy = notice.hint().unwrap_or_else(|| format!("see {}", path.display()));
            findings.push(Finding::bad("config", level, notice.words(), remedy));
            config
        }
        Err(error) => {
            let hint = if let TownError::Config(error) = &error { error.hint() } else { None };
            let remedy = hint.unwrap_or_else(|| format!("edit {}", path.display()));
            findings.push(Finding::bad("config", Level::Broken, crate::error::chain(&error), remedy));
            Config::default()
        }
    }
}

fn unopened(error: &TownError) -> Finding {
    let remedy = match error {
        TownError::NoStore { .. } => "bring back a copy, or start with an empty one: `gt init`",
        TownError::Store(StoreError::NotAStore { .. }) => "move that file away, then bring back a copy or `gt init`",
        TownError::Store(StoreError::NewerSchema { .. }) => "use the newer gt that wrote it",
        _ => "see that the file can be read and written, or bring back a copy",
    };
    Finding::bad("store", Level::Broken, crate::error::chain(error), remedy)
}

fn store_findings(
    town: &Town,
    store: &mut Store,
    config: &Config,
    fix: bool,
    stamp: &Stamp,
    findings: &mut Vec<Finding>,
) {
    match inspect(store, fix, stamp) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(unopened(&error.into())),
    }
    match old_events(store, config, fix, stamp) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(unopened(&error.into())),
    }
    match store.scheduled_count() {
        Ok(n_scheduled) => findings.push(daemon_finding(town, n_scheduled)),
        Err(error) => findings.push(unopened(&error.into())),
    }
    match merging::findings(town, store) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(unopened(&error.into())),
    }
    match channels::troubles(town, config, store) {
        Ok(found) => {
            findings
                .extend(found.into_iter().map(|one| Finding::bad("channel", Level::Warning, one.message, one.hint)));
        }
        Err(error) => findings.push(unopened(&error.into())),
    }
    match workers::findings(town, store, config) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(unopened(&error)),
    }
    match store.rigs() {
        Ok(rigs) => {
            findings.extend(rigs.iter().map(|rig| rig_finding(rig, config)));
            findings.extend(rigs.iter().flat_map(|rig| merging::gate_findings(rig, config)));
        }
        Err(error) => findings.push(unopened(&error.into())),
    }
}

fn inspect(store: &mut Store, fix: bool, stamp: &Stamp) -> Result<Vec<Finding>, StoreError> {
    let found = store.inspect(stamp.now)?;
    let mut findings = Vec::new();
    if found.damage.is_empty() {
        let path = store.path().display().to_string();
        let message = format!("{path} is sound: {}, schema {}", beads(found.n_beads), store.schema_version()?);
        findings.push(Finding::ok("store", message));
    } else {
        let remedy = "save what is left with `gt bead export`, then import it into a fresh town";
        findings.push(Finding::bad("store", Level::Broken, found.damage.join("; "), remedy));
    }
    findings.extend(found.ring_edges.first().map(|(source, target)| {
        let message = format!("beads wait for each other for ever: {source} depends on {target}, and that on it");
        Finding::bad("cycle", Level::Broken, message, format!("break it with `gt bead dep remove {source} {target}`"))
    }));
    findings.extend(found.dispatch.iter().map(|complaint| {
        let remedy = "mend what can be mended with `gt doctor --fix`; a daemon settles runs that are gone";
        Finding::bad("dispatch", Level::Broken, complaint.clone(), remedy)
    }));
    if fix && !found.dispatch.is_empty() {
        store.repair_readiness(stamp)?;
    }
    findings.push(match found.disagreements.as_slice() {
        [] => Finding::ok("readiness", "what is stored is what follows from the dependencies"),
        wrong if fix => {
            store.repair_readiness(stamp)?;
            Finding::fixed("readiness", format!("worked out anew for {}", beads(wrong.len())))
        }
        [first, ..] => {
            let n_wrong = beads(found.disagreements.len());
            let what = match (first.stored_standing.as_str(), first.computed_standing.as_str()) {
                (stored, computed) if stored == computed => format!("the counts of {} are off", first.id),
                (stored, computed) => format!("{} is stored as {stored}, and should be {computed}", first.id),
            };
            let message = format!("wrong for {n_wrong}: {what}");
            Finding::bad("readiness", Level::Broken, message, "work it out anew with `gt doctor --fix`")
        }
    });
    Ok(findings)
}

fn beads(count: usize) -> String {
    if count == 1 { "1 bead".to_owned() } else { format!("{count} beads") }
}

fn old_events(store: &mut Store, config: &Config, fix: bool, stamp: &Stamp) -> Result<Option<Finding>, StoreError> {
    let keep = SignedDuration::try_from(config.duration("retention.events")).unwrap_or(SignedDuration::MAX);
    let Ok(before) = stamp.now.checked_sub(keep) else { return Ok(None) };
    let n_old = store.prunable_events(before)?;
    Ok(match n_old {
        0 => None,
        _ if fix => Some(Finding::fixed("events", format!("{} old events pruned", store.prune_events(before, stamp)?))),
        _ => Some(Finding::bad(
            "events",
            Level::Warning,
            format!("{n_old} events are older than `retention.events`"),
            "prune them with `gt doctor --fix`",
        )),
    })
}

fn daemon_finding(town: &Town, n_scheduled: usize) -> Finding {
    match (Lock::Daemon.holder(town), n_scheduled) {
        (Ok(Some(Holder { pid: Some(pid) })), _) => Finding::ok("daemon", format!("runs (process {pid})")),
        (Ok(Some(_)), _) => Finding::ok("daemon", "runs"),
        (Ok(None), 0) => Finding::ok("daemon", "none runs, and nothing is scheduled"),
        (Ok(None), n) => {
            let message = format!(
                "none runs, and {} scheduled",
                if n == 1 { "1 bead is".to_owned() } else { format!("{n} beads are") }
            );
            Finding::bad("daemon", Level::Warning, message, "start one with `gt daemon start`")
        }
        (Err(error), _) => {
            Finding::bad("daemon", Level::Broken, crate::error::chain(&error), "see that `.gt` can be written")
        }
    }
}

fn rig_finding(rig: &Rig, config: &Config) -> Finding {
    let remedy = format!("bring the repository back, or take the rig off with `gt rig remove {}`", rig.name);
    match git::repository_at(Path::new(&rig.path)) {
        Ok(Some(top)) => {
            let push = merging::push_words(rig, config, &top);
            Finding::ok("rig", format!("{} is at {}{push}", rig.name, rig.path))
        }
        Ok(None) => {
            Finding::bad("rig", Level::Broken, format!("{}: no git repository at {}", rig.name, rig.path), remedy)
        }
        // Without git nothing is known of the repository, and nothing is wrong with the rig.
        Err(error) => Finding::bad("rig", Level::Broken, format!("{}: {error}", rig.name), "install git"),
    }
}

fn git_finding() -> Finding {
    match git::version() {
        Ok(version) => Finding::ok("git", version),
        Err(error) => Finding::bad("git", Level::Broken, error.to_string(), "install git"),
    }
}

/// The program, and the town's own server: a stopped one would hold up every start.
fn tmux_finding(town: &Town) -> Finding {
    let Some(version) = answer("tmux", "-V") else {
        let message = "tmux is not installed; agents run without a terminal to look into";
        let remedy = "install tmux, or set `gt config set runtime process`";
        return Finding::bad("tmux", Level::Warning, message, remedy);
    };
    let version = version.trim_start_matches("tmux ").to_owned();
    match terminal::last_output(&town.keeper_dir()) {
        Err(TerminalError::NoAnswer { cause }) => {
            let server = Server::of(&town.keeper_dir());
            let name = server.name();
            let message = format!("{version}; the town's server {name} does not answer: {cause}");
            let remedy = format!(
                "wake it with `pkill -CONT -f {name}`, or end it and the agents in it with `pkill -KILL -f {name}`"
            );
            Finding::bad("tmux", Level::Broken, message, remedy)
        }
        _ => Finding::ok("tmux", version),
    }
}

/// The program that runs agents elsewhere. It is looked for, not called.
fn exec_finding(town: &Town, config: &Config) -> Option<Finding> {
    let is_elsewhere = places::is_elsewhere(config);
    let Some(program) = config.texts("exec.command").into_iter().next() else {
        let message = "`runtime` is \"exec\", and no program is set that runs agents: none can start";
        let remedy = "name it with `gt config set exec.command '[\"./my-host\"]'` (docs/runtimes.md), or run agents here \
                      with `gt config unset runtime`";
        return is_elsewhere.then(|| Finding::bad("exec", Level::Broken, message, remedy));
    };
    if can_be_run(&program, town.root()) {
        return None;
    }
    let (level, so) = if is_elsewhere {
        (Level::Broken, ": no agent can start")
    } else {
        (Level::Warning, "; with `runtime = \"exec\"` no agent could start")
    };
    let message = format!("`exec.command` names `{}`, which is no program that can be run{so}", one_line(&program));
    let remedy = "put it there, or name another with `gt config set exec.command '[\"./my-host\"]'`";
    Some(Finding::bad("exec", level, message, remedy))
}

/// Whether a program is where a call from the town's directory would look for it.
fn can_be_run(program: &str, dir: &Path) -> bool {
    let place = if program.contains('/') { Some(dir.join(program)) } else { place_of(program).map(PathBuf::from) };
    place.is_some_and(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

/// The agents' programs: the default one has to be there; of the other built-in ones those are named that are. A program
/// of the user's is not called just to see what it says.
fn agent_finding(config: &Config) -> Finding {
    let default = config.text("default_agent").unwrap_or_default();
    let mut finding = default_agent_finding(config, &default);
    let others = PRESETS.iter().filter(|preset| preset.speaks.is_some() && preset.name != default);
    let is_built_in = |preset: &&Preset| program_of(config, preset.name).is_some_and(|own| own == preset.program());
    let also: Vec<String> = others
        .filter(is_built_in)
        .filter_map(|preset| Some(format!("{} ({})", preset.name, answer(preset.program(), "--version")?)))
        .collect();
    if !also.is_empty() {
        finding.message = format!("{}; also {}", finding.message, also.join(", "));
    }
    finding
}

fn program_of(config: &Config, name: &str) -> Option<String> {
    agents::find(config, name).ok()?.terminal?.argv.into_iter().next()
}

fn default_agent_finding(config: &Config, name: &str) -> Finding {
    let choose = "or choose another with `gt config set default_agent NAME`";
    let Some(program) = program_of(config, name) else {
        let message = format!("the default agent {name} has no command");
        return Finding::bad("agent", Level::Warning, message, format!("set `agents.{name}.command`, {choose}"));
    };
    let preset = PRESETS.iter().find(|preset| preset.name == name && preset.program() == program);
    // Nobody knows what a program of the user's own does when it is called: it may set to work.
    let found = if preset.is_some() { answer(&program, "--version") } else { place_of(&program) };
    if let Some(found) = found {
        return Finding::ok("agent", format!("{name}: {found}"));
    }
    let install = preset.map_or("install it".to_owned(), |preset| format!("install it with `{}`", preset.install));
    let message = format!("the default agent {name} needs `{program}`, which is not on the PATH");
    Finding::bad("agent", Level::Warning, message, format!("{install}, {choose}"))
}

/// The first line a program prints; `None` when it cannot be started.
fn answer(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("present").to_owned())
}

/// Where a program is, by its path or on the `PATH`.
fn place_of(program: &str) -> Option<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = if program.contains('/') { vec![PathBuf::new()] } else { env::split_paths(&path).collect() };
    let found = places.into_iter().map(|dir| dir.join(program)).find(|file| file.is_file())?;
    Some(found.display().to_string())
}

fn disk_finding(town: &Town, config: &Config) -> Option<Finding> {
    let disk = rustix::fs::statvfs(town.root()).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let wanted = config.size_bytes("guards.free_disk");
    let message = format!("{} MB free", free / 1_000_000);
    Some(if free >= wanted {
        Finding::ok("disk", message)
    } else {
        let wants = format!("{message}; `guards.free_disk` wants {} MB", wanted / 1_000_000);
        Finding::bad("disk", Level::Warning, wants, "make room, or lower `guards.free_disk`")
    })
}
