//! What every verb needs: the town, who is asking, the time, and where answers go.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use gt_core::plan::Side;
use gt_engine::config::Config;
use gt_engine::in_force::{self, InForce, Notice};
use gt_engine::lock::Lock;
use gt_engine::refinery::Worked;
use gt_engine::settings::Settings;
use gt_engine::surroundings::Machine;
use gt_engine::{Town, once, refinery};
use gt_store::{Kinds, Stamp, Store};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Globals;
use crate::failure::{Failure, Kind};

/// What a dry run says before anything else.
const DRY_RUN: &str = "Dry run, nothing is changed. This would happen:\n";

/// What there is to carry on after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// A command that may have made something ready.
    Command,
    /// The end of a worker that nobody watched.
    Exit,
}

#[derive(Debug)]
pub(crate) struct Context {
    globals: Globals,
    /// Whether a dry run has said that it is one.
    has_said_dry: Cell<bool>,
    /// What was said of a config that is not in force.
    warning: RefCell<Option<String>>,
}

#[expect(clippy::unused_self, reason = "a verb asks its context, whether or not that has to look it up")]
impl Context {
    pub(crate) fn new(globals: Globals) -> Context {
        Context { globals, has_said_dry: Cell::new(false), warning: RefCell::default() }
    }

    pub(crate) fn town(&self) -> Result<Town, Failure> {
        let named = self.globals.town.clone().or_else(|| variable("GT_TOWN").map(PathBuf::from));
        Ok(match named {
            Some(dir) => Town::at(&dir)?,
            None => Town::find(&current_dir()?)?,
        })
    }

    pub(crate) fn store(&self) -> Result<Store, Failure> {
        self.open(&self.town()?)
    }

    /// Opens the town's store; in a dry run one in which nothing stays.
    pub(crate) fn open(&self, town: &Town) -> Result<Store, Failure> {
        let store = town.open_store()?;
        Ok(if self.is_dry_run() { store.rehearse()? } else { store })
    }

    /// The settings in force. Where no good config was ever known that is an error, never a guess.
    pub(crate) fn settings(&self, town: &Town) -> Result<Settings, Failure> {
        self.settings_in(town, &mut town.open_store()?)
    }

    /// The same where a store is open already.
    pub(crate) fn settings_in(&self, town: &Town, store: &mut Store) -> Result<Settings, Failure> {
        Ok(Settings::new(self.config(town, store)?))
    }

    /// The same for agents: that somebody has broken the config must not keep them from ending.
    pub(crate) fn settings_or_defaults(&self, town: &Town, store: &mut Store) -> Settings {
        self.settings_in(town, store).unwrap_or_else(|_| Settings::new(Config::default()))
    }

    /// The config in force. Where that is not what the file says, the command says so.
    pub(crate) fn config(&self, town: &Town, store: &mut Store) -> Result<Config, Failure> {
        // A rehearsal elsewhere in this command may have the store's one right to write.
        let ask = if self.is_dry_run() { in_force::look } else { in_force::load };
        let InForce { config, notice, .. } = ask(town, store, &*Machine::here())?;
        if let Some(notice) = notice {
            self.warn(&notice);
        }
        Ok(config)
    }

    /// The same for what is left to others; where no good config is known, they say so.
    pub(crate) fn note_config(&self, town: &Town, store: &mut Store) {
        self.config(town, store).map(drop).unwrap_or_default();
    }

    /// Says once that the last good config is in force. A caller who wants JSON gets it beside an answer, never beside an
    /// error, which must stand alone.
    fn warn(&self, notice: &Notice) {
        let hint = notice.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        let words = format!("warning: {}{hint}", notice.words());
        if self.warning.borrow().is_none() && !self.wants_json() {
            self.note(&words);
        }
        self.warning.replace(Some(words));
    }

    /// Says what had to wait for the answer.
    pub(crate) fn note_warning(&self) {
        if let Some(words) = self.warning.take().filter(|_| self.wants_json()) {
            self.note(&words);
        }
    }

    /// In direct mode and without a daemon, what a command has made possible is started by that command. // SPEC P2
    pub(crate) fn carry_on(&self, town: &Town, store: &mut Store, after: After) -> Result<(), Failure> {
        let has_work = store.has_ready_contexts(Kinds::All, self.now())? || after == After::Exit;
        if self.is_dry_run() || !has_work || daemon_runs(town) {
            return Ok(());
        }
        if after == After::Command {
            let policy = self.settings_in(town, store)?.policy(town.root());
            let has_queued = policy.starts(Side::Queue) && store.has_ready_contexts(Kinds::Queued, self.now())?;
            if policy.is_deferred || has_queued {
                self.note_missing_daemon(town);
            }
            let has_slung = !policy.is_deferred && store.has_ready_contexts(Kinds::Slung, self.now())?;
            // A polecat starts nobody; its end is noticed when it ends.
            if !has_slung || variable("GT_RUN").is_some() {
                return Ok(());
            }
        }
        let report = once::carry_on(&mut once::dispatcher(town, store, &self.actor()), store)?;
        for one in report.started.iter().filter(|_| after == After::Command) {
            self.note(&format!("{} is on it: {} {}", one.polecat.name, one.bead, one.title));
        }
        if after == After::Exit { self.merge_what_waits(town, store) } else { Ok(()) }
    }

