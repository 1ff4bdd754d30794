//! A bead's flags, and the fields that follow its status.

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn with_body(status: &str, body: &str) -> Bead {
    Bead { status: Status::parse(status), body: Fields::parse(body).unwrap(), ..Bead::new("gt-1", "a") }
}

#[test]
fn a_bead_is_merged_when_it_is_closed_and_something_says_so() {
    let check = |status: &str, body: &str, merged: bool| {
        assert_eq!(with_body(status, body).is_merged(), merged, "{status} {body}");
    };
    check("closed", r#"{"close_reason":"Merged in mr-1"}"#, true);
    check("closed", r#"{"merged_at":"2026-01-01T00:00:00Z"}"#, true);
    check("closed", r#"{"merged_at":null}"#, false);
    check("closed", r#"{"close_reason":"merged in mr-1"}"#, false);
    check("closed", r#"{"close_reason":"done"}"#, false);
    check("closed", "{}", false);
    check("open", r#"{"merged_at":"2026-01-01T00:00:00Z"}"#, false);
    check("pinned", r#"{"close_reason":"Merged in mr-1"}"#, false);
}

#[test]
fn a_flag_is_on_only_when_it_is_true() {
    for (body, pinned, wisp) in [
        ("{}", false, false),
        (r#"{"pinned":true}"#, true, false),
        (r#"{"pinned":false,"ephemeral":null}"#, false, false),
        (r#"{"ephemeral":true}"#, false, true),
        (r#"{"wisp":true}"#, false, true),
        (r#"{"pinned":"true","wisp":1}"#, false, false),
    ] {
        let bead = with_body("open", body);
        assert_eq!((bead.is_pinned(), bead.is_wisp()), (pinned, wisp), "{body}");
    }
}

#[test]
fn a_flag_can_be_set_and_cleared_also_under_its_older_name() {
    for body in ["{}", r#"{"wisp":true}"#, r#"{"ephemeral":true}"#, r#"{"ephemeral":true,"wisp":true}"#] {
        let mut bead = with_body("open", body);
        bead.set_flag("ephemeral", true);
        assert!(bead.is_wisp(), "{body}");
        bead.set_flag("ephemeral", false);
        assert!(!bead.is_wisp(), "{body}");
    }
}

#[test]
fn closing_notes_the_time_and_reopening_forgets_all_about_it() {
    let mut bead = Bead::new("gt-1", "a");
    bead.set_status(Status::Closed, at("2026-01-01T00:00:00Z"));
    assert_eq!(bead.closed_at, Some(at("2026-01-01T00:00:00Z")));
    bead.set_status(Status::Closed, at("2026-01-02T00:00:00Z"));
    assert_eq!(bead.closed_at, Some(at("2026-01-01T00:00:00Z")), "closing again is no second closing");
    for field in ["close_reason", "closed_by_session", "merged_at", "notes"] {
        bead.body.put(field, "x");
    }
    bead.set_status(Status::Open, at("2026-01-03T00:00:00Z"));
    assert_eq!(bead.closed_at, None);
    assert_eq!(bead.body.to_json(), r#"{"notes":"x"}"#);
}

#[test]
fn the_first_start_of_work_is_remembered() {
    let mut bead = Bead::new("gt-1", "a");
    bead.set_status(Status::InProgress, at("2026-01-01T00:00:00Z"));
    bead.set_status(Status::Open, at("2026-01-02T00:00:00Z"));
    bead.set_status(Status::InProgress, at("2026-01-03T00:00:00Z"));
    assert_eq!(bead.body.text("started_at").as_deref(), Some("2026-01-01T00:00:00Z"));
}
