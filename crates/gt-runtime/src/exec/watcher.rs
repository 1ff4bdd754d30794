//! Telling of endings: a thread that reads what the program's `watch` prints, a line for each.
//!
//! When the program dies, or prints what nobody understands, something may have been missed, so the owner is told to
//! look; it is called again, ever more rarely if it keeps dying. A program that does not know `watch` is polled. The
//! thread ends, and the program with it, with the runtime it belongs to.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::answers;
use super::program::{Called, Mishap, Program};
use super::wire::{Request, Watch};
use crate::News;
use crate::child::wait_for;

const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(30);

/// A program that watched for so long was a good one: it is called again at once.
const GOOD_WATCH: Duration = Duration::from_secs(10);

/// How often the owner looks where the program cannot watch. Named in `docs/runtimes.md`.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// A longer line is not news.
const LINE_BYTES_MAX: usize = 64 << 10;
/// More news than this in a second wait in the pipe.
const LINES_PER_SECOND_MAX: u32 = 1000;
/// Looking costs a survey, so a program that asks for it all the time is not always heard at once.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Watcher {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

struct Post {
    program: Program,
    news: News,
    /// Readable from the moment on at which it shall stop.
    stop: Arc<OwnedFd>,
}

/// Why the program is no longer listened to.
enum Over {
    Stopped,
    NotKnown,
    Lost,
}

impl Watcher {
    pub(super) fn start(program: Program, news: News) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let post = Post { program, news, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("exec-news".to_owned()).spawn(move || post.stay())?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Post {
    fn stay(&self) {
        let mut delay = Duration::ZERO;
        loop {
            let since = Instant::now();
            match self.listen() {
                Over::Stopped => return,
                Over::NotKnown => return self.poll(),
                Over::Lost => (self.news)(None),
            }
            delay = if since.elapsed() >= GOOD_WATCH { Duration::ZERO } else { longer(delay) };
            if self.is_stopped_within(delay) {
                return;
            }
        }
    }

    fn poll(&self) {
        while !self.is_stopped_within(POLL_EVERY) {
            (self.news)(None);
        }
    }

    fn is_stopped_within(&self, span: Duration) -> bool {
        let mut fds = [PollFd::new(&*self.stop, PollFlags::IN)];
        // A wait that fails would be no wait, and go on for ever.
        wait_for(&mut fds, Some(span)).map_or(true, |n_ready| n_ready > 0)
    }

    /// Calls the program and passes on what it tells, until it is over.
    fn listen(&self) -> Over {
        let Ok((mut called, _open)) = self.call() else { return Over::Lost };
        let mut lines = Lines::default();
        let mut complaint = Vec::new();
        loop {
            let Some((is_stopped, is_over)) = self.wait(&called) else { return Over::Lost };
            if is_stopped {
                return Over::Stopped;
            }
            complaint.clear();
            called.complaint.take(&mut complaint);
            called.output.take(&mut lines.buffer);
            if self.pass_on(&mut lines) {
                return Over::Stopped;
            }
            if lines.buffer.len() > LINE_BYTES_MAX {
                return Over::Lost;
            }
            if is_over {
                let status = called.finish();
                let judged = status.map(|status| self.program.judge("watch", status, &complaint));
                return if matches!(judged, Ok(Err(Mishap::NotKnown(_)))) { Over::NotKnown } else { Over::Lost };
            }
        }
    }

    /// Its standard input stays open for as long as somebody listens.
    fn call(&self) -> io::Result<(Called, io::PipeWriter)> {
        let (reader, mut writer) = io::pipe()?;
        let mut request = serde_json::to_vec(&Request::new(&self.program.dir, &Watch {}))?;
        request.push(b'\n');
        // It is smaller than any pipe.
        io::Write::write_all(&mut writer, &request)?;
        let called = self.program.spawn("watch", Stdio::from(reader));
        Ok((called.map_err(|mishap| io::Error::other(mishap.to_string()))?, writer))
    }

    /// Waits for something to happen: whether it shall stop, and whether the program is over.
    fn wait(&self, called: &Called) -> Option<(bool, bool)> {
        let mut fds = vec![PollFd::new(&*self.stop, PollFlags::IN), called.exit()?];
        fds.extend(called.output.poll_fd());
        fds.extend(called.complaint.poll_fd());
        wait_for(&mut fds, None).ok()?;
        Some((!fds[0].revents().is_empty(), !fds[1].revents().is_empty()))
    }

    /// Passes on the whole lines that are there; true when it shall stop.
    fn pass_on(&self, lines: &mut Lines) -> bool {
        let mut is_look_due = false;
        while let Some(line) = lines.next() {
            match answers::told(&line, Timestamp::now()) {
                Some(end) => (self.news)(Some(end)),
                None => is_look_due = true,
            }
            if lines.n_in_second > LINES_PER_SECOND_MAX && self.is_stopped_within(lines.rest_of_second()) {
                return true;
            }
        }
        if !is_look_due {
            return false;
        }
        // Whatever it said meanwhile, one look finds it all.
        (self.news)(None);
        self.is_stopped_within(LOOK_PAUSE)
    }
}

/// What was printed and not yet passed on.
struct Lines {
    buffer: Vec<u8>,
    second: Instant,
    n_in_second: u32,
}

impl Default for Lines {
    fn default() -> Self {
        Self { buffer: Vec::new(), second: Instant::now(), n_in_second: 0 }
    }
}

impl Lines {
    /// The next whole line that is not empty.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            if self.second.elapsed() >= Duration::from_secs(1) {
                (self.second, self.n_in_second) = (Instant::now(), 0);
            }
            self.n_in_second += 1;
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    fn rest_of_second(&self) -> Duration {
        Duration::from_secs(1).saturating_sub(self.second.elapsed())
    }
}

fn longer(delay: Duration) -> Duration {
    (delay * 2).clamp(DELAY_MIN, DELAY_MAX)
}
