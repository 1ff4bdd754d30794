//! Waiting on purpose: for a while, or for a process to end.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Waits for a while.
pub fn pause(span: Duration) {
    let (_sender, never) = mpsc::channel::<()>();
    never.recv_timeout(span).unwrap_or_default();
}

/// Waits until a process has ended; `false`: it has not, in all that time.
pub fn for_end(pid: u32, patience: Duration) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(pidfd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return true };
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}
