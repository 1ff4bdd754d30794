//! Dependencies: added once, removed by type or all, and never into a ring. // SPEC B5

use gt_core::edge::{Edge, EdgeType};

use crate::town::{Town, file};

fn edge(target: &str, kind: &str) -> Edge {
    Edge::new(target, EdgeType::parse(kind))
}

#[test]
fn an_edge_is_added_once_and_carries_its_origin() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    let (added, events) = town.told(|store, stamp| store.add_edge("gt-1", &edge("gt-2", "blocks"), stamp));
    assert!(added);
    assert_eq!(events, [r#"bead.linked gt-1 {"target":"gt-2","type":"blocks"}"#]);
    let extra = town.store.bead("gt-1").expect("it is there").bead.edges[0].extra.to_json();
    assert_eq!(extra, r#"{"created_at":"2026-01-01T00:00:00Z","created_by":"tester"}"#);
    town.pass(5);
    assert!(!town.quiet(|store, stamp| store.add_edge("gt-1", &edge("gt-2", "blocks"), stamp)));
}

#[test]
fn another_gate_on_the_same_edge_is_a_change() {
    let mut town = Town::new();
    town.import(&file(&["gt-0", "gt-1 > gt-0:parent-child", "gt-2 > gt-0:parent-child", "gt-9 > gt-0:waits-for"]));
    town.close("gt-1");
    assert_eq!(town.blocked(), ["gt-9"]);
    let mut any = edge("gt-0", "waits-for");
    any.extra.put("metadata", &serde_json::json!({ "gate": "any-children" }));
    let (added, events) = town.told(|store, stamp| store.add_edge("gt-9", &any, stamp));
    assert!(added);
    assert_eq!(events.len(), 1);
    assert_eq!(town.blocked(), Vec::<String>::new());
    assert!(!town.quiet(|store, stamp| store.add_edge("gt-9", &any, stamp)));
    town.link("gt-9", "gt-0", "waits-for");
    assert_eq!(town.blocked(), ["gt-9"]);
}

#[test]
fn both_ends_of_a_new_edge_must_exist() {
    let mut town = Town::with(&["gt-10", "gt-11"]);
    let mut check = |source: &str, target: &str, wanted: &str| {
        assert_eq!(town.refused(|store, stamp| store.add_edge(source, &edge(target, "blocks"), stamp)), wanted);
    };
    check("gt-12", "gt-10", "there is no bead `gt-12`; near: gt-10, gt-11");
    check("gt-10", "gt-12", "there is no bead `gt-12`; near: gt-10, gt-11");
    check("gt-10", "zzz", "there is no bead `zzz`");
}

#[test]
fn no_edge_of_any_type_leads_to_itself() {
    for kind in ["blocks", "conditional-blocks", "waits-for", "merge-blocks", "parent-child", "tracks", "made-up"] {
        let mut town = Town::with(&["gt-1"]);
        let refusal = town.refused(|store, stamp| store.add_edge("gt-1", &edge("gt-1", kind), stamp));
        assert_eq!(refusal, "gt-1 cannot depend on itself", "{kind}");
    }
}

/// The town, the edge that would be one too many, and the ring it would close.
fn check_ring(lines: &[&str], source: &str, target: &str, kind: &str, ring: &str) {
    let mut town = Town::new();
    let report = town.import(&file(lines));
    assert_eq!(report.dropped_edges, Vec::new());
    let refusal = town.refused(|store, stamp| store.add_edge(source, &edge(target, kind), stamp));
    assert_eq!(refusal, format!("this would close a cycle: {ring}"), "{source} {kind} {target} in {lines:?}");
}

#[test]
fn a_ring_of_blocking_edges_is_refused_by_name() {
    check_ring(&["a", "b > a:blocks"], "a", "b", "blocks", "a → b → a");
    check_ring(&["a", "b > a:blocks", "c > b:merge-blocks"], "a", "c", "conditional-blocks", "a → c → b → a");
    check_ring(&["a", "b > a:waits-for"], "a", "b", "blocks", "a → b → a");
}

#[test]
fn a_ring_of_parents_is_refused_by_name() {
    check_ring(&["a", "b > a:parent-child"], "a", "b", "parent-child", "a → b → a");
    check_ring(&["a", "b > a:parent-child", "c > b:parent-child"], "a", "c", "parent-child", "a → c → b → a");
}

#[test]
fn a_ring_of_convoys_that_track_each_other_is_refused_by_name() {
    let convoys = ["x!convoy", "y!convoy > x:tracks t:tracks", "z!convoy > y:tracks", "t"];
    check_ring(&convoys, "x", "y", "tracks", "x → y → x");
    check_ring(&convoys, "x", "z", "tracks", "x → z → y → x");
    let mut town = Town::new();
    town.import(&file(&convoys));
    town.link("t", "y", "tracks"); // no convoy, so nobody waits for it to land
    let refusal = town.refused(|store, stamp| store.add_to_convoy("x", &["t".to_owned(), "z".to_owned()], stamp));
    assert_eq!(refusal, "this would close a cycle: x → z → y → x");
}

#[test]
fn a_parent_never_waits_for_its_own_descendant() {
    let family = ["a", "b > a:parent-child", "c > b:parent-child"];
    for kind in ["blocks", "conditional-blocks", "merge-blocks", "waits-for"] {
        check_ring(&family, "a", "b", kind, "a → b → a");
        check_ring(&family, "a", "c", kind, "a → c → b → a");
    }
    check_ring(&["a", "b > a:blocks"], "a", "b", "parent-child", "a → b → a");
}

#[test]
fn nobody_waits_for_the_children_of_a_parent_that_is_its_own() {
    check_ring(&["a", "b > a:parent-child"], "b", "a", "waits-for", "b → b");
    check_ring(&["a", "b > a:waits-for"], "b", "a", "parent-child", "b → b");
    check_ring(&["a", "b > a:parent-child", "c > a:waits-for"], "b", "c", "blocks", "b → c → b");
}

#[test]
fn a_child_may_be_blocked_by_its_sibling_and_closed_rings_count_too() {
    let mut town = Town::new();
    town.import(&file(&["a", "b > a:parent-child", "c > a:parent-child"]));
    town.link("b", "c", "blocks");
    town.close("b");
    town.close("c");
    let refusal = town.refused(|store, stamp| store.add_edge("c", &edge("b", "blocks"), stamp));
    assert_eq!(refusal, "this would close a cycle: c → b → c");
}

#[test]
fn rings_of_edges_that_never_block_are_fine() {
    let mut town = Town::with(&["a", "b"]);
    town.link("a", "b", "tracks");
    town.link("b", "a", "tracks");
    town.link("a", "b", "blocks");
    town.link("b", "a", "related");
}

#[test]
fn a_ring_through_a_bead_that_is_not_there_yet_is_dropped_when_it_comes() {
    let mut town = Town::with(&["a"]);
    town.import(&file(&["a > ghost:blocks"]));
    let report = town.import(&file(&["ghost > a:blocks"]));
    assert_eq!(report.dropped_edges, [("ghost".to_owned(), "a".to_owned())]);
    assert_eq!(town.ready(), ["ghost"]);
}

#[test]
fn an_edge_is_removed_by_its_type_or_every_type_at_once() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    for kind in ["blocks", "tracks", "waits-for"] {
        town.link("gt-1", "gt-2", kind);
    }
    let tracks = EdgeType::parse("tracks");
    let (_, events) = town.told(|store, stamp| store.remove_edges("gt-1", "gt-2", Some(&tracks), stamp));
    assert_eq!(events, [r#"bead.unlinked gt-1 {"target":"gt-2","type":"tracks"}"#]);
    let (done, events) = town.told(|store, stamp| store.remove_edges("gt-1", "gt-2", None, stamp));
    assert_eq!((done.became_ready, events.len()), (vec!["gt-1".to_owned()], 2));
}

#[test]
fn an_edge_that_is_not_there_cannot_be_removed() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    town.link("gt-1", "gt-2", "blocks");
    let mut check = |source: &str, target: &str, kind: Option<&str>, wanted: &str| {
        let kind = kind.map(EdgeType::parse);
        let refusal = town.refused(|store, stamp| store.remove_edges(source, target, kind.as_ref(), stamp));
        assert_eq!(refusal, wanted);
    };
    check("gt-2", "gt-1", None, "gt-2 does not depend on gt-1");
    check("gt-1", "gt-2", Some("tracks"), "gt-1 does not depend on gt-2");
    check("gt-1", "nobody", None, "gt-1 does not depend on nobody");
    check("nobody", "gt-1", None, "there is no bead `nobody`");
}

#[test]
fn an_edge_to_a_bead_that_never_came_can_be_removed() {
    let mut town = Town::new();
    town.import(&file(&["gt-1 > ghost:blocks"]));
    assert_eq!(town.unlink("gt-1", "ghost"), Vec::<String>::new());
    assert!(town.store.bead("gt-1").expect("it is there").bead.edges.is_empty());
}
