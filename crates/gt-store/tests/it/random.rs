//! Random towns: after every step the maintained readiness is what the judge works out.

use gt_core::edge::{Edge, EdgeType};
use gt_core::refusal::Refusal;
use gt_store::{BeadPatch, StoreError};
use proptest::prelude::*;

use crate::town::{Town, n_cases};

const N_IDS: usize = 9;

#[derive(Debug, Clone)]
struct ImportLine {
    bead: usize,
    status: usize,
    edges: Vec<(usize, usize)>,
    /// Newer than anything here, or older.
    is_newer: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Add { parent: Option<usize> },
    Import { lines: Vec<ImportLine> },
    Close { bead: usize, merged: bool },
    Reopen { bead: usize },
    Delete { bead: usize },
    Status { bead: usize, status: usize },
    Pin { bead: usize, on: bool },
    Ephemeral { bead: usize, on: bool },
    Defer { bead: usize, seconds: Option<i64> },
    Link { source: usize, target: usize, kind: usize, any: bool },
    Unlink { source: usize, target: usize },
    Reparent { bead: usize, parent: Option<usize> },
    Pass { seconds: i64 },
}

const STATUSES: [&str; 9] =
    ["open", "in_progress", "hooked", "blocked", "deferred", "pinned", "closed", "tombstone", "in_review"];
const KINDS: [&str; 7] =
    ["blocks", "conditional-blocks", "waits-for", "merge-blocks", "parent-child", "tracks", "made-up"];

