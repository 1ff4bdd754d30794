//! Finding a key: parsing its path, matching the table, and near matches for a miss.
//!
//! Owns the shape of a key and how names are compared. The keys themselves are in
//! `table`; what they hold in a given file is `Config`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gt_core::text::misleads;

use super::error::ConfigError;
use super::table::{KEYS, WILDCARD};
use super::value::{Kind, TEXT_MAX, Value, shown};

/// Longest key taken from a command line; the longest sensible one is far shorter.
const PATH_MAX: usize = 512;

/// Longest name of a rig, agent, host or lane.
const NAME_MAX: usize = 200;

/// Near matches offered at most.
const NEAR_MAX: usize = 3;

/// One entry of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Dotted path; a segment `NAME` stands for any name.
    pub path: &'static str,
    pub kind: Kind,
    pub initial: Initial,
    /// What the key does, in one line.
    pub help: &'static str,
}

/// What a key holds when the file does not set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    Default(&'static str),
    Unset { example: &'static str },
}

/// What the table says about a path.
pub(super) enum Match {
    Key(&'static Key),
    Group,
    Unknown,
}

impl Key {
    /// Tells whether one path names one setting, without a name to fill in.
    pub fn is_plain(&self) -> bool {
        !self.path.split('.').any(|segment| segment == WILDCARD)
    }

    /// Returns the default, or `None` for a key that is unset until someone sets it.
    pub fn default_value(&self) -> Option<Value> {
        self.default_text().map(|_| self.sample())
    }

    /// Returns the default as typed.
    pub(super) fn default_text(&self) -> Option<&'static str> {
        match self.initial {
            Initial::Default(text) => Some(text),
            Initial::Unset { .. } => None,
        }
    }

    /// Returns the default, or the example of a key without one.
    pub(super) fn sample(&self) -> Value {
        let (Initial::Default(text) | Initial::Unset { example: text }) = self.initial;
        self.kind.read_text(text).expect("the table's own values are valid, as its test shows")
    }

    fn depth(&self) -> usize {
        self.path.split('.').count()
    }

    /// Tells whether the path is a beginning of the key, or all of it.
    fn begins_with(&self, path: &[String]) -> bool {
        let mut pattern = self.path.split('.');
        path.iter().all(|segment| match pattern.next() {
            Some(name) => name == WILDCARD || name == segment,
            None => false,
        })
    }

    pub(super) fn refuse(&self, path: &[String], given: &str, line: Option<usize>) -> ConfigError {
        ConfigError::BadValue {
            key: join(path),
            // It may hold tokens, and a bad one is not parsed enough to mask them.
            given: match self.kind {
                Kind::TextTable | Kind::Web | Kind::Secret if !given.trim().is_empty() => "***".to_owned(),
                _ => shown(given),
            },
            expected: match line {
                None if given.len() > TEXT_MAX => "shorter than 64 KiB".to_owned(),
                _ => self.kind.expected(),
            },
            line,
            default: self.default_text(),
        }
    }
}

/// Joins names into a key, quoting those that need it: `rigs."a.b".gates`.
pub fn join<S: AsRef<str>>(path: &[S]) -> String {
    let quoted = |segment: &S| match segment.as_ref() {
        bare if is_bare(bare) => bare.to_owned(),
        other => toml_edit::Key::new(other).display_repr().into_owned(),
    };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// Splits a key as typed into its names.
pub(super) fn split(key: &str) -> Result<Vec<String>, ConfigError> {
    if key.len() > PATH_MAX {
        return Err(malformed(key, "it is too long"));
    }
    split_any(key)
}

/// Splits a key of any length.
pub(super) fn split_any(key: &str) -> Result<Vec<String>, ConfigError> {
    if key.trim().is_empty() {
        return Err(malformed(key, "it is empty"));
    }
    // Nearly all are, and they are looked up all the time.
    if key.split('.').all(is_bare) {
        return Ok(key.split('.').map(str::to_owned).collect());
    }
    let segments = toml_edit::Key::parse(key.trim());
    let segments = segments.map_err(|error| malformed(key, error.message()))?;
    Ok(segments.iter().map(|segment| segment.get().to_owned()).collect())
}

/// Whether a name needs no quotes.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn malformed(key: &str, problem: &str) -> ConfigError {
    ConfigError::MalformedKey { key: shown(key), problem: problem.to_owned() }
}

