//! How much fits on a line of the terminal, and making text fit.

use std::fmt::Write as _;

use gt_core::text::one_line;

/// The width where there is no terminal to ask.
const WIDTH_UNKNOWN: usize = 100;
const WIDTH_MIN: usize = 40;

/// How many columns a line has.
pub(crate) fn width() -> usize {
    let asked = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    asked.filter(|width| *width > 0).unwrap_or(WIDTH_UNKNOWN).max(WIDTH_MIN)
}

/// How many lines the terminal has, if there is one.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| usize::from(height.0)).filter(|height| *height > 0)
}

/// How many columns a text takes; it holds no styles.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text on one line, cut where it is too long.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let line = one_line(text);
    if columns(&line) <= width {
        return line;
    }
    let mut short = String::new();
    let mut left = width.saturating_sub(1);
    for c in line.chars() {
        let Some(rest) = left.checked_sub(columns_of(c)) else { break };
        left = rest;
        short.push(c);
    }
    let n_kept = short.trim_end().len();
    short.truncate(n_kept);
    if width > 0 {
        short.push('…');
    }
    short
}

/// The text cut or filled up to exactly this width.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let mut text = cut(text, width);
    let missing = width - columns(&text).min(width);
    write!(text, "{:missing$}", "").unwrap_or_default();
    text
}

/// Marks that go onto the letter before them take none, letters of East Asia and pictures two.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F | 0xE0100..=0xE01EF => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0x33FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA000..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_by_columns() {
        assert_eq!(cut("Fix the login", 20), "Fix the login");
        assert_eq!(cut("Fix the login", 9), "Fix the…");
        assert_eq!(cut("日本語のタイトル", 7), "日本語…");
        assert_eq!(cut("two\nlines\u{1b}[31m", 40), "two lines\u{FFFD}[31m");
        assert_eq!(cut("anything", 0), "");
    }

    #[test]
    fn what_is_short_is_filled() {
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(pad("abcdef", 4), "abc…");
    }
}
