//! One tmux client in control mode: a process of ours that passes lines on, and never makes us wait.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::reader::{Reader, Said};
use crate::process::keeper::events::{Events, Token};
use crate::terminal::Server;

/// Read in one go, before others have their turn.
const TURN_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Control {
    pid: u32,
    pidfd: Option<OwnedFd>,
    to: ChildStdin,
    from: ChildStdout,
    to_token: Token,
    from_token: Token,
    outgoing: Vec<u8>,
    is_awaiting_room: bool,
    reader: Reader,
}

impl Control {
    /// Starts a client, and the server if there is none. Whether they work shows in the first answer.
    pub(super) fn start(server: &Server, events: &mut Events) -> io::Result<Self> {
        let mut command = server.control_command();
        // Waited for by the bell, like all children. What it complains about goes to the keeper's log.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().expect("its standard input is a pipe");
        let from = child.stdout.take().expect("its standard output is a pipe");
        set_nonblocking(&to)?;
        set_nonblocking(&from)?;
        let (to_token, from_token) = (events.new_token(), events.new_token());
        events.add(&from, from_token)?;
        events.add(&to, to_token)?;
        let pid = child.id();
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let (outgoing, reader) = (Vec::new(), Reader::default());
        Ok(Self { pid, pidfd, to, from, to_token, from_token, outgoing, is_awaiting_room: false, reader })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn has(&self, token: Token) -> bool {
        token == self.to_token || token == self.from_token
    }

    /// Says a line; it goes out as far as there is room for it.
    pub(super) fn say(&mut self, line: &str) {
        // An empty line would be a farewell.
        debug_assert!(!line.is_empty() && !line.contains('\n'));
        self.outgoing.extend_from_slice(line.as_bytes());
        self.outgoing.push(b'\n');
    }

    /// Sends on what was said, as far as it can be.
    pub(super) fn write(&mut self, events: &Events) -> io::Result<()> {
        let mut n_written = 0;
        while n_written < self.outgoing.len() {
            match self.to.write(&self.outgoing[n_written..]) {
                Ok(n_bytes) => n_written += n_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.outgoing.drain(..n_written);
        match (self.outgoing.is_empty(), self.is_awaiting_room) {
            (true, true) => events.resume(&self.to, self.to_token)?,
            (false, false) => events.await_writable(&self.to, self.to_token)?,
            _ => {}
        }
        self.is_awaiting_room = !self.outgoing.is_empty();
        Ok(())
    }

    /// What it has said; an error when it will say nothing more.
    pub(super) fn read(&mut self) -> io::Result<Vec<Said>> {
        let mut bytes = Vec::new();
        match self.from.by_ref().take(TURN_BYTES as u64).read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(n_bytes) if n_bytes < TURN_BYTES => {
                let said = self.reader.read(&bytes);
                return if said.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(said) };
            }
            read => drop(read?),
        }
        Ok(self.reader.read(&bytes))
    }

    /// Waits until there is something to read, or room to write what is left; `false` after the timeout.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let room = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut waiting = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.to, room)];
        !matches!(poll(&mut waiting, Some(&timeout)), Ok(0))
    }
}

impl Drop for Control {
    /// Without its input it would go by itself, unless it is stuck.
    fn drop(&mut self) {
        if let Some(pidfd) = &self.pidfd {
            // It may be gone already, which is what is wanted.
            pidfd_send_signal(pidfd, Signal::KILL).ok();
        }
    }
}

fn set_nonblocking(pipe: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&pipe)?;
    Ok(fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?)
}
