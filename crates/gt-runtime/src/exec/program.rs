//! One call of the user's program: a verb, JSON in, bytes out, within bounds of time and size.
//!
//! Its input lies in memory, so that nobody waits for it to be read; what it prints is read without ever blocking; it
//! is over when the program's own process is, whoever else still holds its output. A program that goes beyond the
//! bounds is ended with its whole process group. What the bytes mean is none of its business.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::Serialize;

use crate::child::{NOT_INHERITED, seconds, wait_for};
use crate::memory;

/// More than this is no answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The end of what it complains about; the rest is not kept.
const COMPLAINT_BYTES_MAX: usize = 16 << 10;
/// How much of a stranger's text is shown.
const LEGIBLE_CHARS_MAX: usize = 200;
/// Read at one go, so that a flood cannot make anybody forget the time.
const GULP_BYTES: u64 = 1 << 20;
/// What was killed is gone in no time; if not, somebody else waits for it.
const REAP_MAX: Duration = Duration::from_secs(2);

/// Exit codes with a meaning (those of `sysexits.h`); any other but 0 is a plain failure.
const CODE_NOT_KNOWN: i32 = 64;
const CODE_NOTHING_DONE: i32 = 75;

/// What is called.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub argv: Vec<OsString>,
    pub dir: PathBuf,
    /// Added to the environment.
    pub env: Vec<(&'static str, String)>,
    pub timeout: Duration,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Mishap {
    /// It was never called.
    NotCalled(String),
    /// It says that it does not know the verb.
    NotKnown(String),
    /// It says that nothing was done, so that one may try again.
    NothingDone(String),
    /// Nobody knows what it did.
    Lost(String),
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotCalled(cause) | Self::NotKnown(cause) | Self::NothingDone(cause) | Self::Lost(cause)) = self;
        f.write_str(cause)
    }
}

impl Program {
    /// Calls it and waits for its answer.
    pub(super) fn call(&self, verb: &str, request: &impl Serialize) -> Result<Vec<u8>, Mishap> {
        self.call_until(verb, request, None)
    }

    /// The same, for no longer than until something can be read from `end`.
    pub(super) fn call_until(
        &self,
        verb: &str,
        request: &impl Serialize,
        end: Option<BorrowedFd<'_>>,
    ) -> Result<Vec<u8>, Mishap> {
        let not_called =
            |error: &dyn fmt::Display| Mishap::NotCalled(format!("{} cannot be asked: {error}", self.name()));
        let request = serde_json::to_vec(request).map_err(|error| not_called(&error))?;
        let input = memory::file_of(&request).map_err(|error| not_called(&error))?;
        let mut called = self.spawn(verb, Stdio::from(input))?;
        let mut answer = Vec::new();
        let mut complaint = Vec::new();
        let lost = |what: String| Mishap::Lost(format!("{} {what}", self.called(verb)));
        let deadline = Instant::now() + self.timeout;
        let mut is_over = false;
        while !is_over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(lost(format!("took longer than {} and was ended", seconds(self.timeout))));
            }
            is_over = called.is_over_within(left, end).map_err(|error| lost(error.to_string()))?;
            if !is_over && end.is_some_and(has_come) {
                return Err(lost("was ended before it was done".to_owned()));
            }
            called.output.take(&mut answer);
            called.complaint.take(&mut complaint);
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(lost(format!("printed more than {} MB and was ended", ANSWER_BYTES_MAX >> 20)));
            }
            // It is the end of it that counts.
            complaint.drain(..complaint.len().saturating_sub(COMPLAINT_BYTES_MAX));
        }
        called.output.take_rest(&mut answer);
        let status = called.finish().map_err(|error| lost(error.to_string()))?;
        self.judge(verb, status, &complaint).map(|()| answer)
    }

    /// Starts it in a process group of its own.
    pub(super) fn spawn(&self, verb: &str, stdin: Stdio) -> Result<Called, Mishap> {
        let (program, arguments) = self.argv.split_first().ok_or_else(|| {
            Mishap::NotCalled(
                "no program is set to run agents with: `gt config set exec.command '[\"./my-host\"]'`".to_owned(),
            )
        })?;
        let not_called = |error: io::Error| Mishap::NotCalled(format!("cannot call `{}`: {error}", program.display()));
        let has_slash = program.as_encoded_bytes().contains(&b'/');
        let path = if has_slash { self.dir.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(path);
        command.args(arguments).arg(verb).current_dir(&self.dir).process_group(0);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(not_called)?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let Some((output, complaint)) = pipes else {
            return Err(not_called(io::Error::other("it has no output")));
        };
        let exit = Pid::from_raw(child.id() as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut called =
            Called { child: Some(child), exit, output: Stream::new(output), complaint: Stream::new(complaint) };
        if called.exit.is_none() {
            called.end();
            return Err(Mishap::Lost(format!("{} cannot be watched over", self.called(verb))));
        }
        Ok(called)
    }

    /// The call in the words of whoever made it. Arguments are not shown.
    pub(super) fn called(&self, verb: &str) -> String {
        format!(
            "`{} {verb}`",
            self.argv.first().map_or(Path::new("").display(), |program| Path::new(program).display())
        )
    }

    fn name(&self) -> String {
        self.argv.first().map(|program| format!("`{}`", program.display())).unwrap_or_default()
    }

    /// What its way to end means.
    pub(super) fn judge(&self, verb: &str, status: ExitStatus, complaint: &[u8]) -> Result<(), Mishap> {
        if status.success() {
            return Ok(());
        }
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (_, Some(signal)) => format!("was ended by signal {signal}"),
            _ => "ended".to_owned(),
        };
        let cause = match last_line(complaint) {
            said if said.is_empty() => format!("{} {how} and said nothing", self.called(verb)),
            said => format!("{} {how}: {said}", self.called(verb)),
        };
        Err(match status.code() {
            Some(CODE_NOT_KNOWN) => Mishap::NotKnown(cause),
            Some(CODE_NOTHING_DONE) => Mishap::NothingDone(cause),
            _ => Mishap::Lost(cause),
        })
    }
}

