//! Edge types, gates out of metadata, and wrapped targets.

use super::*;

fn check_type(word: &str, blocking: bool, touches: bool, known: bool) {
    let kind = EdgeType::parse(word);
    assert_eq!((kind.is_blocking(), kind.touches_readiness(), kind.is_known()), (blocking, touches, known), "{word}");
    assert_eq!(kind.as_str(), word);
    assert_eq!(kind.to_string(), word);
}

#[test]
fn four_types_block_and_parents_only_pass_it_on() {
    for word in ["blocks", "conditional-blocks", "waits-for", "merge-blocks"] {
        check_type(word, true, true, true);
    }
    check_type("parent-child", false, true, true);
}

#[test]
fn every_other_type_is_kept_and_never_blocks() {
    for word in KNOWN_OTHERS {
        check_type(word, false, false, true);
    }
    for word in ["parent_child", "blocked-by", "Blocks", "", "made up", "blöcke"] {
        check_type(word, false, false, false);
    }
}

fn check_gate(metadata: Option<&str>, gate: Gate) {
    let mut edge = Edge::new("gt-1", EdgeType::WaitsFor);
    if let Some(metadata) = metadata {
        edge.extra = Fields::parse(&format!(r#"{{"metadata":{metadata}}}"#)).unwrap();
    }
    assert_eq!(edge.gate(), gate, "{metadata:?}");
}

#[test]
fn the_gate_is_read_from_metadata_as_object_and_as_text() {
    check_gate(Some(r#"{"gate":"any-children"}"#), Gate::AnyChildren);
    check_gate(Some(r#"{"note":1,"gate":"any-children"}"#), Gate::AnyChildren);
    check_gate(Some(r#""{\"gate\":\"any-children\"}""#), Gate::AnyChildren);
    check_gate(Some(r#""{\"gate\": \"any\u002dchildren\"}""#), Gate::AnyChildren);
}

#[test]
fn without_a_readable_gate_all_children_count() {
    check_gate(None, Gate::AllChildren);
    for metadata in [
        "null",
        "{}",
        "[]",
        "3",
        r#""""#,
        r#""any-children""#,
        r#""{broken""#,
        r#"{"gate":"all-children"}"#,
        r#"{"gate":"Any-Children"}"#,
        r#"{"gate":true}"#,
        r#"{"gate":["any-children"]}"#,
        r#"{"metadata":{"gate":"any-children"}}"#,
    ] {
        check_gate(Some(metadata), Gate::AllChildren);
    }
}

#[test]
fn an_external_target_is_unwrapped_to_its_last_part() {
    for (spelling, id) in [
        ("gt-1", "gt-1"),
        ("external:beads:gt-1", "gt-1"),
        ("external:gt-1", "gt-1"),
        ("external:a:b:gt-1", "gt-1"),
        ("external:", "external:"),
        ("external:a:", "external:a:"),
        ("External:a:gt-1", "External:a:gt-1"),
        ("other:a:gt-1", "other:a:gt-1"),
        ("", ""),
    ] {
        assert_eq!(unwrap_target(spelling), id, "{spelling}");
    }
}
