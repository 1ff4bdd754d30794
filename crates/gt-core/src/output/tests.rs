//! What is kept of an output, case by case.

use super::{BYTES_MAX, LINES_MAX, last_lines};
use crate::text::misleads;

#[test]
fn what_drives_a_terminal_is_not_kept() {
    let cases: [(&str, Option<&str>); 13] = [
        ("", None),
        ("\n \r\n\t\n\u{1b}[2J\u{1b}[H", None),
        ("one\ntwo\n", Some("one\ntwo")),
        ("  indented\n\n\nfar below\n\n", Some("indented\nfar below")),
        ("\u{1b}[1;31merror:\u{1b}[0m no such file\u{7}\n", Some("error: no such file")),
        ("\u{1b}]0;a title\u{7}words\u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", Some("wordslink")),
        ("10 %\r20 %\r100 %\n", Some("100 %")),
        ("windows\r\nlines\r\n", Some("windows\nlines")),
        ("\u{1b}(B\u{1b}=plain\u{1b}>", Some("plain")),
        ("cut off \u{1b}[3", Some("cut off")),
        ("a title without end \u{1b}]0;never\nthe next line", Some("a title without end\nthe next line")),
        ("\u{9b}31mred\u{9b}0m", Some("red")),
        ("turned \u{202e}round\u{0}", Some("turned round")),
    ];
    for (given, wanted) in cases {
        assert_eq!(last_lines(given.as_bytes()).as_deref(), wanted, "{given:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    assert_eq!(last_lines(b"ok \xff\xfe end").as_deref(), Some("ok \u{fffd}\u{fffd} end"));
}

#[test]
fn only_the_end_is_kept() {
    let many = (1..=100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let kept = last_lines(many.as_bytes()).expect("there are lines");
    assert_eq!((kept.lines().count(), kept.lines().next()), (LINES_MAX, Some("line 81")));
    let wide = "ä".repeat(5000);
    let kept = last_lines(wide.as_bytes()).expect("there is one");
    assert!(kept.len() <= BYTES_MAX && kept.len() > BYTES_MAX - 4 && kept.ends_with('ä'), "{}", kept.len());
}

#[test]
fn what_is_kept_is_kept_again_as_it_is() {
    for given in ["a\u{1b}[31m\nb\tc\r\n", "\u{1b}\u{1b}[\u{1b}]x\u{1b}\\y", "x\r\ry\rz"] {
        let Some(once) = last_lines(given.as_bytes()) else { continue };
        assert!(once.chars().all(|c| c == '\n' || !misleads(c)), "{once:?}");
        assert_eq!(last_lines(once.as_bytes()), Some(once));
    }
}