/// Looks a path up; names the user chose must be fit to be shown and typed.
pub(super) fn find(path: &[String]) -> Match {
    let begun = || KEYS.iter().any(|key| key.begins_with(path));
    match shaped(path) {
        _ if !path.iter().all(|name| is_name(name)) => Match::Unknown,
        Some(key) => Match::Key(key),
        None if begun() => Match::Group,
        None => Match::Unknown,
    }
}

/// Looks up the shape of a path, whatever its names; an exact key wins over a wildcard.
pub(super) fn shaped(path: &[String]) -> Option<&'static Key> {
    let group = GROUPS.get(path.first()?.as_str())?;
    let exact = group.iter().find(|key| key.path.split('.').eq(path));
    let wild = || group.iter().find(|key| key.depth() == path.len() && key.begins_with(path));
    exact.or_else(wild).copied()
}

/// The keys by their first name, which is never a wildcard.
static GROUPS: LazyLock<BTreeMap<&str, Vec<&Key>>> = LazyLock::new(|| {
    let mut groups: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    for key in KEYS {
        let first = key.path.split('.').next().unwrap_or_default();
        groups.entry(first).or_default().push(key);
    }
    groups
});

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && !name.contains(misleads)
}

/// Looks up a path that must be a key.
pub(super) fn require(path: &[String]) -> Result<&'static Key, ConfigError> {
    match find(path) {
        Match::Key(key) => Ok(key),
        Match::Group => Err(is_group(path)),
        Match::Unknown => Err(unknown(path, None)),
    }
}

pub(super) fn unknown(path: &[String], line: Option<usize>) -> ConfigError {
    ConfigError::UnknownKey { key: shown(&join(path)), line, near: near(path) }
}

pub(super) fn is_group(path: &[String]) -> ConfigError {
    let members = KEYS.iter().filter(|key| key.begins_with(path));
    let keys = members.map(|key| filled(key, path)).collect();
    ConfigError::IsGroup { key: join(path), keys }
}

/// Writes the key's path with the user's names in place of wildcards, where they fit.
fn filled(key: &Key, path: &[String]) -> String {
    let depth = key.depth();
    let fits = path.len() == depth || key.begins_with(&path[..path.len().min(depth)]);
    let segments = key.path.split('.').enumerate().map(|(at, segment)| {
        let name = path.get(at).filter(|name| fits && is_name(name));
        match (segment, name) {
            (WILDCARD, Some(name)) => name.as_str(),
            _ => segment,
        }
    });
    join(&segments.collect::<Vec<_>>())
}

/// Finds keys a user may have meant.
fn near(path: &[String]) -> Vec<String> {
    let typed = join(path);
    if typed.len() > PATH_MAX {
        return Vec::new();
    }
    let mut ranked = KEYS
        .iter()
        .filter_map(|key| {
            let candidate = filled(key, path);
            let rank = rank(key, path, &typed, &candidate)?;
            Some((rank, candidate))
        })
        .collect::<Vec<_>>();
    // Stable: keys of equal rank stay in the table's order.
    ranked.sort_by_key(|(rank, _)| *rank);
    let best = ranked.first().map_or(0, |(rank, _)| *rank);
    // Beside a near miss, the far ones only distract.
    ranked.retain(|(rank, _)| *rank <= best + 1);
    ranked.dedup_by(|a, b| a.1 == b.1);
    ranked.truncate(NEAR_MAX);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

fn rank(key: &Key, path: &[String], typed: &str, candidate: &str) -> Option<usize> {
    // `agents.x.env.TOKEN`: the key is right, it only goes too deep.
    if path.len() > key.depth() && key.begins_with(&path[..key.depth()]) {
        return Some(0);
    }
    // `max_polecats` without its table, or under the wrong one.
    let leaf = key.path.rsplit('.').next().filter(|leaf| *leaf != WILDCARD);
    let same_leaf = leaf.is_some() && leaf == path.last().map(String::as_str);
    let by_leaf = same_leaf.then_some(3);
    let distance = gt_core::near::distance(typed, candidate);
    let allowed = (typed.chars().count() / 4).clamp(1, 4);
    let by_spelling = (distance <= allowed).then_some(distance);
    by_spelling.into_iter().chain(by_leaf).min()
}
