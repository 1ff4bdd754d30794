//! Running a gate: one command of the user's, in a process group of its own, within bounds of time and of output.
//!
//! Whoever runs it may be killed at any moment, and then it goes on alone. So it begins only after a file (the marker)
//! says which process it is, and whoever comes next ends it by that.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;

use super::{MergeError, io_error};
use crate::Handle;
use crate::child::{NOT_INHERITED, exit_of, kill_group, seconds, wait_for};
use crate::git::FOREIGN_VARIABLES;
use crate::process::group;
use crate::whole_file::Draft;

/// As much of the end of its output as is shown.
const TAIL_BYTES: usize = 4 << 10;
/// What is written of its output; of more, only the end is kept.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// A pipe holds no more, so one gulp after its end takes all that it printed.
const GULP_BYTES: usize = 64 << 10;

/// Signals by which processes are ended from outside.
const FROM_OUTSIDE: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];

/// Waits for the word, which is the gate's own name, and becomes the command; without the word it never begins.
const WAITER: &str = r#"read -r GT_GATE && export GT_GATE && exec sh -c "$0" </dev/null"#;

/// How a gate went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    Passed,
    /// `how` is its exit code, a signal or the time it took; `tail` the end of what it printed.
    Failed {
        how: String,
        tail: String,
    },
    /// Somebody else ended it: the kernel for want of memory, or a person. That says nothing about what it judged.
    Killed {
        how: String,
        tail: String,
    },
}

/// Runs `command` in `dir`, and ends with it whatever it leaves in its process group.
pub fn gate(
    dir: &Path,
    command: &str,
    env: &[(String, String)],
    log: &Path,
    marker: &Path,
    timeout: Duration,
) -> Result<Gate, MergeError> {
    let mut output = Output::to(log)?;
    let (reader, writer) = io::pipe().map_err(io_error("make a pipe for", log))?;
    let mut shell = shell(dir, command, env);
    shell.stdout(writer.try_clone().map_err(io_error("make a pipe for", log))?).stderr(writer);
    let child = shell.spawn().map_err(io_error("start a command in", dir))?;
    // It holds the writing ends.
    drop(shell);
    let mut running = Running::of(child).map_err(io_error("watch over a command in", dir))?;
    running.begin(marker).map_err(io_error("write", marker))?;
    fcntl_setfl(&reader, OFlags::NONBLOCK)
        .map_err(|error| io_error("read a command's output for", log)(error.into()))?;
    let is_over = running.watch(reader, &mut output, timeout).map_err(io_error("write", log))?;
    let status = running.end().map_err(io_error("wait for a command in", dir))?;
    fs::remove_file(marker).ok();
    let tail = output.finish().map_err(io_error("write", log))?;
    Ok(match how(status, is_over, timeout) {
        None => Gate::Passed,
        Some(how) if is_over && is_killed(status) => Gate::Killed { how, tail },
        Some(how) => Gate::Failed { how, tail },
    })
}

/// Ends the gate that somebody who was killed left behind, and waits until it is gone. None is fine.
pub fn end_leftover(marker: &Path) -> Result<(), MergeError> {
    let text = match fs::read_to_string(marker) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("read", marker)(error)),
    };
    if let Some(handle) = parse_name(text.trim()) {
        group::end(&handle, &format!("GT_GATE={}", name_of(&handle))).map_err(io_error("end the gate of", marker))?;
    }
    match fs::remove_file(marker) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", marker)(error)),
        _ => Ok(()),
    }
}

/// What is wrong with the way it ended.
fn how(status: ExitStatus, is_over: bool, timeout: Duration) -> Option<String> {
    match (status.code(), status.signal()) {
        _ if !is_over => Some(format!("took longer than {}", seconds(timeout))),
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (_, Some(signal)) => Some(format!("ended by signal {signal}")),
        _ => Some("ended".to_owned()),
    }
}

/// Whether a signal ended it that programs do not earn by themselves; a shell tells of its child's by its exit code.
fn is_killed(status: ExitStatus) -> bool {
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128));
    signal.is_some_and(|signal| FROM_OUTSIDE.iter().any(|outside| outside.as_raw() == signal))
}

fn shell(dir: &Path, command: &str, env: &[(String, String)]) -> Command {
    let mut shell = waiter(WAITER, dir, env);
    shell.arg(command);
    shell
}

