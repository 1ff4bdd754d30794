//! The kinds of value a key may hold, and reading them from TOML or a command line.
//!
//! Owns what is valid for each kind and the words that say so. It knows no keys
//! (`table`) and does not touch documents (`edit`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use gt_core::job::{EVERY_MAX, EVERY_MIN};
use gt_core::text::misleads;
use jiff::SignedDuration;
use toml_edit::{Array, InlineTable, Item, TableLike, Value as Toml};

use super::secret::{Secret, mask_path, mask_urls};
use super::units::{self, ActiveHours};

/// Longest text `set` takes for one value; more is an accident, such as a piped file.
pub(super) const TEXT_MAX: usize = 64 * 1024;

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer {
        min: i64,
        max: i64,
    },
    Boolean,
    Duration {
        zero: bool,
    },
    /// A duration at which something is done over and over.
    Interval,
    Size,
    Text,
    Choice(&'static [&'static str]),
    TextList {
        empty: bool,
    },
    TextTable,
    AutoOrCount,
    Money,
    ActiveHours,
    TimeZone,
    Url,
    /// An address of the web, whose path may hold a secret.
    Web,
    /// A password or token, or where it is read from.
    Secret,
    Address,
}

/// A value that has been checked against its kind.
///
/// `Display` is safe for listings: passwords and environment values are masked.
/// Durations, sizes and money keep the user's spelling (`90s` does not become `1m 30s`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Integer(i64),
    Boolean(bool),
    Duration { length: Duration, text: String },
    Size { bytes: u64, text: String },
    Text(String),
    List(Vec<String>),
    Table(BTreeMap<String, Secret>),
    Auto,
    Money { micros: u64, text: String },
    ActiveHours(ActiveHours),
    Url(Secret),
    Web(Secret),
    Secret(Secret),
    Address(SocketAddr),
}

impl Kind {
    /// Says what would be valid, to follow "it must be".
    pub fn expected(&self) -> String {
        let text = match self {
            Self::Integer { min, max } => return format!("a whole number from {min} to {max}"),
            Self::Choice(names) => return one_of(names),
            Self::Boolean => "`true` or `false`",
            Self::Duration { zero: true } => {
                "a duration with its unit, such as `0s`, `800ms`, `5m` or `1h 30m`, not a bare number"
            }
            Self::Duration { zero: false } => {
                "a duration above zero with its unit, such as `800ms`, `5m` or `1h 30m`, not a bare number"
            }
            // `EVERY_MIN` and `EVERY_MAX`, as a person types them.
            Self::Interval => {
                "a duration from `1s` to `3660d` with its unit, such as `5m` or `1h 30m`, not a bare number"
            }
            Self::Size => "a size with its unit, such as `256 MB` or `1 GB`, not a bare number",
            Self::Text => "a text of one line, not empty",
            Self::TextList { empty: true } => r#"a list of texts, such as `["cmd a", "cmd b"]`"#,
            Self::TextList { empty: false } => r#"a list of at least one text, such as `["bash", "agent.sh"]`"#,
            Self::TextTable => r#"a table of texts, such as `{ KEY = "value" }`"#,
            Self::AutoOrCount => "`auto` or a whole number above 0",
            Self::Money => "an amount of 0 or more with at most six decimals, such as `12.50`",
            Self::ActiveHours => "a span of the day such as `08:00-22:00`",
            Self::TimeZone => "an IANA time zone such as `Europe/Berlin` or `UTC`",
            Self::Url => "left unset, since this version keeps all data in the town's own SQLite file",
            Self::Web => "a URL such as `https://example.org/hook`",
            Self::Secret => "a text of one line, or `env:NAME` for what the environment holds under that name",
            Self::Address => "an address with its port, such as `127.0.0.1:7777`",
        };
        text.to_owned()
    }

    /// Reads a value as typed on a command line, where strings need no quotes.
    pub(super) fn read_text(&self, raw: &str) -> Option<Value> {
        if raw.len() > TEXT_MAX {
            return None;
        }
        let text = raw.trim();
        let toml = match self {
            Self::Integer { .. } => Toml::from(text.parse::<i64>().ok()?),
            Self::Boolean => Toml::from(text.parse::<bool>().ok()?),
            Self::AutoOrCount if text != "auto" => Toml::from(text.parse::<i64>().ok()?),
            Self::TextList { .. } if text.starts_with('[') => text.parse::<Toml>().ok()?,
            Self::TextList { .. } => Toml::from(Array::from_iter([unquoted(raw)])),
            Self::TextTable if text.starts_with('{') => text.parse::<Toml>().ok()?,
            Self::TextTable => {
                let (name, value) = text.split_once('=')?;
                Toml::from(InlineTable::from_iter([(name.trim(), unquoted(value))]))
            }
            Self::Money => return money(text),
            _ => Toml::from(unquoted(text)),
        };
        self.read_item(&Item::Value(toml), text)
    }

    /// Reads a value as it stands in a document, of which `source` is the text.
    pub(super) fn read_item(&self, item: &Item, source: &str) -> Option<Value> {
        match self {
            Self::Integer { min, max } => {
                let number = item.as_integer()?;
                (*min..=*max).contains(&number).then_some(Value::Integer(number))
            }
            Self::Boolean => item.as_bool().map(Value::Boolean),
            Self::TextList { empty } => {
                let list = texts(item.as_array()?)?;
                (*empty || !list.is_empty()).then_some(Value::List(list))
            }
            Self::TextTable => environment(item.as_table_like()?).map(Value::Table),
            Self::AutoOrCount => match item.as_integer() {
                Some(number) => (number > 0).then_some(Value::Integer(number)),
                None => (item.as_str()? == "auto").then_some(Value::Auto),
            },
            Self::Money => match item.as_value()? {
                // From the text, since a float has lost how its decimals were written.
                Toml::Float(number) => money(&source.get(number.span()?)?.replace('_', "")),
                other => money(&other.as_integer()?.to_string()),
            },
            _ => self.read_str(item.as_str()?),
        }
    }

