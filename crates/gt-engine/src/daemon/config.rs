//! The config while the daemon runs: what is kept in the store is in force, and good edits of the file are kept. // SPEC T5

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gt_core::event::EventType;
use gt_store::{SeenConfig, Store, StoreError};
use jiff::SignedDuration;
use serde_json::json;

use super::{Daemon, watch};
use crate::config::{self, Config, ConfigError, Decision, Dropped, Waited, digest};
use crate::error::{TownError, chain};
use crate::in_force::{self, Decided, Notice};
use crate::places;
use crate::settings::Settings;
use crate::town::Town;

/// How long a config waits that the store could not keep.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Some editors move the old file away before they write the new one; for so long that is not worth a word.
const MOVED_FOR: Duration = Duration::from_secs(2);

/// Which file the config is: another one, when it was replaced as a whole. Numbers come again, so with its birth.
type FileId = (u64, Option<SystemTime>);

/// What the daemon knows of the config file.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// The file as it was read last.
    file: Option<FileId>,
    /// The version in the store that is in force here.
    version: i64,
    /// What was said of the file last, unless it is in force.
    notice: Option<String>,
    waiting: Option<Waiting>,
    /// Whether the file was rejected when it was read last.
    is_rejected: bool,
    /// Since when, of `uptime`, there has been no file.
    missing_since: Option<Duration>,
    /// When, of `uptime`, it is looked at again for any other reason.
    retry_at: Option<Duration>,
    /// Why it could not be looked up the last time.
    failure: Option<String>,
}

/// An edit that drops limits.
#[derive(Debug, Clone)]
struct Waiting {
    seen: SeenConfig,
    /// When, of `uptime`, it counts, unless it changes again.
    counts_at: Duration,
    /// When, of `uptime`, the log has a line about it; `None`: it has.
    say_at: Option<Duration>,
}

/// A command writes the file first and then has it count: for so long an edit may be a command's.
const COMMAND_TIME: Duration = Duration::from_secs(1);

/// The last good config, and whether there is one.
pub(super) fn last_good(town: &Town, store: &mut Store) -> Result<(Config, bool), StoreError> {
    let (_, kept) = in_force::last_good(town, store)?;
    let config = kept.and_then(|kept| Config::parse(&kept.text).ok());
    let has_config = config.is_some();
    Ok((config.unwrap_or_default(), has_config))
}

fn config_id(town: &Town) -> Option<FileId> {
    let metadata = std::fs::metadata(town.config_path()).ok()?;
    Some((metadata.ino(), metadata.created().ok()))
}

impl Daemon {
    /// A `gt config set` that was acknowledged before this pass began counts in it, whether it was heard of or not. A
    /// file that is being written in place may be half of one; its writer's closing it is heard of.
    pub(super) fn reload_if_replaced(&mut self) -> bool {
        if self.config.file != config_id(&self.town) || self.is_config_due() {
            return self.reload();
        }
        match self.store.config_version() {
            Ok(version) if version == self.config.version => false,
            Ok(_) => self.take_kept(),
            Err(error) => self.retry_config(&error.into()),
        }
    }

    /// Whether an edit has waited long enough, or one that could not be kept is to be tried again.
    pub(super) fn is_config_due(&self) -> bool {
        self.config_due_in() == Some(Duration::ZERO)
    }

    pub(super) fn config_due_in(&self) -> Option<Duration> {
        let waiting = self.config.waiting.as_ref();
        let waits_until = waiting.map(|waiting| waiting.say_at.unwrap_or(waiting.counts_at).min(waiting.counts_at));
        // What has failed is tried again after its pause, also if the edit has waited long enough.
        let at = self.config.retry_at.or(waits_until)?;
        Some(at.saturating_sub(self.around.uptime()))
    }

    /// Takes an edit that counts; otherwise the last good config stays, and the daemon says why. // SPEC T5
    pub(super) fn reload(&mut self) -> bool {
        self.config.file = config_id(&self.town);
        self.config.retry_at = None;
        let waiting = self.config.waiting.take();
        let uptime = self.around.uptime();
        let known = waiting.clone();
        // Of an edit that it has watched, the daemon knows better than the clock how long it has been there.
        let waited = |seen: &SeenConfig| match known {
            Some(known) if known.seen.digest == seen.digest && known.seen.changed_at == seen.changed_at => {
                let left = known.counts_at.saturating_sub(uptime);
                Waited::Left(SignedDuration::try_from(left).unwrap_or(SignedDuration::MAX))
            }
            _ => Waited::Clock,
        };
        let Decided { decision, version } =
            match in_force::decide_now(&self.town, &mut self.store, &*self.around, waited) {
                Ok(decided) => decided,
                Err(error) => {
                    self.config.waiting = waiting;
                    return self.retry_config(&error.into());
                }
            };
        self.config.failure = None;
        let missing_since = self.config.missing_since.take();
        match decision {
            Decision::Kept(config) => {
                self.config.notice = None;
                if std::mem::take(&mut self.config.is_rejected) {
                    (self.log)("town.toml is in order again");
                }
                self.adopt(config, version)
            }
            Decision::Take { text, config, dropped } => {
                match in_force::keep(&self.town, &mut self.store, &*self.around, &text, version, &dropped) {
                    Ok(Some(version)) => {
                        (self.config.notice, self.config.is_rejected) = (None, false);
                        for one in dropped {
                            (self.log)(&one.to_string());
                        }
                        self.adopt(config, version)
                    }
                    // A command was first; what it has kept is looked at next.
                    Ok(None) => self.take_kept(),
                    Err(error) => {
                        self.config.waiting = waiting;
                        self.retry_config(&error)
                    }
                }
            }
            Decision::Wait { config, dropped, left, seen, .. } => {
                let before = waiting.filter(|waiting| waiting.seen.digest == seen.digest);
                self.await_edit(before, dropped, left, seen);
                self.adopt(config, version)
            }
            Decision::Broken { config: Some(config), problem: ConfigError::Missing { .. } }
                if missing_since.is_none_or(|since| uptime < since + MOVED_FOR) =>
            {
                let since = missing_since.unwrap_or(uptime);
                (self.config.missing_since, self.config.retry_at) = (Some(since), Some(since + MOVED_FOR));
                self.adopt(config, version)
            }
            Decision::Broken { config, problem } => {
                self.config.missing_since = missing_since;
                self.reject_config(&chain(&problem), config.is_some());
                let config = if gt_core::defect!("broken-config-resets") { Some(Config::default()) } else { config };
                config.is_some_and(|config| self.adopt(config, version))
            }
        }
    }

