//! Cutting an answer into messages that Telegram takes: at the end of a paragraph, a line or a word, where there is one.

/// Telegram takes 4096 units of UTF-16; some are left for what counts otherwise there.
const UNITS_MAX: usize = 4000;
/// An answer that is longer than so many messages goes on elsewhere.
const PARTS_MAX: usize = 20;

/// The same parts each time; none for a text that says nothing.
pub(super) fn cut(text: &str, session: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        if parts.len() == PARTS_MAX {
            parts.push(format!("… This is not all of it: `gt session show {session}` shows the rest."));
            break;
        }
        let (part, after) = first(rest);
        if !part.trim().is_empty() {
            parts.push(part.trim_end().to_owned());
        }
        rest = after;
    }
    parts
}

/// What fits, and the rest.
fn first(text: &str) -> (&str, &str) {
    let Some(end) = end_of_what_fits(text) else { return (text, "") };
    let fits = &text[..end];
    // Not too early, or a short first line would be a message of its own.
    let late = |at: &usize| *at >= end / 4;
    let paragraph = fits.rfind("\n\n").filter(late);
    let line = || fits.rfind('\n').filter(late);
    if let Some(at) = paragraph.or_else(line) {
        return (&text[..at], text[at..].trim_start_matches('\n'));
    }
    match fits.rfind(char::is_whitespace).filter(late) {
        Some(at) => (&text[..at], text[at..].trim_start()),
        None => text.split_at(end),
    }
}

/// Where a text has to be cut at the latest, always between two characters; `None`: all of it fits.
fn end_of_what_fits(text: &str) -> Option<usize> {
    let mut units = 0;
    text.char_indices().find_map(|(at, c)| {
        units += c.len_utf16();
        (units > UNITS_MAX).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    #[test]
    fn what_fits_is_left_as_it_is_and_nothing_is_no_message() {
        assert_eq!(cut("two\n\nlines ", "s"), ["two\n\nlines"]);
        assert_eq!(cut(" \n", "s"), [""; 0]);
        assert_eq!(cut(&"x".repeat(UNITS_MAX), "s").len(), 1);
    }

    #[test]
    fn it_is_cut_where_it_is_least_in_the_way() {
        let (long, word) = ("a".repeat(3000), "b".repeat(900));
        assert_eq!(cut(&format!("{long}\n\n{word}\n{word}"), "s"), [long.clone(), format!("{word}\n{word}")]);
        assert_eq!(cut(&format!("{long} x\n{word} {word}"), "s"), [format!("{long} x"), format!("{word} {word}")]);
        assert_eq!(cut(&format!("{long} {word} {word}"), "s"), [format!("{long} {word}"), word.clone()]);
        let short = format!("a\n{}", "b".repeat(5000));
        assert_eq!(cut(&short, "s").iter().map(|part| units(part)).collect::<Vec<_>>(), [4000, 1002]);
    }

    #[test]
    fn no_character_is_cut_in_two_and_none_is_lost() {
        let text = format!("a{}", "\u{1f600}".repeat(5000));
        let parts = cut(&text, "s");
        assert!(parts.iter().all(|part| units(part) <= UNITS_MAX), "each counts for two");
        assert_eq!(parts.concat(), text);
    }

    #[test]
    fn a_flood_ends_with_where_to_read_on() {
        let parts = cut(&"x ".repeat(500_000), "dm:anna");
        assert_eq!(parts.len(), PARTS_MAX + 1);
        assert!(parts.last().is_some_and(|part| part.contains("gt session show dm:anna")));
    }
}