/// A call that is under way. Ended with its process group when it is dropped before its end.
pub(super) struct Called {
    child: Option<Child>,
    /// Readable when the process has ended. Always there.
    exit: Option<OwnedFd>,
    pub output: Stream<ChildStdout>,
    pub complaint: Stream<ChildStderr>,
}

impl Called {
    /// Waits until it has printed something, nobody wants it any more, or it is over: then true.
    fn is_over_within(&self, span: Duration, end: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let Some(exit) = &self.exit else { return Ok(true) };
        let mut fds = vec![PollFd::new(exit, PollFlags::IN)];
        fds.extend(end.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        fds.extend(self.output.poll_fd());
        fds.extend(self.complaint.poll_fd());
        wait_for(&mut fds, Some(span))?;
        Ok(!fds[0].revents().is_empty())
    }

    /// Readable when the process has ended.
    pub(super) fn exit(&self) -> Option<PollFd<'_>> {
        self.exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN))
    }

    /// How it ended, after it has.
    pub(super) fn finish(mut self) -> io::Result<ExitStatus> {
        let mut child = self.child.take().ok_or_else(|| io::Error::other("it was waited for already"))?;
        child.wait()
    }

    fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // It was not waited for yet, so its number, and that of its group, is still its own.
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            kill_process_group(group, Signal::KILL).ok();
        }
        let is_gone = self.exit.as_ref().is_some_and(|exit| {
            wait_for(&mut [PollFd::new(exit, PollFlags::IN)], Some(REAP_MAX)).is_ok_and(|n_ready| n_ready > 0)
        });
        if is_gone {
            child.wait().ok();
        } else {
            // The kernel does not let it go; nobody here waits for that.
            std::thread::spawn(move || child.wait().ok());
        }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        self.end();
    }
}

/// One of its outputs, read without waiting.
pub(super) struct Stream<P> {
    pipe: Option<P>,
}

impl<P: Read + AsFd> Stream<P> {
    fn new(pipe: P) -> Self {
        let is_set = fcntl_setfl(&pipe, OFlags::NONBLOCK).is_ok();
        // Better unread than waited for.
        Self { pipe: is_set.then_some(pipe) }
    }

    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.pipe.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
    }

    /// Takes what is there, up to a gulp; false when there is no more for now.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.by_ref().take(GULP_BYTES).read_to_end(into) {
            Ok(n) if n as u64 == GULP_BYTES => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            // Nobody has it open any more.
            Ok(_) | Err(_) => {
                self.pipe = None;
                false
            }
        }
    }

    /// Takes all that is there; more than an answer may have is not wanted.
    fn take_rest(&mut self, into: &mut Vec<u8>) {
        while into.len() <= ANSWER_BYTES_MAX && self.take(into) {}
    }
}

/// Whether something can be read from it, or never will be.
fn has_come(end: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(end, PollFlags::IN)];
    wait_for(&mut fds, Some(Duration::ZERO)).is_ok_and(|n_ready| n_ready > 0)
}

fn last_line(said: &[u8]) -> String {
    let lines = said.split(|byte| *byte == b'\n').rev();
    lines.map(|line| legible(line.trim_ascii())).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The beginning of a stranger's text, in one line that any terminal can show.
pub(super) fn legible(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * LEGIBLE_CHARS_MAX)];
    let text = String::from_utf8_lossy(start);
    let mut chars = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = chars.by_ref().take(LEGIBLE_CHARS_MAX).collect();
    let has_more = chars.next().is_some() || start.len() < bytes.trim_ascii_end().len();
    if has_more { shown + "…" } else { shown }
}
