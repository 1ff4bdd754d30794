//! What every verb needs: the town, who is asking, the time, and where answers go.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use gt_core::plan::Side;
use gt_engine::config::Config;
use gt_engine::lock::Lock;
use gt_engine::refinery::Worked;
use gt_engine::settings::Settings;
use gt_engine::surroundings::Machine;
use gt_engine::{Town, TownError, once, refinery};
use gt_store::{Kinds, Stamp, Store};
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::Globals;
use crate::failure::{Failure, Kind};

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
}

#[expect(clippy::unused_self, reason = "a verb asks its context, whether or not that has to look it up")]
impl Context {
    pub(crate) fn new(globals: Globals) -> Context {
        Context { globals }
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

    /// The settings of dispatch; a config that cannot be read is an error here, never a guess.
    pub(crate) fn settings(&self, town: &Town) -> Result<Settings, Failure> {
        Ok(Settings::new(town.config_file().load().map_err(TownError::from)?))
    }

    /// The same for agents: that somebody has broken the config must not keep them from ending.
    pub(crate) fn settings_or_defaults(&self, town: &Town) -> Settings {
        self.settings(town).unwrap_or_else(|_| Settings::new(Config::default()))
    }

    /// In direct mode and without a daemon, what a command has made possible is started by that command. // SPEC P2
    pub(crate) fn carry_on(&self, town: &Town, store: &mut Store, after: After) -> Result<(), Failure> {
        let has_work = store.has_ready_contexts(Kinds::All, self.now())? || after == After::Exit;
        if self.is_dry_run() || !has_work || daemon_runs(town) {
            return Ok(());
        }
        if after == After::Command {
            let policy = self.settings(town)?.policy(town.root());
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
        let report = once::carry_on(&mut once::dispatcher(town, &self.actor()), store)?;
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
            once::carry_on(&mut once::dispatcher(town, &self.actor()), store)?;
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

    /// Prints for people; colours vanish where they are not wanted.
    pub(crate) fn say(&self, text: &str) -> Result<(), Failure> {
        let mut out = anstream::stdout();
        finish(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
    }

    /// Prints one JSON value on a line.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let line = serde_json::to_string(value).map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
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

    /// Whether somebody is watching progress.
    pub(crate) fn is_watched(&self) -> bool {
        !self.wants_json() && io::stderr().is_terminal()
    }
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