    /// Reads the kinds that TOML knows only as strings.
    fn read_str(&self, text: &str) -> Option<Value> {
        match self {
            Self::Duration { zero } => {
                let length = units::duration(text)?;
                let text = text.trim().to_owned();
                (*zero || !length.is_zero()).then_some(Value::Duration { length, text })
            }
            Self::Interval => {
                let length = units::duration(text)?;
                let is_sensible =
                    SignedDuration::try_from(length).is_ok_and(|span| (EVERY_MIN..=EVERY_MAX).contains(&span));
                is_sensible.then(|| Value::Duration { length, text: text.trim().to_owned() })
            }
            Self::Size => units::size(text).map(|bytes| Value::Size { bytes, text: text.trim().to_owned() }),
            Self::Choice(names) => names.contains(&text).then(|| Value::Text(text.to_owned())),
            Self::TimeZone => units::is_time_zone(text).then(|| Value::Text(text.to_owned())),
            Self::ActiveHours => units::active_hours(text).map(Value::ActiveHours),
            Self::Url => units::is_store_url(text).then(|| Value::Url(Secret::new(text))),
            Self::Web => units::is_web_url(text).then(|| Value::Web(Secret::new(text))),
            Self::Secret => is_line(text).then(|| Value::Secret(Secret::new(text.trim()))),
            Self::Address => text.parse().ok().map(Value::Address),
            Self::Text => is_line(text).then(|| Value::Text(text.to_owned())),
            _ => None,
        }
    }
}

impl Value {
    /// Renders the value in full, secrets included, as it is written into the file.
    pub(super) fn to_toml(&self) -> Toml {
        match self {
            Self::Integer(number) => Toml::from(*number),
            Self::Boolean(yes) => Toml::from(*yes),
            Self::Duration { text, .. } | Self::Size { text, .. } | Self::Text(text) => Toml::from(text),
            // Reading the digits back keeps `12.50` as typed; a float would lose the zero.
            Self::Money { micros, text } => text.parse().unwrap_or_else(|_| Toml::from(*micros as f64 / 1e6)),
            Self::List(texts) => Toml::from(Array::from_iter(texts)),
            Self::Table(entries) => {
                let revealed = entries.iter().map(|(name, value)| (name, value.reveal()));
                Toml::from(revealed.collect::<InlineTable>())
            }
            Self::Auto => Toml::from("auto"),
            Self::ActiveHours(hours) => Toml::from(hours.to_string()),
            Self::Url(secret) | Self::Web(secret) | Self::Secret(secret) => Toml::from(secret.reveal()),
            Self::Address(address) => Toml::from(address.to_string()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration { text, .. } | Self::Size { text, .. } | Self::Money { text, .. } | Self::Text(text) => {
                f.write_str(text)
            }
            Self::Url(url) => f.write_str(&mask_urls(url.reveal())),
            Self::Web(url) => f.write_str(&mask_path(url.reveal())),
            // Where a secret is read from is none.
            Self::Secret(secret) if secret.variable().is_some() => f.write_str(secret.reveal()),
            Self::Secret(secret) => secret.fmt(f),
            Self::Auto => f.write_str("auto"),
            Self::ActiveHours(hours) => hours.fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Table(entries) => {
                let masked = entries.iter().map(|(name, value)| (name, value.to_string()));
                Toml::from(masked.collect::<InlineTable>()).fmt(f)
            }
            Self::Integer(_) | Self::Boolean(_) | Self::List(_) => self.to_toml().fmt(f),
        }
    }
}

/// Shows what was given in an error: short, on one line, without passwords.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    // Cut before masking, so that a huge value costs nothing, but far enough out
    // that a password's end is still seen.
    let head = text.trim().chars().take(10 * SHOWN_MAX).collect::<String>();
    let line = mask_urls(&head)
        .chars()
        .flat_map(|c| {
            let plain = (!misleads(c)).then_some(c);
            let escaped = misleads(c).then(|| c.escape_default());
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect::<String>();
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

fn one_of(names: &[&str]) -> String {
    let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Takes a text with or without TOML quotes round it.
fn unquoted(text: &str) -> String {
    let trimmed = text.trim();
    if trimmed.starts_with(['"', '\''])
        && let Some(inner) = trimmed.parse::<Toml>().ok().as_ref().and_then(Toml::as_str)
    {
        return inner.to_owned();
    }
    text.to_owned()
}

fn money(text: &str) -> Option<Value> {
    let micros = units::micros(text)?;
    // TOML has no leading zeros in numbers, a person may type them.
    let kept = text.trim_start_matches('0');
    let zero = if kept.is_empty() || kept.starts_with('.') { "0" } else { "" };
    let text = format!("{zero}{kept}");
    Some(Value::Money { micros, text })
}

fn texts(array: &Array) -> Option<Vec<String>> {
    array.iter().map(|value| argument(value.as_str()?)).collect()
}

fn environment(table: &dyn TableLike) -> Option<BTreeMap<String, Secret>> {
    table
        .iter()
        .map(|(name, item)| {
            let named = !name.is_empty() && !name.contains('=') && !name.contains(char::is_control);
            let value = argument(item.as_str()?)?;
            named.then(|| (name.to_owned(), Secret::new(value)))
        })
        .collect()
}

/// Takes what a process can be given: a NUL would end it early.
fn argument(text: &str) -> Option<String> {
    (!text.contains('\0')).then(|| text.to_owned())
}
