//! Lines that cannot be taken, each with the reason a person reads.

use super::*;

fn check(line: &str, wanted: &str) {
    match parse_line(line) {
        Err(reason) => assert_eq!(reason.to_string(), wanted, "{line:.100}"),
        Ok(taken) => panic!("{line:.100} was taken: {taken:?}"),
    }
}

#[test]
fn what_is_not_json_is_refused_with_the_column() {
    check("", "not valid JSON: EOF while parsing a value at column 0");
    check("{", "not valid JSON: EOF while parsing an object at column 1");
    check("{'id':1}", "not valid JSON: key must be a string at column 2");
    check(r#"{"id":"gt-1",}"#, "not valid JSON: trailing comma at column 14");
    check(r#"{"id":"gt-1"} {"id":"gt-2"}"#, "not valid JSON: trailing characters at column 15");
    check("<<<<<<< HEAD", "not valid JSON: expected value at column 1");
    check("\u{feff}{}", "not valid JSON: expected value at column 1");
}

/// The parser's reason quotes the line.
#[test]
fn a_reason_is_short_however_long_the_line_and_whatever_it_says() {
    let cut = format!("not valid JSON: invalid type: string \"{}… at column", "x".repeat(98));
    let reason = parse_line(&format!("\"{}\" x", "x".repeat(10_000))).unwrap_err().to_string();
    assert!(reason.starts_with(&cut), "{reason}");
    check(
        r#""a at line 7" x"#,
        "not valid JSON: invalid type: string \"a at line 7\", expected an object at column 13",
    );
}

#[test]
fn what_is_no_object_is_named() {
    for (line, found) in [
        ("[]", "list"),
        ("\"a\"", "text"),
        ("3", "number"),
        ("-3", "number"),
        ("true", "truth value"),
        ("null", "null"),
    ] {
        check(line, &format!("a JSON {found}, where an object is needed"));
    }
}

#[test]
fn a_bad_id_is_shown_without_harm() {
    let wanted = |shown: &str| format!("`{shown}` cannot be an id: it must be one word of at most 200 characters");
    check(r#"{"id":""}"#, &wanted(""));
    check(r#"{"id":"a b"}"#, &wanted("a b"));
    check(r#"{"id":"a\u001b[2J"}"#, &wanted("a\u{FFFD}[2J"));
    check(&format!(r#"{{"id":"{}"}}"#, "x".repeat(201)), &wanted(&"x".repeat(60)));
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_what_it_must_be() {
    for (field, value, wanted) in [
        ("id", "3", "a text"),
        ("id", "null", "a text"),
        ("title", "3", "a text"),
        ("title", r#""\ud800""#, "a text"),
        ("status", "[]", "a text"),
        ("issue_type", "{}", "a text"),
        ("assignee", "true", "a text"),
        ("priority", "\"high\"", "a whole number"),
        ("priority", "1.5", "a whole number"),
        ("priority", "1e400", "a whole number"),
        ("priority", "99999999999999999999", "a whole number"),
        ("labels", "\"a\"", "a list of texts"),
        ("labels", "[1]", "a list of texts"),
        ("comments", "{}", "a list of objects"),
        ("comments", "[\"a\"]", "a list of objects"),
    ] {
        let line = if field == "id" {
            format!(r#"{{"id":{value}}}"#)
        } else {
            format!(r#"{{"id":"gt-1","{field}":{value}}}"#)
        };
        check(&line, &format!("`{field}` must be {wanted}"));
    }
}

#[test]
fn a_title_over_the_limit_is_counted() {
    let line = |chars: usize| format!(r#"{{"id":"gt-1","title":"{}"}}"#, "ü".repeat(chars));
    assert!(parse_line(&line(500)).is_ok());
    check(&line(501), "the title of gt-1 has 501 characters; at most 500 fit");
}

#[test]
fn text_that_is_not_utf8_has_its_own_reason() {
    assert_eq!(BadLine::NotUtf8.to_string(), "not valid UTF-8");
}

#[test]
fn a_deep_line_costs_no_stack() {
    let deep = format!(r#"{{"id":"gt-1","x":{}1{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(to_line(&bead(&deep)).len(), deep.len() + r#","title":"","status":"open","priority":2"#.len());
}

/// Field by field into a sorted list, this would take minutes.
#[test]
fn a_wide_line_costs_no_more_than_its_length() {
    let fields: Vec<String> = (0..200_000).rev().map(|number| format!(r#""x{number:06}":1"#)).collect();
    let wide = bead(&format!(r#"{{"id":"gt-1",{}}}"#, fields.join(",")));
    let names: Vec<&str> = wide.body.iter().map(|(name, _)| name).collect();
    assert_eq!((names.len(), names[0], names[199_999]), (200_000, "x000000", "x199999"));
}
