//! Children of this process that may take too long: waited for within bounds, ended with their whole group.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::memory;

/// Variables of a run that happens to call us, which what is started here and what that starts are no part of.
pub(crate) const NOT_INHERITED: [&str; 4] = ["GT_RUN", "GT_KEEPER", "GT_CRASH_AT", "CLAUDECODE"];

/// As good as for ever, and the kernel takes it.
const SPAN_MAX: Duration = Duration::from_secs(i32::MAX as u64);

/// Runs a command in a process group of its own; `None` when it took too long and was killed with its group.
pub(crate) fn output_within(command: &mut Command, timeout: Duration) -> io::Result<Option<Output>> {
    let (stdout, stderr) = (memory::file_of("")?, memory::file_of("")?);
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).process_group(0);
    let mut child = command.spawn()?;
    let is_over = match exit_of(&child) {
        Ok(exit) => wait_for(&mut [PollFd::new(&exit, PollFlags::IN)], Some(timeout)),
        Err(error) => Err(error),
    };
    if !matches!(is_over, Ok(n_ready) if n_ready > 0) {
        kill_group(&child);
    }
    let status = child.wait()?;
    if is_over? == 0 {
        return Ok(None);
    }
    Ok(Some(Output { status, stdout: read_back(stdout)?, stderr: read_back(stderr)? }))
}

/// Readable when the child has ended.
pub(crate) fn exit_of(child: &Child) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

/// Kills the group of a child that was not waited for yet, so that the number is still its own.
pub(crate) fn kill_group(child: &Child) {
    kill_process_group(Pid::from_child(child), Signal::KILL).ok();
}

/// Waits until something is there, however often a signal interrupts.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], span: Option<Duration>) -> io::Result<usize> {
    let started = Instant::now();
    loop {
        let left = span.map(|span| span.min(SPAN_MAX).saturating_sub(started.elapsed()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        match poll(fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return Ok(polled?),
        }
    }
}

/// A span in words.
pub(crate) fn seconds(span: Duration) -> String {
    match span.as_secs() {
        1 => "1 second".to_owned(),
        0 => format!("{} milliseconds", span.as_millis()),
        n => format!("{n} seconds"),
    }
}

pub(crate) fn read_back(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
