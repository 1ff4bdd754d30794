//! The client before ours: whoever it belonged to, it is gone for the server too before another one calls.
//!
//! Left alone it could still pass on what it was told, or wait for ever for somebody to read what it has to say, and the server
//! for it. And tmux 3.3 tells every client that another one has left, one that is still introducing itself included: it
//! dies of that, and all that runs in it with it.

use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{ANSWER_MAX, Terminals, no_answer};
use crate::process::table;
use crate::terminal::Server;

impl Terminals {
    /// Ends the clients of former keepers, and one of our own that was given up; returns when the server has seen them go.
    pub(super) fn see_off_clients(&self) -> Result<(), String> {
        if !self.is_server_there() {
            return Ok(());
        }
        let deadline = Instant::now() + ANSWER_MAX;
        end_clients(&self.server, deadline);
        // What has ended by now it hears of before it hears of anybody who calls later.
        match has_answered(&self.server, deadline) {
            Ok(true) => Ok(()),
            Ok(false) => Err(no_answer()),
            Err(error) => Err(format!("cannot start tmux: {error}")),
        }
    }
}

fn end_clients(server: &Server, deadline: Instant) {
    // The server was called by the same words, and leads a session of its own; a client lies in its keeper's.
    let clients = table::called_like(&server.control_command()).into_iter().filter(|entry| entry.session != entry.pid);
    let pidfds: Vec<_> = clients.filter_map(|entry| table::open(&entry.handle())).collect();
    for pidfd in &pidfds {
        // It may have ended just now, which is what is wanted.
        pidfd_send_signal(pidfd, Signal::KILL).ok();
    }
    for pidfd in &pidfds {
        has_ended(pidfd, deadline);
    }
}

/// Asks as anybody would, by a client that is told nothing of others.
fn has_answered(server: &Server, deadline: Instant) -> io::Result<bool> {
    let mut command = server.command();
    command.arg("list-clients").current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Waited for by the bell, like all children.
    let pid = command.spawn()?.id();
    let Some(pid) = Pid::from_raw(pid as i32) else { return Ok(false) };
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let has_ended = has_ended(&pidfd, deadline);
    if !has_ended {
        pidfd_send_signal(&pidfd, Signal::KILL).ok();
    }
    Ok(has_ended)
}

fn has_ended(pidfd: impl AsFd, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    matches!(rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left))), Ok(1..))
}
