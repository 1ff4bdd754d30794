//! What a run printed last, made fit to be kept and shown.
//!
//! Agents colour, move the cursor and redraw; what is kept has none of that: plain lines, few and short.

use crate::text::misleads;

pub const LINES_MAX: usize = 20;
pub const BYTES_MAX: usize = 2048;
/// How much of the end of a log is worth reading for that: sequences take room, and are not kept.
pub const TAIL_BYTES_MAX: u64 = 64 * 1024;

const ESCAPE: char = '\u{1b}';

/// The last lines of an output, without what drives terminals; `None`: nothing that can be seen.
pub fn last_lines(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let plain = plain(&text);
    let lines: Vec<&str> = plain.lines().map(last_drawn).filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(LINES_MAX);
    let kept = lines[first..].join("\n");
    let kept = end_of(&kept).trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// What stands there of a line that was drawn over and over.
fn last_drawn(line: &str) -> &str {
    let line = line.trim_end();
    line.rsplit('\r').next().unwrap_or(line).trim_end()
}

/// As much of the end as is kept.
fn end_of(text: &str) -> &str {
    let mut start = text.len().saturating_sub(BYTES_MAX);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The text without escape sequences, and without any other character that is not seen but acts.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE => skip_sequence(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            '\n' | '\r' => plain.push(c),
            '\t' => plain.push(' '),
            c if misleads(c) => {}
            c => plain.push(c),
        }
    }
    plain
}

fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_parameters(chars);
        }
        // A title or a link: up to a bell, or to another escape with a backslash.
        Some(']' | 'P' | '_' | '^' | 'X') => skip_string(chars),
        Some(c) if !matches!(c, '\n' | '\r' | '\u{1b}') => {
            let is_pair = matches!(c, '(' | ')' | '*' | '+' | '#' | '%');
            chars.next();
            if is_pair {
                chars.next_if(|c| !c.is_control());
            }
        }
        _ => {}
    }
}

/// Parameters and the final letter.
fn skip_parameters(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
    chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
}

/// One that is never ended does not swallow the lines after it.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| !matches!(*c, '\n' | ESCAPE)) {
        if matches!(c, '\u{7}' | '\u{9c}') {
            return;
        }
    }
    if chars.next_if_eq(&ESCAPE).is_some() {
        chars.next_if_eq(&'\\');
    }
}

#[cfg(test)]
mod tests;
