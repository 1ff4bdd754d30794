//! Formulas: recipes of steps, written in TOML. // SPEC P9
//!
//! Owns what a formula is and what can be wrong with one; below, `read` takes a file apart, `check` judges it, `resolve`
//! joins what it extends, `vars` knows its variables, `order` its sequence, and `cook` makes the text that an agent is
//! told. Which files there are, and reading them, is the engine's business.

mod check;
mod condition;
mod cook;
mod order;
mod read;
mod resolve;
mod vars;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::text;

pub use self::cook::{Cooked, CookedStep, CookedVar};
pub use self::resolve::{Lookup, Recipe, resolve};
pub use self::vars::{AUTOMATIC, Values, Var};

/// How a formula's file is called after its name.
pub const SUFFIX: &str = ".formula.toml";

/// Larger files are not read.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
pub const STEPS_MAX: usize = 256;
pub const VARS_MAX: usize = 256;
/// Steps in steps in steps.
pub const DEPTH_MAX: usize = 8;
/// Formulas that extend formulas, and how many files that may touch.
pub const EXTENDS_DEPTH_MAX: usize = 8;
pub const FILES_MAX: usize = 32;
/// All texts of the steps together, filled in: they are a part of one argument of one program.
pub const COOKED_BYTES_MAX: usize = 64 * 1024;
const NAME_CHARS_MAX: usize = 100;
const ID_CHARS_MAX: usize = 100;
/// More problems of one file than anybody reads at once.
const FINDINGS_MAX: usize = 50;

/// What a formula is for. Only workflows are given to agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Workflow,
    Expansion,
    Aspect,
    Convoy,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Workflow, Kind::Expansion, Kind::Aspect, Kind::Convoy];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Workflow => "workflow",
            Kind::Expansion => "expansion",
            Kind::Aspect => "aspect",
            Kind::Convoy => "convoy",
        }
    }

    fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How much something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The formula makes no sense so.
    Error,
    /// It makes sense, but nobody here would carry it out, so it is not given to an agent.
    Unsupported,
    /// Worth knowing, and in nobody's way.
    Warning,
}

/// Something about a formula that its author should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub file: String,
    pub line: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => write!(f, "{}", self.message),
            (file, None) => write!(f, "{file}: {}", self.message),
            (file, Some(line)) => write!(f, "{file}:{line}: {}", self.message),
        }
    }
}

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    pub file: Arc<str>,
    pub line: Option<usize>,
}

impl At {
    fn finding(&self, level: Level, message: String) -> Finding {
        Finding { level, file: self.file.to_string(), line: self.line, message, hint: None }
    }

    fn error(&self, message: impl Into<String>) -> Finding {
        self.finding(Level::Error, message.into())
    }
}

impl Finding {
    fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    /// Names what was probably meant.
    fn near<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Finding {
        if word.len() > ID_CHARS_MAX {
            return self; // nobody mistypes so much
        }
        let near: Vec<String> =
            crate::near::closest(word, known).iter().map(|near| format!("`{}`", shown(near))).collect();
        if near.is_empty() { self } else { self.hint(format!("did you mean {}?", near.join(" or "))) }
    }
}

/// One file, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Formula {
    pub(crate) at: At,
    pub(crate) version: i64,
    pub(crate) kind: Kind,
    pub(crate) description: String,
    pub(crate) extends: Vec<Named>,
    pub(crate) vars: Vec<Var>,
    /// Of an expansion, those of its template.
    pub(crate) steps: Vec<Step>,
    /// Other formulas that it names, for whatever.
    pub(crate) mentions: Vec<Named>,
    /// Steps that others are to be put before or after.
    pub(crate) anchors: Vec<Named>,
}

/// A name, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) at: At,
}

/// A step as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub id: String,
    pub title: String,
    pub description: String,
    pub notes: String,
    pub acceptance: Vec<String>,
    pub condition: Option<String>,
    pub step_type: Option<String>,
    pub priority: Option<i64>,
    pub labels: Vec<String>,
    pub assignee: Option<String>,
    pub is_interactive: bool,
    pub children: Vec<Step>,
    /// Ids of steps that come before, from `needs`, `depends_on` and `waits_for`.
    pub(crate) needs: Vec<Named>,
    pub(crate) at: At,
}

/// A text from a formula as a message may show it: on one line, and short.
fn shown(word: &str) -> String {
    const CHARS_MAX: usize = 60;
    let line = text::one_line(word);
    if line.chars().count() <= CHARS_MAX {
        return line;
    }
    line.chars().take(CHARS_MAX).chain(['…']).collect()
}

/// Says why something cannot be the name of a formula; a name is also the name of a file, so it is a plain word.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        return Err("the name of a formula is empty".to_owned());
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(format!("the name of a formula has at most {NAME_CHARS_MAX} characters"));
    }
    if name.starts_with('.') || !name.chars().all(is_plain) {
        let name = shown(name);
        return Err(format!(
            "`{name}` is no name of a formula: use letters, digits, `-`, `_` and `.`, and no dot at the beginning"
        ));
    }
    Ok(())
}

/// Every step below these, parents before their children.
fn flatten(steps: &[Step]) -> Vec<&Step> {
    let mut flat = Vec::new();
    let mut left: Vec<&Step> = steps.iter().rev().collect();
    while let Some(step) = left.pop() {
        flat.push(step);
        left.extend(step.children.iter().rev());
    }
    flat
}

#[cfg(test)]
mod tests;
