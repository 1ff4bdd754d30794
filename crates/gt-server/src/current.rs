//! The config as callers meet it: edits count at once, and where one cannot be taken the last good one stays. // SPEC T5

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_engine::Town;
use gt_engine::agents::{PRESETS, find_for_turns};
use gt_engine::config::{Config, Value};
use gt_engine::in_force::{self, Notice};
use gt_engine::settings::Settings;
use gt_engine::surroundings::Machine;

/// How long until a config is looked up again that could not be, or could not be kept.
const CONFIG_RETRY: Duration = Duration::from_secs(1);

/// Where the file is, when it was written, and how long it is.
type Seen = Option<(u64, i64, i64, u64)>;

/// The settings that hold now.
pub(crate) struct Current {
    town: Town,
    held: Mutex<Held>,
}

struct Held {
    /// The file as it was looked at last.
    seen: Seen,
    /// When an edit counts that does not yet.
    look_again: Option<Instant>,
    settings: Arc<Settings>,
}

impl Current {
    pub(crate) fn of(town: &Town) -> Current {
        let settings = Arc::new(Settings::new(Config::default()));
        let current = Current { town: town.clone(), held: Mutex::new(Held { seen: None, look_again: None, settings }) };
        current.reload(&mut current.lock());
        current
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        let mut held = self.lock();
        let seen = self.look();
        if seen != held.seen || held.look_again.is_some_and(|at| Instant::now() >= at) {
            held.seen = seen;
            self.reload(&mut held);
        }
        Arc::clone(&held.settings)
    }

    /// Where nothing good is known, what was known before stays.
    fn reload(&self, held: &mut Held) {
        let in_force =
            self.town.open_store().and_then(|mut store| in_force::load(&self.town, &mut store, &*Machine::here()));
        let Ok(in_force) = in_force else {
            held.look_again = Some(Instant::now() + CONFIG_RETRY);
            return;
        };
        held.look_again = match &in_force.notice {
            Some(Notice::Waits { left, .. }) => Some(Instant::now() + left.unsigned_abs()),
            Some(Notice::Unkept { .. }) => Some(Instant::now() + CONFIG_RETRY),
            Some(Notice::Broken { .. }) | None => None,
        };
        held.settings = Arc::new(Settings::new(in_force.config));
    }

    fn look(&self) -> Seen {
        let file = std::fs::metadata(self.town.config_path()).ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec(), file.len()))
    }

    /// Where to listen.
    pub(crate) fn bind(&self) -> SocketAddr {
        match self.settings().config.value("server.bind") {
            Some(Value::Address(address)) => address,
            _ => SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    /// Whether callers may talk to a session.
    pub(crate) fn allows(&self, session: &str) -> bool {
        self.settings().config.texts("server.allow").iter().any(|pattern| matches(pattern, session))
    }

    /// Whether they may talk to any.
    pub(crate) fn allows_all(&self) -> bool {
        self.settings().config.texts("server.allow").iter().any(|pattern| pattern == "*")
    }

    /// The agents that take turns.
    pub(crate) fn agents(&self) -> Vec<String> {
        let config = &self.settings().config;
        let mut names: Vec<&str> = config.names("agents");
        names.extend(PRESETS.iter().map(|preset| preset.name).filter(|name| !config.names("agents").contains(name)));
        names.into_iter().filter(|name| find_for_turns(config, name).is_ok()).map(str::to_owned).collect()
    }
}

/// Whether a text fits a pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything_and_nothing_else_does() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "dm:anna"),
            ("dm:*", "dm:"),
            ("dm:*", "dm:anna"),
            ("*:a*a", "dm:anna"),
            ("a*b*c", "abbc"),
            ("x", "x"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("dm:*", "group:dm:"),
            ("dm:?", "dm:a"),
            ("a*a", "a"),
            ("*b", "ab "),
            ("a*b*c", "acb"),
            ("X", "x"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
