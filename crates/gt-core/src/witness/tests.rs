//! The ladder, rung by rung.

use jiff::{SignedDuration, Timestamp};

use super::{Silence, Step, step};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("it is a time")
}

/// Silent since then, reported then, interrupted then, and now.
type Case = (i64, Option<i64>, Option<i64>, i64);

#[test]
fn silence_is_reported_then_interrupted_then_stopped_and_a_sign_of_life_starts_over() {
    let span = SignedDuration::from_secs(60);
    let cases: [(Case, Step); 18] = [
        ((0, None, None, 0), Step::Wait(at(60))),
        ((0, None, None, 59), Step::Wait(at(60))),
        ((0, None, None, 60), Step::Report),
        ((0, None, None, 6000), Step::Report),
        ((0, Some(60), None, 60), Step::Wait(at(120))),
        ((0, Some(60), None, 119), Step::Wait(at(120))),
        ((0, Some(60), None, 120), Step::Interrupt),
        ((0, Some(60), Some(120), 120), Step::Wait(at(180))),
        ((0, Some(60), Some(120), 180), Step::Stop),
        // It printed something after it was reported.
        ((61, Some(60), None, 120), Step::Wait(at(121))),
        ((61, Some(60), None, 121), Step::Report),
        // What an interrupt makes it print is no sign of life; what it prints later is.
        ((122, Some(60), Some(120), 180), Step::Stop),
        ((123, Some(60), Some(120), 180), Step::Wait(at(183))),
        ((123, Some(60), Some(120), 183), Step::Report),
        // A clock that was set back makes nobody hurry; what was noted before it was does not count.
        ((500, None, None, 0), Step::Wait(at(560))),
        ((0, Some(500), None, 120), Step::Report),
        ((0, Some(60), Some(500), 120), Step::Report),
        ((100, Some(500), None, 120), Step::Wait(at(160))),
    ];
    for ((since, stalled, interrupted, now), wanted) in cases {
        let silence = Silence { since: at(since), stalled_at: stalled.map(at), interrupted_at: interrupted.map(at) };
        assert_eq!(step(silence, span, at(now)), wanted, "{since} {stalled:?} {interrupted:?} {now}");
    }
}

#[test]
fn a_span_beyond_all_time_is_never_over() {
    let silence = Silence { since: at(0), stalled_at: None, interrupted_at: None };
    assert_eq!(step(silence, SignedDuration::MAX, at(9)), Step::Wait(Timestamp::MAX));
}
