//! Tests of the times people type.

use jiff::tz::TimeZone;

use super::parse_in;

#[test]
fn times_people_type() {
    let now = "2026-01-01T12:00:00Z".parse().unwrap();
    let zone = TimeZone::fixed(jiff::tz::offset(1));
    let cases = [
        ("2h", Some("2026-01-01T14:00:00Z")),
        ("in 90m", Some("2026-01-01T13:30:00Z")),
        ("+3d", Some("2026-01-04T12:00:00Z")),
        ("2026-12-01", Some("2026-11-30T23:00:00Z")),
        ("2026-12-01T09:00", Some("2026-12-01T08:00:00Z")),
        ("2026-12-01T09:00:00-05:00", Some("2026-12-01T14:00:00Z")),
        ("soon", None),
        ("", None),
        ("9999999999999d", None),
    ];
    for (text, wanted) in cases {
        assert_eq!(parse_in(text, now, &zone).map(|at| at.to_string()).as_deref(), wanted, "{text:?}");
    }
}
