//! The reply of a turn: what an agent said after it last used a tool, put together from its stream. // SPEC L5
//!
//! Owns how pieces become one text, and its bound. Which line says something is in the file of each vendor.

use serde_json::Value;

use super::{Fact, Vendor, facts, parse};

/// Longest reply that is kept.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// What stands at the end of a reply that was longer.
const CUT_NOTE: &str = "\n\n[cut here: the reply is longer than 1 MiB]";

/// What has been said so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reply {
    text: String,
    /// What is said next is a new answer. Until then the old one stands.
    is_over: bool,
}

impl Reply {
    /// More of the same answer, or the first of a new one.
    pub(super) fn add(&mut self, text: &str) {
        if std::mem::take(&mut self.is_over) {
            self.text.clear();
        }
        let is_full = self.text.len() > REPLY_BYTES_MAX;
        if !is_full {
            self.text.push_str(text);
            cut(&mut self.text);
        }
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn text(&self) -> Option<&str> {
        let text = self.text.trim_end();
        (!text.is_empty()).then_some(text)
    }
}

/// Cuts a reply that is too long, and says so at its end.
pub fn cut(text: &mut String) {
    if text.len() > REPLY_BYTES_MAX {
        text.truncate(text.floor_char_boundary(REPLY_BYTES_MAX));
        text.push_str(CUT_NOTE);
    }
}

/// The text that a line of a stream adds to what a reader sees live; together these are all that the agent says, on the
/// way to its reply too. What an agent tells piece by piece and then again as a whole is taken as a whole.
pub fn speech(vendor: Vendor, line: &str) -> Option<String> {
    // The time matters only to what fails.
    let facts = facts(vendor, &parse(line)?, jiff::Timestamp::UNIX_EPOCH);
    let said = facts.into_iter().filter_map(|fact| match fact {
        Fact::Said(text) => Some(text),
        _ => None,
    });
    Some(said.collect::<String>()).filter(|text| !text.is_empty())
}

/// A text that is told as it comes: the next goes on where it ends.
pub(super) fn piece(value: &Value, key: &str) -> Option<Fact> {
    value.get(key)?.as_str().filter(|text| !text.is_empty()).map(|text| Fact::Said(text.to_owned()))
}

/// A text that is told when it is finished, and so a paragraph of its own.
pub(super) fn paragraph(value: &Value, key: &str) -> Option<Fact> {
    let text = value.get(key)?.as_str()?.trim_end();
    (!text.is_empty()).then(|| Fact::Said(format!("{text}\n\n")))
}

#[cfg(test)]
mod tests;
