//! What commands do with a terminal: look at it, type into it, attach to it. Each is a call or two of `tmux`, with a deadline.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::listing::{LIST_FORMAT, Pane};
use super::server::{Server, tmux_program};
use crate::memory;

/// tmux answers in milliseconds; one that is stopped must not hold up a command.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long typed text may take to show before it is submitted all the same.
const ECHO_MAX: Duration = Duration::from_secs(2);
const ECHO_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// tmux passes a command on in one message of 16 kB.
const ARGUMENT_BYTES_MAX: usize = 4 << 10;

/// The oldest tmux that can do what we ask of it.
const VERSION_MIN: (u32, u32) = (3, 2);

/// Why a terminal cannot be reached.
#[derive(Debug, Error)]
pub enum TerminalError {
    #[error("tmux is not installed")]
    NotInstalled,
    #[error("tmux {found} is too old; {}.{} is the oldest that will do", VERSION_MIN.0, VERSION_MIN.1)]
    TooOld { found: String },
    #[error("run {run} has no terminal")]
    NoTerminal { run: String },
    #[error("tmux does not answer: {cause}")]
    NoAnswer { cause: String },
    #[error("tmux refused: {cause}")]
    Refused { cause: String },
}

/// What became of a text that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It showed on the screen, and was submitted then.
    Shown,
    /// It did not show, as where passwords are read; it was submitted all the same.
    Unseen,
}

/// Whether there is a tmux that will do.
pub fn is_installed() -> bool {
    version().is_ok()
}

/// The version of the installed tmux, such as `3.3a`.
pub fn version() -> Result<String, TerminalError> {
    let program = tmux_program().ok_or(TerminalError::NotInstalled)?;
    let said = stdout_of(Command::new(program).arg("-V"))?;
    let found = said.trim().trim_start_matches("tmux ").to_owned();
    if is_new_enough(&found) { Ok(found) } else { Err(TerminalError::TooOld { found }) }
}

/// The command that shows the terminal of a run to whoever starts it.
pub fn attach_command(keeper_dir: &Path, run: &str) -> Result<Command, TerminalError> {
    let server = Server::of(keeper_dir);
    let pane = find(&server, run)?;
    let mut command = server.command();
    command.args(["attach-session", "-t", &pane.session]);
    Ok(command)
}

/// The last lines of a run's terminal: what it shows, and what has left the screen before.
pub fn capture(keeper_dir: &Path, run: &str, lines: usize) -> Result<String, TerminalError> {
    let server = Server::of(keeper_dir);
    let pane = find(&server, run)?;
    let text = screen(&server, &pane, "-")?;
    let shown: Vec<&str> = text.lines().map(str::trim_end).collect();
    let end = shown.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let mut wanted = shown[end.saturating_sub(lines)..end].join("\n");
    if !wanted.is_empty() {
        wanted.push('\n');
    }
    Ok(wanted)
}

/// When each run that has a terminal last wrote to it.
pub fn last_output(keeper_dir: &Path) -> Result<BTreeMap<String, SystemTime>, TerminalError> {
    let format = "#{window_activity} #{GT_RUN}";
    let listed = match stdout_of(Server::of(keeper_dir).command().args(["list-panes", "-a", "-F", format])) {
        Err(TerminalError::Refused { .. }) => return Ok(BTreeMap::new()),
        listed => listed?,
    };
    let read = |line: &str| {
        let (seconds, run) = line.split_once(' ')?;
        Some((run.to_owned(), UNIX_EPOCH + Duration::from_secs(seconds.parse().ok()?)))
    };
    Ok(listed.lines().filter_map(read).collect())
}

/// Types a text into a run's terminal, and submits it once it shows.
pub fn send(keeper_dir: &Path, run: &str, text: &str) -> Result<Sent, TerminalError> {
    let server = Server::of(keeper_dir);
    let pane = find(&server, run)?;
    let before = count_shown(&server, &pane, text)?;
    type_in(&server, &pane, run, text)?;
    let sent = await_echo(&server, &pane, text, before)?;
    // The character itself: what the key called Enter sends depends on what the program has asked of the terminal.
    stdout_of(server.command().args(["send-keys", "-t", &pane.pane, "-H", "0d"]))?;
    Ok(sent)
}

