//! The last good config, and what was dropped lately.

use gt_store::{ChangedConfig, KeptConfig, NewConfig, SeenConfig, Via};
use jiff::SignedDuration;

use crate::town::Town;

fn new<'a>(digest: &'a str, after: i64, dropped: &'a [(String, String)]) -> NewConfig<'a> {
    NewConfig { digest, after, via: Via::File, dropped }
}

fn gates() -> Vec<(String, String)> {
    vec![("rigs.shop.gates".to_owned(), "[\"make\"]".to_owned())]
}

#[test]
fn only_the_first_of_two_takes_the_place_of_a_config() {
    let mut town = Town::new();
    assert_eq!((town.store.kept_config().unwrap(), town.store.config_version().unwrap()), (None, 0));
    let stamp = town.stamp();
    let kept = town.store.keep_config(&new("# a", 0, &[]), &stamp).unwrap();
    let first = KeptConfig { version: 1, digest: "# a".to_owned(), kept_at: stamp.now, seen: None };
    assert_eq!(kept, Some(first.clone()));
    assert_eq!(town.store.keep_config(&new("# b", 0, &[]), &stamp).unwrap(), None);
    assert_eq!(town.store.kept_config().unwrap(), Some(first));
    assert!(town.store.keep_config(&new("# b", 1, &[]), &stamp).unwrap().is_some());
    assert_eq!(town.store.config_version().unwrap(), 2);
    assert_eq!(town.store.last_event().unwrap(), 0, "a copy of a file is no news");
}

#[test]
fn an_edit_that_waits_is_remembered_until_another_config_is_kept() {
    let mut town = Town::new();
    let stamp = town.stamp();
    town.store.keep_config(&new("# a", 0, &[]), &stamp).unwrap();
    let seen = SeenConfig { digest: "# b".to_owned(), changed_at: Some(stamp.now), at: stamp.now };
    town.store.note_seen_config(0, &seen, &stamp).unwrap();
    assert_eq!(town.store.kept_config().unwrap().unwrap().seen, None, "that was about another config");
    town.store.note_seen_config(1, &seen, &stamp).unwrap();
    assert_eq!(town.store.kept_config().unwrap().unwrap().seen, Some(seen));
    town.store.keep_config(&new("# c", 1, &[]), &stamp).unwrap();
    assert_eq!(town.store.kept_config().unwrap().unwrap().seen, None);
}

#[test]
fn what_was_dropped_is_known_for_a_day() {
    let mut town = Town::new();
    let stamp = town.stamp();
    town.store.keep_config(&new("# a", 0, &[]), &stamp).unwrap();
    let (_, events) = town.told(|store, stamp| store.keep_config(&new("# b", 1, &gates()), stamp));
    assert_eq!(events, [r#"config.loosened - {"dropped":["rigs.shop.gates"]}"#]);
    let at = town.store.kept_config().unwrap().unwrap().kept_at;
    let day = SignedDuration::from_hours(24);
    let n_known = |town: &mut Town, later| town.store.dropped_limits(at + later).unwrap().len();
    assert_eq!(n_known(&mut town, SignedDuration::ZERO), 1);
    assert_eq!(n_known(&mut town, day - SignedDuration::from_secs(1)), 1);
    assert_eq!(n_known(&mut town, day), 0);
    let one = town.store.dropped_limits(at).unwrap().remove(0);
    assert_eq!((one.key.as_str(), one.was.as_str(), one.via, one.at), ("rigs.shop.gates", "[\"make\"]", Via::File, at));
}

#[test]
fn a_commands_edit_is_made_of_what_is_kept_and_recorded_once() {
    let mut town = Town::new();
    let stamp = town.stamp();
    town.store.keep_config(&new("# a", 0, &[]), &stamp).unwrap();
    let edit = |kept: Option<&KeptConfig>| {
        assert_eq!(kept.map(|kept| kept.digest.as_str()), Some("# a"));
        Some(ChangedConfig { digest: "# b".to_owned(), dropped: gates() })
    };
    let ((), events) = town.told(|store, stamp| store.change_config("rigs.shop.gates", edit, stamp));
    assert_eq!(events, [r#"config.changed - {"key":"rigs.shop.gates"}"#]);
    assert_eq!(town.store.kept_config().unwrap().unwrap().digest, "# b");
    assert_eq!(town.store.dropped_limits(stamp.now).unwrap()[0].via, Via::Command);
    town.told(|store, stamp| store.change_config("lanes.main", |_| None, stamp));
    assert_eq!(town.store.config_version().unwrap(), 2);
}
