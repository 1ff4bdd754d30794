//! Somebody sets the clock: to what it shows, which is as good as any other time to be heard.

use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime, clock_settime};

use super::on_clock_set;

#[test]
fn that_the_clock_was_set_is_heard_at_once_and_again() {
    let (sender, told) = mpsc::channel();
    on_clock_set(move || sender.send(()).unwrap_or_default()).expect("the kernel has such timers");
    for _ in 0..2 {
        // The thread may not listen yet, so it is set until it is heard.
        loop {
            match clock_settime(ClockId::Realtime, clock_gettime(ClockId::Realtime)) {
                Err(Errno::PERM) => return eprintln!("skipped: only root may set the clock"),
                set => set.expect("it can be set"),
            }
            if told.recv_timeout(Duration::from_millis(100)).is_ok() {
                break;
            }
        }
    }
}
