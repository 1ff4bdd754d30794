//! Where a town's runs are: the runtime that its config names, whether they get a terminal, and a way to each one's screen.
//!
//! One place for that choice. What a runtime does is `gt_runtime`'s; what is started in it, `agents`'.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use gt_runtime::exec::ExecRuntime;
use gt_runtime::process::ProcessRuntime;
use gt_runtime::terminal::{self, Sent, TerminalError};
use gt_runtime::{Handle, Known, Launch, News, Place, Runtime, RuntimeError, Sighting, StartError, Stop};
use gt_store::{Run, Store};

use crate::config::Config;
use crate::dispatch;
use crate::error::TownError;
use crate::in_force;
use crate::surroundings::Surroundings;
use crate::town::Town;

/// Whether two configs start their runs through the same runtime. With or without a terminal, the keeper does.
pub(crate) fn is_same_runtime(one: &Config, other: &Config) -> bool {
    let is_same = |key| one.value(key) == other.value(key);
    is_elsewhere(one) == is_elsewhere(other) && is_same("exec.command") && is_same("exec.timeout")
}

/// The runtime of a town, as its config says now. Where that cannot be read, whoever starts something says so.
pub fn runtime(town: &Town, store: &mut Store, around: &dyn Surroundings) -> Box<dyn Runtime + Send> {
    let config = in_force::load(town, store, around).map(|in_force| in_force.config).unwrap_or_default();
    runtime_of(town, &config)
}

/// The runtime that a config names.
pub(crate) fn runtime_of(town: &Town, config: &Config) -> Box<dyn Runtime + Send> {
    let starts_elsewhere = is_elsewhere(config);
    let has_program = !config.texts("exec.command").is_empty();
    let elsewhere = elsewhere(town, config);
    Box::new(Both { here: keeper(town), elsewhere, has_program, starts_elsewhere, news: None, is_other_watched: false })
}

fn keeper(town: &Town) -> ProcessRuntime {
    let keeper = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("gt"));
    let keep = [keeper.clone().into(), "keeper".into(), town.keeper_dir().into(), "--".into()];
    // Without a daemon this is who notices that a worker has ended.
    let tell = [keeper.into(), "--town".into(), town.root().into()];
    let look = ["scheduler", "run", "--after-exit"].map(OsString::from);
    ProcessRuntime::new(town.keeper_dir(), keep.into_iter().chain(tell).chain(look).collect())
}

/// Runs start where the config says, and stay where they were started when it says something else: each is asked for
/// where it is.
struct Both {
    here: ProcessRuntime,
    elsewhere: ExecRuntime,
    /// Whether there is a program that runs agents elsewhere.
    has_program: bool,
    starts_elsewhere: bool,
    news: Option<Arc<Mutex<News>>>,
    /// Whether the place in which nothing is started any more is watched too, because something is left in it.
    is_other_watched: bool,
}

impl Both {
    fn at(&mut self, is_elsewhere: bool) -> &mut dyn Runtime {
        if is_elsewhere { &mut self.elsewhere } else { &mut self.here }
    }

    /// Where a run is; one that was not seen yet is where it would be started.
    fn is_elsewhere(&self, known: &Known) -> bool {
        known.handle.as_ref().map_or(self.starts_elsewhere, |handle| !handle.is_here())
    }

    fn watch_other(&mut self) -> Result<(), RuntimeError> {
        if let Some(news) = self.news.clone().filter(|_| !self.is_other_watched) {
            self.at(!self.starts_elsewhere).watch(shared(news))?;
            self.is_other_watched = true;
        }
        Ok(())
    }
}

