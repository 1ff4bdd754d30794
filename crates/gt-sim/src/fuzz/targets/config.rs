//! A `town.toml` and one edit of it: the first line of an input is a key, the second a value, the rest the file.
//!
//! A file is read, or refused in one short sentence that says where. An edit of a readable file keeps it readable, keeps
//! its comments and all other settings, says what was asked, and can be taken back.

use gt_core::text::misleads;
use gt_engine::config::{self, Config, ConfigError, Kind, Setting, Source};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "config", check, tokens: TOKENS };

/// A refusal names at most a key, a value and what would be valid, each of them shortened.
const REFUSAL_CHARS_MAX: usize = 2_000;

const TOKENS: &[&str] = &[
    "scheduler.max_polecats\n3\n",
    "rigs.shop.gates\n[\"a\", \"b\"]\n",
    "agents.x.env\n{ A = \"b\" }\n",
    "default_agent\nclaude\n",
    "budget.daily\n12.50\n",
    "[scheduler]\n",
    "[agents.x]\n",
    "[agents.x.env]\n",
    "[[rigs]]\n",
    "rigs.\"a.b\".gates = []\n",
    "agents = { x = { env = { A = 'b' } } }\n",
    "env = { A = \"b\", C = 'd' }\n",
    "lanes = { a = 1, b = 2 }\n",
    "max_polecats = 3 # three\n",
    "scheduler.max_polecats = 3\n",
    "default_agent = \"x\"\n",
    "order = 'fifo'\n",
    "spawn_delay = \"1m 30s\"\n",
    "free_memory = \"1 GiB\"\n",
    "store.url = \"postgres://u:p@h/t\"\n",
    "gates = [ # why\n  \"a\", # one\n  \"b\"\n]\n",
    "command = [\"a\",]\n",
    "# a comment\n",
    " # behind\n",
    "'''",
    "\"\"\"",
    "\"a.b\"",
    "0x3",
    "1_0",
    "true",
    "inf",
    "1979-05-27",
    "=",
    ".",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\u{feff}",
];

fn check(bytes: &[u8]) -> Verdict {
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let mut next = || parts.next().unwrap_or_default();
    let (key, value, file) = (next(), next(), next());
    let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
    // What is not UTF-8 never gets so far as to be parsed.
    let Ok(text) = str::from_utf8(file) else { return Verdict::Refused };
    match Config::parse(text) {
        Ok(before) => {
            before.list().iter().for_each(is_shown_safely);
            set(text, &before, &key, &value);
            unset(text, &before, &key);
            Verdict::Accepted
        }
        Err(refusal) => {
            is_located(&refusal, text);
            // A broken file may be edited too, which is how one mends it.
            edits_are_refused_in_words(text, &key, &value);
            Verdict::Refused
        }
    }
}

fn is_shown_safely(setting: &Setting) {
    let shown = setting.value.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(!shown.contains('\u{1b}'), "`{}` shows as {shown:?}", setting.key);
}

fn is_told(refusal: &ConfigError) {
    let told = refusal.to_string();
    assert!(!told.contains(misleads), "a refusal is one line that is safe to show: {told:?}");
    assert!(!told.is_empty() && told.chars().count() <= REFUSAL_CHARS_MAX, "{} characters", told.chars().count());
    assert!(refusal.hint().is_none_or(|hint| !hint.is_empty()));
}

fn is_located(refusal: &ConfigError, text: &str) {
    is_told(refusal);
    let line = match refusal {
        ConfigError::Syntax { line, .. } => Some(*line),
        ConfigError::UnknownKey { line, .. }
        | ConfigError::BadValue { line, .. }
        | ConfigError::NotATable { line, .. } => *line,
        other => panic!("a text cannot be refused with {other:?}"),
    };
    let n_lines = 1 + text.matches('\n').count();
    assert!(line.is_some_and(|line| (1..=n_lines).contains(&line)), "line {line:?} of {n_lines}: {refusal}");
}