/// A shell that waits for the word, in a group of its own. What whoever calls us is about, it is not.
pub(super) fn waiter(script: &str, dir: &Path, env: &[(String, String)]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(dir).process_group(0).stdin(Stdio::piped());
    for name in FOREIGN_VARIABLES.iter().chain(&NOT_INHERITED) {
        shell.env_remove(name);
    }
    let is_ours = |name: &OsString| name.as_bytes().starts_with(b"GT_");
    for name in std::env::vars_os().map(|(name, _)| name).filter(is_ours) {
        shell.env_remove(name);
    }
    shell.envs(env.iter().map(|(name, value)| (name, value)));
    shell
}

fn name_of(handle: &Handle) -> String {
    format!("{}:{}", handle.pid, handle.birth)
}

fn parse_name(name: &str) -> Option<Handle> {
    let (pid, birth) = name.split_once(':')?;
    Some(Handle { pid: pid.parse().ok()?, birth: birth.parse().ok()? })
}

/// A gate that is under way. Ended with its group when it is dropped before its end.
pub(super) struct Running {
    child: Child,
    exit: OwnedFd,
    is_waited_for: bool,
}

impl Running {
    pub(super) fn of(mut child: Child) -> io::Result<Self> {
        match exit_of(&child) {
            Ok(exit) => Ok(Self { child, exit, is_waited_for: false }),
            Err(error) => {
                kill_group(&child);
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Writes down which process it is, and gives it the word.
    pub(super) fn begin(&mut self, marker: &Path) -> io::Result<()> {
        let handle = group::handle_of(self.child.id())?;
        let mut draft = Draft::of(marker)?;
        writeln!(draft.file, "{}", name_of(&handle))?;
        draft.publish()?;
        let mut stdin = self.child.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
        writeln!(stdin, "{}", name_of(&handle))
    }

    /// Waits until it ends, or until its time is over: then false.
    pub(super) fn await_end(&self, timeout: Duration) -> io::Result<bool> {
        Ok(wait_for(&mut [PollFd::new(&self.exit, PollFlags::IN)], Some(timeout))? > 0)
    }

    /// Takes its output until it ends, or until its time is over: then false.
    fn watch(&self, mut reader: PipeReader, output: &mut Output, timeout: Duration) -> io::Result<bool> {
        let started = Instant::now();
        let (mut is_over, mut is_open) = (false, true);
        while !is_over {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let mut fds = vec![PollFd::new(&self.exit, PollFlags::IN)];
            if is_open {
                fds.push(PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN));
            }
            wait_for(&mut fds, Some(left))?;
            is_over = !fds[0].revents().is_empty();
            is_open = is_open && output.take(&mut reader)?;
        }
        Ok(true)
    }

    /// Ends what is left of its group, and says how it itself ended.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        kill_group(&self.child);
        // As long as it was not waited for, its group cannot be taken for another.
        group::wait_until_gone(self.child.id())?;
        self.is_waited_for = true;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_waited_for {
            self.end().ok();
        }
    }
}

/// What a gate prints: into the log as far as it may be, and its end.
struct Output {
    log: File,
    tail: VecDeque<u8>,
    n_written: u64,
    n_left_out: u64,
    gulp: Vec<u8>,
}

impl Output {
    fn to(log: &Path) -> Result<Self, MergeError> {
        let opened = OpenOptions::new().create(true).append(true).open(log).map_err(io_error("open", log))?;
        Ok(Self { log: opened, tail: VecDeque::new(), n_written: 0, n_left_out: 0, gulp: vec![0; GULP_BYTES] })
    }

    /// Takes what is there, up to a gulp; false when nobody will print any more.
    fn take(&mut self, reader: &mut PipeReader) -> io::Result<bool> {
        match reader.read(&mut self.gulp) {
            Ok(0) => Ok(false),
            Ok(n) => self.write(n).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes what was taken.
    fn write(&mut self, n_bytes: usize) -> io::Result<()> {
        let bytes = &self.gulp[..n_bytes];
        self.tail.extend(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        let room = LOG_BYTES_MAX.saturating_sub(self.n_written);
        let written = &bytes[..bytes.len().min(room as usize)];
        self.log.write_all(written)?;
        self.n_written += written.len() as u64;
        self.n_left_out += (bytes.len() - written.len()) as u64;
        Ok(())
    }

    /// Writes the end of what had no room, and returns the end of all.
    fn finish(mut self) -> io::Result<String> {
        let tail = self.tail.make_contiguous();
        if self.n_left_out > 0 {
            let n_shown = self.n_left_out.min(tail.len() as u64);
            writeln!(self.log, "\n… {} bytes are left out here …", self.n_left_out - n_shown)?;
            self.log.write_all(&tail[tail.len() - n_shown as usize..])?;
        }
        Ok(legible(tail))
    }
}

/// Text from its first whole letter on.
fn legible(bytes: &[u8]) -> String {
    let start = bytes.iter().take(4).position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}
