//! How far off times are, in words.

use super::*;

#[test]
fn what_was_just_now_is_not_to_come() {
    let now: Timestamp = "2027-01-12T10:00:00Z".parse().expect("an instant");
    let off = |millis: i64| off_words(now + jiff::SignedDuration::from_millis(millis), now);
    assert_eq!([off(-400), off(0), off(400)], ["0s ago", "0s ago", "in 0s"]);
    assert_eq!([off(-61_000), off(7_500_000), off(-86_400_000)], ["1m ago", "in 2h 5m", "1d ago"]);
}
