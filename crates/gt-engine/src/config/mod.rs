//! The town's config: one commented TOML file with typed keys, defaults and help (SPEC T5).
//!
//! Owns the keys, what is valid for them, reading a file into a [`Config`], edits that
//! keep the user's comments, and the fresh file. Everything here works on text; only
//! [`ConfigFile`] touches the disk. It does not watch the file or apply `GT_LANE_X`. What
//! the settings do, only `ineffective` knows.

mod decide;
mod edit;
mod error;
mod file;
mod ineffective;
mod keys;
mod limits;
mod place;
mod secret;
mod table;
mod template;
mod units;
mod value;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toml_edit::{Document, Item, TableLike};

pub use decide::{Decision, Found, LastGood, SETTLE, Waited, decide, digest};
pub use edit::{set, unset, unset_all};
pub use error::ConfigError;
pub use file::{ConfigFile, Edit};
pub use ineffective::{Ineffective, KnownNames, ineffective, is_of_missing_rig, missing_owner, refuse_ineffective};
pub use keys::{Initial, Key, join};
pub use limits::{Dropped, How, dropped, is_missing};
pub use secret::{Secret, mask_path};
pub use table::KEYS;
pub use template::template;
pub use units::{ActiveHours, duration as parse_duration};
pub use value::{Kind, Value};

use error::line_of;
use keys::Match;

/// A config whose every key is known and every value valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    values: BTreeMap<Vec<String>, Value>,
}

/// One key with what it holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The full key, with the user's names in place of wildcards.
    pub key: String,
    /// `None` where nothing is set and there is no default.
    pub value: Option<Value>,
    pub source: Source,
    pub help: &'static str,
    pub kind: Kind,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    File,
    Default,
}

impl Config {
    /// Reads a config file's text; an empty one gives the defaults.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let document = Document::parse(text).map_err(|error| ConfigError::syntax(text, &error))?;
        let mut config = Self::default();
        config.take(text, document.as_table(), &mut Vec::new())?;
        Ok(config)
    }

    /// Returns what a key holds now.
    pub fn get(&self, key: &str) -> Result<Setting, ConfigError> {
        let path = keys::split(key)?;
        let key = keys::require(&path)?;
        Ok(self.setting(key, &path))
    }

    /// Lists the plain keys, and those with a name where the file sets them, in table order.
    pub fn list(&self) -> Vec<Setting> {
        KEYS.iter().flat_map(|key| self.settings(key)).collect()
    }

    /// Lists the names the file uses in a group such as `agents`, sorted.
    pub fn names(&self, group: &str) -> Vec<&str> {
        let names = self
            .values
            .keys()
            .filter(|path| path.first().is_some_and(|first| first == group))
            .filter_map(|path| path.get(1).map(String::as_str));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Lists the keys that the file sets below a group such as `rigs.shop`.
    pub fn keys_of(&self, group: &[&str]) -> Vec<String> {
        let is_below =
            |path: &&Vec<String>| path.len() > group.len() && path.iter().zip(group).all(|(one, of)| one == of);
        self.values.keys().filter(is_below).map(|path| join(path)).collect()
    }

    /// Returns a key's value or default; `None` where it has neither.
    ///
    /// Like the typed getters below it is for keys the program itself names, with
    /// [`join`] where a part of the key is the user's.
    ///
    /// # Panics
    ///
    /// If there is no such key: a mistake in the program, not in the file.
    pub fn value(&self, key: &str) -> Option<Value> {
        // By shape alone: the name of a rig may come from elsewhere and be an odd one.
        let path = keys::split_any(key).unwrap_or_default();
        match keys::shaped(&path) {
            Some(key) => self.setting(key, &path).value,
            None => panic!("a key that the program names must exist: `{key}`"),
        }
    }

    /// Returns a whole number. `auto`, and a lane that nobody has set, are none: ask for
    /// [`Self::value`] there.
    pub fn integer(&self, key: &str) -> i64 {
        match self.value(key) {
            Some(Value::Integer(number)) => number,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    pub fn boolean(&self, key: &str) -> bool {
        match self.value(key) {
            Some(Value::Boolean(yes)) => yes,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    pub fn duration(&self, key: &str) -> Duration {
        match self.value(key) {
            Some(Value::Duration { length, .. }) => length,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    pub fn size_bytes(&self, key: &str) -> u64 {
        match self.value(key) {
            Some(Value::Size { bytes, .. }) => bytes,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    /// Returns a text, a choice or a time zone; `None` where it has neither value nor default.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            None => None,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    /// Returns a secret or an address of the web as it is written; `None` where it has neither value nor default.
    pub fn secret(&self, key: &str) -> Option<Secret> {
        match self.value(key) {
            Some(Value::Secret(secret) | Value::Web(secret)) => Some(secret),
            None => None,
            other => wrong_getter(key, other.as_ref()),
        }
    }

    /// Returns a list of texts; empty where it has neither value nor default.
    pub fn texts(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::List(texts)) => texts,
            None => Vec::new(),
            other => wrong_getter(key, other.as_ref()),
        }
    }

    fn take(&mut self, text: &str, table: &dyn TableLike, path: &mut Vec<String>) -> Result<(), ConfigError> {
        for (name, item) in table.iter() {
            path.push(name.to_owned());
            // Counted only for a refusal: for every key it would be quadratic.
            let line = || Some(line_of(text, table.key(name)?.span()?.start));
            match keys::find(path) {
                Match::Key(key) => {
                    let value = key.kind.read_item(item, text);
                    let refusal = || key.refuse(path, &written(text, item), line());
                    self.values.insert(path.clone(), value.ok_or_else(refusal)?);
                }
                Match::Group => {
                    let not_a_table = || ConfigError::NotATable { key: join(path), line: line() };
                    let inner = item.as_table_like().ok_or_else(not_a_table)?;
                    self.take(text, inner, path)?;
                }
                Match::Unknown => return Err(keys::unknown(path, line())),
            }
            path.pop();
        }
        Ok(())
    }

    fn settings(&self, key: &'static Key) -> Vec<Setting> {
        if key.is_plain() {
            let path = key.path.split('.').map(str::to_owned).collect::<Vec<_>>();
            return vec![self.setting(key, &path)];
        }
        let set = self.values.keys();
        set.filter(|path| matches!(keys::find(path), Match::Key(found) if found == key))
            .map(|path| self.setting(key, path))
            .collect()
    }

    fn setting(&self, key: &'static Key, path: &[String]) -> Setting {
        let value = self.values.get(path);
        Setting {
            key: join(path),
            value: value.cloned().or_else(|| key.default_value()),
            source: match value {
                Some(_) => Source::File,
                None => Source::Default,
            },
            help: key.help,
            kind: key.kind,
        }
    }
}

/// Shows a value as the user wrote it; a table has no one place and is named instead.
fn written(text: &str, item: &Item) -> String {
    let span = item.as_value().and_then(toml_edit::Value::span);
    span.and_then(|span| text.get(span)).map_or_else(|| item.type_name().to_owned(), str::to_owned)
}

fn wrong_getter(key: &str, value: Option<&Value>) -> ! {
    panic!("`{key}` holds {value:?}, which this getter does not give")
}
