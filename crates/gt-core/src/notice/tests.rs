//! When tries come, and when they end.

use jiff::{SignedDuration, Timestamp};

use super::{is_news, next_try};

#[test]
fn tries_come_ever_later_and_end_after_a_day() {
    let at = Timestamp::from_second(1_800_000_000).expect("it is a time");
    let pause = |n_tries| next_try(at, n_tries, at).expect("it is news").duration_since(at).as_secs();
    assert_eq!([1, 2, 3, 4, 5, 6, 7, 1000].map(pause), [1, 4, 16, 64, 256, 600, 600, 600]);
    let (mut now, mut n_tries) = (at, 0);
    while let Some(next) = next_try(at, n_tries, now) {
        (now, n_tries) = (next, n_tries + 1);
    }
    let (day, ten) = (SignedDuration::from_hours(24), SignedDuration::from_mins(10));
    assert!(now.duration_since(at) < day && now.duration_since(at) >= day - ten, "{now}");
    assert!(n_tries < 200, "{n_tries}");
    assert!(is_news(at, at) && !is_news(at, at + day));
    assert!(is_news(at, at - day), "a clock that was set back makes nothing old");
}
