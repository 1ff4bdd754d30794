//! Ids: length by the town's size, other proposals after a collision, children, sanity.

use std::collections::BTreeSet;

use super::*;

fn seed<'a>(title: &'a str, description: &'a str) -> IdSeed<'a> {
    IdSeed { prefix: "gt", title, description, creator: "ada", at: "2026-01-01T00:00:00Z".parse().unwrap() }
}

fn first(seed: &IdSeed<'_>) -> String {
    seed.proposals(0).next().unwrap()
}

#[test]
fn an_id_grows_with_the_town() {
    for (n_beads, chars) in [(0, 4), (1, 4), (500, 4), (501, 5), (1500, 5), (1501, 6), (u64::MAX, 6)] {
        let id = seed("a", "").proposals(n_beads).next().unwrap();
        let hash = id.strip_prefix("gt-").unwrap();
        assert_eq!(hash.len(), chars, "{n_beads}");
        assert!(hash.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{hash}");
    }
}

#[test]
fn proposals_differ_and_get_longer_after_ten() {
    let proposals: Vec<String> = seed("a", "").proposals(0).collect();
    let lengths: Vec<usize> = proposals.iter().map(|id| id.len() - "gt-".len()).collect();
    let wanted: Vec<usize> = (4..=8).flat_map(|chars| [chars; 10]).collect();
    assert_eq!(lengths, wanted);
    assert_eq!(proposals.iter().collect::<BTreeSet<_>>().len(), proposals.len());
}

#[test]
fn the_same_seed_gives_the_same_id_and_any_other_another() {
    let base = seed("a", "b");
    assert_eq!(first(&base), first(&seed("a", "b")));
    let later = "2026-01-01T00:00:00.000000001Z".parse().unwrap();
    let others = [
        seed("a2", "b"),
        seed("a", "b2"),
        IdSeed { creator: "bob", ..base },
        IdSeed { at: later, ..base },
        IdSeed { prefix: "hq", ..base },
    ];
    for other in &others {
        assert_ne!(first(other), first(&base), "{other:?}");
    }
}

#[test]
fn ids_of_a_busy_town_spread_evenly() {
    let titles: Vec<String> = (0..500).map(|n| format!("bead {n}")).collect();
    let ids: BTreeSet<String> = titles.iter().map(|title| first(&seed(title, ""))).collect();
    assert!(ids.len() >= 495, "{} of 500 ids differ", ids.len());
}

fn check_children(parent: &str, from: u64, wanted: Option<[&str; 2]>) {
    let ids: Option<Vec<String>> = child_ids(parent, from).map(|ids| ids.take(2).collect());
    assert_eq!(ids, wanted.map(|ids| ids.map(str::to_owned).to_vec()), "{parent}");
}

#[test]
fn children_are_numbered_down_to_depth_three() {
    check_children("gt-1", 1, Some(["gt-1.1", "gt-1.2"]));
    check_children("gt-1", 9, Some(["gt-1.9", "gt-1.10"]));
    check_children("gt-1.2", 1, Some(["gt-1.2.1", "gt-1.2.2"]));
    check_children("gt-1.2.3", 1, Some(["gt-1.2.3.1", "gt-1.2.3.2"]));
    check_children("gt-1.2.3.4", 1, None);
}

#[test]
fn only_numbers_after_a_dot_count_as_depth() {
    check_children("v1.x.y.z", 1, Some(["v1.x.y.z.1", "v1.x.y.z.2"]));
}

#[test]
fn a_strangers_id_is_one_word_of_a_sane_length() {
    let longest = "x".repeat(ID_CHARS_MAX);
    for id in ["a", "gt-1", "beads_rust-7wqg", "gt-1.2.3", "ü-1", "a:b/c", "-", &longest, &"ü".repeat(ID_CHARS_MAX)] {
        assert!(is_sane(id), "{id}");
    }
    for id in
        ["", " ", "a b", "a\n", "a\u{1b}[0m", "a\u{0}", "a\u{85}", "a\u{2028}b", "a\u{a0}b", &format!("{longest}x")]
    {
        assert!(!is_sane(id), "{id:?}");
    }
}

/// Ids are printed as they are.
#[test]
fn an_id_that_reads_backwards_is_not_taken() {
    for id in ["gt-\u{202e}1", "gt-\u{2066}1\u{2069}"] {
        assert!(!is_sane(id), "{id:?}");
    }
}

#[test]
fn the_stem_ends_at_the_last_dash() {
    for (id, wanted) in
        [("gt-1", "gt"), ("hq-cv-ab", "hq-cv"), ("gt-1.2", "gt"), ("bare", "bare"), ("a-", "a"), ("", "")]
    {
        assert_eq!(stem(id), wanted, "{id}");
    }
}
