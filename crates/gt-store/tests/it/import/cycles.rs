//! Files with cycles: the edge that closes one is left out and reported. // SPEC B5

use crate::town::{Town, file, owned};

/// What is in the town, what comes, and the edges that are left out.
fn check(here: &[&str], comes: &[&str], dropped: &[(&str, &str)]) -> Town {
    let mut town = Town::new();
    assert_eq!(town.import(&file(here)).dropped_edges, Vec::new(), "{here:?}");
    let report = town.import(&file(comes));
    let dropped: Vec<(String, String)> = dropped.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
    assert_eq!(report.dropped_edges, dropped, "{here:?} and then {comes:?}");
    let again = town.import(&file(comes));
    assert_eq!((again.dropped_edges, again.created + again.updated), (dropped, 0), "twice is once");
    town
}

#[test]
fn a_bead_that_depends_on_itself_does_so_no_longer() {
    check(&[], &["a > a:blocks"], &[("a", "a")]);
    check(&[], &["a > a:tracks b:blocks", "b"], &[("a", "a")]);
}

#[test]
fn the_edge_that_closes_a_ring_in_the_file_is_left_out() {
    let mut town = check(&[], &["a > b:blocks", "b > c:merge-blocks", "c > a:conditional-blocks"], &[("c", "a")]);
    assert_eq!(town.ready(), ["c"]);
    check(&[], &["a > b:blocks", "b > a:blocks", "c > d:blocks", "d > c:blocks"], &[("b", "a"), ("d", "c")]);
    check(&[], &["a > b:parent-child", "b > a:parent-child"], &[("b", "a")]);
}

#[test]
fn a_parent_that_waits_for_its_descendant_does_so_no_longer() {
    check(&[], &["c > p:parent-child", "p > c:blocks"], &[("p", "c")]);
    check(&[], &["p > c:blocks", "c > p:parent-child"], &[("c", "p")]);
    check(&[], &["d > c:parent-child", "c > p:parent-child", "p > d:waits-for"], &[("p", "d")]);
}

#[test]
fn waiting_for_the_children_of_ones_own_parent_is_left_out() {
    check(&[], &["c > p:parent-child p:waits-for", "p"], &[("c", "p")]);
    check(&["p"], &["c > p:parent-child p:waits-for"], &[("c", "p")]);
    check(&[], &["c > p:parent-child", "p", "w > p:waits-for", "c2 > p:parent-child w:blocks"], &[("c2", "w")]);
}

#[test]
fn a_ring_through_beads_that_are_only_in_the_town_is_found() {
    check(&["a > b:blocks", "b > c:blocks", "c"], &["c > a:blocks"], &[("c", "a")]);
    check(&["p", "c > p:parent-child", "g > c:parent-child"], &["p > g:blocks"], &[("p", "g")]);
    check(&["p", "c > p:parent-child", "w > p:waits-for"], &["c > p:parent-child w:blocks"], &[("c", "w")]);
    check(&["w > p:waits-for", "p", "x"], &["c > p:parent-child x:blocks", "x > w:blocks"], &[("x", "w")]);
}

#[test]
fn convoys_that_would_track_each_other_do_not() {
    check(&[], &["x!convoy > y:tracks", "y!convoy > x:tracks t:tracks", "t"], &[("y", "x")]);
    check(&["x!convoy > y:tracks", "y!convoy > z:tracks", "z!convoy"], &["z!convoy > x:tracks"], &[("z", "x")]);
    check(&["y!convoy > x:tracks"], &["x!convoy > y:tracks"], &[("x", "y")]);
    // Only convoys wait for what they track.
    check(&[], &["x!convoy > t:tracks", "t > x:tracks"], &[]);
    check(&[], &["x!convoy > y:tracks", "y!convoy > x:blocks"], &[]);
}

#[test]
fn a_file_that_turns_an_edge_around_is_taken_at_its_word() {
    let mut town = check(&["a > b:blocks", "b"], &["a", "b > a:blocks"], &[]);
    assert_eq!(town.blocked(), ["b"]);
}

#[test]
fn an_edge_that_is_in_the_town_already_stays_and_the_new_one_goes() {
    check(&["x > y:blocks", "y"], &["y > x:blocks", "x > y:blocks"], &[("y", "x")]);
}

#[test]
fn a_ring_through_the_children_of_a_bead_that_was_not_there_is_found() {
    check(&["a > n:parent-child x:blocks"], &["n", "x > n:waits-for"], &[("x", "n")]);
}

#[test]
fn only_the_guilty_edge_of_a_bead_is_left_out() {
    let mut town = check(&[], &["a > b:blocks x:blocks", "x", "b > a:blocks x:blocks a:tracks"], &[("b", "a")]);
    let edges: Vec<String> =
        town.store.bead("b").expect("it is there").bead.edges.into_iter().map(|edge| edge.kind.to_string()).collect();
    assert_eq!(edges, ["tracks", "blocks"]);
    assert_eq!(town.blocked(), owned(&["a", "b"]));
}

/// A kept bead is not the file's to change, whichever line comes first.
#[test]
fn a_bead_that_is_newer_here_keeps_its_edges() {
    let newer = r#"{"id":"a","title":"a","updated_at":"2026-01-09T00:00:00Z","dependencies":[{"depends_on_id":"b","type":"blocks"}]}"#;
    let older = r#"{"id":"a","title":"a","updated_at":"2026-01-01T00:00:00Z"}"#;
    let turned = file(&["b > a:blocks"]);
    for comes in [format!("{older}\n{turned}"), format!("{turned}\n{older}")] {
        let mut town = Town::with(&["b"]);
        town.import(newer);
        let report = town.import(&comes);
        assert_eq!(report.kept_newer, ["a"]);
        assert_eq!(report.dropped_edges, [("b".to_owned(), "a".to_owned())], "{comes}");
        assert_eq!(town.blocked(), ["a"]);
    }
}