impl Runtime for Both {
    fn start(&mut self, launches: &[Launch]) -> Vec<Result<Handle, StartError>> {
        let is_here = |launch: &&Launch| launch.place == Place::Here;
        if !self.starts_elsewhere || !launches.iter().any(|launch| is_here(&launch)) {
            return self.at(self.starts_elsewhere).start(launches);
        }
        let (here, elsewhere): (Vec<Launch>, Vec<Launch>) =
            launches.iter().cloned().partition(|launch| is_here(&launch));
        if let Err(error) = self.watch_other() {
            return launches.iter().map(|_| Err(StartError::NoRoom { cause: error.to_string() })).collect();
        }
        let mut here = self.here.start(&here).into_iter();
        let mut elsewhere =
            if elsewhere.is_empty() { Vec::new() } else { self.elsewhere.start(&elsewhere) }.into_iter();
        let unanswered = || Err(StartError::Unknown { cause: "it was not answered".to_owned() });
        let answer = |launch: &Launch| if is_here(&launch) { here.next() } else { elsewhere.next() };
        launches.iter().map(answer).map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// A run that was not seen yet may be where runs were started before the config was changed, so it is looked for in
    /// both places. A place that does not answer says nothing of its runs: they live on, as far as anybody knows.
    fn survey(&mut self, known: &[Known]) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
        let starts_elsewhere = self.starts_elsewhere;
        let is_unseen = |run: &&Known| run.handle.is_none();
        let of = |is_elsewhere: bool| -> Vec<Known> {
            let is_there = |run: &&Known| run.handle.as_ref().is_some_and(|handle| handle.is_here() != is_elsewhere);
            known.iter().filter(|run| is_unseen(run) || is_there(run)).cloned().collect()
        };
        let (usual, other) = (of(starts_elsewhere), of(!starts_elsewhere));
        let seen = self.at(starts_elsewhere).survey(&usual);
        // Without a program nothing was ever started elsewhere.
        if other.is_empty() || (!starts_elsewhere && !self.has_program && other.iter().all(|run| is_unseen(&run))) {
            return seen;
        }
        self.watch_other()?;
        let also_seen = self.at(!starts_elsewhere).survey(&other);
        match (seen, also_seen) {
            (Ok(seen), Ok(also_seen)) => Ok(seen.into_iter().chain(also_seen).collect()),
            (Ok(seen), Err(error)) => with_unasked(seen, &other, error),
            (Err(error), Ok(seen)) => with_unasked(seen, &usual, error),
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn stop(&mut self, known: &Known, how: Stop) -> Result<(), RuntimeError> {
        let is_elsewhere = self.is_elsewhere(known);
        self.at(is_elsewhere).stop(known, how)
    }

    fn acknowledge(&mut self, runs: &[String]) -> Result<(), RuntimeError> {
        if self.is_other_watched {
            self.at(!self.starts_elsewhere).acknowledge(runs)?;
        }
        self.at(self.starts_elsewhere).acknowledge(runs)
    }

    fn watch(&mut self, news: News) -> Result<(), RuntimeError> {
        let news = Arc::new(Mutex::new(news));
        self.news = Some(Arc::clone(&news));
        self.at(self.starts_elsewhere).watch(shared(news))
    }
}

/// What was seen in one place, with the runs of the other, which does not answer. Of a run that may be there, and was not
/// seen yet, nobody can say whether it was started.
fn with_unasked(
    mut seen: BTreeMap<String, Sighting>,
    unasked: &[Known],
    error: RuntimeError,
) -> Result<BTreeMap<String, Sighting>, RuntimeError> {
    for run in unasked {
        match &run.handle {
            Some(handle) => drop(seen.insert(run.run.clone(), Sighting::Running(handle.clone()))),
            None if seen.contains_key(&run.run) => {}
            None => return Err(error),
        }
    }
    Ok(seen)
}

/// One listener for both places.
fn shared(news: Arc<Mutex<News>>) -> News {
    Box::new(move |end| news.lock().unwrap_or_else(PoisonError::into_inner)(end))
}

/// Whether a new run gets a terminal: when the config says so, or says nothing and there is a tmux.
pub fn wants_terminal(config: &Config) -> Result<bool, TerminalError> {
    match config.text("runtime").as_deref() {
        Some("tmux") => terminal::version().map(|_| true),
        Some(_) => Ok(false),
        None => Ok(terminal::is_installed()),
    }
}

/// Whether new runs start elsewhere.
pub(crate) fn is_elsewhere(config: &Config) -> bool {
    config.text("runtime").as_deref() == Some("exec")
}

fn elsewhere(town: &Town, config: &Config) -> ExecRuntime {
    let argv = config.texts("exec.command").into_iter().map(OsString::from).collect();
    ExecRuntime::new(argv, town.root().to_owned()).with_timeout(config.duration("exec.timeout"))
}

/// The screen of a run, wherever that is. The config may have changed since it was started, so what counts is the run.
pub enum Screen<'a> {
    /// In the town's own tmux server, or without one; only tmux can tell.
    Here {
        town: &'a Town,
        run: &'a str,
    },
    Elsewhere {
        runtime: Box<ExecRuntime>,
        run: &'a str,
    },
}

impl<'a> Screen<'a> {
    pub fn of(town: &'a Town, config: &Config, run: &'a Run) -> Screen<'a> {
        let is_here = dispatch::handle(run).is_some_and(|handle| handle.is_here());
        if is_elsewhere(config) && !is_here {
            return Screen::Elsewhere { runtime: Box::new(elsewhere(town, config)), run: &run.id };
        }
        Screen::Here { town, run: &run.id }
    }

    /// Its last lines; `None`: it has no screen, and what it prints is in its log.
    pub fn peek(&mut self, lines: usize) -> Result<Option<String>, TownError> {
        match self {
            Screen::Here { town, run } => if_there(terminal::capture(&town.keeper_dir(), run, lines)),
            Screen::Elsewhere { runtime, run } => Ok(runtime.peek(run, lines)?),
        }
    }

    /// Types a text and submits it; `None`: it has no screen.
    pub fn send(&mut self, text: &str) -> Result<Option<Sent>, TownError> {
        match self {
            Screen::Here { town, run } => if_there(terminal::send(&town.keeper_dir(), run, text)),
            Screen::Elsewhere { runtime, run } => Ok(runtime.send(run, text)?.then_some(Sent::Shown)),
        }
    }

    /// The command that shows it to a person; `None`: it has no screen.
    pub fn attach_command(&mut self) -> Result<Option<Command>, TownError> {
        match self {
            Screen::Here { town, run } => if_there(terminal::attach_command(&town.keeper_dir(), run)),
            Screen::Elsewhere { runtime, run } => Ok(runtime.attach(run)?.map(|argv| {
                let mut command = Command::new(&argv[0]);
                command.args(&argv[1..]);
                command
            })),
        }
    }
}

fn if_there<T>(answer: Result<T, TerminalError>) -> Result<Option<T>, TownError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(TerminalError::NoTerminal { .. } | TerminalError::NotInstalled) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
