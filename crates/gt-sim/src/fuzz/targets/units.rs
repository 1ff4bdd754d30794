//! The small languages of settings (durations, sizes, money, hours, zones, addresses, lists), one text for all of them.
//!
//! A text is refused in words, or means the same when it is read back from the file, within the bounds of its kind.

use std::time::Duration;

use gt_core::text::misleads;
use gt_engine::config::{self, Config, KEYS, Key, Kind, Value};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "units", check, tokens: TOKENS };

const CENTURY: Duration = Duration::from_hours(100 * 365 * 24);
const BILLION_DOLLARS: u64 = 1_000_000_000 * 1_000_000;

const TOKENS: &[&str] = &[
    "1w 2d 3h 4m 5s 6ms",
    "800ms",
    "100w",
    "0s",
    "-1s",
    "1.5h",
    "256 MB",
    "1GiB",
    "8388607 TiB",
    "12.50",
    "0.000001",
    "00.5",
    "1000000000",
    "08:00-22:00",
    "22:00-24:00",
    "24:00-01:00",
    "Europe/Berlin",
    "Etc/GMT+3",
    "UTC",
    "postgres://u:p@h/t?password=x",
    "postgresql://h",
    "127.0.0.1:7777",
    "[::1]:80",
    "auto",
    "true",
    "fifo",
    "[\"a\", 'b']",
    "{ A = \"b\" }",
    "A=b",
    "\"quoted\"",
    "'quoted'",
    "'''",
    "\\",
    "=",
    "#",
];

fn check(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let n_taken = one_of_each_kind().into_iter().filter(|key| is_taken(key, &text)).count();
    // Almost any text can be the name of an agent or an argument, so that says nothing.
    Verdict::accepted_if(n_taken > 2)
}

/// A key for every kind of value; those that differ only in their bounds or words are one kind.
fn one_of_each_kind() -> Vec<&'static Key> {
    let mut keys: Vec<&Key> = Vec::new();
    for key in KEYS {
        if keys.iter().all(|known| std::mem::discriminant(&known.kind) != std::mem::discriminant(&key.kind)) {
            keys.push(key);
        }
    }
    keys
}

fn is_taken(key: &Key, raw: &str) -> bool {
    let name = key.path.replace("NAME", "x");
    let file = match config::set("", &name, raw) {
        Ok(file) => file,
        Err(refusal) => {
            let told = refusal.to_string();
            assert!(!told.is_empty() && !told.contains(misleads) && told.len() < 2_000, "refused with {told:?}");
            return false;
        }
    };
    let config = Config::parse(&file).unwrap_or_else(|error| panic!("{error} in {file:?}"));
    let setting = config.get(&name).expect("it was set");
    let value = setting.value.expect("it was set");
    is_within_bounds(&key.kind, &value);
    hides_passwords(&value);
    let said = value.to_string();
    // A text of several lines in a list is shown in several lines.
    assert!(!said.contains(['\u{1b}', '\0', '\r']), "`{name}` shows as {said:?}");
    // Passwords are not shown, and a text with spaces around it needs quotes to be typed.
    let is_masked = matches!(value, Value::Url(_) | Value::Web(_) | Value::Secret(_) | Value::Table(_));
    if !is_masked && !matches!(value, Value::Text(_)) {
        let again = config::set(&file, &name, &said).expect("what is shown can be typed");
        assert_eq!(again, file, "what is shown means the same");
    }
    true
}

fn is_within_bounds(kind: &Kind, value: &Value) {
    match value {
        Value::Duration { length, .. } => assert!(*length <= CENTURY),
        Value::Size { bytes, .. } => assert!(i64::try_from(*bytes).is_ok()),
        Value::Money { micros, .. } => assert!(*micros <= BILLION_DOLLARS),
        Value::ActiveHours(hours) => assert!(hours.start < 24 * 60 && hours.end <= 24 * 60 && hours.start != hours.end),
        Value::Integer(number) => {
            if let Kind::Integer { min, max } = kind {
                assert!((*min..=*max).contains(number));
            }
        }
        _ => {}
    }
}

/// What stands between the user's name and the host is never shown.
fn hides_passwords(value: &Value) {
    if let Value::Secret(secret) = value {
        let (word, shown) = (secret.reveal(), format!("{value} {value:?}"));
        assert!(word.starts_with("env:") || word.len() < 12 || !shown.contains(word), "{word} is seen in {shown}");
    }
    let Value::Url(url) = value else { return };
    let (shown, debug) = (value.to_string(), format!("{value:?}"));
    let Some((user, host)) = url.reveal().rsplit_once('@') else { return };
    let Some((name, password)) = user.split_once("://").and_then(|(_, user)| user.split_once(':')) else { return };
    // A short one may be part of something else by chance, and one may be written elsewhere too.
    if password.len() > 12 && !host.contains(password) && !name.contains(password) {
        assert!(!shown.contains(password) && !debug.contains(password), "{password} is seen in {shown}");
    }
}
