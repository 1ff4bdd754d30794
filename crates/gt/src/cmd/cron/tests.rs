//! How far off times are, in words.

use super::*;

#[test]
fn what_was_just_now_is_not_to_come() {
    let now: Timestamp = "2027-01-12T10:00:00Z".parse().expect("an instant");
    let off = |millis: i64| off_words(now + jiff::SignedDuration::from_millis(millis), now);
    assert_eq!([off(-400), off(0), off(400)], ["0s ago", "0s ago", "in 1s"]);
    assert_eq!([off(-61_000), off(7_500_000), off(-86_400_000)], ["1m 1s ago", "in 2h 5m", "1d ago"]);
}

#[test]
fn what_was_just_asked_for_is_read_back_as_it_was_asked_for() {
    let now: Timestamp = "2027-01-12T10:00:00Z".parse().expect("an instant");
    // A moment has passed since.
    let in_words = |seconds: i64| off_words(now + SignedDuration::from_millis(seconds * 1000 - 240), now);
    let spans = [1, 59, 60, 90, 300, 600, 3540, 3600, 5400, 7200, 86_340, 86_400, 90_000, 259_200];
    let words = ["1s", "59s", "1m", "1m 30s", "5m", "10m", "59m", "1h", "1h 30m", "2h", "23h 59m", "1d", "1d 1h", "3d"];
    assert_eq!(spans.map(in_words), words.map(|words| format!("in {words}")));
    assert_eq!([629, 631, 3569, 3571].map(in_words), ["in 10m", "in 11m", "in 59m", "in 1h"]);
}
