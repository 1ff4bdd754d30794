//! "Did you mean": near words, in order, and never far ones.

use super::*;

fn check(word: &str, known: &[&str], wanted: &[&str]) {
    assert_eq!(closest(word, known.iter().copied()), wanted, "{word} among {known:?}");
}

#[test]
fn a_mistyped_word_finds_its_neighbours() {
    check("opne", &["open", "closed"], &["open"]);
    check("gt-1a", &["gt-1b", "gt-2b", "gt-1a2"], &["gt-1a2", "gt-1b"]);
    check("scheduler", &["schedular", "schedule", "skedular"], &["schedular", "schedule", "skedular"]);
}

#[test]
fn a_far_word_finds_nothing() {
    check("zebra", &["open", "closed"], &[]);
    check("ab", &["yz", "a-very-long-word"], &[]);
    check("word", &[], &[]);
}

#[test]
fn one_letter_is_near_none() {
    check("b", &["a", "c", "ab", ""], &[]);
    check("ab", &["xy", "ba", "abc"], &["abc", "ba"]);
    check("ö", &["o", "ä"], &[]);
}

#[test]
fn at_most_three_are_offered_each_once() {
    check("abc", &["abd", "abe", "abf", "abg"], &["abd", "abe", "abf"]);
    check("abc", &["abd", "abd", "abd", "abe"], &["abd", "abe"]);
}

#[test]
fn odd_input_is_no_reason_to_panic() {
    check("", &["a", "abc"], &[]);
    check("größe", &["grösse", "größe"], &["größe"]);
    check(&"x".repeat(5000), &["x"], &[]);
}
