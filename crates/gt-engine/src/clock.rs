//! Hearing that the clock was set, or that the machine has slept: a timer that never rings says so at once. // SPEC K2

use std::io;
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
    let arm = move || {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let never = Itimerspec { it_interval: ONCE, it_value: NEVER };
        timerfd_settime(&timer, flags, &never)?;
        let mut n_rings = [0_u8; 8];
        rustix::io::read(&timer, &mut n_rings)
    };
    thread::spawn(move || {
        loop {
            match arm() {
                // The kernel takes the timer back, because nobody knows any more when it would ring.
                Err(Errno::CANCELED) => told(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests;
