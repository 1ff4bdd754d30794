//! The judge finds what was tampered with, and the repair mends it.

use gt_store::Store;

use crate::town::{Town, file};

/// A town in a file, spoilt by one statement of a stranger.
fn check(spoil: &str, wrong: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("town.db");
    let mut town = Town::on(Store::create(&path).expect("a store"));
    town.import(&file(&["gt-0", "gt-1 > gt-0:blocks", "gt-2 > gt-1:parent-child", "gt-3 > gt-1:waits-for"]));
    town.defer("gt-0", Some(60));
    let sound = (town.blocked(), town.ready());
    let stranger = rusqlite::Connection::open(&path).expect("a second connection");
    stranger.execute_batch(spoil).expect("the statement is fine");
    let found = town.store.inspect(town.now).expect("the inspection answers");
    let ids: Vec<&str> = found.disagreements.iter().map(|found| found.id.as_str()).collect();
    assert_eq!((ids.as_slice(), found.n_beads, found.damage.len()), (wrong, 4, 0), "{spoil}");
    assert!(found.disagreements.iter().all(|found| !found.stored.is_empty() && !found.computed.is_empty()));
    let (n_wrong, events) = town.told(Store::repair_readiness);
    assert_eq!(n_wrong, wrong.len(), "{spoil}");
    assert_eq!(events, [format!(r#"readiness.repaired - {{"beads":{}}}"#, wrong.len())]);
    assert_eq!((town.blocked(), town.ready()), sound, "{spoil}");
    assert_eq!(town.quiet(Store::repair_readiness), 0);
}

#[test]
fn every_maintained_column_is_judged_and_mended() {
    check("UPDATE bead SET holding = 0 WHERE id = 'gt-1'", &["gt-1"]);
    check("UPDATE bead SET holding = holding + 1", &["gt-0", "gt-1", "gt-2", "gt-3"]);
    check("UPDATE bead SET blocked_parents = 0 WHERE id = 'gt-2'", &["gt-2"]);
    check("UPDATE bead SET children_active = 0 WHERE id = 'gt-1'", &["gt-1"]);
    check("UPDATE bead SET children_total = 9 WHERE id = 'gt-2'", &["gt-2"]);
    check("UPDATE bead SET children_closed = 1 WHERE id = 'gt-1'", &["gt-1"]);
    check("UPDATE bead SET wake_at = NULL WHERE id = 'gt-0'", &["gt-0"]);
    check("UPDATE bead SET standing = 'ready' WHERE id = 'gt-2'", &["gt-2"]);
    check("UPDATE bead SET standing = NULL WHERE id = 'gt-0'", &["gt-0"]);
    check("UPDATE bead SET standing = 'nonsense' WHERE id = 'gt-3'", &["gt-3"]);
}

#[test]
fn a_status_that_was_changed_by_hand_is_noticed_wherever_it_matters() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("town.db");
    let mut town = Town::on(Store::create(&path).expect("a store"));
    town.import(&file(&["gt-0", "gt-1 > gt-0:blocks"]));
    let stranger = rusqlite::Connection::open(&path).expect("a second connection");
    stranger.execute_batch("UPDATE bead SET status = 'closed' WHERE id = 'gt-0'").expect("the statement is fine");
    let (n_wrong, _) = town.told(Store::repair_readiness);
    assert_eq!((n_wrong, town.ready()), (2, vec!["gt-1".to_owned()]));
}
