//! Which config is in force: the file as it is, or the last good one. // SPEC T5
//!
//! One decision for the daemon and every command, from what was found in the file and what is kept in the store. A broken
//! edit changes nothing. An edit that drops a limit counts once it has stayed unchanged for a while: a file that is
//! half written, or that its editor is about to write again, lets no work through. Nothing here reads a file or a clock.

use gt_store::SeenConfig;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use super::{Config, ConfigError, Dropped, dropped};

/// How long an edit that drops a limit must stay unchanged.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(10);

/// How much longer commands wait for a daemon to take such an edit. A daemon of an older version never does.
const DAEMON_LATE: SignedDuration = SignedDuration::from_secs(60);

/// What was found in the file.
#[derive(Debug)]
pub struct Found {
    /// A text and the config that it is, or why it is none.
    pub read: Result<(String, Config), ConfigError>,
    /// When the file changed last, as the file system says.
    pub changed_at: Option<Timestamp>,
}

/// The config that counts until a good one takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastGood {
    pub text: String,
    pub kept_at: Timestamp,
    /// An edit that waits, as it was seen first.
    pub seen: Option<SeenConfig>,
}

/// Who knows how long the file has been as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The clock, compared with the file's own time or with when it was seen first.
    Clock,
    /// A process that has watched the file, whatever was done to the clock: so much is left to wait.
    Left(SignedDuration),
    /// The daemon, which watches it; commands wait for it, though not without end.
    Daemon,
}

/// What is in force, and why.
#[derive(Debug)]
pub enum Decision {
    /// The file says what is kept.
    Kept(Config),
    /// The file counts from now on.
    Take { text: String, config: Config, dropped: Vec<Dropped> },
    /// The last good one: the edit drops limits, and counts after this time if nobody touches the file again.
    Wait {
        config: Config,
        dropped: Vec<Dropped>,
        left: SignedDuration,
        seen: SeenConfig,
        /// Whether the store does not know since when it has been like this, and has to for the next one who asks.
        is_news: bool,
    },
    /// The last good one, if there is any: the edit is broken.
    Broken { config: Option<Config>, problem: ConfigError },
}

/// Decides what is in force. The limits of what does not exist (`is_void`) may go at once. A last good config that cannot be
/// read, because another version wrote it, counts as none.
pub fn decide(
    found: Found,
    kept: Option<&LastGood>,
    now: Timestamp,
    waited: Waited,
    is_void: impl Fn(&str) -> bool,
) -> Decision {
    let last_good = kept.and_then(|kept| Some((kept, Config::parse(&kept.text).ok()?)));
    let (text, config) = match found.read {
        Ok(read) => read,
        Err(problem) => return Decision::Broken { config: last_good.map(|(_, config)| config), problem },
    };
    let Some((kept, last_good)) = last_good else {
        return Decision::Take { text, config, dropped: Vec::new() };
    };
    if text == kept.text {
        return Decision::Kept(config);
    }
    let dropped = dropped(&last_good, &config, is_void);
    if dropped.is_empty() || gt_core::defect!("blank-config-counts") {
        return Decision::Take { text, config, dropped };
    }
    let seen = SeenConfig { digest: digest(&text), changed_at: found.changed_at, at: now };
    let (since, is_known) = unchanged_since(&seen, kept, now);
    let by_clock = SETTLE - now.duration_since(since);
    let left = match waited {
        Waited::Left(left) => left,
        Waited::Daemon if by_clock > -DAEMON_LATE => by_clock.max(SignedDuration::from_secs(1)),
        Waited::Clock | Waited::Daemon => by_clock,
    };
    if left <= SignedDuration::ZERO {
        return Decision::Take { text, config, dropped };
    }
    Decision::Wait { config: last_good, dropped, left, seen, is_news: !is_known }
}

/// Since when the file has been as it is, and whether that can be told again later. The file's own time is believed where it
/// lies between when the last good config was kept and now: a file that was moved here may be older than its place, and a
/// clock that was set back leaves times in the future. Otherwise it is when the file was seen first.
fn unchanged_since(seen: &SeenConfig, kept: &LastGood, now: Timestamp) -> (Timestamp, bool) {
    let own = seen.changed_at.filter(|at| (kept.kept_at..=now).contains(at));
    let is_same = |first: &&SeenConfig| first.digest == seen.digest && first.changed_at == seen.changed_at;
    let first = kept.seen.as_ref().filter(is_same).map(|first| first.at).filter(|at| *at <= now);
    match own.or(first) {
        Some(since) => (since, true),
        None => (now, false),
    }
}

/// By what a text is known in the store, which must not hold it: it may hold secrets.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}