fn import_line() -> impl Strategy<Value = ImportLine> {
    let edges = proptest::collection::vec((0..N_IDS, 0..KINDS.len()), 0..4);
    (0..N_IDS, 0..STATUSES.len(), edges, proptest::bool::weighted(0.8))
        .prop_map(|(bead, status, edges, is_newer)| ImportLine { bead, status, edges, is_newer })
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..N_IDS;
    prop_oneof![
        1 => proptest::option::of(id.clone()).prop_map(|parent| Step::Add { parent }),
        4 => proptest::collection::vec(import_line(), 1..5).prop_map(|lines| Step::Import { lines }),
        4 => (id.clone(), any::<bool>()).prop_map(|(bead, merged)| Step::Close { bead, merged }),
        3 => id.clone().prop_map(|bead| Step::Reopen { bead }),
        1 => id.clone().prop_map(|bead| Step::Delete { bead }),
        3 => (id.clone(), 0..STATUSES.len()).prop_map(|(bead, status)| Step::Status { bead, status }),
        1 => (id.clone(), any::<bool>()).prop_map(|(bead, on)| Step::Pin { bead, on }),
        1 => (id.clone(), any::<bool>()).prop_map(|(bead, on)| Step::Ephemeral { bead, on }),
        2 => (id.clone(), proptest::option::of(-5_i64..20)).prop_map(|(bead, seconds)| Step::Defer { bead, seconds }),
        10 => (id.clone(), id.clone(), 0..KINDS.len(), any::<bool>())
            .prop_map(|(source, target, kind, any)| Step::Link { source, target, kind, any }),
        3 => (id.clone(), id.clone()).prop_map(|(source, target)| Step::Unlink { source, target }),
        3 => (id.clone(), proptest::option::of(id)).prop_map(|(bead, parent)| Step::Reparent { bead, parent }),
        2 => (0_i64..15).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

fn name(at: usize) -> String {
    format!("gt-{at}")
}

/// Does the step; the town checks itself. Refusals by rule and beads that are not there are fine.
fn take(town: &mut Town, step: &Step) {
    let stamp = town.stamp();
    let answer = match step {
        Step::Add { parent } => {
            let parent = parent.map(name).filter(|id| town.store.bead(id).is_ok());
            town.create("more", parent.as_deref());
            Ok(())
        }
        Step::Import { lines } => {
            let text: Vec<String> = lines.iter().map(line).collect();
            town.import(&text.join("\n"));
            let again = town.import(&text.join("\n"));
            assert_eq!((again.created, again.updated), (0, 0), "twice is once");
            Ok(())
        }
        Step::Close { bead, merged } => {
            let reason = merged.then_some("Merged in mr-1");
            town.store.close_beads(&[name(*bead)], reason, &stamp).map(|_| ())
        }
        Step::Reopen { bead } => town.store.reopen_beads(&[name(*bead)], &stamp).map(|_| ()),
        Step::Delete { bead } => town.store.delete_beads(&[name(*bead)], None, &stamp).map(|_| ()),
        Step::Status { bead, status } => {
            let status = Some(gt_core::status::Status::parse(STATUSES[*status]));
            town.patch(&name(*bead), &BeadPatch { status, ..BeadPatch::default() })
        }
        Step::Pin { bead, on } => town.patch(&name(*bead), &BeadPatch { pinned: Some(*on), ..BeadPatch::default() }),
        Step::Ephemeral { bead, on } => {
            town.patch(&name(*bead), &BeadPatch { ephemeral: Some(*on), ..BeadPatch::default() })
        }
        Step::Defer { bead, seconds } => {
            let until = seconds.map(|seconds| town.now + jiff::SignedDuration::from_secs(seconds));
            town.patch(&name(*bead), &BeadPatch { defer_until: Some(until), ..BeadPatch::default() })
        }
        Step::Link { source, target, kind, any } => {
            let mut edge = Edge::new(name(*target), EdgeType::parse(KINDS[*kind]));
            if *any {
                edge.extra.put("metadata", &serde_json::json!({ "gate": "any-children" }));
            }
            town.try_link(&name(*source), &edge).map(|_| ())
        }
        Step::Unlink { source, target } => {
            town.store.remove_edges(&name(*source), &name(*target), None, &stamp).map(|_| ())
        }
        Step::Reparent { bead, parent } => {
            town.patch(&name(*bead), &BeadPatch { parent: Some(parent.map(name)), ..BeadPatch::default() })
        }
        Step::Pass { seconds } => {
            town.pass(*seconds);
            Ok(())
        }
    };
    match answer {
        Ok(()) | Err(StoreError::NoBead { .. } | StoreError::Refused(_)) => {}
        Err(error) => panic!("{step:?}: {error}"),
    }
}

/// A line as a file might hold it, edges to beads that are not there and cycles included.
fn line(ImportLine { bead, status, edges, is_newer }: &ImportLine) -> String {
    let id = name(*bead);
    let edges: Vec<_> = edges
        .iter()
        .map(|(target, kind)| serde_json::json!({ "issue_id": id, "depends_on_id": name(*target), "type": KINDS[*kind] }))
        .collect();
    let line = serde_json::json!({
        "id": id, "title": "imported", "status": STATUSES[*status], "dependencies": edges,
        "updated_at": if *is_newer { "2027-01-01T00:00:00Z" } else { "2025-01-01T00:00:00Z" },
    });
    line.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: n_cases(192), max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn maintained_readiness_is_recomputed_readiness(
        n_at_start in 0..N_IDS,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let ids: Vec<String> = (0..n_at_start).map(name).collect();
        let mut town = Town::with(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        for step in &steps {
            take(&mut town, step);
            town.check();
        }
    }

    #[test]
    fn no_bead_ever_waits_for_itself(steps in proptest::collection::vec(step(), 1..80)) {
        let ids: Vec<String> = (0..N_IDS).map(name).collect();
        let mut town = Town::with(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        for step in &steps {
            take(&mut town, step);
        }
        // Open everything, then work through the town: every bead gets its turn.
        for id in town.everything() {
            town.set_status(&id, "open");
        }
        while let Some(id) = town.first_unblocked() {
            town.close_because(&id, Some("Merged in mr-1"));
        }
        prop_assert_eq!(town.active(), Vec::new());
    }
}

impl Town {
    fn active(&mut self) -> Vec<gt_store::View> {
        self.store.list(&gt_store::Filter::default(), 0).expect("the list answers").beads
    }

    fn everything(&mut self) -> Vec<String> {
        let all = gt_store::Filter { all: true, ..gt_store::Filter::default() };
        crate::town::ids(self.store.list(&all, 0).expect("the list answers").beads)
    }

    fn first_unblocked(&mut self) -> Option<String> {
        self.active().into_iter().find(|view| view.blocked_by.is_empty()).map(|view| view.bead.id)
    }
}

#[test]
fn an_edge_refused_as_a_cycle_names_a_ring_that_exists() {
    let mut town = Town::with(&["gt-0", "gt-1", "gt-2", "gt-3"]);
    town.link("gt-0", "gt-1", "blocks");
    town.link("gt-1", "gt-2", "merge-blocks");
    town.link("gt-2", "gt-3", "conditional-blocks");
    let edge = Edge::new("gt-0", EdgeType::Blocks);
    let Err(StoreError::Refused(Refusal::Cycle { ring })) = town.try_link("gt-3", &edge) else {
        panic!("the edge closes a cycle");
    };
    assert_eq!(ring, ["gt-3", "gt-0", "gt-1", "gt-2", "gt-3"]);
}
