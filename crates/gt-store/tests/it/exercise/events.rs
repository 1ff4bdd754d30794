//! The log: numbered, read in pieces, and never cut before a reader has come by. // SPEC B7

use gt_core::event::EventType;
use jiff::Timestamp;

use crate::town::Town;

fn seqs(town: &mut Town, since: i64, limit: usize) -> Vec<i64> {
    let events = town.store.events(since, limit).expect("the log answers");
    events.into_iter().map(|event| event.seq).collect()
}

/// A town with five events, ten seconds apart.
fn five() -> Town {
    let mut town = Town::new();
    for _ in 0..5 {
        town.create("a", None);
        town.pass(10);
    }
    town
}

#[test]
fn events_are_numbered_from_one_and_read_from_any_number() {
    let mut town = five();
    assert_eq!(seqs(&mut town, 0, 100), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&mut town, 3, 100), [4, 5]);
    assert_eq!(seqs(&mut town, 1, 2), [2, 3]);
    assert_eq!(seqs(&mut town, 5, 100), Vec::<i64>::new());
    assert_eq!(seqs(&mut town, -7, 1), [1]);
    assert_eq!(town.store.last_event().expect("the log answers"), 5);
    assert_eq!(Town::new().store.last_event().expect("the log answers"), 0);
}

#[test]
fn what_happened_outside_the_beads_is_recorded_too() {
    let mut town = Town::new();
    let data = serde_json::json!({ "key": "lanes.main" });
    let ((), events) = town.told(|store, stamp| store.record(EventType::ConfigChanged, &data, stamp));
    assert_eq!(events, [r#"config.changed - {"key":"lanes.main"}"#]);
}

/// How many go before so many seconds, with these readers.
fn check_prune(before: i64, readers: &[(&str, i64)], wanted: usize) {
    let mut town = five();
    let stamp = town.stamp();
    for (name, seq) in readers {
        town.store.mark_read(name, *seq, &stamp).expect("it is noted");
    }
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let before = start + jiff::SignedDuration::from_secs(before);
    assert_eq!(town.store.prunable_events(before).expect("the log answers"), wanted, "{readers:?}");
    assert_eq!(town.store.prune_events(before, &stamp).expect("it is cut"), wanted, "{readers:?}");
    let left: Vec<i64> = (wanted as i64 + 1..=5).collect();
    assert_eq!(seqs(&mut town, 0, 100), left);
    assert_eq!(town.store.prune_events(before, &stamp).expect("it is cut"), 0, "twice is once");
    town.create("later", None);
    assert_eq!(town.store.last_event().expect("the log answers"), 6, "numbers are never used again");
}

#[test]
fn old_events_go_and_unread_ones_never() {
    check_prune(0, &[], 0);
    check_prune(11, &[], 2);
    check_prune(10, &[], 1);
    check_prune(1_000, &[], 4); // the newest stays
    check_prune(1_000, &[("convoys", 3)], 3);
    check_prune(1_000, &[("convoys", 3), ("slow", 1)], 1);
    check_prune(1_000, &[("new", 0)], 0);
    check_prune(11, &[("convoys", 5)], 2);
}

#[test]
fn a_reader_never_goes_back() {
    check_prune(1_000, &[("convoys", 4), ("convoys", 2)], 4);
}

#[test]
fn a_clock_that_went_back_prunes_nothing_after_the_first_young_event() {
    let mut town = Town::new();
    town.pass(1_000);
    town.create("young", None);
    town.pass(-1_000);
    town.create("old by its time", None);
    let stamp = town.stamp();
    let before = town.now + jiff::SignedDuration::from_secs(500);
    assert_eq!(town.store.prune_events(before, &stamp).expect("it is cut"), 0);
}
