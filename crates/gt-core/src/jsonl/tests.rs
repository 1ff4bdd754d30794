//! Lines in, lines and rows out: nothing is lost, and what is bad is named.

mod bad;
mod round_trip;
mod row;

use super::*;

/// The bead of a good line.
fn bead(line: &str) -> Bead {
    match parse_line(line) {
        Ok(Line::Bead { bead, .. }) => *bead,
        other => panic!("{other:?} for {line}"),
    }
}

#[test]
fn a_bare_line_is_an_open_bead_of_middle_priority() {
    assert_eq!(bead(r#"{"id":"gt-1"}"#), Bead::new("gt-1", ""));
    assert_eq!(bead(r#" { "id" : "gt-1", "title": "a" } "#), Bead::new("gt-1", "a"));
}

#[test]
fn an_object_without_an_id_is_no_bead() {
    for line in ["{}", r#"{"title":"a"}"#, r#"{"schema_version":1,"memory":"x"}"#] {
        assert_eq!(parse_line(line), Ok(Line::NoBead), "{line}");
    }
}

#[test]
fn the_fields_that_decide_something_are_read() {
    let bead = bead(
        r#"{"id":"gt-1","title":"a","status":"hooked","priority":0,"issue_type":"bug","assignee":"ada",
        "created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-02T00:00:00Z","closed_at":"2026-01-03T00:00:00Z",
        "defer_until":"2026-01-04T00:00:00Z","labels":["x","y"],"comments":[{"id":1,"text":"hi"}],"owner":"bob"}"#,
    );
    let day = |n: u32| Some(format!("2026-01-0{n}T00:00:00Z").parse::<Timestamp>().unwrap());
    assert_eq!((bead.status, bead.priority), (Status::Hooked, 0));
    assert_eq!((bead.issue_type.as_deref(), bead.assignee.as_deref()), (Some("bug"), Some("ada")));
    assert_eq!([bead.created_at, bead.updated_at, bead.closed_at, bead.defer_until], [day(1), day(2), day(3), day(4)]);
    assert_eq!(bead.labels, ["x", "y"]);
    assert_eq!(bead.comments[0].to_json(), r#"{"id":1,"text":"hi"}"#);
    assert_eq!(bead.body.to_json(), r#"{"owner":"bob"}"#);
}

fn check_edge(dependency: &str, target: &str, kind: &str, extra: &str) {
    let bead = bead(&format!(r#"{{"id":"gt-1","dependencies":[{dependency}]}}"#));
    let [edge] = bead.edges.as_slice() else { panic!("one edge is expected of {dependency}") };
    let found = (edge.target.as_str(), edge.kind.as_str(), edge.extra.to_json());
    assert_eq!(found, (target, kind, extra.to_owned()), "{dependency}");
}

#[test]
fn a_dependency_is_read_with_all_it_carries() {
    check_edge(r#"{"issue_id":"gt-1","depends_on_id":"gt-2","type":"blocks"}"#, "gt-2", "blocks", "{}");
    check_edge(r#"{"depends_on_id":"gt-2"}"#, "gt-2", "blocks", "{}");
    check_edge(r#"{"depends_on_id":"gt-2","type":""}"#, "gt-2", "blocks", "{}");
    check_edge(r#"{"depends_on_id":"gt-2","type":"made up"}"#, "gt-2", "made up", "{}");
    check_edge(
        r#"{"issue_id":"gt-9","depends_on_id":"external:x:gt-2","type":"tracks","metadata":"{}","n":1e400}"#,
        "gt-2",
        "tracks",
        r#"{"depends_on_id":"external:x:gt-2","issue_id":"gt-9","metadata":"{}","n":1e400}"#,
    );
}

#[test]
fn a_dependency_without_a_target_is_counted_and_left_out() {
    let line = r#"{"id":"gt-1","dependencies":["gt-9",7,{},{"depends_on_id":""},{"depends_on_id":3},{"depends_on_id":"gt-2"}]}"#;
    let Ok(Line::Bead { bead, n_bad_edges }) = parse_line(line) else { panic!("the line is good") };
    assert_eq!((bead.edges.len(), n_bad_edges), (1, 5));
}

#[test]
fn a_changed_time_is_written_anew_and_an_unchanged_one_as_it_was_spelled() {
    let line = r#"{"id":"gt-1","title":"","status":"closed","priority":2,"closed_at":"2026-01-01T02:00:00+02:00"}"#;
    let mut bead = bead(line);
    assert_eq!(to_line(&bead), line);
    bead.set_status(Status::Open, Timestamp::UNIX_EPOCH);
    assert_eq!(to_line(&bead), r#"{"id":"gt-1","title":"","status":"open","priority":2}"#);
    bead.set_status(Status::Closed, Timestamp::UNIX_EPOCH);
    let closed_anew = r#"{"id":"gt-1","title":"","status":"closed","priority":2,"closed_at":"1970-01-01T00:00:00Z"}"#;
    assert_eq!(to_line(&bead), closed_anew);
}
