//! Somebody sets the clock: to what it shows, which is as good as any other time to be heard.
//!
//! It is the clock of the whole machine, so it is set twice and no more.

use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime, clock_settime};

use super::on_clock_set;

/// How long a fact may take on a very busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

#[test]
fn that_the_clock_was_set_is_heard_at_once_and_again() {
    let (sender, told) = mpsc::channel();
    on_clock_set(move || sender.send(()).unwrap_or_default()).expect("the kernel has such timers");
    for round in ["once", "again"] {
        match clock_settime(ClockId::Realtime, clock_gettime(ClockId::Realtime)) {
            Err(Errno::PERM) => return skip("only root may set the clock"),
            set => set.expect("it can be set"),
        }
        told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("that the clock was set {round} is not heard"));
    }
}

/// Where nothing may be skipped that is possible, it has to be known that this is not.
fn skip(why: &str) {
    let may_skip =
        std::env::var("GT_TEST_MAY_SKIP").is_ok_and(|limits| limits.split(',').any(|limit| limit == "clock"));
    assert!(may_skip || std::env::var_os("GT_TEST_SKIP_NOTHING").is_none(), "cannot be skipped: {why}");
    eprintln!("SKIPPED: {why}");
}
