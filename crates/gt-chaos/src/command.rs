//! Running a command to its end, or to the moment at which it is killed.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::pause::pause;

/// How long a command may take on a very busy machine before it counts as hanging.
pub(crate) const COMMAND_MAX: Duration = Duration::from_mins(2);

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Exit {
        code: i32,
        stdout: String,
        stderr: String,
    },
    /// We killed it on purpose, or something else did.
    Killed,
    Hung,
}

impl Ending {
    /// What it printed, if it ended well.
    pub(crate) fn success(self) -> Option<String> {
        match self {
            Ending::Exit { code: 0, stdout, .. } => Some(stdout),
            _ => None,
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exit { code, stdout, stderr } => {
                write!(f, "exit {code}: {}{}", stdout.trim(), stderr.trim())
            }
            Ending::Killed => f.write_str("killed"),
            Ending::Hung => f.write_str("did not end"),
        }
    }
}

/// Runs a command; kills it after `cut`, if that is given and comes first.
pub(crate) fn run(command: &mut Command, cut: Option<Duration>) -> Ending {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return Ending::Exit { code: -1, stdout: String::new(), stderr: error.to_string() },
    };
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let limit = cut.unwrap_or(COMMAND_MAX);
    let Some(status) = await_exit(&mut child, limit) else {
        child.kill().unwrap_or_default();
        child.wait().ok();
        return if cut.is_some() { Ending::Killed } else { Ending::Hung };
    };
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    match status.code() {
        Some(code) => Ending::Exit { code, stdout, stderr },
        None => Ending::Killed,
    }
}

/// None if it does not end in time.
fn await_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        pause(left.min(Duration::from_millis(3)));
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).ok();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_by_itself_or_is_cut() {
        let ending = run(Command::new("sh").args(["-c", "echo out; exit 3"]), None);
        assert!(matches!(&ending, Ending::Exit { code: 3, stdout, .. } if stdout == "out\n"), "{ending}");
        let ending = run(Command::new("sleep").arg("60"), Some(Duration::from_millis(5)));
        assert!(matches!(ending, Ending::Killed), "{ending}");
    }
}
