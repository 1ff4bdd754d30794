//! Words of merges, and what is said of a flaw.

use super::{Flaw, MergeState, Strategy};

#[test]
fn words_are_read_back_as_what_they_were() {
    for strategy in Strategy::ALL {
        assert_eq!(Strategy::parse(strategy.as_str()), Some(strategy));
    }
    for state in MergeState::ALL {
        assert_eq!(MergeState::parse(state.as_str()), Some(state));
    }
    assert_eq!((Strategy::parse("squash"), MergeState::parse("")), (None, None));
}

#[test]
fn a_flaw_is_told_in_one_line_and_the_rest_apart() {
    let conflict = |files: &[&str]| Flaw::Conflict { files: files.iter().map(ToString::to_string).collect() };
    let gate = Flaw::Gate { command: "cargo\ntest".into(), how: "exit code 3".into(), output: "one\ntwo\n".into() };
    let refused = Flaw::Refused { request: "https://example.org/pull/7".into() };
    let unmergeable = |said: &str| Flaw::Unmergeable { said: said.into() };
    let cases = [
        (conflict(&[]), "it conflicts with main", None),
        (conflict(&["a"]), "it conflicts with main in a", None),
        (conflict(&["a", "b", "c"]), "it conflicts with main in a, b, c", None),
        (conflict(&["a", "b", "c", "d"]), "it conflicts with main in a, b, c and 1 more", Some("a\nb\nc\nd")),
        (gate, "with it main does not pass the gate `cargo test` (exit code 3)", Some("one\ntwo")),
        (refused, "its pull request https://example.org/pull/7 was closed without merging it", None),
        (unmergeable("no filter"), "it cannot be merged into main: no filter", None),
        (
            unmergeable("declined\nno big files\n"),
            "it cannot be merged into main: declined",
            Some("declined\nno big files"),
        ),
        (unmergeable(""), "it cannot be merged into main: nobody said why", None),
    ];
    for (flaw, words, details) in cases {
        assert_eq!((flaw.words("main").as_str(), flaw.details().as_deref()), (words, details));
    }
}
