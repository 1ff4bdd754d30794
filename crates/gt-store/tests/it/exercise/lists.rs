//! Reading: filters, order, limits, trees and reasons.

use gt_core::status::Status;
use gt_store::{Filter, ReadyFilter, TreeNode};

use crate::town::{Town, file, ids, owned};

/// Five beads of different kinds; gt-4 is closed.
fn town() -> Town {
    let mut town = Town::new();
    town.import(
        r#"{"id":"gt-1","title":"Paint the door","priority":2,"created_at":"2025-01-03T00:00:00Z","labels":["red","big"]}
{"id":"gt-2","title":"oil the hinge","priority":2,"created_at":"2025-01-01T00:00:00Z","labels":["red"],"issue_type":"bug"}
{"id":"gt-3","title":"door frame","priority":0,"status":"hooked","assignee":"ada","issue_type":"task"}
{"id":"gt-4","title":"old door","priority":1,"status":"closed","assignee":"ada"}
{"id":"gt-5","title":"100% done_","priority":2,"created_at":"2025-01-01T00:00:00Z","dependencies":[{"depends_on_id":"gt-1","type":"parent-child"},{"depends_on_id":"gt-3","type":"blocks"}]}"#,
    );
    town
}

fn check(filter: &Filter, wanted: &[&str]) {
    let listing = town().store.list(filter, 0).expect("the list answers");
    assert_eq!((ids(listing.beads), listing.more), (owned(wanted), false), "{filter:?}");
}

#[test]
fn a_list_is_active_beads_by_urgency_age_and_id() {
    check(&Filter::default(), &["gt-3", "gt-2", "gt-5", "gt-1"]);
    check(&Filter { all: true, ..Filter::default() }, &["gt-3", "gt-4", "gt-2", "gt-5", "gt-1"]);
}

#[test]
fn every_filter_of_a_list_narrows_it() {
    let none = Filter::default;
    check(&Filter { statuses: vec![Status::Closed], ..none() }, &["gt-4"]);
    check(&Filter { statuses: vec![Status::Closed, Status::Hooked], ..none() }, &["gt-3", "gt-4"]);
    check(&Filter { issue_type: Some("task".into()), ..none() }, &["gt-3", "gt-5", "gt-1"]);
    check(&Filter { issue_type: Some("bug".into()), ..none() }, &["gt-2"]);
    check(&Filter { priority: Some(0), ..none() }, &["gt-3"]);
    check(&Filter { assignee: Some("ada".into()), ..none() }, &["gt-3"]);
    check(&Filter { assignee: Some("ada".into()), all: true, ..none() }, &["gt-3", "gt-4"]);
    check(&Filter { unassigned: true, assignee: Some("ada".into()), ..none() }, &["gt-2", "gt-5", "gt-1"]);
    check(&Filter { labels: owned(&["red"]), ..none() }, &["gt-2", "gt-1"]);
    check(&Filter { labels: owned(&["red", "big"]), ..none() }, &["gt-1"]);
    check(&Filter { parent: Some("gt-1".into()), ..none() }, &["gt-5"]);
    check(&Filter { title_contains: Some("DOOR".into()), ..none() }, &["gt-3", "gt-1"]);
    check(&Filter { title_contains: Some("%".into()), ..none() }, &["gt-5"]);
    check(&Filter { title_contains: Some("e_".into()), ..none() }, &["gt-5"]);
    check(&Filter { labels: owned(&["'; DROP TABLE bead; --"]), ..none() }, &[]);
}

#[test]
fn a_list_below_an_unknown_parent_is_refused() {
    let filter = Filter { parent: Some("gt-9".into()), ..Filter::default() };
    let refusal = town().refused(|store, _| store.list(&filter, 0));
    assert_eq!(refusal, "there is no bead `gt-9`; near: gt-1, gt-2, gt-3");
}

#[test]
fn a_limit_cuts_and_says_so_and_zero_means_all() {
    let mut town = town();
    let mut cut = |limit| {
        let listing = town.store.list(&Filter::default(), limit).expect("the list answers");
        (listing.beads.len(), listing.more)
    };
    assert_eq!(
        [cut(0), cut(1), cut(3), cut(4), cut(5), cut(usize::MAX)],
        [(4, false), (1, true), (3, true), (4, false), (4, false), (4, false)]
    );
    let now = town.now;
    let ready = town.store.ready(&ReadyFilter::default(), 1, now).expect("ready answers");
    assert_eq!((ids(ready.beads), ready.more), (owned(&["gt-2"]), true));
    let blocked = town.store.blocked(None, 1).expect("blocked answers");
    assert_eq!((ids(blocked.beads), blocked.more), (owned(&["gt-5"]), false));
}

