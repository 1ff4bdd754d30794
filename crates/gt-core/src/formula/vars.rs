//! Variables: what they may hold, and filling them into texts.
//!
//! A value is put in as it is: what looks like a placeholder in it stays what it is, so filling always ends.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use super::{At, shown};
use crate::context::split_vars;
use crate::near;

/// What a dispatch fills in by itself.
pub const AUTOMATIC: [&str; 5] = ["issue", "feature", "title", "rig", "base_branch"];

const TYPES: [&str; 7] = ["string", "text", "int", "integer", "number", "bool", "boolean"];
const PATTERN_CHARS_MAX: usize = 500;
/// Memory for one compiled pattern.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
const VALUE_BYTES_MAX: usize = 16 * 1024;

/// A variable as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Var {
    pub name: String,
    pub description: String,
    pub default: Option<String>,
    pub is_required: bool,
    /// From `enum`; none: any value.
    pub choices: Vec<String>,
    pub pattern: Option<String>,
    /// From `type`.
    pub type_word: Option<String>,
    pub(crate) at: At,
}

impl Var {
    pub(super) fn new(name: &str, at: At) -> Var {
        Var {
            name: name.to_owned(),
            description: String::new(),
            default: None,
            is_required: false,
            choices: Vec::new(),
            pattern: None,
            type_word: None,
            at,
        }
    }

    pub(super) fn is_type_known(&self) -> bool {
        self.type_word.as_deref().is_none_or(|word| TYPES.contains(&word))
    }

    /// Says what is wrong with a value.
    pub(super) fn objection(&self, value: &str, pattern: Option<&Regex>) -> Option<String> {
        let (name, said) = (&self.name, shown(value));
        if value.len() > VALUE_BYTES_MAX {
            return Some(format!("`{name}` has {} bytes; at most {VALUE_BYTES_MAX} fit", value.len()));
        }
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == value) {
            let near = near::closest(&said, self.choices.iter().map(String::as_str));
            let near = near.first().map(|near| format!("; did you mean `{}`?", shown(near))).unwrap_or_default();
            return Some(format!("`{name}` is `{said}`, which is none of {}{near}", self.choice_words()));
        }
        if pattern.is_some_and(|pattern| !pattern.is_match(value)) {
            let pattern = shown(self.pattern.as_deref().unwrap_or_default());
            return Some(format!("`{name}` is `{said}`, which does not match `{pattern}`"));
        }
        let wanted = match self.type_word.as_deref() {
            Some("int" | "integer") if value.parse::<i64>().is_err() => "a whole number",
            Some("number") if value.parse::<f64>().is_err() => "a number",
            Some("bool" | "boolean") if !["true", "false"].contains(&value) => "`true` or `false`",
            _ => return None,
        };
        Some(format!("`{name}` is `{said}`, and must be {wanted}"))
    }

    fn choice_words(&self) -> String {
        const NAMED_MAX: usize = 10;
        let named: Vec<String> = self.choices.iter().take(NAMED_MAX).map(|one| format!("`{}`", shown(one))).collect();
        let rest = if self.choices.len() > NAMED_MAX { ", …" } else { "" };
        format!("{}{rest}", named.join(", "))
    }
}

/// Makes a pattern ready; it takes time that follows the length of a value, whatever it says.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.chars().count() > PATTERN_CHARS_MAX {
        return Err(format!("it has more than {PATTERN_CHARS_MAX} characters"));
    }
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
        error => shown(error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ")),
    })
}

/// The values of one use of a formula.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    given: BTreeMap<String, String>,
    automatic: BTreeMap<&'static str, String>,
}

impl Values {
    /// From `key=value` lines; of two with one key the last counts.
    pub fn given(lines: &str) -> Values {
        let pairs = split_vars(lines).filter_map(|line| line.split_once('='));
        let given = pairs.map(|(key, value)| (key.trim().to_owned(), value.to_owned())).collect();
        Values { given, automatic: BTreeMap::new() }
    }

    /// Fills in what a dispatch knows by itself; what was given explicitly stays.
    #[must_use]
    pub fn about(mut self, issue: &str, title: &str, rig: &str, base_branch: &str) -> Values {
        let values = [issue, title, title, rig, base_branch].map(str::to_owned);
        self.automatic = AUTOMATIC.into_iter().zip(values).collect();
        self
    }

    /// The value of a variable: the one given, the automatic one, or its default.
    pub(super) fn of<'a>(&'a self, name: &str, default: Option<&'a str>) -> Option<&'a str> {
        let stored = self.given.get(name).or_else(|| self.automatic.get(name));
        stored.map(String::as_str).or(default)
    }

    pub(super) fn given_names(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str)
    }
}

/// Whether a word can be the name of a variable.
pub(super) fn is_name(word: &str) -> bool {
    word.len() <= super::ID_CHARS_MAX
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// One piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Plain(&'a str),
    /// `{{ name }}`, with the name and how it is written.
    Placeholder(&'a str, &'a str),
}

/// Cuts a text at its placeholders. Braces around anything but a name are plain text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut plain_from, mut look_from) = (0, 0);
    while let Some(open) = text[look_from..].find("{{").map(|at| look_from + at) {
        match placeholder(&text[open..]) {
            Some((name, written)) => {
                if open > plain_from {
                    pieces.push(Piece::Plain(&text[plain_from..open]));
                }
                pieces.push(Piece::Placeholder(name, written));
                plain_from = open + written.len();
                look_from = plain_from;
            }
            None => look_from = open + 1,
        }
    }
    if plain_from < text.len() {
        pieces.push(Piece::Plain(&text[plain_from..]));
    }
    pieces
}

/// The placeholder that a text begins with: its name, and all of it.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    const SPACES_MAX: usize = 8;
    let inner = text.strip_prefix("{{")?;
    let before = inner.len() - inner.trim_start_matches(' ').len();
    let rest = inner.get(before..).filter(|_| before <= SPACES_MAX)?;
    let n_chars = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(n_chars);
    let after = rest.len() - rest.trim_start_matches(' ').len();
    rest.get(after..)?.strip_prefix("}}").filter(|_| after <= SPACES_MAX && is_name(name))?;
    Some((name, &text[..2 + before + n_chars + after + 2]))
}

/// The names of the placeholders in a text.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Placeholder(name, _) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// Puts values in the place of placeholders; one without a value stays.
pub(super) fn fill<'v>(text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
    let filled = pieces(text).into_iter().map(|piece| match piece {
        Piece::Plain(plain) => plain,
        Piece::Placeholder(name, written) => value_of(name).unwrap_or(written),
    });
    // Values may be long and placeholders many: whoever counts the bytes sees it before it is too much.
    let mut text = String::new();
    for piece in filled {
        text.push_str(piece);
        if text.len() > super::COOKED_BYTES_MAX {
            break;
        }
    }
    text
}
