//! Process groups: which is whose, ending one, and seeing that it is gone.
//!
//! A group is known by its first process. When that is gone but others of the group are not, they are known by a
//! variable of their environment.

use std::io;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};

use super::table;
use crate::Handle;
use crate::child::wait_for;

/// A child of this process that was not waited for yet.
pub(crate) fn handle_of(pid: u32) -> io::Result<Handle> {
    let entry = table::entry(pid).ok_or_else(|| io::Error::other(format!("there is no /proc/{pid}/stat")))?;
    Ok(entry.handle())
}

/// Ends the group that began with this process, if it is still that group, and waits until it is gone.
pub(crate) fn end(first: &Handle, pair: &str) -> io::Result<()> {
    let is_there = table::entry(first.pid).is_some_and(|entry| entry.handle() == *first);
    if let Some(group) = Pid::from_raw(first.pid as i32).filter(|_| is_there) {
        kill_process_group(group, Signal::KILL).ok();
    }
    loop {
        let members = table::group(first.pid).into_iter();
        let ours: Vec<_> =
            members.filter(|entry| entry.handle() == *first || table::has_pair(entry.pid, pair)).collect();
        if ours.is_empty() {
            return Ok(());
        }
        for entry in &ours {
            end_one(&entry.handle())?;
        }
    }
}

/// Waits until a group that was killed, and whose first process was not waited for yet, has no living members.
pub(crate) fn wait_until_gone(group: u32) -> io::Result<()> {
    loop {
        let members = table::group(group);
        if members.is_empty() {
            return Ok(());
        }
        for entry in &members {
            end_one(&entry.handle())?;
        }
    }
}

/// Kills exactly this process and waits until it is dead.
fn end_one(handle: &Handle) -> io::Result<()> {
    let Some(pidfd) = table::open(handle) else { return Ok(()) };
    if let Err(error) = pidfd_send_signal(&pidfd, Signal::KILL) {
        return if error == rustix::io::Errno::SRCH { Ok(()) } else { Err(error.into()) };
    }
    wait_for(&mut [PollFd::new(&pidfd, PollFlags::IN)], None)?;
    Ok(())
}
