//! The predicate as a whole table, every edge against every target, and `solve` against a slow judge.

mod oracle;

use proptest::prelude::*;

use super::*;
use crate::fields::Fields;

const NOW: &str = "2026-01-01T00:00:00Z";
const STATUSES: [&str; 9] =
    ["open", "in_progress", "hooked", "blocked", "deferred", "pinned", "closed", "tombstone", "in_review"];

fn at(seconds: i64) -> Timestamp {
    NOW.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(seconds)
}

fn facts(status: &str) -> Facts {
    let status = Status::parse(status);
    Facts { status, merged: false, pinned: false, ephemeral: false, bookkeeping: false, defer_until: None }
}

fn alone(status: &str) -> Node {
    Node::alone(facts(status), at(0))
}

const BOTH: [bool; 2] = [false, true];

/// One character for each of the 32 combinations: pinned, ephemeral, bookkeeping, blocked, deferred.
fn row(status: &str) -> String {
    let mut row = String::new();
    for (pinned, ephemeral, bookkeeping, blocked, deferred) in combinations() {
        let defer_until = deferred.then(|| at(60));
        let mut node = Node::alone(Facts { pinned, ephemeral, bookkeeping, defer_until, ..facts(status) }, at(0));
        node.holding = i64::from(blocked);
        let word = node.standing().as_str();
        row.push(if word == "deferred" { 'D' } else { word.chars().next().unwrap() });
    }
    row
}

fn combinations() -> impl Iterator<Item = (bool, bool, bool, bool, bool)> {
    (0..32).map(|n| (n & 16 > 0, n & 8 > 0, n & 4 > 0, n & 2 > 0, n & 1 > 0))
}

#[test]
fn every_status_times_every_circumstance() {
    let title = |bit: u32| (0..32).map(|n| if n >> bit & 1 == 1 { 'x' } else { '.' }).collect::<String>();
    let mut table: Vec<String> = ["pinned", "ephemeral", "bookkeeping", "blocked", "deferred"]
        .into_iter()
        .zip((0..5).rev())
        .map(|(name, bit)| format!("{name:>12} {}", title(bit)))
        .collect();
    table.extend(STATUSES.iter().map(|status| format!("{status:>12} {}", row(status))));
    insta::assert_snapshot!(table.join("\n"));
}

/// SPEC B4 word for word, next to the code that is written for speed.
#[test]
fn ready_is_what_the_rule_says_and_nothing_else() {
    for status in STATUSES {
        for (pinned, ephemeral, bookkeeping, blocked, deferred) in combinations() {
            let defer_until = deferred.then(|| at(60));
            let mut node = Node::alone(Facts { pinned, ephemeral, bookkeeping, defer_until, ..facts(status) }, at(0));
            node.blocked_parents = i64::from(blocked);
            let ready = status == "open" && !blocked && !pinned && !ephemeral && !deferred && !bookkeeping;
            assert_eq!(node.standing() == Standing::Ready, ready, "{node:?}");
        }
    }
}

#[test]
fn a_deferral_counts_until_its_very_moment() {
    let deferred = |seconds| Facts { defer_until: Some(at(seconds)), ..facts("open") };
    for (seconds, wanted) in [(-1, Standing::Ready), (0, Standing::Ready), (1, Standing::Deferred)] {
        assert_eq!(Node::alone(deferred(seconds), at(0)).standing(), wanted, "{seconds}");
    }
    let node = Node::alone(deferred(60), at(0));
    for (seconds, wanted) in [(59, Standing::Deferred), (60, Standing::Ready), (61, Standing::Ready)] {
        assert_eq!(node.standing_at(at(seconds)), wanted, "{seconds}");
    }
}

#[test]
fn time_alone_changes_nothing_but_deferrals() {
    for status in STATUSES {
        for blocked in BOTH {
            let mut node = Node::alone(Facts { defer_until: Some(at(60)), ..facts(status) }, at(0));
            node.holding = i64::from(blocked);
            if node.standing() != Standing::Deferred {
                assert_eq!(node.standing_at(at(1000)), node.standing(), "{status}");
            }
        }
    }
}

#[test]
fn standings_have_a_word_each() {
    insta::assert_snapshot!(Standing::ALL.map(Standing::as_str).join(" "), @"ready deferred blocked held done");
}

/// The targets of an edge, by name; children are written present/active/closed, beside a deleted one.
fn targets() -> Vec<(String, Node)> {
    let mut targets: Vec<(String, Node)> =
        STATUSES.iter().map(|status| ((*status).to_owned(), alone(status))).collect();
    let merged = Facts { merged: true, ..facts("closed") };
    targets.push(("closed merged".to_owned(), Node::alone(merged, at(0))));
    for status in ["open", "closed"] {
        for (present, active, closed) in [(2, 2, 0), (2, 1, 1), (2, 1, 0), (2, 0, 2), (1, 0, 0), (0, 0, 0)] {
            let mut node = alone(status);
            node.children = Children { total: present + 1, active, closed, deleted: 1 };
            targets.push((format!("{status} {present}/{active}/{closed}"), node));
        }
    }
    targets
}