#[test]
fn a_view_shows_what_blocks_and_who_depends() {
    let mut town = town();
    let view = town.store.bead("gt-5").expect("it is there");
    assert_eq!((view.blocked_by, view.n_dependents), (owned(&["gt-3"]), 0));
    assert_eq!(town.store.bead("gt-3").expect("it is there").n_dependents, 1);
    town.close("gt-3");
    assert_eq!(town.store.bead("gt-5").expect("it is there").blocked_by, Vec::<String>::new());
    assert_eq!(town.refused(|store, _| store.bead("gt-55")), "there is no bead `gt-55`; near: gt-5");
}

#[test]
fn a_blocker_by_two_edges_is_named_once() {
    let mut town = Town::new();
    town.import(&file(&["a", "b", "c > a:blocks a:waits-for b:blocks"]));
    assert_eq!(town.store.bead("c").expect("it is there").blocked_by, ["a", "b"]);
}

#[test]
fn every_bead_is_handed_out_in_the_order_of_ids() {
    let mut town = town();
    let mut seen = Vec::new();
    let stop = |bead: &gt_core::bead::Bead| {
        seen.push(bead.id.clone());
        if bead.id == "gt-3" { Err(gt_store::StoreError::NoBead { id: "enough".into(), near: vec![] }) } else { Ok(()) }
    };
    town.store.each_bead(stop).expect_err("it was stopped");
    assert_eq!(seen, ["gt-1", "gt-2", "gt-3"]);
}

/// The tree as text: two spaces a level, `*` for blocked, `…` for repeated.
fn draw(node: &TreeNode, level: usize, lines: &mut Vec<String>) {
    let relation = node.relation.as_deref().map(|word| format!(" ({word})")).unwrap_or_default();
    let marks = format!("{}{}", if node.node.is_blocked() { "*" } else { "" }, if node.repeated { "…" } else { "" });
    lines.push(format!("{}{}{marks}{relation}", "  ".repeat(level), node.id));
    node.below.iter().for_each(|below| draw(below, level + 1, lines));
}

#[test]
fn a_tree_shows_children_and_blockers_each_once_in_full() {
    let mut town = Town::new();
    town.import(&file(&[
        "e",
        "a > e:parent-child",
        "b > e:parent-child a:blocks",
        "c > e:parent-child a:blocks b:waits-for x:tracks",
        "d > a:parent-child",
        "x",
    ]));
    let mut tree = |depth| {
        let mut lines = Vec::new();
        draw(&town.store.tree("e", depth).expect("the tree answers"), 0, &mut lines);
        lines.join("\n")
    };
    insta::assert_snapshot!(tree(10), @r"
    e
      a (child)
        d (child)
      b* (child)
        a… (blocks)
      c* (child)
        a… (blocks)
        b*… (waits-for)
    ");
    insta::assert_snapshot!(tree(1), @r"
    e
      a (child)
      b* (child)
      c* (child)
    ");
    insta::assert_snapshot!(tree(0), @"e");
    assert_eq!(town.refused(|store, _| store.tree("f", 1)), "there is no bead `f`");
}

#[test]
fn an_explanation_names_what_the_store_knows() {
    let mut town = Town::new();
    town.import(&file(&["gt-0", "gt-1 > gt-0:blocks", "gt-2 > gt-1:parent-child", "gt-3 > gt-1:waits-for", "gt-4"]));
    town.defer("gt-0", Some(60));
    let now = town.now;
    let mut codes = |id: &str| {
        let told = town.store.explain(id, &gt_core::plan::Policy::default(), now).expect("it answers");
        let codes: Vec<&str> = told.reasons.iter().map(|reason| reason.code).collect();
        format!("{}: {}", told.state, codes.join(" "))
    };
    assert_eq!(codes("gt-0"), "deferred: deferred no-rig");
    assert_eq!(codes("gt-1"), "blocked: blocked no-rig");
    assert_eq!(codes("gt-2"), "blocked: blocked-parent no-rig");
    assert_eq!(codes("gt-3"), "blocked: waits-for-children no-rig");
    assert_eq!(codes("gt-4"), "ready: no-rig");
}
