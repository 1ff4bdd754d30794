//! Deferrals: a bead's own, its parent's, and how they end.

use gt_store::ReadyFilter;

use crate::town::{Town, file, owned};

fn town() -> Town {
    let mut town = Town::new();
    town.import(&file(&["gt-0", "gt-1 > gt-0:parent-child", "gt-2 > gt-1:parent-child"]));
    town
}

fn with_deferred() -> ReadyFilter {
    ReadyFilter { include_deferred: true, ..ReadyFilter::default() }
}

#[test]
fn a_deferred_bead_is_ready_only_when_asked_for() {
    let mut town = town();
    town.defer("gt-2", Some(60));
    assert_eq!((town.ready(), town.blocked()), (owned(&["gt-0", "gt-1"]), Vec::new()));
    assert_eq!(town.ready_with(&with_deferred()), ["gt-0", "gt-1", "gt-2"]);
    town.defer("gt-2", None);
    assert_eq!(town.ready(), ["gt-0", "gt-1", "gt-2"]);
}

#[test]
fn a_deferral_holds_the_children_but_not_their_children() {
    let mut town = town();
    town.defer("gt-0", Some(60));
    assert_eq!(town.ready(), ["gt-2"]);
    town.unlink("gt-1", "gt-0");
    assert_eq!(town.ready(), ["gt-1", "gt-2"]);
    town.link("gt-1", "gt-0", "parent-child");
    assert_eq!(town.ready(), ["gt-2"]);
}

#[test]
fn a_deferral_runs_out_without_any_write() {
    let mut town = town();
    town.defer("gt-0", Some(60));
    town.pass(59);
    assert_eq!(town.ready(), ["gt-2"]);
    town.pass(1);
    assert_eq!(town.ready(), ["gt-0", "gt-1", "gt-2"]);
    town.check();
}

#[test]
fn a_deferral_that_ran_out_stays_out_after_a_write() {
    let mut town = town();
    town.defer("gt-0", Some(60));
    town.pass(60);
    town.create("another", None);
    assert_eq!(town.ready().len(), 4);
    assert_eq!(town.ready_with(&with_deferred()).len(), 4);
}

#[test]
fn a_bead_waits_for_the_later_of_its_own_and_its_parents_deferral() {
    for (own, parents) in [(30, 90), (90, 30)] {
        let mut town = town();
        town.defer("gt-0", Some(parents));
        town.defer("gt-1", Some(own));
        town.pass(60);
        assert!(!town.ready().contains(&"gt-1".to_owned()), "{own} {parents}");
        town.pass(30);
        assert!(town.ready().contains(&"gt-1".to_owned()), "{own} {parents}");
    }
}

#[test]
fn a_bead_that_slept_can_be_claimed_the_moment_it_wakes() {
    let mut town = town();
    town.defer("gt-2", Some(60));
    let refusal = town.refused(|store, stamp| store.claim_bead("gt-2", "ada", stamp));
    assert_eq!(refusal, "gt-2 is not ready: it is deferred");
    town.pass(60);
    let (claimed, _) = town.told(|store, stamp| store.claim_bead("gt-2", "ada", stamp));
    assert!(claimed);
}

#[test]
fn more_sleepers_than_one_write_wakes_are_ready_all_the_same() {
    const N: usize = 1_100;
    let mut town = Town::new();
    let line = |n| format!(r#"{{"id":"gt-{n}","title":"a","defer_until":"2026-01-01T00:01:00Z"}}"#);
    town.import(&(0..N).map(line).collect::<Vec<_>>().join("\n"));
    assert_eq!(town.ready().len(), 0);
    town.pass(60);
    town.create("a write", None);
    assert_eq!(town.ready().len(), N + 1);
    town.check();
}

/// The last days there are, a way to say "never", once came back from the store as long past.
#[test]
fn a_bead_put_off_for_ever_sleeps_on_after_a_write() {
    let mut town = Town::new();
    let line = r#"{"id":"gt-1","title":"a","defer_until":"9999-12-31T23:59:59Z"}"#;
    town.import(line);
    town.set_status("gt-1", "in_progress");
    town.set_status("gt-1", "open");
    assert_eq!((town.ready().len(), town.ready_with(&with_deferred()).len()), (0, 1));
    assert_eq!(town.import(line).unchanged + town.import(line).kept_newer.len(), 1);
    assert!(town.export().contains("9999-12-31T23:59:59Z"));
}