#[test]
fn every_edge_type_times_every_target() {
    let kinds: Vec<EdgeType> =
        ["blocks", "conditional-blocks", "merge-blocks", "waits-for", "parent-child", "tracks", "made-up"]
            .map(EdgeType::parse)
            .to_vec();
    let mut table = Vec::new();
    for (name, target) in targets() {
        let mut holding: Vec<String> = Vec::new();
        for kind in &kinds {
            let [all, any] = [Gate::AllChildren, Gate::AnyChildren].map(|gate| target.holds(kind, gate));
            if *kind == EdgeType::WaitsFor {
                holding.extend(all.then(|| "waits-for".to_owned()));
                holding.extend(any.then(|| "waits-for(any)".to_owned()));
            } else {
                assert_eq!(all, any, "only waits-for has a gate: {kind} {name}");
                holding.extend(all.then(|| kind.to_string()));
            }
        }
        table.push(format!("{name:<14} {}", holding.join(" ")).trim_end().to_owned());
    }
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn the_facts_of_a_bead_are_read_off_its_fields() {
    let check = |status: &str, issue_type: Option<&str>, body: &str, wanted: &Facts| {
        let bead = Bead {
            status: Status::parse(status),
            issue_type: issue_type.map(Into::into),
            defer_until: wanted.defer_until,
            body: Fields::parse(body).unwrap(),
            ..Bead::new("gt-1", "a")
        };
        assert_eq!(&Facts::of(&bead), wanted);
    };
    check("open", None, "{}", &facts("open"));
    check("open", Some("epic"), "{}", &facts("open"));
    check("hooked", Some("convoy"), "{}", &Facts { bookkeeping: true, ..facts("hooked") });
    check("open", None, r#"{"pinned":true}"#, &Facts { pinned: true, ..facts("open") });
    check("open", None, r#"{"wisp":true}"#, &Facts { ephemeral: true, ..facts("open") });
    check("closed", None, r#"{"merged_at":"x"}"#, &Facts { merged: true, ..facts("closed") });
    check("open", None, "{}", &Facts { defer_until: Some(at(5)), ..facts("open") });
}

fn some_facts() -> impl Strategy<Value = Facts> {
    let flags =
        (any::<bool>(), proptest::bool::weighted(0.1), proptest::bool::weighted(0.1), proptest::bool::weighted(0.1));
    (0..STATUSES.len() + 6, flags, proptest::option::weighted(0.3, -3_i64..4)).prop_map(
        |(status, (merged, pinned, ephemeral, bookkeeping), deferral)| Facts {
            status: Status::parse(STATUSES.get(status).unwrap_or(&"open")),
            merged,
            pinned,
            ephemeral,
            bookkeeping,
            defer_until: deferral.map(at),
        },
    )
}

fn some_arc(n_nodes: usize) -> impl Strategy<Value = Arc> {
    let kinds = ["blocks", "conditional-blocks", "waits-for", "merge-blocks", "parent-child", "parent-child", "tracks"];
    (0..n_nodes, 0..n_nodes, 0..kinds.len(), any::<bool>()).prop_map(move |(source, target, kind, any)| Arc {
        source,
        target,
        kind: EdgeType::parse(kinds[kind]),
        gate: if any { Gate::AnyChildren } else { Gate::AllChildren },
    })
}

fn some_graph() -> impl Strategy<Value = (Vec<Facts>, Vec<Arc>)> {
    (1_usize..9).prop_flat_map(|n_nodes| {
        let facts = proptest::collection::vec(some_facts(), n_nodes);
        (facts, proptest::collection::vec(some_arc(n_nodes), 0..16))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn solve_agrees_with_the_rules_read_slowly((facts, arcs) in some_graph()) {
        let nodes = solve(facts.clone(), &arcs, at(0));
        let blocked: Vec<bool> = nodes.iter().map(Node::is_blocked).collect();
        prop_assert_eq!(blocked, oracle::blocked(&facts, &arcs));
        let ready: Vec<bool> = nodes.iter().map(|node| node.standing() == Standing::Ready).collect();
        prop_assert_eq!(ready, oracle::ready(&facts, &arcs, at(0)));
    }

    #[test]
    fn the_order_of_edges_does_not_matter((facts, arcs) in some_graph()) {
        let reversed: Vec<Arc> = arcs.iter().rev().cloned().collect();
        prop_assert_eq!(solve(facts.clone(), &arcs, at(0)), solve(facts, &reversed, at(0)));
    }
}

#[test]
fn a_blocked_parent_blocks_every_generation_below_and_an_open_one_none() {
    let arc = |source, target, kind: &str| Arc { source, target, kind: EdgeType::parse(kind), gate: Gate::AllChildren };
    // 0 blocks 1; 2 is a child of 1, and 3 a child of 2.
    let arcs = [arc(1, 0, "blocks"), arc(2, 1, "parent-child"), arc(3, 2, "parent-child")];
    let check = |blocker: &str, wanted: [bool; 4]| {
        let facts = vec![facts(blocker), facts("open"), facts("open"), facts("open")];
        let blocked: Vec<bool> = solve(facts, &arcs, at(0)).iter().map(Node::is_blocked).collect();
        assert_eq!(blocked, wanted, "{blocker}");
    };
    check("open", [false, true, true, true]);
    check("closed", [false; 4]);
    check("pinned", [false; 4]);
}

#[test]
fn parents_in_a_ring_do_not_block_themselves() {
    let ring = |source, target| Arc { source, target, kind: EdgeType::ParentChild, gate: Gate::AllChildren };
    let nodes = solve(vec![facts("open"); 3], &[ring(0, 1), ring(1, 2), ring(2, 0)], at(0));
    assert!(nodes.iter().all(|node| node.standing() == Standing::Ready));
}
