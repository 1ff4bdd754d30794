//! Running the tests so that nothing outlives them.
//!
//! Owns: starting the runner, passing an interruption on to it, and looking afterwards for processes that it left behind.
//! Daemons, keepers and tmux servers detach themselves, and some clear their environment. But this process adopts whatever
//! loses its parent below it, so everything that the tests have started stays among its descendants.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper, wait,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What ends by itself has this long after the last test: the keeper of a deleted town needs a few seconds.
const END_MAX: Duration = Duration::from_secs(10);
/// How long the runner has to end its tests after an interruption.
const RUNNER_MAX: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);

/// The exit status of a run that was interrupted, as a shell has it for Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Set by cargo for a compiler alone: a server that caches for compilers is nothing of the tests.
const OF_THE_COMPILER: &str = "CARGO_CRATE_NAME=";

/// A process that somebody below us has started.
#[derive(Debug)]
struct Process {
    pid: Pid,
    words: String,
}

/// Runs it to its end. A run that succeeds and leaves processes behind has failed; they are named and ended.
pub(crate) fn run(runner: &mut Command) -> io::Result<ExitCode> {
    set_child_subreaper(Some(getpid()))?;
    let signals = Signals::new([SIGINT, SIGTERM])?;
    let child = runner.spawn()?;
    let pid = Pid::from_child(&child);
    let was_interrupted = pass_on(signals, pidfd_open(pid, PidfdFlags::empty())?);
    let status = await_end(pid)?;
    if was_interrupted.load(Ordering::SeqCst) {
        let n_ended = end_all();
        eprintln!("xtask: interrupted; {} ended", n_processes(n_ended));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let left = left_after(END_MAX);
    if left.is_empty() {
        return Ok(exit_code(status));
    }
    eprintln!("error: the tests left {} running:", n_processes(left.len()));
    for process in &left {
        eprintln!("  {} {}", process.pid.as_raw_nonzero(), process.words);
    }
    end_all();
    Ok(if status.exit_status() == Some(0) { ExitCode::FAILURE } else { exit_code(status) })
}

/// From the first signal on the runner is asked to end, and made to when it does not.
fn pass_on(mut signals: Signals, runner: OwnedFd) -> Arc<AtomicBool> {
    let was_interrupted = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&was_interrupted);
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            noted.store(true, Ordering::SeqCst);
            // It is gone already, or ends by the same Ctrl-C.
            pidfd_send_signal(&runner, Signal::TERM).unwrap_or_default();
            let (_never, pausing) = channel();
            pause(&pausing, RUNNER_MAX);
            pidfd_send_signal(&runner, Signal::KILL).unwrap_or_default();
        }
    });
    was_interrupted
}

/// Waits for the runner, and collects all others that end meanwhile.
fn await_end(runner: Pid) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == runner => return Ok(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What still runs after a while.
fn left_after(span: Duration) -> Vec<Process> {
    let deadline = Instant::now() + span;
    let (_never, pausing) = channel();
    loop {
        let left = descendants();
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        pause(&pausing, PAUSE);
    }
}

/// Kills whatever runs below us, and what those start meanwhile; says how many there were at first.
fn end_all() -> usize {
    let deadline = Instant::now() + END_MAX;
    let (_never, pausing) = channel();
    let mut left = descendants();
    let n_found = left.len();
    while !left.is_empty() && Instant::now() < deadline {
        for process in &left {
            if let Ok(pidfd) = pidfd_open(process.pid, PidfdFlags::empty()) {
                pidfd_send_signal(&pidfd, Signal::KILL).unwrap_or_default();
            }
        }
        pause(&pausing, PAUSE);
        left = descendants();
    }
    n_found
}

/// Every live process below this one. Those that are dead and ours are collected first.
fn descendants() -> Vec<Process> {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let mut children: BTreeMap<i32, Vec<(i32, bool)>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((parent, is_alive)) = stat_of(pid) {
            children.entry(parent).or_default().push((pid, is_alive));
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for (pid, is_alive) in children.remove(&parent).unwrap_or_default() {
            parents.push(pid);
            if is_alive && !is_of_the_compiler(pid) {
                found.extend(Pid::from_raw(pid).map(|pid| Process { pid, words: words_of(pid) }));
            }
        }
    }
    found
}

/// The parent of a process, and whether it is more than a dead one that waits to be collected.
fn stat_of(pid: i32) -> Option<(i32, bool)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    Some((fields.next()?.parse().ok()?, !matches!(state, "Z" | "X")))
}

fn words_of(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ")
}

fn is_of_the_compiler(pid: i32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(OF_THE_COMPILER.as_bytes()))
}

/// Nothing ever comes; the other end has to be there.
fn pause(never: &Receiver<()>, span: Duration) {
    never.recv_timeout(span).unwrap_or_default();
}

fn n_processes(n: usize) -> String {
    if n == 1 { "1 process".to_owned() } else { format!("{n} processes") }
}

fn exit_code(status: WaitStatus) -> ExitCode {
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
