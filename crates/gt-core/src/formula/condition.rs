//! Conditions of steps: one variable, asked for or compared.
//!
//! `{{x}}` and `!{{x}}` ask whether it is set; `{{x}} == word` and `{{x}} != word` compare. More is not understood, and
//! told so.

use super::vars::{Piece, pieces};

/// A condition that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    pub(super) var: &'a str,
    test: Test<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test<'a> {
    Set,
    NotSet,
    Is(&'a str),
    IsNot(&'a str),
}

impl<'a> Condition<'a> {
    /// Reads a condition; `None`: it says more than is understood.
    pub(super) fn parse(text: &'a str) -> Option<Condition<'a>> {
        match pieces(text.trim()).as_slice() {
            [Piece::Placeholder(var, _)] => Some(Condition { var, test: Test::Set }),
            [Piece::Plain(not), Piece::Placeholder(var, _)] if not.trim() == "!" => {
                Some(Condition { var, test: Test::NotSet })
            }
            [Piece::Placeholder(var, _), Piece::Plain(rest)] => {
                let rest = rest.trim();
                let is = rest.strip_prefix("==").map(|word| Test::Is(unquoted(word)));
                let is_not = || rest.strip_prefix("!=").map(|word| Test::IsNot(unquoted(word)));
                is.or_else(is_not).map(|test| Condition { var, test })
            }
            _ => None,
        }
    }

    /// Whether it holds for a value.
    pub(super) fn holds(&self, value: &str) -> bool {
        let is_set = !["", "false", "0", "no"].contains(&value.trim());
        match self.test {
            Test::Set => is_set,
            Test::NotSet => !is_set,
            Test::Is(word) => value == word,
            Test::IsNot(word) => value != word,
        }
    }
}

fn unquoted(word: &str) -> &str {
    let word = word.trim();
    let inside = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(word)
}
