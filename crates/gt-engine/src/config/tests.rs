//! Tests of the config; one file for each question asked of it.

#![allow(clippy::unwrap_used)]

mod decisions;
mod edits;
mod files;
mod getters;
mod hostile;
mod ineffective;
mod kinds;
mod texts;

use super::*;

/// A path that the table's wildcards are filled with, awkward on purpose.
fn concrete(key: &Key) -> String {
    key.path.replace("NAME", r#""a.b c""#)
}

/// A valid value for a key that differs from its default.
fn sample(key: &Key) -> &'static str {
    match key.kind {
        Kind::Integer { .. } => "7",
        Kind::Boolean if key.default_text() == Some("true") => "false",
        Kind::Boolean => "true",
        Kind::Duration { .. } | Kind::Interval => "1h 30m",
        Kind::Size => "300 MiB",
        Kind::Text => "some words",
        Kind::Choice(names) => names[names.len() - 1],
        Kind::TextList { .. } => r#"["cmd \"a\"", "cmd # b"]"#,
        Kind::TextTable => r#"{ KEY = "value", "O.K" = "x = 1" }"#,
        Kind::AutoOrCount => "4",
        Kind::Money => "12.50",
        Kind::ActiveHours => "22:00-06:00",
        Kind::TimeZone => "America/Argentina/Ushuaia",
        Kind::Url => "postgres://me:hunter2@db.example:5432/town",
        Kind::Web => "https://example.org/hook?key=hunter2",
        Kind::Secret => "hunter2",
        Kind::Address => "[::1]:0",
    }
}

/// The value of one key in a text that must be valid.
fn value_in(text: &str, key: &str) -> Option<Value> {
    let setting = Config::parse(text).unwrap().get(key).unwrap();
    (setting.source == Source::File).then(|| setting.value.unwrap())
}

/// An error as the command line would show it.
fn told(error: &ConfigError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\n  hint: {hint}"),
        None => error.to_string(),
    }
}
