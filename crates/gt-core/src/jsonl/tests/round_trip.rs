//! A line that comes in goes out again with every field it had.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const ODD_VALUES: [&str; 14] = [
    "1e400",
    "-0.0",
    "123456789012345678901234567890",
    "1.000000000000000000000000001",
    "null",
    "true",
    "\"\"",
    "\"\\u00fc \\ud83d\\ude80\"",
    "\"ü 🚀 \\\" \\\\ \\u0000\"",
    "[]",
    "[ 1,{ \"a\" : null } ]",
    "{}",
    "{\"b\":1,\"a\":{\"c\":[\"x\"]}}",
    "\"external:x:y\"",
];

const TIMES_AS_WRITTEN: [&str; 10] = [
    "\"2026-01-01T00:00:00Z\"",
    "\"2026-01-01T00:00:00+02:00\"",
    "\"2026-01-01T00:00:00.123456789-08:00\"",
    "\"2026-01-01T00:00:00.120Z\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"9999-12-31T23:59:59Z\"",
    "\"yesterday\"",
    "\"\"",
    "1767225600",
    "{\"seconds\":1}",
];

const TIME_FIELDS: [&str; 6] = ["created_at", "updated_at", "closed_at", "defer_until", "due_at", "started_at"];

fn pick(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    (0..values.len()).prop_map(|at| values[at].to_owned())
}

fn text() -> impl Strategy<Value = String> {
    "[a-zü🚀\"\\\\\n\t\u{1b} ]{1,8}".prop_map(|text| json_text(&text))
}

/// One dependency that names its target.
fn dependency() -> impl Strategy<Value = String> {
    let target = pick(&["\"gt-2\"", "\"gt-3.1\"", "\"external:x:gt-4\"", "\"fern 5\""]);
    let kind = pick(&["\"blocks\"", "\"waits-for\"", "\"parent-child\"", "\"parent_child\"", "\"made up\""]);
    let rest =
        proptest::collection::vec((pick(&["metadata", "created_at", "created_by", "x"]), pick(&ODD_VALUES)), 0..3);
    (target, kind, rest, pick(&["\"gt-1\"", "\"gt-9\""])).prop_map(|(target, kind, rest, source)| {
        let mut fields =
            vec![("depends_on_id".to_owned(), target), ("type".to_owned(), kind), ("issue_id".to_owned(), source)];
        fields.extend(rest);
        object(&fields)
    })
}

fn list_of(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::vec(item, 1..4).prop_map(|items| format!("[{}]", items.join(",")))
}

fn comment() -> impl Strategy<Value = String> {
    proptest::collection::vec((pick(&["id", "author", "text", "y"]), pick(&ODD_VALUES)), 0..4)
        .prop_map(|fields| object(&fields))
}

/// A field and its value as written in a file.
fn field() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        4 => (pick(&TIME_FIELDS), pick(&TIMES_AS_WRITTEN)),
        4 => (pick(&["description", "metadata", "pinned", "wisp", "rig", "zeta", "ö\\\"x", "schema_version"]), pick(&ODD_VALUES)),
        1 => text().prop_map(|text| ("title".to_owned(), text)),
        1 => pick(&["\"open\"", "\"closed\"", "\"in_review\"", "\" x\""]).prop_map(|word| ("status".to_owned(), word)),
        1 => pick(&["0", "4", "-1", "9007199254740993"]).prop_map(|n| ("priority".to_owned(), n)),
        1 => text().prop_map(|text| ("assignee".to_owned(), text)),
        1 => pick(&["\"bug\"", "\"made up\""]).prop_map(|word| ("issue_type".to_owned(), word)),
        1 => list_of(text()).prop_map(|list| ("labels".to_owned(), list)),
        1 => list_of(dependency()).prop_map(|list| ("dependencies".to_owned(), list)),
        1 => list_of(comment()).prop_map(|list| ("comments".to_owned(), list)),
    ]
}

/// An object with the fields in the order given; a name that comes twice stays twice.
fn object(fields: &[(String, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\" :{value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

fn some_line() -> impl Strategy<Value = String> {
    proptest::collection::vec(field(), 0..12).prop_map(|mut fields| {
        fields.insert(fields.len() / 2, ("id".to_owned(), "\"gt-1\"".to_owned()));
        object(&fields)
    })
}

/// The value without what an edge list may add or order anew.
fn fields_of(line: &str) -> Vec<(String, String)> {
    let fields: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
    fields.into_iter().map(|(name, raw)| (name, raw.get().to_owned())).collect()
}

fn normal(raw: &str) -> Result<Value, String> {
    serde_json::from_str(raw).map_err(|_| raw.to_owned())
}

/// Every field of the first is in the second with the same value.
fn check_kept(before: &str, after: &str) {
    let kept = fields_of(after);
    for (name, raw) in fields_of(before) {
        let found = kept.iter().find(|(other, _)| *other == name).map(|(_, raw)| raw.as_str());
        match name.as_str() {
            "dependencies" | "comments" => {
                let items = |raw: &str| serde_json::from_str::<Vec<Box<RawValue>>>(raw).unwrap();
                let (before, after) = (items(&raw), items(found.expect("the list is there")));
                assert_eq!(before.len(), after.len(), "{name}");
                before.iter().zip(&after).for_each(|(before, after)| check_kept(before.get(), after.get()));
            }
            _ => assert_eq!(found.map(normal), Some(normal(&raw)), "{name} of {before}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_of_a_line_is_lost_and_writing_it_again_changes_nothing(line in some_line()) {
        let first = bead(&line);
        let written = to_line(&first);
        check_kept(&line, &written);
        prop_assert!(!written.contains('\n'), "{}", written);
        let second = bead(&written);
        prop_assert_eq!(&second, &first);
        prop_assert_eq!(to_line(&second), written);
    }

    #[test]
    fn no_text_at_all_makes_the_reader_panic(text in "[{}\\[\\]\",:a-z0-9\\\\ ü-]{0,40}") {
        drop(parse_line(&text));
        drop(parse_line(&format!(r#"{{"id":"gt-1","title":{text}}}"#)));
    }
}

fn check_exact(line: &str) {
    assert_eq!(to_line(&bead(line)), line);
}

#[test]
fn a_line_in_our_order_comes_out_to_the_letter() {
    check_exact(r#"{"id":"gt-1","title":"a","status":"open","priority":2}"#);
    check_exact(
        r#"{"id":"gt-1","title":"a","status":"odd","priority":-7,"issue_type":"bug","assignee":"ada","created_at":"2026-01-01T00:00:00.000000001+01:00","defer_until":12,"n":1e400,"z":{"b": 1,"a":null},"labels":["y","x"],"dependencies":[{"issue_id":"gt-1","depends_on_id":"gt-2","type":"blocks","metadata":{}}],"comments":[{"text":"x"}]}"#,
    );
}

#[test]
fn of_a_field_given_twice_the_last_counts() {
    let bead = bead(r#"{"id":"gt-1","title":"a","x":1,"title":"b","x":2}"#);
    assert_eq!((bead.title.as_str(), bead.body.to_json()), ("b", r#"{"x":2}"#.to_owned()));
}
