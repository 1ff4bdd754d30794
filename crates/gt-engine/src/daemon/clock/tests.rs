//! How far a clock has jumped.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{GAP, Look};

fn look(second: i64, uptime: u64) -> Look {
    Look { now: Timestamp::from_second(second).expect("within bounds"), uptime: Duration::from_secs(uptime) }
}

#[test]
fn a_jump_is_what_clock_and_uptime_disagree_about() {
    for (later, wanted) in [
        (look(1_000_060, 160), 0),
        (look(1_000_061, 160), 1),
        (look(1_003_660, 160), 3600),
        (look(996_460, 160), -3600),
        // A machine that slept has not been up.
        (look(1_028_860, 160), 28_800),
        (look(1_000_000, 3700), -3600),
    ] {
        assert_eq!(look(1_000_000, 100).jump(later), SignedDuration::from_secs(wanted), "{later:?}");
    }
}

#[test]
fn the_ends_of_time_are_far_apart_and_no_more() {
    let first = Look { now: Timestamp::MIN, uptime: Duration::ZERO };
    let last = Look { now: Timestamp::MAX, uptime: Duration::MAX };
    assert!(first.jump(Look { uptime: Duration::ZERO, ..last }) > GAP);
    assert!(first.jump(Look { now: Timestamp::MIN, ..last }) < -GAP);
    assert!(last.jump(first) < -GAP);
}
