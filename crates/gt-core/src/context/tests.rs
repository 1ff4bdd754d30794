//! Tests of sling contexts as data.

use super::*;

fn fields() -> SlingFields {
    SlingFields {
        version: VERSION,
        work_bead_id: "gt-abc".to_owned(),
        target_rig: "gastown".to_owned(),
        formula: Some("mol-polecat-work".to_owned()),
        vars: Some("a=1\n\n  b=2 ".to_owned()),
        enqueued_at: "2026-02-22T10:00:00Z".to_owned(),
        convoy: Some("hq-cv-ab12c".to_owned()),
        dispatch_failures: 1,
        last_failure: Some("no room".to_owned()),
        ..SlingFields::default()
    }
}

#[test]
fn absent_fields_are_not_written() {
    insta::assert_snapshot!(json(&fields()), @r#"{"version":1,"work_bead_id":"gt-abc","target_rig":"gastown","formula":"mol-polecat-work","vars":"a=1\n\n  b=2 ","enqueued_at":"2026-02-22T10:00:00Z","convoy":"hq-cv-ab12c","dispatch_failures":1,"last_failure":"no room"}"#);
    assert_eq!(parse(&json(&fields())), Ok(fields()));
}

#[test]
fn a_context_that_nobody_can_use_says_why() {
    let bad = [
        ("{", "it cannot be read"),
        (
            r#"{"version":2,"work_bead_id":"a","target_rig":"r","enqueued_at":"2026-02-22T10:00:00Z"}"#,
            "its version is 2",
        ),
        (r#"{"version":1,"target_rig":"r","enqueued_at":"2026-02-22T10:00:00Z"}"#, "it names no bead"),
        (r#"{"version":1,"work_bead_id":"a","target_rig":"r","enqueued_at":"soon"}"#, "it does not say when"),
    ];
    for (text, why) in bad {
        let said = parse(text).expect_err(text);
        assert!(said.starts_with(why), "{said}");
    }
}

#[test]
fn variables_are_lines_without_blanks() {
    assert_eq!(split_vars("a=1\n\n  b=2 \n").collect::<Vec<_>>(), ["a=1", "b=2"]);
}

#[test]
fn it_shows_as_an_ephemeral_bead_that_tracks_its_work() {
    let fields = fields();
    let bead = ContextBead {
        id: "gt-wisp-1",
        work_title: "Fix it",
        state: ContextState::Open,
        fields: &fields,
        enqueued_at: "2026-02-22T10:00:00Z".parse().unwrap(),
        closed_at: None,
        close_reason: None,
    }
    .to_bead();
    assert_eq!(bead.title, "sling-context: Fix it");
    assert!(bead.is_wisp());
    assert_eq!(bead.labels, [LABEL]);
    assert_eq!((bead.edges[0].target.as_str(), bead.edges[0].kind.to_string().as_str()), ("gt-abc", "tracks"));
    assert_eq!(bead.body.text("description").as_deref(), Some(json(&fields).as_str()));
}
