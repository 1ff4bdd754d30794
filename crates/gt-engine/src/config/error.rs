//! Why a config was refused, in one sentence each, and what to try instead.
//!
//! Owns the texts only; the exit code and the rendering belong to the command line.

use std::fmt;
use std::io;
use std::path::PathBuf;

use toml_edit::TomlError;

use super::secret::mask_line;
use super::value::shown;
use crate::error::unwritten;

/// A refusal; whenever one is returned, nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("line {line}, column {column}: {problem} in `{text}`")]
    Syntax {
        line: usize,
        column: usize,
        /// The offending line, shortened and with passwords masked.
        text: String,
        problem: String,
    },
    #[error("{}unknown key `{key}`", At(*line))]
    UnknownKey {
        key: String,
        line: Option<usize>,
        /// Known keys that look alike, best first.
        near: Vec<String>,
    },
    #[error("{}`{key}` cannot be {}: it must be {expected}", At(*line), Given(given))]
    BadValue {
        key: String,
        given: String,
        expected: String,
        line: Option<usize>,
        /// The default as typed, or `None` where the key has none.
        default: Option<&'static str>,
    },
    #[error("`{key}` is not a key: {problem}")]
    MalformedKey { key: String, problem: String },
    #[error("`{key}` is a group of keys, not a key")]
    IsGroup { key: String, keys: Vec<String> },
    #[error("{}`{key}` must be a table of keys", At(*line))]
    NotATable { key: String, line: Option<usize> },
    #[error("`{key}` is written in a way that cannot be edited from here")]
    Layout { key: String },
    #[error("{what} would do nothing: {why}")]
    Ineffective { what: String, why: String, hint: String },
    #[error("{}: {problem}", path.display())]
    InFile { path: PathBuf, problem: Box<ConfigError> },
    #[error("{} is missing", path.display())]
    Missing { path: PathBuf },
    #[error("{} is empty", path.display())]
    Blank { path: PathBuf },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl ConfigError {
    /// Gives a command or a text to try, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { near, .. } => Some(did_you_mean(near)),
            Self::BadValue { key, default: Some(text), .. } => {
                Some(format!("`gt config unset {key}` returns it to the default, `{text}`"))
            }
            Self::BadValue { key, default: None, .. } => {
                Some(format!("`gt config unset {key}` leaves it out; `gt config list` says what each key is for"))
            }
            Self::MalformedKey { .. } => {
                Some("join names with dots and quote a name that has some, as in `rigs.\"a.b\".gates`".to_owned())
            }
            Self::IsGroup { keys, .. } => Some(format!("its keys are {}", quoted(keys, ", "))),
            Self::NotATable { key, .. } => Some(format!("write `[{key}]` on a line of its own and its keys below")),
            Self::Ineffective { hint, .. } => Some(hint.clone()),
            Self::Layout { .. } => Some("change it in the file by hand".to_owned()),
            Self::InFile { path, problem } => match problem.as_ref() {
                Self::Syntax { line, .. } => Some(format!("mend line {line} of {} in an editor", path.display())),
                problem => problem.hint(),
            },
            Self::Syntax { .. } => None,
            Self::Missing { .. } => Some("bring it back, or let `gt init` write the last good one".to_owned()),
            Self::Blank { path } => {
                let path = path.display();
                Some(format!("write it again, or remove {path} and let `gt init` write the last good one"))
            }
            Self::Read { path, .. } => {
                Some(format!("see that {} is a file of UTF-8 text that you may read", path.display()))
            }
            Self::Write { source, .. } => Some(unwritten(source).to_owned()),
        }
    }

    pub(super) fn syntax(text: &str, error: &TomlError) -> Self {
        let at = error.span().map_or(text.len(), |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Syntax {
            line: line_of(text, at),
            column: before[start..].chars().count() + 1,
            text: shown(&mask_line(text[start..].lines().next().unwrap_or_default())),
            problem: error.message().to_owned(),
        }
    }

    /// Tells whether the document is at fault rather than what the user just typed.
    pub(super) fn is_about_document(&self) -> bool {
        matches!(self, Self::Syntax { .. } | Self::NotATable { .. } | Self::Layout { .. })
    }
}

/// Counts lines from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.get(..offset).unwrap_or(text).matches('\n').count()
}

struct At(Option<usize>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, "line {line}: "),
            None => Ok(()),
        }
    }
}

struct Given<'e>(&'e str);

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("empty"),
            given => write!(f, "`{given}`"),
        }
    }
}

fn did_you_mean(near: &[String]) -> String {
    let all = "`gt config list` shows all keys";
    if near.is_empty() {
        return all.to_owned();
    }
    format!("did you mean {}? {all}", quoted(near, " or "))
}

fn quoted(names: &[String], separator: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(separator)
}
