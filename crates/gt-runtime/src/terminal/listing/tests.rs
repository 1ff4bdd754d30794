//! Tests of reading what tmux says of panes.

use super::*;

#[test]
fn a_pane_is_read_whole_or_not_at_all() {
    let pane = Pane { session: "$1".into(), window: "@2".into(), pane: "%3".into(), pid: 77 };
    assert_eq!(Pane::parse("$1 @2 %3 77"), Some(pane));
    for wrong in ["", "$1", "$1 @2 %3", "$1 @2 %3 x", "1 @2 %3 77", "$ @2 %3 77", "$1 %2 @3 77", "$1 @2 %3 77 8"] {
        assert_eq!(Pane::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_listed_pane_says_whose_it_is_and_how_it_ended() {
    let state = |line: &str| Pane::parse_listed(line).map(|(_, state)| state);
    let of = |run: &str, is_dead, code, signal| Some(PaneState { run: run.to_owned(), is_dead, code, signal });
    assert_eq!(state("$1 @1 %1 7 0///r1"), of("r1", false, None, None));
    assert_eq!(state("$1 @1 %1 7 1/3//r1"), of("r1", true, Some(3), None));
    assert_eq!(state("$1 @1 %1 7 1//9/r1"), of("r1", true, None, Some(9)));
    assert_eq!(state("$1 @1 %1 7 1/0//"), of("", true, Some(0), None));
    assert_eq!(state("$1 @1 %1 7 1/0"), None);
}
