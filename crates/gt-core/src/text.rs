//! What people may write into a bead, and how strangers' text is shown safely.

use thiserror::Error;

pub const TITLE_CHARS_MAX: usize = 500;
pub const WORD_CHARS_MAX: usize = 100;
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
const SHORT_CHARS_MAX: usize = 40;

/// Why a text cannot be taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadText {
    #[error("the {what} is empty")]
    Empty { what: &'static str },
    #[error("the {what} has {chars} characters; at most {max} fit")]
    TooLong { what: &'static str, chars: usize, max: usize },
    #[error("the {what} has {bytes} bytes; at most {max} fit")]
    TooLarge { what: &'static str, bytes: usize, max: usize },
    #[error("the {what} holds the control character {character} at position {position}")]
    Control { what: &'static str, character: String, position: usize },
}

impl BadText {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            BadText::Empty { what: "title" } => {
                "say in a few words what is to be done, as in `gt create \"Fix the login\"`".to_owned()
            }
            BadText::Empty { .. } => "give at least one character that is no space".to_owned(),
            BadText::TooLong { what: "title", max, .. } => {
                format!("say it in at most {max} characters; more fits into `--description`")
            }
            BadText::TooLong { max, .. } => format!("use at most {max} characters"),
            BadText::TooLarge { .. } => "keep it in a file, and name that file here".to_owned(),
            BadText::Control { what: "title", .. } => {
                "leave that character out; several lines fit into `--description`".to_owned()
            }
            BadText::Control { .. } => "leave that character out".to_owned(),
        }
    }
}

/// Checks a title: one line, 1 to 500 characters.
pub fn check_title(title: &str) -> Result<(), BadText> {
    check_line("title", title, TITLE_CHARS_MAX)
}

/// Checks what a letter is about: one line, 1 to 500 characters.
pub fn check_subject(subject: &str) -> Result<(), BadText> {
    check_line("subject", subject, TITLE_CHARS_MAX)
}

/// Checks a label, an assignee or another short word.
pub fn check_word(what: &'static str, word: &str) -> Result<(), BadText> {
    check_line(what, word, WORD_CHARS_MAX)
}

/// Checks a longer text: lines and tabs are fine, other control characters are not.
pub fn check_body(what: &'static str, text: &str) -> Result<(), BadText> {
    if text.len() > BODY_BYTES_MAX {
        return Err(BadText::TooLarge { what, bytes: text.len(), max: BODY_BYTES_MAX });
    }
    refuse_control(what, text, |c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
}

fn check_line(what: &'static str, text: &str, max: usize) -> Result<(), BadText> {
    if text.trim().is_empty() {
        return Err(BadText::Empty { what });
    }
    let chars = text.chars().count();
    if chars > max {
        return Err(BadText::TooLong { what, chars, max });
    }
    refuse_control(what, text, char::is_control)
}

fn refuse_control(what: &'static str, text: &str, is_bad: impl Fn(char) -> bool) -> Result<(), BadText> {
    match text.chars().enumerate().find(|(_, c)| is_bad(*c)) {
        Some((at, c)) => Err(BadText::Control { what, character: format!("U+{:04X}", u32::from(c)), position: at + 1 }),
        None => Ok(()),
    }
}

/// The text on one line, with control characters made visible, so that a title cannot drive a terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { visible(c) }).collect()
}

/// The same, cut to a few words, so that it can stand within a sentence.
pub fn short_line(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(SHORT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The text with its lines kept and other control characters made visible.
pub fn many_lines(text: &str) -> String {
    text.chars().filter(|c| *c != '\r').map(|c| if matches!(c, '\n' | '\t') { c } else { visible(c) }).collect()
}

fn visible(c: char) -> char {
    if misleads(c) { '\u{FFFD}' } else { c }
}

/// Whether a character does something to a terminal or to the text around it, instead of being seen.
pub fn misleads(c: char) -> bool {
    c.is_control() || turns_direction(c)
}

/// Marks that make what follows read backwards, so that a text shows something other than it says.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests;