    /// What a worker has handed over may close its bead, and free others; its slot is free meanwhile.
    fn merge_what_waits(&self, town: &Town, store: &mut Store) -> Result<(), Failure> {
        let tried = refinery::work_all(&Machine::here(), town, &self.actor());
        let has_changed = |worked: &Worked| !worked.merged.is_empty() || !worked.returned.is_empty();
        // Before it failed it may have merged something.
        if tried.as_ref().map_or(true, |tried| tried.iter().any(|(_, worked)| has_changed(worked))) {
            once::carry_on(&mut once::dispatcher(town, store, &self.actor()), store)?;
        }
        tried?;
        Ok(())
    }

    /// Says that what was stored waits for a daemon, where none runs.
    pub(crate) fn note_missing_daemon(&self, town: &Town) {
        if !self.is_dry_run() && !daemon_runs(town) {
            self.note("note: no daemon runs, so nothing starts by itself: `gt daemon start`");
        }
    }

    /// The same to whoever talks: his own command sees to the answers.
    pub(crate) fn note_missing_daemon_for_chat(&self, town: &Town) {
        if !daemon_runs(town) {
            self.note("note: no daemon runs, so you are answered only as long as you stay: `gt daemon start`");
        }
    }

    /// The same of what waits to be merged.
    pub(crate) fn note_missing_refinery(&self, town: &Town) {
        if !self.is_dry_run() && !daemon_runs(town) {
            self.note(
                "note: no daemon runs, so nothing is merged by itself: `gt daemon start`, or once: `gt refinery run`",
            );
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.globals.dry_run
    }

    pub(crate) fn now(&self) -> Timestamp {
        gt_core::time::truncate(Timestamp::now())
    }

    pub(crate) fn actor(&self) -> String {
        let named = self.globals.actor.clone().filter(|name| !name.is_empty());
        let known = || ["GT_ACTOR", "BD_ACTOR", "USER", "LOGNAME"].into_iter().find_map(variable);
        named.or_else(known).unwrap_or_else(|| "somebody".to_owned())
    }

    /// A name that cannot stand in the log is refused before anything is done.
    pub(crate) fn check_actor(&self) -> Result<(), Failure> {
        Ok(gt_core::text::check_word("actor", &self.actor())?)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), self.actor())
    }

    pub(crate) fn wants_json(&self) -> bool {
        self.globals.json
    }

    /// Prints for people; colours vanish where they are not wanted. A dry run first says that it is one.
    pub(crate) fn say(&self, text: &str) -> Result<(), Failure> {
        let mut out = anstream::stdout();
        if self.is_dry_run() && !self.has_said_dry.replace(true) {
            finish(out.write_all(DRY_RUN.as_bytes()))?;
        }
        finish(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
    }

    /// Prints one JSON value on a line; that of a dry run is marked. // SPEC U1
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let line = if self.is_dry_run() {
            serde_json::to_value(value).map(marked_dry).and_then(|value| serde_json::to_string(&value))
        } else {
            serde_json::to_string(value)
        };
        let line = line.map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
        finish(out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
    }

    /// Prints a file as it is.
    pub(crate) fn copy(&self, file: &mut impl io::Read) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        finish(io::copy(file, &mut out).and_then(|_| out.flush()))
    }

    /// Prints an aside to standard error, where it does not disturb the answer.
    pub(crate) fn note(&self, text: &str) {
        // An aside is worth nothing to nobody.
        writeln!(anstream::stderr(), "{text}").unwrap_or_default();
    }

    /// Asks the person at the terminal; nobody there has not agreed.
    pub(crate) fn is_confirmed(&self, question: &str) -> bool {
        if self.wants_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        write!(anstream::stderr(), "{question} [y/N] ").ok();
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    /// Whether somebody is watching progress.
    pub(crate) fn is_watched(&self) -> bool {
        !self.wants_json() && io::stderr().is_terminal()
    }
}

/// Marks an object, or each object of a list, as the answer of a dry run.
fn marked_dry(mut value: Value) -> Value {
    let objects = match &mut value {
        Value::Array(items) => items.iter_mut().collect(),
        other => vec![other],
    };
    for object in objects.into_iter().filter_map(Value::as_object_mut) {
        object.insert("dry_run".to_owned(), Value::Bool(true));
    }
    value
}

/// A reader that has seen enough closes the pipe; that is no failure.
fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(Kind::Refused, format!("cannot write the answer: {error}"))),
    }
}

/// Whether a daemon runs this town.
pub(crate) fn daemon_runs(town: &Town) -> bool {
    Lock::Daemon.holder(town).is_ok_and(|holder| holder.is_some())
}

/// A variable of the environment; an empty one counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(Kind::NotFound, format!("the current directory cannot be read: {error}"))
            .hint("go to a directory that exists, or name the town with `--town DIR`")
    })
}
