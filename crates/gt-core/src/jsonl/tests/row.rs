//! The row of `--json`: every known field, absent ones as null or [], times in UTC.

use super::*;

fn row(bead: &Bead, extras: &RowExtras<'_>) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(to_row(bead, extras).get()).unwrap()
}

#[test]
fn the_row_of_a_bare_bead_has_every_known_field() {
    let row = to_row(&Bead::new("gt-1", "a"), &RowExtras::default());
    insta::assert_snapshot!(row.get().replace(",\"", ",\n\""));
}

#[test]
fn the_row_of_a_full_bead_shows_times_in_utc_and_unknown_fields_as_they_came() {
    let line = r#"{"id":"gt-1","title":"a","status":"hooked","priority":0,"issue_type":"bug","assignee":"ada",
"created_at":"2026-01-01T02:00:00.123456789+02:00","updated_at":"2026-01-02T00:00:00Z","closed_at":"nonsense",
"defer_until":null,"started_at":"2026-01-01T01:00:00-01:00","due_at":"soon","pinned":true,"wisp":true,
"labels":["x"],"waiters":["bob"],"metadata":{"a":[1]},"zeta":123456789012345678901234567890,
"dependencies":[{"issue_id":"gt-9","depends_on_id":"external:x:gt-2","type":"parent-child","created_at":"2026-01-01T02:00:00+02:00","created_by":"bob","thread_id":"t"},{"depends_on_id":"gt-3"}],
"comments":[{"id":7,"author":"bob","text":"hi","created_at":"2026-01-01T02:00:00+02:00","mood":"good"},{"text":"bare"}]}"#;
    let extras = RowExtras { rig: Some("gasworks"), blocked_by: &["gt-3".to_owned()], n_dependents: 4 };
    let row = to_row(&bead(&line.replace('\n', "")), &extras);
    insta::assert_snapshot!(row.get().replace(",\"", ",\n\""));
}

#[test]
fn no_field_appears_twice_in_a_row_whatever_the_line_held() {
    let line = r#"{"id":"gt-1","rig":"mine","parent":"gt-8","blocked_by":["gt-7"],"dependency_count":9,
        "dependent_count":9,"comment_count":9,"dependencies":[{"depends_on_id":"gt-2","type":"parent-child"}]}"#;
    let extras = RowExtras { rig: Some("gasworks"), blocked_by: &[], n_dependents: 1 };
    let bead = bead(line);
    let text = to_row(&bead, &extras);
    for name in ["rig", "parent", "blocked_by", "dependency_count", "dependent_count", "comment_count"] {
        assert_eq!(text.get().matches(&format!("\"{name}\":")).count(), 1, "{name} in {}", text.get());
    }
    let row = row(&bead, &extras);
    assert_eq!((&row["rig"], &row["parent"]), (&"gasworks".into(), &"gt-2".into()));
    assert_eq!(
        (&row["dependency_count"], &row["dependent_count"], &row["comment_count"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!(row["blocked_by"], serde_json::json!([]));
    assert!(to_line(&bead).contains(r#""rig":"mine""#), "the line keeps what the file said");
}

#[test]
fn lists_and_flags_of_a_row_are_never_null() {
    let line = r#"{"id":"gt-1","waiters":null,"bonded_from":null,"labels":null,"dependencies":null,"comments":null,
        "pinned":null,"ephemeral":null}"#;
    let row = row(&bead(line), &RowExtras::default());
    for name in ["waiters", "bonded_from", "labels", "dependencies", "comments", "blocked_by"] {
        assert_eq!(row[name], serde_json::json!([]), "{name}");
    }
    for name in ["pinned", "ephemeral"] {
        assert_eq!(row[name], serde_json::json!(false), "{name}");
    }
}

#[test]
fn comments_are_shown_with_text_ids() {
    let bead = bead(r#"{"id":"gt-1","comments":[{"id":7,"text":"a"},{"id":"c-8"},{}]}"#);
    let ids: Vec<serde_json::Value> = comment_rows(&bead)
        .iter()
        .map(|row| serde_json::from_str::<serde_json::Value>(row.get()).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [serde_json::json!("7"), serde_json::json!("c-8"), serde_json::Value::Null]);
}
