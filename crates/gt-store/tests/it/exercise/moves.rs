//! Closing, reopening and deleting: all of a batch or none.

use crate::town::{Town, file, owned};

#[test]
fn a_close_tells_where_the_bead_came_from_and_why_it_went() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    let (done, events) = town.told(|store, stamp| store.close_beads(&owned(&["gt-1"]), Some("enough"), stamp));
    assert_eq!(done.beads, ["gt-1"]);
    assert_eq!(events, [r#"bead.closed gt-1 {"from":"open","reason":"enough","title":"gt-1","to":"closed"}"#]);
    let bead = town.store.bead("gt-1").expect("it is there").bead;
    assert_eq!((bead.closed_at, bead.body.text("close_reason").as_deref()), (Some(town.now), Some("enough")));
}

#[test]
fn closing_twice_is_closing_once() {
    let mut town = Town::with(&["gt-1"]);
    let (done, events) = town.told(|store, stamp| store.close_beads(&owned(&["gt-1", "gt-1"]), None, stamp));
    assert_eq!((done.beads.len(), events.len()), (1, 1));
    town.pass(5);
    let again = town.quiet(|store, stamp| store.close_beads(&owned(&["gt-1"]), Some("again"), stamp));
    assert_eq!(again, gt_store::Changed::default());
}

#[test]
fn a_batch_with_an_unknown_or_deleted_bead_closes_none() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2", "gt-9 > gt-1:blocks"]));
    town.delete("gt-2");
    let refusal = town.refused(|store, stamp| store.close_beads(&owned(&["gt-1", "gt-77"]), None, stamp));
    assert_eq!(refusal, "there is no bead `gt-77`");
    let refusal = town.refused(|store, stamp| store.close_beads(&owned(&["gt-1", "gt-2"]), None, stamp));
    assert_eq!(refusal, "gt-2 is deleted");
    assert_eq!(town.blocked(), ["gt-9"]);
}

#[test]
fn a_batch_says_once_what_it_made_ready_and_never_names_its_own() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2 > gt-1:blocks", "gt-3 > gt-1:blocks gt-2:blocks", "gt-4 > gt-2:parent-child"]));
    let (done, _) = town.told(|store, stamp| store.close_beads(&owned(&["gt-1", "gt-2"]), None, stamp));
    assert_eq!(done.became_ready, ["gt-3", "gt-4"]);
    assert_eq!(town.ready(), ["gt-3", "gt-4"]);
}

#[test]
fn reopening_forgets_the_close_and_frees_the_bead() {
    let mut town = Town::with(&["gt-1"]);
    town.told(|store, stamp| store.claim_bead("gt-1", "ada", stamp));
    town.close_because("gt-1", Some("Merged in mr-1"));
    let (done, events) = town.told(|store, stamp| store.reopen_beads(&owned(&["gt-1"]), stamp));
    assert_eq!(done.beads, ["gt-1"]);
    assert_eq!(events, [r#"bead.reopened gt-1 {"from":"closed","reason":null,"title":"gt-1","to":"open"}"#]);
    let bead = town.store.bead("gt-1").expect("it is there").bead;
    assert_eq!((bead.closed_at, bead.assignee.clone(), bead.is_merged()), (None, None, false));
    town.quiet(|store, stamp| store.reopen_beads(&owned(&["gt-1"]), stamp));
    assert_eq!(town.ready(), ["gt-1"]);
}

#[test]
fn a_deleted_bead_leaves_a_tombstone_that_can_be_lifted() {
    let mut town = Town::with(&["gt-1"]);
    let before = town.export();
    let (_, events) = town.told(|store, stamp| store.delete_beads(&owned(&["gt-1"]), Some("twin"), stamp));
    assert_eq!(events, [r#"bead.deleted gt-1 {"from":"open","reason":"twin","title":"gt-1","to":"tombstone"}"#]);
    let bead = town.store.bead("gt-1").expect("it is there").bead;
    assert_eq!(bead.body.text("delete_reason").as_deref(), Some("twin"));
    assert_eq!(bead.body.text("deleted_by").as_deref(), Some("tester"));
    assert_eq!(bead.body.text("deleted_at").as_deref(), Some("2026-01-01T00:00:00Z"));
    town.quiet(|store, stamp| store.delete_beads(&owned(&["gt-1"]), None, stamp));
    town.reopen("gt-1");
    let after = town.export();
    assert!(!after.contains("delete"), "{after} was {before}");
}

#[test]
fn an_unknown_bead_is_refused_by_every_move_and_changes_nothing_of_the_others() {
    let mut town = Town::with(&["gt-1"]);
    town.close("gt-1");
    let ids = owned(&["gt-1", "gt-2"]);
    let wanted = "there is no bead `gt-2`; near: gt-1";
    assert_eq!(town.refused(|store, stamp| store.reopen_beads(&ids, stamp)), wanted);
    assert_eq!(town.refused(|store, stamp| store.delete_beads(&ids, None, stamp)), wanted);
}

#[test]
fn a_hostile_id_in_a_refusal_is_shown_on_one_line_and_cut() {
    let mut town = Town::with(&["gt-1"]);
    let ids = [format!("\u{1b}[2J\n{}", "x".repeat(500))];
    let refusal = town.refused(|store, stamp| store.close_beads(&ids, None, stamp));
    assert!(!refusal.contains(['\u{1b}', '\n']) && refusal.chars().count() < 120, "{refusal:?}");
}

#[test]
fn near_matches_are_found_in_a_large_town_too() {
    let mut town = Town::new();
    let lines: Vec<String> = (0..12_000).map(|n| format!(r#"{{"id":"gt-c{n}","title":"n"}}"#)).collect();
    town.import(&lines.join("\n"));
    let refusal = town.refused(|store, stamp| store.close_beads(&owned(&["gt-c9999x"]), None, stamp));
    assert_eq!(refusal, "there is no bead `gt-c9999x`; near: gt-c9999");
}