/// Several lines are pasted, so that a program that can tell does not take each of them for a submitted one.
fn type_in(server: &Server, pane: &Pane, run: &str, text: &str) -> Result<(), TerminalError> {
    let text = text.trim_end_matches(['\r', '\n']);
    if text.contains(['\r', '\n']) || text.len() > ARGUMENT_BYTES_MAX {
        let buffer = format!("gt-{run}");
        answer_to(server.command().args(["load-buffer", "-b", &buffer, "-"]), text)?;
        stdout_of(server.command().args(["paste-buffer", "-d", "-p", "-b", &buffer, "-t", &pane.pane]))?;
    } else if !text.is_empty() {
        stdout_of(server.command().args(["send-keys", "-t", &pane.pane, "-l", "--", &argument(text)]))?;
    }
    Ok(())
}

/// tmux takes a semicolon at the end of an argument for the end of a command.
fn argument(text: &str) -> String {
    text.strip_suffix(';').map_or_else(|| text.to_owned(), |rest| format!("{rest}\\;"))
}

/// Waits until the text shows once more than before.
fn await_echo(server: &Server, pane: &Pane, text: &str, before: usize) -> Result<Sent, TerminalError> {
    let deadline = Instant::now() + ECHO_MAX;
    while count_shown(server, pane, text)? <= before {
        if Instant::now() >= deadline {
            return Ok(Sent::Unseen);
        }
        // Nothing tells when a program has drawn what was typed.
        poll(&mut [], Some(&ECHO_PAUSE)).ok();
    }
    Ok(Sent::Shown)
}

/// How often the end of a text stands on the screen, blanks and line breaks aside: programs draw frames around their input.
fn count_shown(server: &Server, pane: &Pane, text: &str) -> Result<usize, TerminalError> {
    let last_line = text.trim_end().lines().last().unwrap_or_default();
    let wanted = without_blanks(last_line);
    if wanted.is_empty() {
        return Ok(0);
    }
    let tail: String = wanted.chars().rev().take(24).collect::<Vec<_>>().into_iter().rev().collect();
    Ok(without_blanks(&screen(server, pane, "0")?).matches(&tail).count())
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

fn screen(server: &Server, pane: &Pane, from: &str) -> Result<String, TerminalError> {
    stdout_of(server.command().args(["capture-pane", "-p", "-J", "-S", from, "-t", &pane.pane]))
}

/// The pane of a run, by the run's id.
fn find(server: &Server, run: &str) -> Result<Pane, TerminalError> {
    let not_there = || TerminalError::NoTerminal { run: run.to_owned() };
    if tmux_program().is_none() {
        return Err(TerminalError::NotInstalled);
    }
    if run.is_empty() {
        // It would be the sessions that are no run's.
        return Err(not_there());
    }
    let listed = match stdout_of(server.command().args(["list-panes", "-a", "-F", LIST_FORMAT])) {
        // No server: then no run has a terminal.
        Err(TerminalError::Refused { .. }) => return Err(not_there()),
        listed => listed?,
    };
    let panes = listed.lines().filter_map(Pane::parse_listed).filter(|(_, state)| state.run == run);
    let eldest = panes.map(|(pane, _)| pane).reduce(|one, other| if other.is_elder_than(&one) { other } else { one });
    eldest.ok_or_else(not_there)
}

fn is_new_enough(version: &str) -> bool {
    // Besides `3.3a` there are `next-3.6` and `openbsd-7.5`; the latter go with the newest.
    let numbers = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let mut parts = numbers.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().unwrap_or(0)
    });
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= VERSION_MIN
}

fn stdout_of(command: &mut Command) -> Result<String, TerminalError> {
    answer_to(command, "")
}

fn answer_to(command: &mut Command, input: &str) -> Result<String, TerminalError> {
    let no_answer = |error: io::Error| TerminalError::NoAnswer { cause: error.to_string() };
    let input = memory::file_of(input).map_err(no_answer)?;
    let spawned = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = spawned.and_then(output_in_time).map_err(no_answer)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(TerminalError::Refused { cause: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}

fn output_in_time(mut child: Child) -> io::Result<Output> {
    let deadline = Instant::now() + ANSWER_MAX;
    let mut stdout = child.stdout.take().expect("its standard output is a pipe");
    let mut text = Vec::new();
    loop {
        let mut waiting = [PollFd::new(&stdout, PollFlags::IN)];
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        if rustix::io::retry_on_intr(|| poll(&mut waiting, Some(&left)))? == 0 {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it said nothing for {} seconds", ANSWER_MAX.as_secs())));
        }
        let mut chunk = [0; 1 << 14];
        match stdout.read(&mut chunk)? {
            0 => break,
            n_bytes => text.extend_from_slice(&chunk[..n_bytes]),
        }
    }
    drop(stdout);
    Ok(Output { stdout: text, ..child.wait_with_output()? })
}

#[cfg(test)]
mod tests;
