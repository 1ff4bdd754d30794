//! The keeper's directory and the way to its socket: finding it, calling, and starting a keeper when none answers.
//!
//! A socket's path may have 108 bytes at most and towns can lie deep, so it is always reached through an open
//! directory: `/proc/self/fd/N/sock`.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use super::wire::{Greeting, PROTOCOL};
use crate::RuntimeError;

/// A keeper that lives greets at once; longer than this means that it is stuck.
const GREETING_SECS_MAX: u64 = 10;

/// A keeper is ready in milliseconds; longer than this means that something holds it up.
const READY_SECS_MAX: i64 = 20;

/// How often a keeper may vanish between its being ready and our call.
const CALLS_MAX: u32 = 8;

/// The keeper's state directory.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub dir: PathBuf,
}

impl Door {
    /// Makes the directory when it is missing, for its owner only. What it lies in has to be there: the call of one who
    /// has not noticed that the town was deleted must not bring a part of it back.
    pub(super) fn make(dir: &Path) -> Result<Self, RuntimeError> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(io_error("make the directory", dir, error))
            }
            _ => Ok(Self { dir: dir.to_owned() }),
        }
    }

    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let (_open, path) = self.short_socket_path()?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => UnixListener::bind(&path),
        }
    }

    /// A lock file, opened and not yet locked. The lock goes with the process that has it.
    pub(super) fn lock_file(&self, name: &str) -> Result<File, RuntimeError> {
        let path = self.dir.join(name);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        file.map_err(|source| io_error("open", &path, source))
    }

    fn call(&self) -> io::Result<UnixStream> {
        let (_open, path) = self.short_socket_path()?;
        UnixStream::connect(path)
    }

    fn short_socket_path(&self) -> io::Result<(OwnedFd, PathBuf)> {
        let open = rustix::fs::open(&self.dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/sock", open.as_raw_fd()));
        Ok((open, path))
    }
}

/// A connection that the keeper has greeted.
#[derive(Debug)]
pub(super) struct Line {
    pub stream: UnixStream,
    pub incoming: BufReader<UnixStream>,
}

/// Reaches the town's keeper, starting one if need be.
pub(super) fn reach(dir: &Path, keeper_argv: &[OsString]) -> Result<Line, RuntimeError> {
    let door = Door::make(dir)?;
    for _ in 0..CALLS_MAX {
        match door.call() {
            Ok(stream) => {
                if let Some(line) = greeted(stream)? {
                    return Ok(line);
                }
            }
            Err(error) if is_nobody_there(&error) => start_keeper(&door, keeper_argv)?,
            Err(error) => return Err(no_keeper(error.to_string())),
        }
    }
    Err(no_keeper(format!(
        "it went away {CALLS_MAX} times before it was reached; see `keeper.log` in {}",
        dir.display()
    )))
}

fn is_nobody_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

/// Reads the greeting; `None` when the connection ended before it.
fn greeted(stream: UnixStream) -> Result<Option<Line>, RuntimeError> {
    let lost = |error: io::Error| no_keeper(error.to_string());
    stream.set_read_timeout(Some(Duration::from_secs(GREETING_SECS_MAX))).map_err(lost)?;
    let mut incoming = BufReader::new(stream.try_clone().map_err(lost)?);
    let mut text = String::new();
    match incoming.read_line(&mut text) {
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(no_keeper(format!("it took the call and said nothing for {GREETING_SECS_MAX} seconds")));
        }
        Err(error) => return Err(lost(error)),
        Ok(_) => {}
    }
    let greeting: Greeting = serde_json::from_str(&text).map_err(|error| no_keeper(error.to_string()))?;
    if greeting.protocol != PROTOCOL {
        let cause = format!("process {} speaks version {}, this is {PROTOCOL}", greeting.pid, greeting.protocol);
        return Err(no_keeper(cause));
    }
    stream.set_read_timeout(None).map_err(lost)?;
    Ok(Some(Line { stream, incoming }))
}

/// Starts a keeper and waits until it, or one that was faster, takes calls.
fn start_keeper(door: &Door, argv: &[OsString]) -> Result<(), RuntimeError> {
    let (program, arguments) = argv.split_first().ok_or_else(|| no_keeper("no program to start it with".to_owned()))?;
    let log_path = door.dir.join("keeper.log");
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path);
    let log = log.map_err(|source| io_error("open", &log_path, source))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // A keeper that an agent's command happens to start is not part of that agent's run.
    command.env_remove("GT_RUN").env_remove("GT_KEEPER").env_remove("GT_CRASH_AT");
    let mut keeper =
        command.spawn().map_err(|error| no_keeper(format!("cannot start {}: {error}", program.display())))?;
    let mut said = String::new();
    let stdout = keeper.stdout.take().expect("its standard output is a pipe");
    let heard = wait_until_readable(&stdout).and_then(|()| BufReader::new(stdout.take(64)).read_line(&mut said));
    // It is our child: somebody has to take note of its end, which may be long after us.
    std::thread::spawn(move || keeper.wait());
    match heard {
        Ok(n_bytes) if n_bytes > 0 => Ok(()),
        Ok(_) => Err(no_keeper(format!("it ended at once; see {}", log_path.display()))),
        Err(error) => Err(no_keeper(format!("{error}; see {}", log_path.display()))),
    }
}

fn wait_until_readable(source: impl AsFd) -> io::Result<()> {
    let limit = Timespec { tv_sec: READY_SECS_MAX, tv_nsec: 0 };
    let mut waiting = [PollFd::new(&source, PollFlags::IN)];
    match rustix::io::retry_on_intr(|| poll(&mut waiting, Some(&limit)))? {
        0 => Err(io::Error::other(format!("it was not ready after {READY_SECS_MAX} seconds"))),
        _ => Ok(()),
    }
}

pub(super) fn io_error(doing: &'static str, path: &Path, source: io::Error) -> RuntimeError {
    RuntimeError::Io { doing, path: path.to_owned(), source }
}

pub(super) fn no_keeper(cause: String) -> RuntimeError {
    RuntimeError::NoKeeper { cause }
}