fn set(text: &str, before: &Config, key: &str, value: &str) {
    let edited = match config::set(text, key, value) {
        Ok(edited) => edited,
        Err(refusal) => return is_told(&refusal),
    };
    let after = Config::parse(&edited).unwrap_or_else(|error| panic!("{error} after the edit:\n{edited}"));
    let setting = after.get(key).expect("what was set is a key");
    let alone = config::set("", key, value).and_then(|text| Config::parse(&text));
    let wanted = alone.and_then(|config| config.get(key)).expect("what fits here fits into an empty file");
    assert_eq!((&setting.value, setting.source), (&wanted.value, Source::File), "what was set reads back");
    assert_eq!(others(&after, &setting.key), others(before, &setting.key), "other settings stay");
    keeps_comments(text, &edited, matches!(setting.kind, Kind::TextTable));
    assert_eq!(config::set(&edited, key, value).expect("it can be set again"), edited, "setting twice is setting once");
    unset(&edited, &after, key);
}

fn unset(text: &str, before: &Config, key: &str) {
    match config::unset(text, key) {
        Err(refusal) => is_told(&refusal),
        Ok(None) => assert_eq!(before.get(key).expect("only a key can be unset").source, Source::Default),
        Ok(Some(edited)) => {
            let after = Config::parse(&edited).unwrap_or_else(|error| panic!("{error} after the edit:\n{edited}"));
            let setting = after.get(key).expect("what was unset is a key");
            assert_eq!(setting.source, Source::Default, "what was unset is gone");
            assert_eq!(others(&after, &setting.key), others(before, &setting.key), "other settings stay");
            keeps_comments(text, &edited, true);
        }
    }
}

fn edits_are_refused_in_words(text: &str, key: &str, value: &str) {
    for edited in [config::set(text, key, value).map(Some), config::unset(text, key)] {
        if let Err(refusal) = edited {
            is_told(&refusal);
        }
    }
}

fn others(config: &Config, key: &str) -> Vec<Setting> {
    config.list().into_iter().filter(|setting| setting.key != key).collect()
}

/// Comments on lines of their own outlive every edit; what is removed takes along those on its own lines.
fn keeps_comments(before: &str, after: &str, some_go: bool) {
    let mut kept = comments(after);
    for comment in comments(before).into_iter().filter(|comment| comment.is_alone || !some_go) {
        let at = kept.iter().position(|other| other.text == comment.text);
        let at = at.unwrap_or_else(|| panic!("{:?} is lost:\n{before}\n->\n{after}", comment.text));
        kept.swap_remove(at);
    }
}

struct Comment<'a> {
    text: &'a str,
    /// Nothing but it stands on the line, outside of all brackets.
    is_alone: bool,
}

/// The comments of a valid TOML text: a `#` outside of strings, to the end of the line.
fn comments(text: &str) -> Vec<Comment<'_>> {
    let mut found = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        match letter {
            '#' => {
                let comment = rest.lines().next().unwrap_or_default();
                let line = text[..at].rsplit('\n').next().unwrap_or_default();
                found.push(Comment { text: comment.trim_end(), is_alone: depth == 0 && line.trim().is_empty() });
                at += comment.len();
            }
            '"' | '\'' => at += string_length(rest, letter),
            _ => {
                depth = match letter {
                    '[' | '{' => depth + 1,
                    ']' | '}' => depth.saturating_sub(1),
                    _ => depth,
                };
                at += letter.len_utf8();
            }
        }
    }
    found
}

/// How long the string is that a text begins with.
fn string_length(text: &str, quote: char) -> usize {
    let triple = quote.to_string().repeat(3);
    let (open, close) = if text.starts_with(&triple) { (3, triple) } else { (1, quote.to_string()) };
    let mut at = open;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(&close) {
            // Up to two quotes may stand right before the three that close it.
            let extra =
                if open == 3 { rest[3..].chars().take(2).take_while(|letter| *letter == quote).count() } else { 0 };
            return at + open + extra;
        }
        let letters = if quote == '"' && rest.starts_with('\\') { 2 } else { 1 };
        at += rest.chars().take(letters).map(char::len_utf8).sum::<usize>();
    }
    text.len()
}
