//! Limits of texts, and strangers' texts made harmless.

use super::*;

fn check(answer: Result<(), BadText>, wanted: &str) {
    assert_eq!(answer.map_err(|error| error.to_string()), Err(wanted.to_owned()));
}

#[test]
fn a_title_has_one_to_five_hundred_characters() {
    for title in ["a", " a ", "ü", &"ü".repeat(500), "emoji 👩‍🔧 are fine", "right to left: שלום"] {
        assert_eq!(check_title(title), Ok(()), "{title}");
    }
    for title in ["", " ", "\t\n", "\u{a0}\u{2003}"] {
        check(check_title(title), "the title is empty");
    }
    check(check_title(&"ü".repeat(501)), "the title has 501 characters; at most 500 fit");
}

#[test]
fn a_control_character_in_a_title_is_named_with_its_place() {
    for (title, wanted) in [
        ("a\nb", "the title holds the control character U+000A at position 2"),
        ("\u{0}a", "the title holds the control character U+0000 at position 1"),
        ("ab\u{1b}[31m", "the title holds the control character U+001B at position 3"),
        ("ü\u{7f}", "the title holds the control character U+007F at position 2"),
        ("x\u{9b}1m", "the title holds the control character U+009B at position 2"),
    ] {
        check(check_title(title), wanted);
    }
}

#[test]
fn a_word_has_one_to_a_hundred_characters() {
    assert_eq!(check_word("label", &"x".repeat(100)), Ok(()));
    check(check_word("label", ""), "the label is empty");
    check(check_word("assignee", &"x".repeat(101)), "the assignee has 101 characters; at most 100 fit");
    check(check_word("label", "a\tb"), "the label holds the control character U+0009 at position 2");
}

#[test]
fn a_body_may_have_lines_and_tabs_but_no_other_control_characters() {
    assert_eq!(check_body("notes", ""), Ok(()));
    assert_eq!(check_body("notes", "one\r\n\ttwo\n"), Ok(()));
    check(check_body("notes", "a\u{1b}b"), "the notes holds the control character U+001B at position 2");
}

#[test]
fn a_body_is_limited_by_its_bytes_and_the_refusal_counts_in_the_same_unit() {
    assert_eq!(check_body("notes", &"x".repeat(BODY_BYTES_MAX)), Ok(()));
    check(check_body("notes", &"x".repeat(BODY_BYTES_MAX + 1)), "the notes has 1048577 bytes; at most 1048576 fit");
    check(check_body("notes", &"ü".repeat(BODY_BYTES_MAX / 2 + 1)), "the notes has 1048578 bytes; at most 1048576 fit");
}

#[test]
fn a_hostile_text_stays_on_one_line_and_cannot_drive_a_terminal() {
    for (text, wanted) in [
        ("plain", "plain"),
        ("a\nb\r\nc\td", "a b  c d"),
        ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\u{FFFD}[2J\u{FFFD}]0;owned\u{FFFD}"),
        ("\u{9b}31m", "\u{FFFD}31m"),
        ("a\u{0}b\u{8}c\u{7f}", "a\u{FFFD}b\u{FFFD}c\u{FFFD}"),
        ("a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f", "a b c d e f"),
        ("שלום ü 👩‍🔧", "שלום ü 👩‍🔧"),
        ("", ""),
    ] {
        assert_eq!(one_line(text), wanted, "{text:?}");
    }
}

#[test]
fn a_hostile_text_cannot_turn_the_direction_of_what_follows() {
    for c in "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars() {
        assert_eq!(one_line(&format!("a{c}b")), "a\u{FFFD}b", "U+{:04X}", u32::from(c));
        assert_eq!(many_lines(&format!("a{c}b")), "a\u{FFFD}b", "U+{:04X}", u32::from(c));
    }
}

#[test]
fn many_lines_keeps_lines_and_tabs_only() {
    for (text, wanted) in
        [("a\r\nb\tc\n", "a\nb\tc\n"), ("over\rwritten", "overwritten"), ("\u{1b}[1mx\u{9b}", "\u{FFFD}[1mx\u{FFFD}")]
    {
        assert_eq!(many_lines(text), wanted, "{text:?}");
    }
}
