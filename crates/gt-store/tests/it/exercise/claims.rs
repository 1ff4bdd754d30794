//! Claims: one winner, twice is fine, and a reason for everybody else.

use gt_core::status::Status;
use gt_store::{BeadPatch, ReadyFilter};

use crate::town::{Town, file};

#[test]
fn a_claim_starts_the_work_and_a_second_one_by_the_same_changes_nothing() {
    let mut town = Town::with(&["gt-1"]);
    let (claimed, events) = town.told(|store, stamp| store.claim_bead("gt-1", "ada", stamp));
    assert!(claimed);
    assert_eq!(events, [r#"bead.claimed gt-1 {"assignee":"ada"}"#]);
    let bead = town.store.bead("gt-1").expect("it is there").bead;
    assert_eq!((bead.status, bead.assignee.as_deref()), (Status::InProgress, Some("ada")));
    assert_eq!(bead.body.text("started_at").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert!(!town.quiet(|store, stamp| store.claim_bead("gt-1", "ada", stamp)));
    let refusal = town.refused(|store, stamp| store.claim_bead("gt-1", "bob", stamp));
    assert_eq!(refusal, "gt-1 is already claimed by ada");
}

#[test]
fn a_bead_assigned_to_somebody_is_theirs_to_claim() {
    let mut town = Town::with(&["gt-1"]);
    let ada = BeadPatch { assignee: Some(Some("ada".into())), ..BeadPatch::default() };
    town.patch("gt-1", &ada).expect("it is assigned");
    let refusal = town.refused(|store, stamp| store.claim_bead("gt-1", "bob", stamp));
    assert_eq!(refusal, "gt-1 is already claimed by ada");
    assert!(town.told(|store, stamp| store.claim_bead("gt-1", "ada", stamp)).0);
}

fn claim_of(patch: &BeadPatch) -> String {
    let mut town = Town::with(&["gt-1"]);
    town.patch("gt-1", patch).expect("it is changed");
    town.refused(|store, stamp| store.claim_bead("gt-1", "ada", stamp))
}

#[test]
fn what_is_not_ready_cannot_be_claimed() {
    let status = |word: &str| BeadPatch { status: Some(Status::parse(word)), ..BeadPatch::default() };
    assert_eq!(claim_of(&status("closed")), "gt-1 is not ready: it is done");
    assert_eq!(claim_of(&status("hooked")), "gt-1 is not ready: it is hooked");
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2 > gt-1:blocks"]));
    assert_eq!(town.refused(|store, stamp| store.claim_bead("gt-2", "ada", stamp)), "gt-2 is not ready: it is blocked");
    assert_eq!(
        town.refused(|store, stamp| store.claim_bead("gt-3", "ada", stamp)),
        "there is no bead `gt-3`; near: gt-1, gt-2"
    );
}

/// "it is open" would be no reason at all.
#[test]
fn an_open_bead_that_is_no_work_is_refused_with_a_real_reason() {
    let pinned = BeadPatch { pinned: Some(true), ..BeadPatch::default() };
    let wisp = BeadPatch { ephemeral: Some(true), ..BeadPatch::default() };
    let books = BeadPatch { issue_type: Some("gate".into()), ..BeadPatch::default() };
    for patch in [pinned, wisp, books] {
        assert_ne!(claim_of(&patch), "gt-1 is not ready: it is open");
    }
}

#[test]
fn the_first_ready_bead_is_the_most_urgent_and_then_the_oldest() {
    let mut town = Town::new();
    town.import(
        r#"{"id":"gt-1","title":"a","priority":2,"created_at":"2025-01-02T00:00:00Z"}
{"id":"gt-2","title":"a","priority":2,"created_at":"2025-01-01T00:00:00Z"}
{"id":"gt-3","title":"a","priority":1,"created_at":"2025-01-03T00:00:00Z"}
{"id":"gt-4","title":"a","priority":0,"assignee":"bob"}"#,
    );
    let mut order = Vec::new();
    loop {
        let (won, events) = town.told(|store, stamp| store.claim_first_ready(&ReadyFilter::default(), "ada", stamp));
        let Some(id) = won else {
            assert_eq!(events, Vec::<String>::new());
            break;
        };
        assert_eq!(events, [format!(r#"bead.claimed {id} {{"assignee":"ada"}}"#)]);
        order.push(id);
    }
    assert_eq!(order, ["gt-3", "gt-2", "gt-1"]);
}

#[test]
fn a_claim_of_the_first_that_may_also_be_deferred_or_ephemeral_never_ends_in_a_refusal() {
    let mut town = Town::new();
    town.import(
        r#"{"id":"gt-1","title":"a","priority":0,"defer_until":"2027-01-01T00:00:00Z"}
{"id":"gt-2","title":"a","priority":0,"ephemeral":true}
{"id":"gt-3","title":"a","priority":3}"#,
    );
    let stamp = town.stamp();
    for (include_deferred, include_ephemeral) in [(true, false), (false, true)] {
        let filter = ReadyFilter { include_deferred, include_ephemeral, ..ReadyFilter::default() };
        let won = town.store.claim_first_ready(&filter, "ada", &stamp).expect("it is no refusal");
        assert_eq!(won.as_deref(), if include_deferred { Some("gt-3") } else { None }, "only what is ready is taken");
    }
}

#[test]
fn a_claim_and_the_change_that_comes_with_it_are_one_step() {
    let mut town = Town::with(&["gt-1"]);
    let own_parent =
        BeadPatch { claim_for: Some("ada".into()), parent: Some(Some("gt-1".into())), ..BeadPatch::default() };
    let refusal = town.refused(|store, stamp| store.update_bead("gt-1", &own_parent, stamp));
    assert_eq!(refusal, "gt-1 cannot depend on itself");
    let urgent = BeadPatch { claim_for: Some("ada".into()), priority: Some(0), ..BeadPatch::default() };
    let (_, events) = town.told(|store, stamp| store.update_bead("gt-1", &urgent, stamp));
    assert_eq!(events, [r#"bead.claimed gt-1 {"assignee":"ada"}"#, r#"bead.updated gt-1 {"priority":0}"#]);
}
