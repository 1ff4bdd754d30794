//! Making and changing beads: each verb with its event, its refusals, and nothing besides.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::status::Status;
use gt_store::{BeadPatch, NewBead};

use crate::town::{Town, file};

fn new(title: &str, parent: Option<&str>, edges: &[(&str, &str)]) -> NewBead {
    let mut bead = Bead::new("ignored", title);
    bead.edges = edges.iter().map(|(target, kind)| Edge::new(*target, EdgeType::parse(kind))).collect();
    NewBead { prefix: "gt".into(), parent: parent.map(Into::into), bead }
}

#[test]
fn a_new_bead_gets_an_id_its_times_and_its_maker() {
    let mut town = Town::new();
    let (id, events) = town.told(|store, stamp| store.create_bead(&new("a", None, &[]), stamp));
    assert!(id.starts_with("gt-") && id.len() == 7, "{id}");
    assert_eq!(events, [format!(r#"bead.created {id} {{"priority":2,"title":"a","type":"task"}}"#)]);
    let bead = town.store.bead(&id).expect("it is there").bead;
    assert_eq!((bead.created_at, bead.updated_at), (Some(town.now), Some(town.now)));
    assert_eq!(bead.body.text("created_by").as_deref(), Some("tester"));
    assert_eq!(town.ready(), [id]);
}

#[test]
fn the_same_title_at_the_same_time_gives_another_id() {
    let mut town = Town::new();
    let ids: std::collections::BTreeSet<String> = (0..12).map(|_| town.create("a", None)).collect();
    assert_eq!(ids.len(), 12);
    assert!(ids.iter().any(|id| id.len() == 8), "after ten collisions the id is longer: {ids:?}");
}

#[test]
fn children_are_numbered_below_their_parent_down_to_depth_three() {
    let mut town = Town::with(&["gt-1"]);
    assert_eq!(town.create("a", Some("gt-1")), "gt-1.1");
    assert_eq!(town.create("b", Some("gt-1")), "gt-1.2");
    town.delete("gt-1.2");
    assert_eq!(town.create("c", Some("gt-1")), "gt-1.3", "the number of a deleted bead is not used again");
    assert_eq!(town.create("d", Some("gt-1.1")), "gt-1.1.1");
    assert_eq!(town.create("e", Some("gt-1.1.1")), "gt-1.1.1.1");
    let deep = town.create("f", Some("gt-1.1.1.1"));
    assert!(!deep.contains('.'), "{deep}");
    let parent = town.store.bead(&deep).expect("it is there").bead.edges[0].target.clone();
    assert_eq!(parent, "gt-1.1.1.1");
}

#[test]
fn a_new_bead_may_depend_on_others_from_the_start() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    let bead = new("a", Some("gt-1"), &[("gt-2", "blocks"), ("gt-1", "tracks")]);
    let (id, _) = town.told(|store, stamp| store.create_bead(&bead, stamp));
    assert_eq!(town.blocked(), std::slice::from_ref(&id));
    let view = town.store.bead(&id).expect("it is there");
    assert_eq!((view.blocked_by, view.bead.edges.len()), (vec!["gt-2".to_owned()], 3));
    assert_eq!(town.close("gt-2"), [id]);
}

#[test]
fn a_bead_that_cannot_be_made_leaves_nothing_behind() {
    let mut town = Town::with(&["gt-12", "gt-2"]);
    let mut check = |bead: &NewBead, wanted: &str| {
        assert_eq!(town.refused(|store, stamp| store.create_bead(bead, stamp)), wanted);
    };
    check(&new("", None, &[]), "the title is empty");
    check(&new("a\nb", None, &[]), "the title holds the control character U+000A at position 2");
    check(&new("a", Some("gt-13"), &[]), "there is no bead `gt-13`; near: gt-12");
    check(&new("a", None, &[("gt-2", "blocks"), ("far", "blocks")]), "there is no bead `far`");
}

/// What the bead would wait for waits, by the parent, for the bead.
#[test]
fn a_bead_is_not_made_into_a_cycle() {
    let mut town = Town::with(&["gt-1"]);
    town.import(&file(&["gt-2 > gt-1:waits-for"]));
    let refusal =
        town.refused(|store, stamp| store.create_bead(&new("a", Some("gt-1"), &[("gt-1", "waits-for")]), stamp));
    assert!(refusal.starts_with("this would close a cycle: "), "{refusal}");
    let refusal = town.refused(|store, stamp| store.create_bead(&new("a", Some("gt-1"), &[("gt-2", "blocks")]), stamp));
    assert!(refusal.starts_with("this would close a cycle: "), "{refusal}");
}

/// The field of the patch, and what the event says of it.
fn check_update(patch: &BeadPatch, wanted: &str) {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    town.pass(5);
    let (changed, events) = town.told(|store, stamp| store.update_bead("gt-1", patch, stamp));
    assert_eq!(events, [wanted.to_owned()]);
    assert_eq!(changed.beads, ["gt-1"]);
    assert_eq!(town.store.bead("gt-1").expect("it is there").bead.updated_at, Some(town.now));
    town.pass(5);
    let again = town.quiet(|store, stamp| store.update_bead("gt-1", patch, stamp));
    assert_eq!(again, gt_store::Changed::default(), "the same change again is none");
}

#[test]
fn every_field_of_a_bead_can_be_changed_and_the_event_says_which() {
    let none = BeadPatch::default;
    check_update(&BeadPatch { title: Some("b".into()), ..none() }, r#"bead.updated gt-1 {"title":"b"}"#);
    check_update(&BeadPatch { priority: Some(0), ..none() }, r#"bead.updated gt-1 {"priority":0}"#);
    check_update(&BeadPatch { issue_type: Some("bug".into()), ..none() }, r#"bead.updated gt-1 {"issue_type":"bug"}"#);
    check_update(
        &BeadPatch { assignee: Some(Some("ada".into())), ..none() },
        r#"bead.updated gt-1 {"assignee":"ada"}"#,
    );
    check_update(&BeadPatch { rig: Some(Some("r".into())), ..none() }, r#"bead.updated gt-1 {"rig":"r"}"#);
    check_update(&BeadPatch { pinned: Some(true), ..none() }, r#"bead.updated gt-1 {"pinned":true}"#);
    check_update(&BeadPatch { ephemeral: Some(true), ..none() }, r#"bead.updated gt-1 {"ephemeral":true}"#);
    check_update(&BeadPatch { parent: Some(Some("gt-2".into())), ..none() }, r#"bead.updated gt-1 {"parent":"gt-2"}"#);
    check_update(
        &BeadPatch { texts: vec![("notes", Some("n".into()))], ..none() },
        r#"bead.updated gt-1 {"notes":"n"}"#,
    );
    check_update(
        &BeadPatch { add_labels: vec!["release".into()], ..none() },
        r#"bead.labelled gt-1 {"label":"release"}"#,
    );
    let until = Some(Some("2026-02-01T00:00:00Z".parse().expect("a time")));
    check_update(
        &BeadPatch { defer_until: until, ..none() },
        r#"bead.updated gt-1 {"defer_until":"2026-02-01T00:00:00Z"}"#,
    );
    check_update(
        &BeadPatch { status: Some(Status::InProgress), priority: Some(1), ..none() },
        r#"bead.updated gt-1 {"priority":1,"started_at":"2026-01-01T00:00:05Z","status":"in_progress"}"#,
    );
    check_update(&BeadPatch { status: Some(Status::Closed), ..none() }, r#"bead.closed gt-1 {"status":"closed"}"#);
}

#[test]
fn an_update_that_says_nothing_does_nothing() {
    let mut town = Town::with(&["gt-1"]);
    town.pass(5);
    let nothing = BeadPatch { parent: Some(None), assignee: Some(None), pinned: Some(false), ..BeadPatch::default() };
    for patch in [BeadPatch::default(), nothing] {
        town.quiet(|store, stamp| store.update_bead("gt-1", &patch, stamp));
    }
}

#[test]
fn an_update_that_opens_a_bead_again_is_told_as_such() {
    let mut town = Town::with(&["gt-1"]);
    town.close("gt-1");
    let patch = BeadPatch { status: Some(Status::Open), ..BeadPatch::default() };
    let (_, events) = town.told(|store, stamp| store.update_bead("gt-1", &patch, stamp));
    assert_eq!(events, [r#"bead.reopened gt-1 {"status":"open"}"#]);
}

#[test]
fn an_update_says_what_became_ready_by_it() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2 > gt-1:blocks"]));
    let patch = BeadPatch { status: Some(Status::Closed), ..BeadPatch::default() };
    let (changed, _) = town.told(|store, stamp| store.update_bead("gt-1", &patch, stamp));
    assert_eq!(changed.became_ready, ["gt-2"]);
}

#[test]
fn a_bead_moves_to_another_parent_and_to_none() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2", "gt-3 > gt-1:parent-child"]));
    let mut parents = |parent: Option<&str>| {
        let patch = BeadPatch { parent: Some(parent.map(Into::into)), ..BeadPatch::default() };
        town.patch("gt-3", &patch).expect("it moves");
        let edges = town.store.bead("gt-3").expect("it is there").bead.edges;
        edges.into_iter().map(|edge| edge.target).collect::<Vec<_>>()
    };
    assert_eq!(parents(Some("gt-2")), ["gt-2"]);
    assert_eq!(parents(None), Vec::<String>::new());
    assert_eq!(parents(Some("gt-1")), ["gt-1"]);
}

#[test]
fn an_update_that_cannot_be_is_refused_whole() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2 > gt-1:parent-child"]));
    let mut check = |id: &str, patch: BeadPatch, wanted: &str| {
        let patch = BeadPatch { priority: Some(4), ..patch };
        assert_eq!(town.refused(|store, stamp| store.update_bead(id, &patch, stamp)), wanted);
    };
    let parent = |id: &str| BeadPatch { parent: Some(Some(id.into())), ..BeadPatch::default() };
    check("gt-1", BeadPatch { title: Some(" ".into()), ..BeadPatch::default() }, "the title is empty");
    check("gt-3", BeadPatch::default(), "there is no bead `gt-3`; near: gt-1, gt-2");
    check("gt-2", parent("gone"), "there is no bead `gone`");
    check("gt-1", parent("gt-1"), "gt-1 cannot depend on itself");
    check("gt-1", parent("gt-2"), "this would close a cycle: gt-1 → gt-2 → gt-1");
}

#[test]
fn labels_come_and_go_with_an_event_each() {
    let mut town = Town::with(&["gt-1"]);
    let words = |words: &[&str]| crate::town::owned(words);
    let (changed, events) = town.told(|store, stamp| store.relabel("gt-1", &words(&["b", "a"]), &[], stamp));
    assert!(changed);
    assert_eq!(events, [r#"bead.labelled gt-1 {"label":"b"}"#, r#"bead.labelled gt-1 {"label":"a"}"#]);
    assert!(!town.quiet(|store, stamp| store.relabel("gt-1", &words(&["a"]), &words(&["c"]), stamp)));
    let (_, events) = town.told(|store, stamp| store.relabel("gt-1", &[], &words(&["b"]), stamp));
    assert_eq!(events, [r#"bead.unlabelled gt-1 {"label":"b"}"#]);
    assert_eq!(town.store.bead("gt-1").expect("it is there").bead.labels, ["a"]);
    let refusal = town.refused(|store, stamp| store.relabel("gt-1", &words(&["ok", " "]), &[], stamp));
    assert_eq!(refusal, "the label is empty");
    let refusal = town.refused(|store, stamp| store.relabel("gt-2", &words(&["ok"]), &[], stamp));
    assert_eq!(refusal, "there is no bead `gt-2`; near: gt-1");
}

#[test]
fn a_comment_is_kept_with_who_said_it_and_when() {
    let mut town = Town::with(&["gt-1"]);
    let (id, events) = town.told(|store, stamp| store.comment("gt-1", "one\ntwo", stamp));
    assert_eq!((id.as_str(), events), ("gt-1-c1", vec![r#"bead.commented gt-1 {"comment":"gt-1-c1"}"#.to_owned()]));
    let (second, _) = town.told(|store, stamp| store.comment("gt-1", "three", stamp));
    assert_eq!(second, "gt-1-c2");
    let comments = town.store.bead("gt-1").expect("it is there").bead.comments;
    assert_eq!(
        comments[0].to_json(),
        r#"{"author":"tester","created_at":"2026-01-01T00:00:00Z","id":"gt-1-c1","issue_id":"gt-1","text":"one\ntwo"}"#
    );
    let refusal = town.refused(|store, stamp| store.comment("gt-1", "\u{1b}[2J", stamp));
    assert_eq!(refusal, "the comment holds the control character U+001B at position 1");
    assert_eq!(town.refused(|store, stamp| store.comment("gt-9", "x", stamp)), "there is no bead `gt-9`; near: gt-1");
}