    /// Waits for an edit that drops limits, and logs that unless it may still be a command's.
    fn await_edit(&mut self, before: Option<Waiting>, dropped: Vec<Dropped>, left: SignedDuration, seen: SeenConfig) {
        let uptime = self.around.uptime();
        let counts_at = uptime + Duration::try_from(left).unwrap_or_default();
        let mut say_at = before.map_or(Some(uptime + COMMAND_TIME), |before| before.say_at);
        if say_at.is_some_and(|at| at <= uptime) {
            let notice = Notice::Waits { dropped, left, seen: seen.clone() }.words();
            (self.log)(&notice);
            (self.config.notice, say_at) = (Some(notice), None);
        }
        self.config.waiting = Some(Waiting { seen, counts_at, say_at });
    }

    /// Takes what others have kept; the file is read when its writer is known to be done with it.
    fn take_kept(&mut self) -> bool {
        let (version, kept) = match in_force::last_good(&self.town, &mut self.store) {
            Ok(known) => known,
            Err(error) => return self.retry_config(&error.into()),
        };
        let Some((kept, config)) = kept.and_then(|kept| Some((digest(&kept.text), Config::parse(&kept.text).ok()?)))
        else {
            // What it was cannot be told any more; what is known here stays.
            self.config.version = version;
            return false;
        };
        // An edit that a command has made, or another process taken, waits no more.
        self.config.waiting.take_if(|waiting| waiting.seen.digest == kept);
        self.adopt(config, version)
    }

    /// Goes by a config from now on; says whether that is another one than before.
    fn adopt(&mut self, config: Config, version: i64) -> bool {
        if self.has_config && gt_core::defect!("config-read-once") {
            return false;
        }
        self.config.version = version;
        if self.has_config && config == self.settings.config {
            return false;
        }
        if !self.has_config {
            self.watching_since = self.dispatcher.now(); // until now nobody knew what to do
        }
        self.has_config = true;
        if !places::is_same_runtime(&config, &self.settings.config) {
            self.change_runtime(&config);
        }
        self.settings = Arc::new(Settings::on(self.around.gauge(), config));
        self.channels.iter_mut().for_each(|channels| channels.apply(&self.settings));
        self.patrol.next = self.patrol.next.min(self.dispatcher.now() + self.settings.heartbeat);
        (self.log)("took the changed config");
        self.log_ineffective();
        self.keep_beats();
        // What troubled an agent or held a merge target may have been mended by the edit.
        let stamp = self.dispatcher.stamp();
        if let Err(error) = self.store.forget_troubles(&stamp).and_then(|()| self.store.retry_held_targets(&stamp)) {
            (self.log)(&chain(&error));
        }
        true
    }

    /// Logs the settings that have no effect. // SPEC T8
    pub(super) fn log_ineffective(&mut self) {
        match in_force::known_names(&self.town, &mut self.store, &self.settings.config) {
            Ok(names) => {
                for one in config::ineffective(&self.settings.config, &names) {
                    (self.log)(&format!("{one}; {}", one.hint));
                }
            }
            Err(error) => (self.log)(&chain(&error)),
        }
    }

    /// What was started elsewhere is looked for where it is.
    fn change_runtime(&mut self, config: &Config) {
        self.dispatcher.set_runtime(places::runtime_of(&self.town, config));
        if let Err(error) = watch(&mut self.dispatcher, &self.sender) {
            (self.log)(&format!("nobody tells of endings: {}", chain(&error)));
        }
    }

    fn retry_config(&mut self, error: &TownError) -> bool {
        let failure = format!("the config cannot be looked up: {}", chain(error));
        if self.config.failure.as_ref() != Some(&failure) {
            (self.log)(&failure);
        }
        self.config.failure = Some(failure);
        self.config.retry_at = Some(self.around.uptime() + STORE_RETRY);
        false
    }

    /// Says once that the file cannot be taken.
    fn reject_config(&mut self, problem: &str, has_last_good: bool) {
        if gt_core::defect!("broken-config-ends-the-daemon") {
            std::process::exit(1);
        }
        if self.config.notice.as_deref() == Some(problem) {
            return;
        }
        let until = if has_last_good { "the last good one stays" } else { "nothing starts until it is mended" };
        (self.log)(&format!("the config cannot be taken, {until}: {problem}"));
        let rejected =
            self.store.record(EventType::ConfigRejected, &json!({ "error": problem }), &self.dispatcher.stamp());
        if let Err(error) = rejected {
            (self.log)(&chain(&error));
        }
        (self.config.notice, self.config.is_rejected) = (Some(problem.to_owned()), true);
    }
}
