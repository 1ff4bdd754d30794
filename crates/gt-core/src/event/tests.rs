//! The words of the event log are an interface: all of them, in one list.

use super::*;

const ALL: [EventType; 20] = [
    EventType::BeadCreated,
    EventType::BeadUpdated,
    EventType::BeadClaimed,
    EventType::BeadClosed,
    EventType::BeadReopened,
    EventType::BeadDeleted,
    EventType::BeadLinked,
    EventType::BeadUnlinked,
    EventType::BeadLabelled,
    EventType::BeadUnlabelled,
    EventType::BeadCommented,
    EventType::RigAdded,
    EventType::RigRemoved,
    EventType::RigParked,
    EventType::RigUnparked,
    EventType::RigDocked,
    EventType::RigUndocked,
    EventType::ConfigChanged,
    EventType::TownCreated,
    EventType::ReadinessRepaired,
];

#[test]
fn the_words_of_all_events() {
    let words: Vec<&str> = ALL.into_iter().map(EventType::as_str).collect();
    insta::assert_snapshot!(words.join(" "), @"bead.created bead.updated bead.claimed bead.closed bead.reopened bead.deleted bead.linked bead.unlinked bead.labelled bead.unlabelled bead.commented rig.added rig.removed rig.parked rig.unparked rig.docked rig.undocked config.changed town.created readiness.repaired");
}

#[test]
fn every_event_is_a_noun_and_what_happened_to_it() {
    for kind in ALL {
        let (noun, verbed) = kind.as_str().split_once('.').expect("a dot");
        for word in [noun, verbed] {
            assert!(!word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()), "{}", kind.as_str());
        }
        assert!(verbed.ends_with("ed"), "{}", kind.as_str());
    }
}

#[test]
fn no_two_events_share_a_word() {
    let words: std::collections::BTreeSet<&str> = ALL.into_iter().map(EventType::as_str).collect();
    assert_eq!(words.len(), ALL.len());
}

#[test]
fn a_line_of_the_log_has_all_its_fields_and_its_time_in_utc() {
    let event = Event {
        seq: 7,
        ts: "2026-01-02T03:04:05.123456789+02:00".parse().unwrap(),
        kind: EventType::BeadClosed.as_str().to_owned(),
        actor: "ada".to_owned(),
        bead: Some("gt-1".to_owned()),
        run: None,
        data: serde_json::json!({ "reason": null }),
    };
    insta::assert_snapshot!(serde_json::to_string(&event).unwrap(), @r#"{"seq":7,"ts":"2026-01-02T01:04:05.123456Z","type":"bead.closed","actor":"ada","bead":"gt-1","run":null,"data":{"reason":null}}"#);
}
