//! Hearing that the clock was set, or that the machine has slept: a timer that never rings says so at once. // SPEC K2

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};

/// So far ahead that nobody waits for it.
const NEVER: Timespec = Timespec { tv_sec: i64::MAX / 4, tv_nsec: 0 };
const ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Has a thread call `told` each time that the clock was set.
pub(crate) fn on_clock_set(told: impl Fn() + Send + 'static) -> io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
    // Before the thread runs: what happens from now on is heard.
    arm(&timer)?;
    thread::spawn(move || {
        loop {
            let mut n_rings = [0_u8; 8];
            match rustix::io::read(&timer, &mut n_rings) {
                // The kernel takes the timer back, because nobody knows any more when it would ring.
                Err(Errno::CANCELED) => {
                    if arm(&timer).is_err() {
                        return;
                    }
                    told();
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
    Ok(())
}

fn arm(timer: &OwnedFd) -> Result<(), Errno> {
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(timer, flags, &Itimerspec { it_interval: ONCE, it_value: NEVER }).map(drop)
}

#[cfg(test)]
mod tests;
