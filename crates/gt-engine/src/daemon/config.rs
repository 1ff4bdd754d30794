//! The config while the daemon runs: edits are taken, broken ones refused, the last good one stays. // SPEC T5

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::SystemTime;

use gt_core::event::EventType;
use serde_json::json;

use super::{Daemon, watch};
use crate::error::chain;
use crate::places;
use crate::settings::Settings;
use crate::town::Town;

/// Which file the config is: another one, when it was replaced as a whole. Numbers come again, so with its birth.
pub(super) type FileId = (u64, Option<SystemTime>);

pub(super) fn config_id(town: &Town) -> Option<FileId> {
    let metadata = std::fs::metadata(town.config_path()).ok()?;
    Some((metadata.ino(), metadata.created().ok()))
}

impl Daemon {
    /// A `gt config set` that was acknowledged before this pass began counts in it, whether it was heard of or not. A
    /// file that is being written in place may be half of one; its writer's closing it is heard of.
    pub(super) fn reload_if_replaced(&mut self) -> bool {
        self.config_seen != config_id(&self.town) && self.reload()
    }

    /// Takes the edited config, or keeps the last good one and says so. // SPEC T5
    pub(super) fn reload(&mut self) -> bool {
        self.config_seen = config_id(&self.town);
        match self.town.config_file().load() {
            // Some editors move the old file away before they write the new one.
            Ok(_) if !self.town.config_path().exists() => false,
            Err(error) => {
                let problem = chain(&error);
                if self.config_problem.as_ref() != Some(&problem) {
                    self.reject_config(&problem);
                }
                false
            }
            Ok(config) if self.config_problem.is_none() && config == self.settings.config => false,
            Ok(config) => {
                if !self.has_config {
                    self.watching_since = self.dispatcher.now(); // until now nobody knew what to do
                }
                (self.config_problem, self.has_config) = (None, true);
                if !places::is_same_runtime(&config, &self.settings.config) {
                    self.change_runtime();
                }
                self.settings = Arc::new(Settings::new(config));
                self.channels.iter_mut().for_each(|channels| channels.apply(&self.settings));
                self.next_patrol = self.next_patrol.min(self.dispatcher.now() + self.settings.heartbeat);
                (self.log)("took the changed config");
                self.keep_beats();
                // Whatever troubled an agent may have been mended by the edit.
                if let Err(error) = self.store.forget_troubles(&self.dispatcher.stamp()) {
                    (self.log)(&chain(&error));
                }
                true
            }
        }
    }

    /// What was started elsewhere is looked for where it is.
    fn change_runtime(&mut self) {
        self.dispatcher.set_runtime(places::runtime(&self.town));
        if let Err(error) = watch(&mut self.dispatcher, &self.sender) {
            (self.log)(&format!("nobody tells of endings: {}", chain(&error)));
        }
    }

    pub(super) fn reject_config(&mut self, problem: &str) {
        let until = if self.has_config { "the last good one stays" } else { "nothing starts until it is mended" };
        (self.log)(&format!("the config cannot be taken, {until}: {problem}"));
        let rejected =
            self.store.record(EventType::ConfigRejected, &json!({ "error": problem }), &self.dispatcher.stamp());
        if let Err(error) = rejected {
            (self.log)(&chain(&error));
        }
        self.config_problem = Some(problem.to_owned());
    }
}
